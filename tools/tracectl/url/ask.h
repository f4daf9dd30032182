/* SPDX-License-Identifier: Apache-2.0 */
/* One GET over HTTP, with redirects: what headers, credentials and certificates go where, and what an answer that is no trace
 * means.
 *
 * Threads   any, but tk_url_stop() is for another one than that of tk_url_get().
 */
#ifndef TK_URL_ASK_H
#define TK_URL_ASK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"
#include "tools/tracectl/args/options.h"

enum { TK_URL_TEXT_BYTES = 2048 };

struct tk_url_terms {
  unsigned seconds;
  bool has_seconds, wait;
  struct tk_texts headers; /* "Name: value" */
  const char *ca, *cert, *key, *keep;
};

struct tk_url_ask {
  char url[TK_URL_TEXT_BYTES];   /* as it is requested, */
  char shown[TK_URL_TEXT_BYTES]; /* without name and password, */
  char origin[256];              /* and only http://host:port */
  bool is_trace;                 /* /debug/pprof/trace: the program is traced for this */
  unsigned seconds;              /* how long, if it is known */
};

/* Reads a URL as the user writes it. TB_BROKEN: it cannot be used. */
TB_MUST tb_rc tk_url_parse(const char *text, const struct tk_url_terms *terms, struct tb_diag *diag,
                           struct tk_url_ask *out);

typedef tb_rc tk_url_take_fn(void *self, const void *bytes, size_t n);

/* take: gets the body of a good answer; its error ends the request, and is returned. TB_END: stopped. Others: TB_IO, with
 * the reason in diag. */
TB_MUST tb_rc tk_url_get(const struct tk_url_ask *ask, const struct tk_url_terms *terms,
                         const atomic_bool *stopped, tk_url_take_fn *take, void *self,
                         struct tb_diag *diag);

#endif
