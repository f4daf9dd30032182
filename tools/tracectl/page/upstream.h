/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a collector, many at a time, whose answers are passed on as they come: libcurl on a libuv loop.
 *
 * Memory    a question's body is lent until its end; fields are copied. libcurl has one buffer a question.
 * Threads   the loop's.
 * Time      5 s to connect, and a byte of the answer each 60 s, unless the reader holds it.
 * Errors    open: a certificate that cannot be read. Those of a question reach end(), in words.
 */
#ifndef TK_PAGE_UPSTREAM_H
#define TK_PAGE_UPSTREAM_H

#include <uv.h>

#include "tools/tracectl/remote/endpoint.h"

struct tk_upstream;
struct tk_relay;

TB_MUST tb_rc tk_upstream_open(uv_loop_t *loop, const struct tk_endpoint *where,
                               struct tb_diag *diag, struct tk_upstream **out);
/* All relays have ended. Its handles close in later turns of the loop, then call closed(). */
void tk_upstream_close(struct tk_upstream *up, void (*closed)(void *self), void *self);

enum tk_taken { TK_TAKEN, TK_HOLD, TK_GIVE_UP };

/* None of them may end a relay. */
struct tk_relay_ops {
  /* A field of the answer's head, "Name: value", without its line end. */
  void (*field)(void *self, const char *line, size_t n);
  /* The head is complete. */
  enum tk_taken (*head)(void *self, unsigned status);
  /* HOLD: nothing was taken; the same bytes come again after tk_relay_resume(). */
  enum tk_taken (*body)(void *self, const char *bytes, size_t n);
  /* why: NULL if the answer was complete. The relay is gone afterwards. */
  void (*end)(void *self, const char *why);
};

struct tk_relay_ask {
  const char *method;        /* "GET" */
  const char *target;        /* path and query, encoded */
  const char *const *fields; /* "Name: value", NULL-terminated */
  const void *body;          /* NULL: none */
  size_t len;
};

TB_MUST tb_rc tk_relay_begin(struct tk_upstream *up, const struct tk_relay_ask *ask,
                             const struct tk_relay_ops *ops, void *self, struct tk_relay **out);
void tk_relay_resume(struct tk_relay *relay);
void tk_relay_drop(struct tk_relay *relay); /* without end(); accepts NULL */

#endif
