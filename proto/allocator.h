/* SPDX-License-Identifier: Apache-2.0 */
/* A protobuf-c allocator over malloc that tells lack of memory from a message that does not parse: unpack returns NULL
 * for both, and durable data must not be dropped because a few bytes could not be allocated.
 *
 *   struct tp_allocator heap;
 *   tp_allocator_init(&heap);
 *   Close *close = tracecollect__v1__close__unpack(&heap.allocator, len, payload);
 *   if (close == NULL && heap.is_short) return TB_NOMEM;
 *   ...
 *   tracecollect__v1__close__free_unpacked(close, NULL);
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TC_PROTO_ALLOCATOR_H
#define TC_PROTO_ALLOCATOR_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct tp_allocator {
  ProtobufCAllocator allocator; /* allocator_data points to this struct: do not move it */
  bool is_short;                /* an allocation failed */
};

void tp_allocator_init(struct tp_allocator *heap);

#endif
