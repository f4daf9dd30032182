/* SPDX-License-Identifier: Apache-2.0 */
/* A module's events as an experiment's: for
 *
 *   //trace:event sale(const char *what, int cents)      event sale ctx=M what_string cents_value stack
 *
 * An argument's label is the parameter's name and what a reader makes of it: _string, _real (the bits of a double),
 * else _value. There are four at most. */
#include <string.h>

#include "tools/tracepoints/write.h"
#include "wire/experiments.h"

enum { LABEL_BYTES_MAX = TW_ARG_LABEL_MAX - sizeof "_string" };

bool tk_point_is_event(const char *module, const struct tk_point *point) {
  return strlen(module) <= TW_EXPERIMENT_NAME_MAX && strlen(point->name) <= TW_EXPERIMENT_NAME_MAX;
}

static bool is_one_of(const char *text, const char *const *texts) {
  for (; *texts != NULL; texts++)
    if (strcmp(text, *texts) == 0) return true;
  return false;
}

static const char *type_of(const char *type) {
  static const char *const texts[] = { "char *", "const char *", "char const *", NULL };
  static const char *const reals[] = { "float", "double", NULL };

  return is_one_of(type, texts) ? "string" : is_one_of(type, reals) ? "real" : "value";
}

/* A label that is too long, or has no letter, contains the parameter's index. */
static void write_label(FILE *out, const struct tk_param *param, unsigned place) {
  const char *name = param->name + strspn(param->name, "_0123456789"); /* a letter first */

  if (*name != '\0' && strlen(name) <= LABEL_BYTES_MAX)
    fprintf(out, " %s_%s", name, type_of(param->type));
  else
    fprintf(out, " arg%u_%s", place, type_of(param->type));
}

static void write_args(FILE *out, const struct tk_point *point) {
  unsigned n = point->n <= TW_TIMED_ARGS_MAX ? point->n : TW_TIMED_ARGS_MAX - 1;

  for (unsigned i = 0; i < n; i++) write_label(out, &point->param[i], i);
  if (n < point->n) fputs(" more_string", out);
  if (point->n < TW_TIMED_ARGS_MAX) fputs(" stack", out);
}

void tk_points_write_spec(FILE *out, const char *module, const struct tk_points *own, bool quoted) {
  const char *begin = quoted ? "  \"" : "", *end = quoted ? "\\n\"\n" : "\n";

  fprintf(out, "%sexperiment %s%s", begin, module, end);
  for (const struct tk_point *p = own->first; p != NULL; p = p->next) {
    if (!tk_point_is_event(module, p)) continue;
    fprintf(out, "%sevent %s ctx=M", begin, p->name);
    write_args(out, p);
    fputs(end, out);
  }
}
