/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of OpenTelemetry's spans and metrics: TracesData and MetricsData use the same field numbers for the stream, and are
 * written to a file or posted to a URL.
 *
 * Memory    buffers of tk_mem, kept until fini.
 * Errors    of open and send: those of a format.
 */
#ifndef TK_CONVERT_OTLP_DATA_H
#define TK_CONVERT_OTLP_DATA_H

#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/convert/message.h"
#include "tools/tracectl/convert/otlp_post.h"

enum { TK_OTLP_ITEMS = 2 }; /* field of ScopeSpans and ScopeMetrics */

struct tk_otlp_data {
  FILE *file;
  struct tk_otlp_post *post; /* NULL: the file */
  struct tb_diag *diag;
  struct tb_buf pair, value, scope, resource, message;
};

/* path: appended to the options' URL, if there is one. */
TB_MUST tb_rc tk_otlp_data_open(struct tk_otlp_data *data, FILE *file,
                                const struct tk_format_options *options, const char *path);
void tk_otlp_data_fini(struct tk_otlp_data *data); /* call even if open failed */

/* Writes a KeyValue into a field of out. */
void tk_otlp_put_text(struct tk_otlp_data *data, struct tb_buf *out, unsigned field,
                      const char *key, struct to_string text);
void tk_otlp_put_int(struct tk_otlp_data *data, struct tb_buf *out, unsigned field, const char *key,
                     int64_t number);

/* Sends the stream's items, and clears them. */
TB_MUST tb_rc tk_otlp_send(struct tk_otlp_data *data, const struct tk_stream *stream,
                           struct tb_buf *items);

#endif
