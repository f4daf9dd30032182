/* SPDX-License-Identifier: Apache-2.0 */
/* The figure's path is looked up in the message's own descriptors, so every number of every kind of
 * report can be stated, the ones of kinds to come too. */
#include "tools/tracectl/report/condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, OPS, NAME_BYTES = 64 };

/* The longer of two that begin alike first. */
static const struct {
  const char *text;
  unsigned op;
} ops[OPS] = {
  { ">=", GREATER_EQUAL }, { "<=", LESS_EQUAL }, { "==", EQUAL },
  { "!=", NOT_EQUAL },     { ">", GREATER },     { "<", LESS },
};

static const struct {
  const char *text;
  double ns;
} units[] = { { "ns", 1 },  { "us", 1e3 }, { "\xC2\xB5s", 1e3 }, { "ms", 1e6 },
              { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };

static bool is_nanoseconds(const ProtobufCFieldDescriptor *field) {
  size_t len = strlen(field->name);
  return len > 3 && strcmp(field->name + len - 3, "_ns") == 0;
}

static bool is_message(const ProtobufCFieldDescriptor *field) {
  return field->type == PROTOBUF_C_TYPE_MESSAGE && field->label != PROTOBUF_C_LABEL_REPEATED;
}

static bool is_number(const ProtobufCFieldDescriptor *field) {
  return field->label == PROTOBUF_C_LABEL_REPEATED || field->type == PROTOBUF_C_TYPE_UINT64 ||
         field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_DOUBLE;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *d,
                                                  const char *name, size_t len) {
  char text[NAME_BYTES];
  const ProtobufCFieldDescriptor *field;

  if (len + sizeof("_ns") > sizeof(text)) return NULL;
  snprintf(text, sizeof(text), "%.*s", (int)len, name);
  field = protobuf_c_message_descriptor_get_field_by_name(d, text);
  if (field != NULL) return field;
  snprintf(text, sizeof(text), "%.*s_ns", (int)len, name);
  return protobuf_c_message_descriptor_get_field_by_name(d, text);
}

static tb_rc parse_path(const char **at, struct tb_diag *diag, struct tk_condition *c) {
  const ProtobufCMessageDescriptor *d = &tracecollect__v1__stream_report__descriptor;

  for (;; ++*at) {
    size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    const ProtobufCFieldDescriptor *field = find_field(d, *at, len);
    bool deeper = (*at)[len] == '.';

    if (field == NULL || c->path_len == TK_CONDITION_PATH_MAX ||
        (deeper ? !is_message(field) : !is_number(field)) || (!deeper && c->path_len == 0))
      return tb_fail(
          diag, TB_BROKEN,
          "no figure \"%.*s\" here in \"%s\"; figures are the numbers that --json shows, "
          "as syscall.blocked.p99",
          (int)len, *at, c->text);
    c->path[c->path_len++] = field;
    *at += len;
    if (!deeper) return TB_OK;
    d = field->descriptor;
  }
}

static tb_rc parse_value(const char *at, struct tb_diag *diag, struct tk_condition *c) {
  const ProtobufCFieldDescriptor *field = c->path[c->path_len - 1];
  char *end;

  c->value = strtod(at, &end);
  if (end == at) return tb_fail(diag, TB_BROKEN, "no value in \"%s\"", c->text);
  while (*end == ' ') end++;
  if (is_nanoseconds(field)) {
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
      if (strcmp(end, units[i].text) == 0) {
        c->value *= units[i].ns;
        return TB_OK;
      }
    return tb_fail(diag, TB_BROKEN, "a time needs a unit in \"%s\": ns, us, ms, s, m or h",
                   c->text);
  }
  if (strcmp(end, "%") == 0 && field->type == PROTOBUF_C_TYPE_DOUBLE) {
    c->value /= 100;
    return TB_OK;
  }
  if (*end != '\0') return tb_fail(diag, TB_BROKEN, "\"%s\" is too much in \"%s\"", end, c->text);
  return TB_OK;
}

tb_rc tk_condition_parse(const char *text, struct tb_diag *diag, struct tk_condition *out) {
  struct tk_condition c = { .text = text, .op = OPS };
  const char *at = text;

  while (*at == ' ') at++;
  TB_TRY(parse_path(&at, diag, &c));
  while (*at == ' ') at++;
  for (unsigned i = 0; i < OPS && c.op == OPS; i++)
    if (strncmp(at, ops[i].text, strlen(ops[i].text)) == 0) {
      c.op = ops[i].op;
      at += strlen(ops[i].text);
    }
  if (c.op == OPS)
    return tb_fail(diag, TB_BROKEN, "no comparison in \"%s\": > >= < <= == or !=", text);
  TB_TRY(parse_value(at, diag, &c));
  *out = c;
  return TB_OK;
}

const char *tk_condition_kind(const struct tk_condition *condition) {
  return condition->path[0]->name;
}

/* The length of a list before a report cut it, where the message says so. */
static double list_length(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message) {
  size_t listed = *(const size_t *)(const void *)((const char *)message + field->quantifier_offset);
  char name[NAME_BYTES];

  snprintf(name, sizeof name, "%s_total", field->name);
  const ProtobufCFieldDescriptor *total =
      protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
  if (total == NULL || total->type != PROTOBUF_C_TYPE_UINT64) return (double)listed;
  return (double)*(const uint64_t *)(const void *)((const char *)message + total->offset);
}

static double read_number(const ProtobufCFieldDescriptor *field, const char *message) {
  const void *at = message + field->offset;

  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return list_length(field, (const ProtobufCMessage *)(const void *)message);
  if (field->type == PROTOBUF_C_TYPE_DOUBLE) return *(const double *)at;
  if (field->type == PROTOBUF_C_TYPE_INT64) return (double)*(const int64_t *)at;
  return (double)*(const uint64_t *)at;
}

bool tk_condition_met(const struct tk_condition *condition,
                      const Tracecollect__V1__StreamReport *report) {
  const char *message = (const char *)report;

  for (unsigned i = 0; i + 1 < condition->path_len; i++) {
    message = *(const char *const *)(const void *)(message + condition->path[i]->offset);
    if (message == NULL) return false; /* a report of another kind */
  }
  double x = read_number(condition->path[condition->path_len - 1], message);
  switch (condition->op) {
  case GREATER: return x > condition->value;
  case GREATER_EQUAL: return x >= condition->value;
  case LESS: return x < condition->value;
  case LESS_EQUAL: return x <= condition->value;
  case EQUAL: return x == condition->value;
  default: return x != condition->value;
  }
}
