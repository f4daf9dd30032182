/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that hold unless we made a mistake: assert() for code that also lives in other people's programs.
 *
 *   if (!TB_CHECK(mem->bytes >= bytes)) return TB_BUDGET;
 *
 * On a thread with a keeper a failed check is noted there and its caller backs out; the owner of the keeper
 * turns itself off. On any other thread it says where and aborts.
 *
 * Memory    the keeper is the caller's and outlives its use.
 * Threads   any; a keeper may serve several at once.
 */
#ifndef TB_CHECK_H
#define TB_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>

struct tb_keeper {
  atomic_uint failed;
  const char *_Atomic where; /* the first that failed, or NULL */
};

/* For the calling thread; NULL: none. Answers the one before. */
struct tb_keeper *tb_check_keep(struct tb_keeper *keeper);

bool tb_check_failed(const char *where); /* false, if it returns */

#define TB_CHECK(truth) ((truth) ? true : tb_check_failed(__FILE_NAME__ ": " #truth))

#endif
