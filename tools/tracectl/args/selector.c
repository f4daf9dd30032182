/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/selector.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/hex.h"

static bool parse_number(const char *text, const char *end, uint64_t *out) {
  char *stop;

  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *out = strtoull(text, &stop, 10);
  return errno == 0 && stop == end;
}

/* "A..B", "A..", "..B" or "A". */
tb_rc tk_read_generations(const struct tk_option *option, const char *value, void *field,
                          struct tb_diag *diag) {
  const char *dots = strstr(value, ".."), *end = value + strlen(value);
  struct tk_selector *s = field;
  bool fits;

  if (dots == NULL) {
    fits = parse_number(value, end, &s->first_gen) && s->first_gen != 0;
    s->last_gen = s->first_gen;
  } else {
    fits = dots == value || (parse_number(value, dots, &s->first_gen) && s->first_gen != 0);
    fits = fits &&
           (dots + 2 == end || (parse_number(dots + 2, end, &s->last_gen) && s->last_gen != 0));
    fits = fits && end - value > 2;
  }
  if (fits) return TB_OK;
  return tk_option_needs(option, "generations A..B, numbered from 1", value, diag);
}

static tb_rc read_stream(const struct tk_option *option, const char *value, void *field,
                         struct tb_diag *diag) {
  struct tk_selector *s = field;
  size_t n = strlen(value), digits = 0;

  while (tb_hex_digit(value[digits]) >= 0) digits++;
  if (n == 0 || digits != n || n >= sizeof s->stream_prefix)
    return tk_option_needs(option, "a stream's id, or its first digits as `status` shows them",
                           value, diag);
  s->has_stream = true;
  s->stream_prefix[0] = '\0';
  if (n < sizeof s->stream_prefix - 1)
    memcpy(s->stream_prefix, value, n + 1);
  else
    (void)tb_unhex(value, s->stream, sizeof s->stream);
  return TB_OK;
}

#define AT(member) offsetof(struct tk_selector, member)
const struct tk_option tk_stream_options[] = {
  TK_OPTION(0, "service", "S", tk_read_text, AT(service), "streams of this service"),
  TK_OPTION(0, "instance", "I", tk_read_text, AT(instance), "streams of this instance"),
  TK_OPTION(0, "stream", "HEX", read_stream, 0,
            "this stream; the first digits of its id will do, as `status` shows them"),
  { 0 },
};
const struct tk_option tk_time_options[] = {
  TK_OPTION(0, "since", "T", tk_read_time, AT(since_wall_ns),
            "what was traced at T or later, by the program's own clock: RFC 3339, -5m, now or "
            "@UNIX; whole generations"),
  TK_OPTION(0, "until", "T", tk_read_time, AT(until_wall_ns), "what was traced at T or before"),
  { 0 },
};
const struct tk_option tk_selector_options[] = {
  TK_GROUP(tk_stream_options, 0),
  TK_GROUP(tk_time_options, 0),
  TK_OPTION(0, "last", "SPAN", tk_read_span, AT(last_ns), "of each stream the newest 30s, 5m, 1h"),
  TK_OPTION(0, "gen", "A..B", tk_read_generations, 0,
            "generations by number; A.. and ..B are open"),
  { 0 },
};

bool tk_selector_names_streams(const struct tk_selector *s) {
  return s->service != NULL || s->instance != NULL || s->has_stream;
}

bool tk_selector_is_part(const struct tk_selector *s) {
  return s->since_wall_ns != 0 || s->until_wall_ns != 0 || s->last_ns != 0 || s->first_gen != 0 ||
         s->last_gen != 0;
}

tb_rc tk_selector_segment(struct tk_selector *s, const char *text, struct tb_diag *diag) {
  if (s->segment != 0)
    return tb_fail(diag, TB_BROKEN, "one segment at a time: '%.80s' is too many", text);
  if (parse_number(text, text + strlen(text), &s->segment) && s->segment != 0) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "'%.80s' is not a segment's id; `list` shows them", text);
}

tb_rc tk_selector_check(const struct tk_selector *s, struct tb_diag *diag) {
  if (s->segment != 0 && (tk_selector_names_streams(s) || tk_selector_is_part(s)))
    return tb_fail(diag, TB_BROKEN, "a segment's id cannot be combined with other limits");
  if (s->until_wall_ns != 0 && s->since_wall_ns > s->until_wall_ns)
    return tb_fail(diag, TB_BROKEN, "--since is after --until");
  if (s->last_ns != 0 && (s->since_wall_ns != 0 || s->until_wall_ns != 0))
    return tb_fail(diag, TB_BROKEN, "--last cannot be combined with --since or --until");
  if (s->last_gen != 0 && s->first_gen > s->last_gen)
    return tb_fail(diag, TB_BROKEN, "--gen: the first generation is after the last");
  return TB_OK;
}

void tk_selector_message(const struct tk_selector *s, Tracecollect__V1__Selector *out) {
  assert(s->stream_prefix[0] == '\0'); /* tk_remote_open() completes it */
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
