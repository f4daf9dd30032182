/* SPDX-License-Identifier: Apache-2.0 */
/* A number in each object that is handed from thread to thread: set by the maker, checked by the receiver, changed on
 * release. Receiving an object that was released, or is of another type, therefore aborts, in every build.
 *
 *   reply->magic = TC_REPLY_MAGIC;             made
 *   TB_MAGIC_CHECK(reply, TC_REPLY_MAGIC);     taken
 *   TB_MAGIC_END(reply, TC_REPLY_MAGIC);       before free()
 *
 * Memory    four bytes an object, after its first sixteen, which free() overwrites.
 */
#ifndef TB_MAGIC_H
#define TB_MAGIC_H

#include <assert.h>
#include <stdint.h>

enum { TB_MAGIC_ENDED = 0x0dead0b7 };

#define TB_MAGIC_CHECK(object, number)                                                             \
  assert((object)->magic == (number) && "this object was released, or is of another kind")

/* Volatile: compilers drop a store just before free(). */
#define TB_MAGIC_END(object, number)                                                               \
  do {                                                                                             \
    TB_MAGIC_CHECK(object, number);                                                                \
    *(volatile uint32_t *)&(object)->magic = (uint32_t)TB_MAGIC_ENDED;                             \
  } while (0)

#endif
