/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/hex.h"
#include "config/times.h"
#include "proto/json.h"
#include "proto/names.h"

enum { TEXT_BYTES_MAX = 16 << 10, SUMMARY_BYTES = 1024 };

static void put_plain(struct tb_buf *out, const Tracecollect__V1__Firing *f, const char *ended,
                      const char *stream) {
  tb_buf_printf(out, "rule: %s\nservice: %s\ninstance: %s\nstream: %s\n", f->rule, f->service,
                f->instance, stream);
  tb_buf_printf(out, "generation: %" PRIu64 "\nended: %s\nsaw: %s\n", f->gen, ended, f->words);
}

static void put_field(struct tb_buf *out, const char *name, const char *text) {
  tb_buf_printf(out, ",\"%s\":", name);
  tp_json_text(out, text);
}

/* Chat systems show "text" unchanged. */
static void put_json(struct tb_buf *out, const Tracecollect__V1__Firing *f, const char *ended,
                     const char *stream) {
  char summary[SUMMARY_BYTES];

  snprintf(summary, sizeof summary, "%s: %s/%s, generation %" PRIu64 ": %s", f->rule, f->service,
           f->instance, f->gen, f->words);
  tb_buf_text(out, "{\"type\":\"trigger.fired\"");
  put_field(out, "timestamp", ended);
  put_field(out, "text", summary);
  tb_buf_printf(out, ",\"data\":{\"id\":\"%" PRIu64 "\",\"gen\":%" PRIu64 ",\"wall_ns\":%" PRIu64,
                f->id, f->gen, f->wall_ns);
  put_field(out, "rule", f->rule);
  put_field(out, "service", f->service);
  put_field(out, "instance", f->instance);
  put_field(out, "stream", stream);
  put_field(out, "words", f->words);
  tb_buf_text(out, "}}");
}

tb_rc ac_text(enum ac_kind kind, const Tracecollect__V1__Firing *firing, char **out,
              size_t *out_len) {
  char ended[TC_TIME_BYTES], stream[2 * TC_STREAM_BYTES + 1] = "";
  struct tb_buf text;
  struct tb_mem mem;

  *out = NULL;
  tc_time_format(firing->wall_ns != 0 ? firing->wall_ns : firing->id, ended);
  if (firing->stream.len == TC_STREAM_BYTES) tb_hex(firing->stream.data, TC_STREAM_BYTES, stream);
  tb_mem_init(&mem, tb_mem_libc, NULL, TEXT_BYTES_MAX);
  tb_buf_init(&text, &mem);
  if (kind == AC_EXEC)
    put_plain(&text, firing, ended, stream);
  else
    put_json(&text, firing, ended, stream);
  tb_rc rc = text.rc;
  if (rc == TB_OK && (*out = malloc(text.len)) == NULL) rc = TB_NOMEM;
  if (rc == TB_OK) memcpy(*out, text.data, *out_len = text.len);
  tb_buf_fini(&text);
  return rc;
}
