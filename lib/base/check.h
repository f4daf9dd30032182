/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions for code that also runs inside other people's programs, where a bug of ours must not abort.
 *
 *   if (!TB_CHECK(mem->bytes >= bytes)) return TB_BUDGET;
 *
 * On a thread with a keeper, a failed check is counted in the keeper and the caller backs out; the owner of the
 * keeper turns itself off. On any other thread a failed check prints its place and aborts.
 *
 * Memory    the keeper belongs to the caller and must outlive its use.
 * Threads   any; a keeper may serve several at once.
 */
#ifndef TB_CHECK_H
#define TB_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>

struct tb_keeper {
  atomic_uint failed;
  const char *_Atomic where; /* the first failed check, or NULL */
};

/* Sets the keeper of the calling thread (NULL: none) and returns the previous one. */
struct tb_keeper *tb_check_keep(struct tb_keeper *keeper);

bool tb_check_failed(const char *where); /* aborts or returns false */

#define TB_CHECK(truth) ((truth) ? true : tb_check_failed(__FILE_NAME__ ": " #truth))

#endif
