/* SPDX-License-Identifier: Apache-2.0 */
/* A number in each object that threads hand to each other. Who makes the object sets the number, who takes
 * the object checks it, and who releases the object changes it. An object that was released before, or is of another
 * kind, therefore ends the process where it is taken, in every build.
 *
 *   reply->magic = TC_REPLY_MAGIC;             made
 *   TB_MAGIC_CHECK(reply, TC_REPLY_MAGIC);     taken
 *   TB_MAGIC_END(reply, TC_REPLY_MAGIC);       before free()
 *
 * Memory    four bytes an object, behind its first sixteen: free() writes there.
 */
#ifndef TB_MAGIC_H
#define TB_MAGIC_H

#include <assert.h>
#include <stdint.h>

enum { TB_MAGIC_ENDED = 0x0dead0b7 };

#define TB_MAGIC_CHECK(object, number) \
  assert((object)->magic == (number) && "this object was released, or is of another kind")

/* Volatile: a compiler leaves out what is stored just before free(). */
#define TB_MAGIC_END(object, number)                                   \
  do {                                                                 \
    TB_MAGIC_CHECK(object, number);                                    \
    *(volatile uint32_t *)&(object)->magic = (uint32_t)TB_MAGIC_ENDED; \
  } while (0)

#endif
