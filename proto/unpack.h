/* SPDX-License-Identifier: Apache-2.0 */
/* A protobuf-c allocator in an arena.
 *
 * A megabyte of empty strings unpacks to 36 MiB: the arena's tb_mem is the limit. Unpack returns NULL when it is
 * reached, and also if memory cannot be allocated: then arena.is_short, and the message may be valid. Nothing is freed
 * one by one: reset or fini the arena after reading, and never call the message's own free_unpacked().
 *
 *   ProtobufCAllocator allocator = tp_arena_allocator(&arena);
 *   Hello *hello = tracecollect__v1__hello__unpack(&allocator, len, payload);
 *
 * Memory    the arena's; what is unpacked is valid until its reset.
 * Threads   as the arena.
 */
#ifndef TP_UNPACK_H
#define TP_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

ProtobufCAllocator tp_arena_allocator(struct tb_arena *arena);

#endif
