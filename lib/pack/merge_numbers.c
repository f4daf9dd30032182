/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/merge_numbers.h"

#include "online/analysis/report.h"
#include "pack/merge_schema.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;

static enum to_over_time rule_of(const struct tp_numbers *n, const FieldSchema *field) {
  if (n->of_stretches && field->over_time != TRACECOLLECT__V1__OVER_TIME__OVER_TIME_SUM)
    return (enum to_over_time)field->over_time;
  return field->greatest ? TO_OVER_GREATEST : TO_OVER_SUM;
}

static bool is_of_now(const FieldSchema *field) {
  return field->over_time == TRACECOLLECT__V1__OVER_TIME__OVER_TIME_LAST;
}

static int64_t join(enum to_over_time rule, int64_t a, int64_t b) {
  int64_t sum;

  switch (rule) {
  case TO_OVER_LAST: return b;
  case TO_OVER_GREATEST: return a > b ? a : b;
  case TO_OVER_LEAST: return a < b ? a : b;
  default: return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
  }
}

/* Until the end, a mean is a share: the sum of the parts' numbers times their times. */
static void add_to_mean(Value *into, int64_t number, uint64_t time_ns) {
  if (into->is_case != TRACECOLLECT__V1__VALUE__IS_SHARE) into->share = 0;
  into->is_case = TRACECOLLECT__V1__VALUE__IS_SHARE;
  into->share += (double)number * (double)time_ns;
}

void tp_number_add(const struct tp_numbers *n, const FieldSchema *field, Value *into,
                   const Value *from) {
  enum to_over_time rule = rule_of(n, field);

  if (from->is_case != TRACECOLLECT__V1__VALUE__IS_NUMBER || rule == TO_OVER_UNKNOWN) return;
  if (!n->of_stretches && n->is_past && is_of_now(field)) return;
  if (rule == TO_OVER_MEAN) {
    add_to_mean(into, from->number, n->time_ns);
  } else if (into->is_case != TRACECOLLECT__V1__VALUE__IS_NUMBER) {
    into->is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
    into->number = from->number;
  } else {
    into->number = join(rule, into->number, from->number);
  }
}

void tp_number_forget(const struct tp_numbers *n, const FieldSchema *field, Value *value) {
  if (n->of_stretches && is_of_now(field) && tp_field_is_number(field))
    value->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
}

void tp_number_end(const struct tp_numbers *n, const FieldSchema *field, uint64_t time_ns,
                   Value *value) {
  bool is_open = value->is_case == TRACECOLLECT__V1__VALUE__IS_SHARE && tp_field_is_number(field);

  if (!is_open || rule_of(n, field) != TO_OVER_MEAN) return;
  value->is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
  value->number = time_ns > 0 ? (int64_t)(value->share / (double)time_ns + 0.5) : 0;
}

bool tp_number_is_extreme(const struct tp_numbers *n, const FieldSchema *field) {
  enum to_over_time rule = rule_of(n, field);

  return tp_field_is_number(field) && (rule == TO_OVER_GREATEST || rule == TO_OVER_LEAST);
}

/* ---- times ---- */

uint64_t tp_time_of(const StreamReport *part) {
  if (part->instances > 0 || part->time_ns > 0) return part->time_ns;
  return part->until_ns > part->from_ns ? (uint64_t)part->until_ns - (uint64_t)part->from_ns : 0;
}

void tp_time_append(StreamReport *sum, const StreamReport *part, bool is_first) {
  if (is_first) sum->from_ns = part->from_ns;
  if (sum->from_wall_ns == 0) sum->from_wall_ns = part->from_wall_ns;
  if (sum->first_gen == 0) sum->first_gen = part->first_gen;
  if (part->last_gen != 0) sum->last_gen = part->last_gen;
  sum->until_ns = part->until_ns;
  sum->until_wall_ns = part->until_wall_ns;
  sum->ended_wall_ns = part->ended_wall_ns;
  sum->broken_generations = part->broken_generations;
  sum->epochs = part->epochs;
  sum->time_ns += tp_time_of(part);
  sum->events += part->events;
  sum->thinned_events += part->thinned_events;
}

void tp_time_join(StreamReport *sum, const StreamReport *part, bool is_first) {
  if (part->from_wall_ns != 0 && (sum->from_wall_ns == 0 || part->from_wall_ns < sum->from_wall_ns))
    sum->from_wall_ns = part->from_wall_ns;
  if (part->until_wall_ns > sum->until_wall_ns) sum->until_wall_ns = part->until_wall_ns;
  if (is_first || part->ended_wall_ns == 0)
    sum->ended_wall_ns = part->ended_wall_ns;
  else if (sum->ended_wall_ns != 0 && part->ended_wall_ns > sum->ended_wall_ns)
    sum->ended_wall_ns = part->ended_wall_ns;
  sum->from_ns = (int64_t)sum->from_wall_ns;
  sum->until_ns = (int64_t)sum->until_wall_ns;
  sum->time_ns += tp_time_of(part);
  sum->events += part->events;
  sum->thinned_events += part->thinned_events;
  sum->broken_generations += part->broken_generations;
  sum->epochs += part->epochs;
}
