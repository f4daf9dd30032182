/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf-c with its memory in an arena.
 *
 * A megabyte of empty strings unpacks to 36 MiB: the arena's tb_mem is the limit, and unpack answers
 * NULL when it is reached. It answers NULL as well where there is no memory: then arena.is_short, and the message may be
 * a good one. Nothing is freed one by one: reset or fini the arena when the message has
 * been read, and never call the message's own free_unpacked().
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
