/* SPDX-License-Identifier: Apache-2.0 */
/* The change of a figure between two traces, with a 95 % interval by bootstrap: samples of both are drawn again, with replacement,
 * TK_DRAWS times; each draw gives a change, and the interval leaves out 2.5 % at either end. The draws are reproducible.
 *
 * A side with one sample has no interval, since its variation is unknown.
 *
 * A quantile is known up to its bucket of the histogram (tk_diff_field_error()). The true change between two buckets lies between those of
 * their nearest and their farthest ends, so these ends make the interval. A change of neighbouring buckets may be none.
 */
#ifndef TK_DIFF_COMPARE_H
#define TK_DIFF_COMPARE_H

#include "tools/tracectl/diff/samples.h"

enum { TK_DRAWS = 400 };

enum tk_diff_field {
  TK_DIFF_PER_SECOND, /* spans that ended, per second of the trace */
  TK_DIFF_TIME,       /* their nanoseconds, per second of the trace */
  TK_DIFF_MEAN,
  TK_DIFF_P50,
  TK_DIFF_P99,
  TK_DIFF_FIELDS
};
const char *
tk_diff_field_name(enum tk_diff_field field); /* "per_second", "time", "mean", "p50", "p99" */
bool tk_diff_field_is_ns(enum tk_diff_field field);
/* Returns the greatest possible error of either side, as a share of it; 0: exact. */
double tk_diff_field_error(enum tk_diff_field field);

struct tk_change {
  double a, b;       /* 0: nothing ended */
  bool has_share;    /* a is not 0 */
  double share;      /* b / a - 1 */
  bool may_be_error; /* a and b may be equal: one bucket, or neighbours */
  bool has_interval;
  double low, high; /* of share, the errors of both sides included */
};
/* Returns whether the change, with its whole interval, is on one side of zero and more than the errors of both sides. */
bool tk_change_is_significant(const struct tk_change *change);
/* Returns what alone may have made a change that is not significant: "error", "chance". NULL: it is significant, or unknown. */
const char *tk_change_explanation(const struct tk_change *change);

struct tk_comparison {
  const struct tk_samples *a, *b;
  uint8_t *weight_a, *weight_b; /* how often each draw has each sample */
  double *low, *high;           /* ends of each draw's change; scratch */
  uint64_t *count;              /* by place; scratch */
};

/* a and b are lent. Returns false if memory cannot be allocated. */
bool tk_comparison_new(struct tk_comparison *c, const struct tk_samples *a,
                       const struct tk_samples *b);
void tk_comparison_fini(struct tk_comparison *c);
/* One of a and b may be NULL. */
struct tk_change tk_compare(struct tk_comparison *c, const struct tk_diff_row *a,
                            const struct tk_diff_row *b, enum tk_diff_field field);

#endif
