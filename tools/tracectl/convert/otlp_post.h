/* SPDX-License-Identifier: Apache-2.0 */
/* Where OpenTelemetry's messages go over HTTP (OTLP/HTTP, protobuf): to URL with path behind it, or to URL if it ends so. Headers of
 * one's own, for authorization, come from OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE,NAME=VALUE, percent-encoded.
 *
 * 429, 502, 503 and 504 are tried again, after as long as the answer says; at most five times.
 *
 * Errors    TB_IO: it is not taken; TB_BROKEN: the headers are wrong; TB_NOMEM. diag says why.
 */
#ifndef TK_CONVERT_OTLP_POST_H
#define TK_CONVERT_OTLP_POST_H

#include "base/result.h"

struct tk_otlp_post;

TB_MUST tb_rc tk_otlp_post_new(const char *url, const char *path, struct tb_diag *diag,
                               struct tk_otlp_post **out);
void tk_otlp_post_free(struct tk_otlp_post *post); /* NULL is fine */
TB_MUST tb_rc tk_otlp_post(struct tk_otlp_post *post, const void *message, size_t len,
                           struct tb_diag *diag);

#endif
