/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger/condition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, OPS };

/* ">=" before ">", because the first match counts. */
static const struct {
  const char *text;
  unsigned op;
} ops[OPS] = {
  { ">=", GREATER_EQUAL }, { "<=", LESS_EQUAL }, { "==", EQUAL },
  { "!=", NOT_EQUAL },     { ">", GREATER },     { "<", LESS },
};

struct unit {
  const char *text;
  double size;
};
static const struct unit times[] = { { "ns", 1 },    { "us", 1e3 }, { "\xC2\xB5s", 1e3 },
                                     { "ms", 1e6 },  { "s", 1e9 },  { "m", 60e9 },
                                     { "h", 3600e9 } };
static const struct unit sizes[] = { { "", 1 },
                                     { "B", 1 },
                                     { "KiB", 1024.0 },
                                     { "MiB", 1048576.0 },
                                     { "GiB", 1073741824.0 },
                                     { "TiB", 1099511627776.0 } };
static const struct unit shares[] = { { "", 1 }, { "%", 0.01 } };
static const struct unit counts[] = { { "", 1 } };

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static bool take_unit(const char *text, const struct unit *unit, size_t n, double *value) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(text, unit[i].text) == 0) {
      *value *= unit[i].size;
      return true;
    }
  return false;
}

static tb_rc parse_value(const char *at, struct tb_diag *diag, struct tr_condition *c) {
  char *end;
  bool taken;

  c->value = strtod(at, &end);
  if (end == at || !isfinite(c->value))
    return tb_fail(diag, TB_BROKEN, "no value in \"%s\"", c->text);
  while (*end == ' ') end++;
  switch (c->path.type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME:
    if (take_unit(end, times, COUNT_OF(times), &c->value)) return TB_OK;
    return tb_fail(diag, TB_BROKEN, "a time needs a unit in \"%s\": ns, us, ms, s, m or h",
                   c->text);
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES:
    taken = take_unit(end, sizes, COUNT_OF(sizes), &c->value);
    break;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE:
    taken = take_unit(end, shares, COUNT_OF(shares), &c->value);
    break;
  default: taken = take_unit(end, counts, COUNT_OF(counts), &c->value); break;
  }
  if (taken) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "unexpected \"%s\" in \"%s\"", end, c->text);
}

tb_rc tr_condition_parse(const char *text, Tracecollect__V1__ReportSchema *const *schemas, size_t n,
                         struct tb_diag *diag, struct tr_condition *out) {
  struct tr_condition c = { .text = text, .op = OPS };
  const char *at = text + strspn(text, " ");
  size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_.");

  TB_TRY(tr_figure_path_parse(at, len, schemas, n, diag, &c.path));
  at += len;
  at += strspn(at, " ");
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

static bool is_met(const struct tr_condition *condition, double x) {
  switch (condition->op) {
  case GREATER: return x > condition->value;
  case GREATER_EQUAL: return x >= condition->value;
  case LESS: return x < condition->value;
  case LESS_EQUAL: return x <= condition->value;
  case EQUAL: return x == condition->value;
  default: return x != condition->value;
  }
}

static enum tr_verdict verdict(const struct tr_condition *condition, double x) {
  return is_met(condition, x) ? TR_VERDICT_MET : TR_VERDICT_NOT_MET;
}

enum tr_verdict tr_condition_judge(const struct tr_condition *condition,
                                   const struct to_report *report, double *out) {
  if (!tr_figure_path_read(&condition->path, report, out)) return TR_VERDICT_UNKNOWN;
  return verdict(condition, *out);
}

enum tr_verdict tr_condition_judge_message(const struct tr_condition *condition,
                                           const Tracecollect__V1__StreamReport *report,
                                           struct tr_number *out) {
  if (strcmp(report->kind, condition->path.kind) != 0) return TR_VERDICT_ABSENT;
  if (!tr_figure_path_unpack(&condition->path, report, out)) return TR_VERDICT_UNKNOWN;
  return verdict(condition, out->value);
}

bool tr_time_parse(const char *text, uint64_t *out_ns) {
  char *end;
  double value = strtod(text, &end);

  if (end == text || !isfinite(value) || value < 0) return false;
  if (!take_unit(end, times, COUNT_OF(times), &value) || value >= 0x1p63) return false;
  *out_ns = (uint64_t)value;
  return true;
}
