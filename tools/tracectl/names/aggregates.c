/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/aggregates.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

union value {
  int64_t whole;
  double real;
};

struct values {
  union value *value;
  size_t n, room;
  bool is_real; /* all are; as long as all are whole they stay exact */
  bool has_failed;
  double percent;
};

/* Shared by all groups of a database. */
struct budget {
  size_t room; /* values for which there is memory */
};

static int compare_whole(const void *a, const void *b) {
  int64_t x = ((const union value *)a)->whole, y = ((const union value *)b)->whole;

  return (x > y) - (x < y);
}

static int compare_real(const void *a, const void *b) {
  double x = ((const union value *)a)->real, y = ((const union value *)b)->real;

  return (x > y) - (x < y);
}

static void fail(sqlite3_context *out, struct values *v, const char *why) {
  v->has_failed = true;
  sqlite3_result_error(out, why, -1);
}

static bool grow(sqlite3_context *out, struct values *v) {
  struct budget *budget = sqlite3_user_data(out);
  size_t more = v->room == 0 ? 64 : v->room;

  if (v->n < v->room) return true;
  if (budget->room + more > TK_AGGREGATE_VALUES) {
    fail(out, v, "p() and median() keep at most 67108864 values: add a condition");
    return false;
  }
  union value *bigger = sqlite3_realloc64(v->value, (v->room + more) * sizeof *v->value);
  if (bigger == NULL) {
    v->has_failed = true;
    sqlite3_result_error_nomem(out);
    return false;
  }
  v->value = bigger;
  v->room += more;
  budget->room += more;
  return true;
}

static void make_real(struct values *v) {
  for (size_t i = 0; i < v->n; i++) v->value[i].real = (double)v->value[i].whole;
  v->is_real = true;
}

static void put(sqlite3_context *out, struct values *v, sqlite3_value *x) {
  int type = sqlite3_value_type(x);

  if (type == SQLITE_NULL || v->has_failed) return;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
    fail(out, v, "p() and median() are of numbers");
    return;
  }
  if (!grow(out, v)) return;
  if (type == SQLITE_FLOAT && !v->is_real) make_real(v);
  if (v->is_real)
    v->value[v->n++].real = sqlite3_value_double(x);
  else
    v->value[v->n++].whole = sqlite3_value_int64(x);
}

static void step_p(sqlite3_context *out, int argc, sqlite3_value **argv) {
  struct values *v = sqlite3_aggregate_context(out, sizeof *v);

  (void)argc;
  if (v == NULL) {
    sqlite3_result_error_nomem(out);
    return;
  }
  double percent = sqlite3_value_double(argv[1]);
  int type = sqlite3_value_numeric_type(argv[1]);
  if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(percent >= 0 && percent <= 100)) {
    fail(out, v, "p(x, 99): the second argument is a percentage, 0 to 100");
    return;
  }
  if (percent > 0 && percent < 1) {
    fail(out, v,
         "p(x, 99): the second argument is a percentage: write 99, not 0.99; a part of a percent "
         "is not possible");
    return;
  }
  v->percent = percent;
  put(out, v, argv[0]);
}

static void step_median(sqlite3_context *out, int argc, sqlite3_value **argv) {
  struct values *v = sqlite3_aggregate_context(out, sizeof *v);

  (void)argc;
  if (v == NULL)
    sqlite3_result_error_nomem(out);
  else
    put(out, v, argv[0]);
}

static bool sort(struct values *v) {
  if (v == NULL || v->has_failed || v->n == 0) return false;
  qsort(v->value, v->n, sizeof *v->value, v->is_real ? compare_real : compare_whole);
  return true;
}

static void release(sqlite3_context *out, struct values *v) {
  struct budget *budget = sqlite3_user_data(out);

  if (v == NULL) return;
  budget->room -= v->room;
  sqlite3_free(v->value);
}

static void result(sqlite3_context *out, const struct values *v, size_t at) {
  if (v->is_real)
    sqlite3_result_double(out, v->value[at].real);
  else
    sqlite3_result_int64(out, v->value[at].whole);
}

/* By the nearest rank: the smallest value that at least so many percent of the values do not exceed. */
static void end_p(sqlite3_context *out) {
  struct values *v = sqlite3_aggregate_context(out, 0);

  if (sort(v)) {
    double rank = ceil(v->percent * (double)v->n / 100);
    result(out, v, rank < 1 ? 0 : (size_t)rank - 1);
  }
  release(out, v);
}

static double real_at(const struct values *v, size_t at) {
  return v->is_real ? v->value[at].real : (double)v->value[at].whole;
}

static void end_median(sqlite3_context *out) {
  struct values *v = sqlite3_aggregate_context(out, 0);

  if (sort(v)) {
    size_t low = (v->n - 1) / 2, high = v->n / 2;
    if (low == high || real_at(v, low) == real_at(v, high))
      result(out, v, low);
    else
      sqlite3_result_double(out, real_at(v, low) / 2 + real_at(v, high) / 2);
  }
  release(out, v);
}

int tk_aggregates_add(sqlite3 *db) {
  enum { FLAGS = SQLITE_UTF8 | SQLITE_DETERMINISTIC };
  struct budget *budget = calloc(1, sizeof *budget);

  if (budget == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_create_function_v2(db, "p", 2, FLAGS, budget, NULL, step_p, end_p, free);
  if (rc != SQLITE_OK) return rc;
  return sqlite3_create_function(db, "median", 1, FLAGS, budget, NULL, step_median, end_median);
}
