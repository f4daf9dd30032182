/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP POST with libcurl: the system's trusted authorities, proxies from the environment, no redirects. The answer's
 * head decides; its body is ignored after at most 64 KiB and a second or two.
 *
 * Memory    all is lent for the call.
 * Threads   any, each with its own call; tp_post_init() before them.
 * Errors    TB_IO: no answer, diag has the reason; TB_BUSY: stop_fd became readable; TB_NOMEM.
 */
#ifndef TP_POST_H
#define TP_POST_H

#include <stddef.h>

#include "base/result.h"

struct tp_post {
  const char *url;
  const char *const *headers; /* "Name: value", NULL-terminated */
  const void *body;
  size_t len;
  unsigned timeout_s;
  int stop_fd; /* -1: none */
};

struct tp_posted {
  unsigned status;        /* HTTP's */
  unsigned retry_after_s; /* 0: not in the answer */
};

TB_MUST tb_rc tp_post_init(void); /* call once in a process */
TB_MUST tb_rc tp_post(const struct tp_post *post, struct tb_diag *diag, struct tp_posted *out);

#endif
