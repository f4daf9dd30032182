/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "config/times.h"

static bool parse_number(const char *text, const char *end, uint64_t *out) {
  char *stop;

  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *out = strtoull(text, &stop, 10);
  return errno == 0 && stop == end;
}

tb_rc tk_selector_goroutine(const char *text, uint64_t *out, struct tb_diag *diag) {
  if (parse_number(text, text + strlen(text), out) && *out != 0 && *out <= INT64_MAX) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "--goroutine: \"%.80s\" is no goroutine's number", text);
}

/* "A..B", "A..", "..B" or "A". */
static tb_rc parse_generations(struct tk_selector *s, const char *text, struct tb_diag *diag) {
  const char *dots = strstr(text, ".."), *end = text + strlen(text);
  bool fits;

  if (dots == NULL) {
    fits = parse_number(text, end, &s->first_gen) && s->first_gen != 0;
    s->last_gen = s->first_gen;
  } else {
    fits = dots == text || (parse_number(text, dots, &s->first_gen) && s->first_gen != 0);
    fits = fits &&
           (dots + 2 == end || (parse_number(dots + 2, end, &s->last_gen) && s->last_gen != 0));
    fits = fits && end - text > 2;
  }
  if (fits) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "--gen: \"%.80s\" is not A..B: generations are numbered from 1",
                 text);
}

static tb_rc parse_stream(struct tk_selector *s, const char *text, struct tb_diag *diag) {
  s->has_stream =
      strlen(text) == 2 * sizeof s->stream && tb_unhex(text, s->stream, sizeof s->stream);
  if (s->has_stream) return TB_OK;
  return tb_fail(diag, TB_BROKEN,
                 "--stream: \"%.80s\" is not the 32 hexadecimal digits `list` shows", text);
}

tb_rc tk_selector_option(struct tk_selector *s, int option, const char *value,
                         struct tb_diag *diag) {
  switch (option) {
  case TK_OPT_SERVICE: s->service = value; return TB_OK;
  case TK_OPT_INSTANCE: s->instance = value; return TB_OK;
  case TK_OPT_STREAM: return parse_stream(s, value, diag);
  case TK_OPT_SINCE: return tc_time_parse(value, tc_wall_ns(), diag, &s->since_wall_ns);
  case TK_OPT_UNTIL: return tc_time_parse(value, tc_wall_ns(), diag, &s->until_wall_ns);
  case TK_OPT_LAST: return tc_span_parse(value, diag, &s->last_ns);
  case TK_OPT_GEN: return parse_generations(s, value, diag);
  default: return TB_NOTFOUND;
  }
}

tb_rc tk_selector_segment(struct tk_selector *s, const char *text, struct tb_diag *diag) {
  if (s->segment != 0)
    return tb_fail(diag, TB_BROKEN, "one segment at a time: \"%.80s\" is too many", text);
  if (parse_number(text, text + strlen(text), &s->segment) && s->segment != 0) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "\"%.80s\" is not a segment's id; `list` shows them", text);
}

tb_rc tk_selector_check(const struct tk_selector *s, struct tb_diag *diag) {
  bool others = s->service != NULL || s->instance != NULL || s->has_stream ||
                s->since_wall_ns != 0 || s->until_wall_ns != 0 || s->last_ns != 0 ||
                s->first_gen != 0 || s->last_gen != 0;

  if (s->segment != 0 && others)
    return tb_fail(diag, TB_BROKEN, "a segment's id stands alone, without other limits");
  if (s->until_wall_ns != 0 && s->since_wall_ns > s->until_wall_ns)
    return tb_fail(diag, TB_BROKEN, "--since lies after --until");
  if (s->last_ns != 0 && (s->since_wall_ns != 0 || s->until_wall_ns != 0))
    return tb_fail(diag, TB_BROKEN, "--last and --since or --until exclude each other");
  if (s->last_gen != 0 && s->first_gen > s->last_gen)
    return tb_fail(diag, TB_BROKEN, "--gen: the first generation lies after the last");
  return TB_OK;
}

void tk_selector_message(const struct tk_selector *s, Tracecollect__V1__Selector *out) {
  tracecollect__v1__selector__init(out);
  out->segment = s->segment;
  /* protobuf-c's strings are not const; packing only reads them */
  if (s->service != NULL) out->service = (char *)(uintptr_t)s->service;
  if (s->instance != NULL) out->instance = (char *)(uintptr_t)s->instance;
  if (s->has_stream)
    out->stream =
        (ProtobufCBinaryData){ .len = sizeof s->stream, .data = (uint8_t *)(uintptr_t)s->stream };
  out->since_wall_ns = s->since_wall_ns;
  out->until_wall_ns = s->until_wall_ns;
  out->last_ns = s->last_ns;
  out->since_arrival_ns = s->since_arrival_ns;
  out->first_gen = s->first_gen;
  out->last_gen = s->last_gen;
}
