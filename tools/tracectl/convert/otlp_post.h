/* SPDX-License-Identifier: Apache-2.0 */
/* Posts OpenTelemetry's messages over HTTP (OTLP/HTTP, protobuf), to URL with path appended, or to URL if it ends with path. More
 * headers, for authorization, come from OTEL_EXPORTER_OTLP_HEADERS: NAME=VALUE,NAME=VALUE, percent-encoded.
 *
 * 429, 502, 503 and 504 are retried at most five times, after the pause that the answer asks for.
 *
 * Errors    TB_IO: refused; TB_BROKEN: the headers are wrong; TB_NOMEM. diag has the reason.
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
