/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/hex.h"

enum { NS_IN_MS = 1000000, NS_IN_S = 1000000000 };

bool tp_percent_undo(char *text, bool plus) {
  char *to = text;

  for (const char *from = text; *from != '\0'; from++) {
    char c = *from;

    if (c == '+' && plus) c = ' ';
    if (c == '%') {
      if (!tb_unhex(from + 1, (unsigned char *)&c, 1) || c == '\0') return false;
      from += 2;
    }
    *to++ = c;
  }
  *to = '\0';
  return true;
}

tb_rc tp_query_number(const char *name, const char *text, uint64_t min, uint64_t max,
                      struct tb_diag *diag, uint64_t *out) {
  uint64_t value = 0;
  bool fits = *text != '\0';

  for (const char *c = text; fits && *c != '\0'; c++) {
    fits = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
           !__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
  }
  if (!fits || value < min || value > max)
    return tb_fail(diag, TB_PROTOCOL, "%s=%.40s is not a whole number from %" PRIu64 " to %" PRIu64,
                   name, text, min, max);
  *out = value;
  return TB_OK;
}

static tb_rc read_stream(const char *name, const char *hex, struct tb_diag *diag,
                         unsigned char out[TP_STREAM_BYTES]) {
  size_t digits = strspn(hex, "0123456789abcdef");

  if (digits != 2 * TP_STREAM_BYTES || hex[digits] != '\0' || !tb_unhex(hex, out, TP_STREAM_BYTES))
    return tb_fail(diag, TB_PROTOCOL, "%s=%.40s is not an id of 32 hexadecimal digits", name, hex);
  return TB_OK;
}

/* --- fields of parameters --------------------------------------------------------------------- */

struct place {
  const ProtobufCFieldDescriptor *field;
  char *at; /* NULL: its message is absent */
};

/* Finds a parameter's field. With an arena, creates the message that contains it. */
static tb_rc find_field(const struct tp_param *p, ProtobufCMessage *message, struct tb_arena *arena,
                        struct place *out) {
  const char *dot = strchr(p->field, '.'), *name = p->field;
  char *base = (char *)message;

  if (dot != NULL) {
    char head[32];
    snprintf(head, sizeof head, "%.*s", (int)(dot - name), name);
    const ProtobufCFieldDescriptor *outer =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, head);
    const ProtobufCMessageDescriptor *inner = outer->descriptor;
    ProtobufCMessage **slot = (ProtobufCMessage **)(void *)(base + outer->offset);

    if (*slot == NULL && arena != NULL) {
      TB_TRY(tb_arena_alloc(arena, inner->sizeof_message, slot));
      protobuf_c_message_init(inner, *slot);
    }
    base = (char *)*slot;
    out->field = protobuf_c_message_descriptor_get_field_by_name(inner, dot + 1);
  } else {
    out->field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
  }
  out->at = base != NULL ? base + out->field->offset : NULL;
  return TB_OK;
}

static bool is_in_ms(const struct tp_param *p) {
  size_t n = strlen(p->field);

  return n > 3 && strcmp(p->field + n - 3, "_ms") == 0;
}

static void put_number(const struct place *to, uint64_t value) {
  switch (to->field->type) {
  case PROTOBUF_C_TYPE_BOOL: *(protobuf_c_boolean *)(void *)to->at = value != 0; break;
  case PROTOBUF_C_TYPE_UINT32: *(uint32_t *)(void *)to->at = (uint32_t)value; break;
  default: *(uint64_t *)(void *)to->at = value; break;
  }
}

static uint64_t number_of(const struct place *from) {
  switch (from->field->type) {
  case PROTOBUF_C_TYPE_BOOL: return (uint64_t) * (const protobuf_c_boolean *)(const void *)from->at;
  case PROTOBUF_C_TYPE_UINT32: return *(const uint32_t *)(const void *)from->at;
  default: return *(const uint64_t *)(const void *)from->at;
  }
}

static void put_text(const struct place *to, const char *text) {
  *(const char **)(void *)to->at = text; /* cast: protobuf-c's pointers are not const */
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns the length of the word at *words and moves *words after it; 0: no more words. */
static size_t next_word(const char **words, const char **out) {
  *out = *words + strspn(*words, " ");
  size_t n = strcspn(*out, " ");
  *words = *out + n;
  return n;
}

static tb_rc read_word(const struct tp_param *p, const char *value, struct tb_diag *diag) {
  const char *words = p->words, *word;
  char known[80] = "";

  for (size_t n; (n = next_word(&words, &word)) != 0;) {
    size_t used = strlen(known);

    if (n == strlen(value) && memcmp(word, value, n) == 0) return TB_OK;
    snprintf(known + used, sizeof known - used, "%s%.*s", used > 0 ? ", " : "", (int)n, word);
  }
  return tb_fail(diag, TB_PROTOCOL, "%s=%.40s is not one of %s", p->name, value, known);
}

static tb_rc read_time(const struct tp_param *p, const char *value, const struct tp_times *times,
                       struct tb_diag *diag, uint64_t *out) {
  struct tb_diag why;

  tb_diag_clear(&why);
  if ((p->type == TP_PARAM_TIME ? times->moment : times->span)(value, &why, out) != TB_OK)
    return tb_fail(diag, TB_PROTOCOL, "%s: %.150s", p->name, why.text);
  if (p->type == TP_PARAM_SPAN && *out > p->max)
    return tb_fail(diag, TB_PROTOCOL, "%s=%.40s: more than %" PRIu64 "s", p->name, value,
                   p->max / NS_IN_S);
  if (is_in_ms(p)) *out = (*out + NS_IN_MS - 1) / NS_IN_MS;
  return TB_OK;
}

static tb_rc read_value(const struct tp_param *p, char *value, const struct tp_times *times,
                        struct tb_arena *arena, struct tb_diag *diag, const struct place *to) {
  unsigned char *id;
  uint64_t number = 0;

  switch (p->type) {
  case TP_PARAM_WORD: TB_TRY(read_word(p, value, diag)); /* fall through */
  case TP_PARAM_TEXT: put_text(to, value); return TB_OK;
  case TP_PARAM_STREAM:
    TB_TRY(tb_arena_alloc(arena, TP_STREAM_BYTES, &id));
    TB_TRY(read_stream(p->name, value, diag, id));
    *(ProtobufCBinaryData *)(void *)to->at = (ProtobufCBinaryData){ TP_STREAM_BYTES, id };
    return TB_OK;
  case TP_PARAM_FLAG:
  case TP_PARAM_NUMBER:
    TB_TRY(tp_query_number(p->name, value, p->min, p->max, diag, &number));
    break;
  case TP_PARAM_TIME:
  case TP_PARAM_SPAN: TB_TRY(read_time(p, value, times, diag, &number)); break;
  }
  put_number(to, number);
  return TB_OK;
}

static tb_rc set_default(const struct tp_param *p, struct tb_arena *arena, const struct place *to) {
  const char *words = p->words, *word;
  char *copy;

  if (p->type == TP_PARAM_NUMBER) put_number(to, p->byself);
  if (p->type != TP_PARAM_WORD) return TB_OK;
  size_t n = next_word(&words, &word);
  TB_TRY(tb_arena_alloc(arena, n + 1, &copy));
  memcpy(copy, word, n);
  copy[n] = '\0';
  put_text(to, copy);
  return TB_OK;
}

static const struct tp_param *param_of(const struct tp_route *route, const char *name) {
  for (const struct tp_param *p = tp_params; p < tp_params + tp_params_count; p++)
    if (p->route == route->id && strcmp(p->name, name) == 0) return p;
  return NULL;
}

struct reading {
  const struct tp_route *route;
  const struct tp_times *times;
  struct tb_arena *arena;
  struct tb_diag *diag;
  ProtobufCMessage *out;
  unsigned char given[TP_PARAMS_MAX / 8]; /* by their places in tp_params */
};

static bool is_given(const struct reading *r, const struct tp_param *p) {
  return (r->given[(p - tp_params) / 8] >> (p - tp_params) % 8 & 1) != 0;
}

static tb_rc is_missing(const struct tp_param *p, struct tb_diag *diag) {
  return tb_fail(diag, TB_PROTOCOL, "parameter \"%s\" is missing", p->name);
}

static tb_rc read_param(struct reading *r, char *name, char *value) {
  struct place place;

  if (!tp_percent_undo(name, true))
    return tb_fail(r->diag, TB_PROTOCOL, "the query is not well encoded");
  if (!tp_percent_undo(value, true))
    return tb_fail(r->diag, TB_PROTOCOL, "parameter \"%.60s\" is not well encoded", name);
  const struct tp_param *p = param_of(r->route, name);
  if (p == NULL) return tb_fail(r->diag, TB_PROTOCOL, "no parameter \"%.60s\" here", name);
  if (is_given(r, p)) return tb_fail(r->diag, TB_PROTOCOL, "parameter \"%s\" is given twice", name);
  r->given[(p - tp_params) / 8] |= (unsigned char)(1u << (p - tp_params) % 8);
  if (*value == '\0') return p->is_needed ? is_missing(p, r->diag) : TB_OK;
  TB_TRY(find_field(p, r->out, r->arena, &place));
  return read_value(p, value, r->times, r->arena, r->diag, &place);
}

static tb_rc read_params(struct reading *r, char *query) {
  for (char *next, *at = query; at != NULL && *at != '\0'; at = next) {
    next = strchr(at, '&');
    if (next != NULL) *next++ = '\0';
    if (*at == '\0') continue;
    char *value = strchr(at, '=');
    if (value != NULL)
      *value++ = '\0';
    else
      value = at + strlen(at);
    TB_TRY(read_param(r, at, value));
  }
  return TB_OK;
}

tb_rc tp_query_read(const struct tp_route *route, char *query, const struct tp_times *times,
                    struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage *out) {
  struct reading r = { route, times, arena, diag, out, { 0 } };
  struct place place;

  for (const struct tp_param *p = tp_params; p < tp_params + tp_params_count; p++) {
    if (p->route != route->id) continue;
    TB_TRY(find_field(p, out, arena, &place));
    TB_TRY(set_default(p, arena, &place));
  }
  TB_TRY(read_params(&r, query));
  for (const struct tp_param *p = tp_params; p < tp_params + tp_params_count; p++)
    if (p->route == route->id && p->is_needed && !is_given(&r, p)) return is_missing(p, diag);
  return TB_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_text(struct tb_buf *out, const char *text) {
  static const char plain[] = "-._~,:@/"; /* beside letters and digits */

  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;

    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
        strchr(plain, c) != NULL)
      tb_buf_byte(out, c);
    else
      tb_buf_printf(out, "%%%02X", c);
  }
}

static void write_number(struct tb_buf *out, const struct tp_param *p, uint64_t value) {
  if (p->type == TP_PARAM_TIME)
    tb_buf_printf(out, "@%" PRIu64 ".%09" PRIu64, value / NS_IN_S, value % NS_IN_S);
  else
    tb_buf_printf(out, "%" PRIu64 "%s", value,
                  p->type != TP_PARAM_SPAN ? ""
                  : is_in_ms(p)            ? "ms"
                                           : "ns");
}

static bool is_left_out(const struct tp_param *p, const struct place *from) {
  const char *text;
  uint64_t number;

  switch (p->type) {
  case TP_PARAM_TEXT: return **(const char *const *)(const void *)from->at == '\0';
  case TP_PARAM_WORD:
    text = *(const char *const *)(const void *)from->at;
    return *text == '\0' || (strncmp(text, p->words, strlen(text)) == 0 &&
                             strchr(" ", p->words[strlen(text)]) != NULL);
  case TP_PARAM_STREAM: return ((const ProtobufCBinaryData *)(const void *)from->at)->len == 0;
  case TP_PARAM_NUMBER: number = number_of(from); return number == p->byself || number < p->min;
  default: return number_of(from) == 0;
  }
}

static void write_value(struct tb_buf *out, const struct tp_param *p, const struct place *from) {
  const ProtobufCBinaryData *id = (const void *)from->at;

  switch (p->type) {
  case TP_PARAM_TEXT:
  case TP_PARAM_WORD: write_text(out, *(const char *const *)(const void *)from->at); break;
  case TP_PARAM_STREAM:
    for (size_t i = 0; i < id->len; i++) tb_buf_printf(out, "%02x", id->data[i]);
    break;
  default: write_number(out, p, number_of(from)); break;
  }
}

void tp_query_write(const struct tp_route *route, const ProtobufCMessage *ask, struct tb_buf *out) {
  ProtobufCMessage *message = (ProtobufCMessage *)(uintptr_t)ask; /* is not written to */
  const char *between = "";
  struct place place;

  for (const struct tp_param *p = tp_params; p < tp_params + tp_params_count; p++) {
    if (p->route != route->id || find_field(p, message, NULL, &place) != TB_OK ||
        place.at == NULL || is_left_out(p, &place))
      continue;
    tb_buf_printf(out, "%s%s=", between, p->name);
    write_value(out, p, &place);
    between = "&";
  }
}
