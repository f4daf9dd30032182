/* SPDX-License-Identifier: Apache-2.0 */
/* Around OpenTelemetry's spans and metrics: TracesData and MetricsData say with the same numbers which stream they are of.
 *
 * Memory    buffers of tk_mem, kept until fini.
 */
#ifndef TK_CONVERT_OTLP_DATA_H
#define TK_CONVERT_OTLP_DATA_H

#include "tools/tracectl/convert/message.h"
#include "tools/tracectl/convert/walk.h"

enum { TK_OTLP_ITEMS = 2 }; /* the field of ScopeSpans and ScopeMetrics that the items are in */

struct tk_otlp_data {
  struct tb_buf pair, value, scope, resource, message;
};

void tk_otlp_data_init(struct tk_otlp_data *data);
void tk_otlp_data_fini(struct tk_otlp_data *data);

/* A KeyValue in field of out. */
void tk_otlp_put_text(struct tk_otlp_data *data, struct tb_buf *out, unsigned field,
                      const char *key, struct to_string text);
void tk_otlp_put_int(struct tk_otlp_data *data, struct tb_buf *out, unsigned field, const char *key,
                     int64_t number);

/* data->message is all of a TracesData or MetricsData of that stream; items are cleared. */
TB_MUST tb_rc tk_otlp_put_data(struct tk_otlp_data *data, const struct tk_stream *stream,
                               struct tb_buf *items);

#endif
