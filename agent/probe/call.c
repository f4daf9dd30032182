/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a passed tracepoint as data and as text, for probes that fit any tracepoint. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/host/keep.h"
#include "agent/probe/call.h"

/* Limits a buffer's size: with SIZE_MAX its end pointer would wrap around. */
enum { TEXT_BYTES_MAX = 1 << 30 };

void ta_call_run(void *self, const struct ta_arg *args) {
  const struct ta_probe *probe = self;
  const struct ta_tracepoint *at = probe == NULL ? NULL : probe->at;

  if (at == NULL || probe->call == NULL || (args == NULL && at->n > 0)) return;
  struct ta_call call = {
    .module = at->module, .name = at->name, .params = at->params, .args = args, .n = at->n
  };

  probe->call(probe->call_self, &call);
}

void ta__point(char *number) {
  static const char plain[] = "0123456789+-aefinAEFIN";
  char *from = number + strspn(number, plain), *to = from;

  if (*from == '\0') return;
  while (*to != '\0' && strchr(plain, *to) == NULL) to++;
  *from = '.';
  memmove(from + 1, to, strlen(to) + 1);
}

void ta__real_text(double real, char out[TA_REAL_BYTES]) {
  snprintf(out, TA_REAL_BYTES, "%.9g", real);
  ta__point(out);
}

/* Text. Bytes that do not fit are left out. */

struct line {
  char *pos, *end; /* one more byte after end is for the NUL */
};

static void add_format(struct line *line, const char *fmt, ...) TB_PRINTF(2, 3);

static void add_format(struct line *line, const char *fmt, ...) {
  size_t room = (size_t)(line->end - line->pos);
  va_list args;

  va_start(args, fmt);
  int n = vsnprintf(line->pos, room + 1, fmt, args);
  va_end(args);
  if (n > 0) line->pos += (size_t)n < room ? (size_t)n : room;
}

static void add_byte(struct line *line, char byte) {
  if (line->pos < line->end) *line->pos++ = byte;
}

static void add_quoted(struct line *line, const char *text) {
  add_byte(line, '"');
  for (; *text != '\0' && line->pos < line->end; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte == 0x7f) {
      add_format(line, "\\x%02x", byte);
      continue;
    }
    if (byte == '"' || byte == '\\') add_byte(line, '\\');
    add_byte(line, *text);
  }
  add_byte(line, '"');
}

static void add_value(struct line *line, const struct ta_arg *arg) {
  char real[TA_REAL_BYTES];

  switch (arg->kind) {
  case TA_ARG_INT: add_format(line, "%" PRId64, arg->is.i); return;
  case TA_ARG_UINT: add_format(line, "%" PRIu64, arg->is.u); return;
  case TA_ARG_BOOL: add_format(line, "%s", arg->is.u != 0 ? "true" : "false"); return;
  case TA_ARG_REAL:
    ta__real_text(arg->is.real, real);
    add_format(line, "%s", real);
    return;
  case TA_ARG_POINTER: add_format(line, "%p", arg->is.pointer); return;
  case TA_ARG_TEXT:
    if (arg->is.text != NULL)
      add_quoted(line, arg->is.text);
    else
      add_format(line, "NULL");
  }
}

static size_t end_line(struct line *line, const char *begin) {
  *line->pos = '\0';
  return (size_t)(line->pos - begin);
}

size_t ta__call_args_from(const struct ta_call *call, unsigned first, const char *between,
                          char *out, size_t bytes) {
  struct line line = { out, out + bytes - 1 };

  for (unsigned i = first; i < call->n; i++) {
    add_format(&line, "%s%s=", i > first ? between : "", call->params[i].name);
    add_value(&line, &call->args[i]);
  }
  return end_line(&line, out);
}

size_t ta__call_args(const struct ta_call *call, const char *between, char *out, size_t bytes) {
  return ta__call_args_from(call, 0, between, out, bytes);
}

static bool is_whole(const struct ta_call *call) {
  return call != NULL && call->module != NULL && call->name != NULL &&
         (call->n == 0 || (call->params != NULL && call->args != NULL));
}

size_t ta_call_text(const struct ta_call *call, char *out, size_t bytes) {
  KEEP_ERRNO;

  if (out == NULL || bytes == 0) return 0;
  if (bytes > TEXT_BYTES_MAX) bytes = TEXT_BYTES_MAX;
  struct line line = { out, out + bytes - 1 };
  if (!is_whole(call)) return end_line(&line, out);
  add_format(&line, "%s.%s(", call->module, call->name);
  line.pos += ta__call_args(call, ", ", line.pos, (size_t)(line.end - line.pos) + 1);
  add_byte(&line, ')');
  return end_line(&line, out);
}
