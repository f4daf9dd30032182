/* SPDX-License-Identifier: Apache-2.0 */
#include "online/why/interval.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"

static void copy_name(const struct to_span *span, char out[TO_WHY_TYPE_BYTES]) {
  struct to_string name = span->more == NULL ? (struct to_string){ 0 } : span->more->name;
  int len = name.len < TO_WHY_TYPE_BYTES ? (int)name.len : TO_WHY_TYPE_BYTES - 1;

  snprintf(out, TO_WHY_TYPE_BYTES, "%.*s", len, len > 0 ? name.data : "");
}

static void add_type(struct to_why_finding *f, const char *name) {
  for (size_t i = 0; i < f->types; i++)
    if (strcmp(f->type[i], name) == 0) return;
  if (f->types < TO_WHY_TYPES && name[0] != 0)
    snprintf(f->type[f->types++], TO_WHY_TYPE_BYTES, "%s", name);
}

static void add_task(struct to_why_finding *f, uint64_t id) {
  f->tasks++;
  if (id < f->ask->task && id > f->below) f->below = id;
  if (id > f->ask->task && (f->above == 0 || id < f->above)) f->above = id;
}

/* A task is explained by the goroutine that ended it; an open task by the one that began it. */
static struct to_why_interval interval_of(const struct to_span *span) {
  bool by_another = span->kind == TO_SPAN_TASK && !span->open;

  return (struct to_why_interval){ .from = span->from,
                                   .until = span->until,
                                   .life = by_another ? span->by_life : span->life,
                                   .open = span->open };
}

static void set_name(struct to_why_interval *i, const struct to_span *span) {
  char name[TO_WHY_TYPE_BYTES];

  copy_name(span, name);
  if (span->kind == TO_SPAN_TASK)
    snprintf(i->name, TO_WHY_NAME, "task %" PRIu64 " (%s)", span->more->value, name);
  else if (span->kind == TO_SPAN_REGION)
    snprintf(i->name, TO_WHY_NAME, "region %s of goroutine %" PRId64, name, span->id);
  else
    snprintf(i->name, TO_WHY_NAME, "goroutine %" PRId64 " (%s)", span->id,
             to_go_state_name(span->state));
}

static void set_interval(struct to_why_interval *place, const struct to_span *span) {
  *place = interval_of(span);
  set_name(place, span);
}

static to_ns length(const struct to_why_interval *i) {
  return i->name[0] == 0 ? -1 : i->until - i->from;
}

static bool is_at(const struct to_why_ask *ask, const struct to_span *span, uint64_t wall_ns) {
  if (!ask->at_is_wall) return span->from <= ask->at && ask->at <= span->until;
  return wall_ns != 0 && wall_ns <= ask->at_wall_ns &&
         ask->at_wall_ns <= wall_ns + (uint64_t)(span->until - span->from);
}

/* Chooses the shortest, that is innermost, task, region and state around the moment. */
static void check_moment(struct to_why_finding *f, const struct to_span *span, uint64_t wall_ns) {
  bool own = span->kind == TO_SPAN_TASK ? span->more->goroutine == (int64_t)f->ask->goroutine
                                        : span->id == (int64_t)f->ask->goroutine;
  struct to_why_interval *place = span->kind == TO_SPAN_TASK     ? &f->task
                                  : span->kind == TO_SPAN_REGION ? &f->region
                                                                 : &f->state;

  if (!own) return;
  f->goroutine_seen |= span->kind == TO_SPAN_GOROUTINE;
  if (!is_at(f->ask, span, wall_ns)) return;
  if (length(place) < 0 || span->until - span->from < length(place)) set_interval(place, span);
}

static void check_slow(struct to_why_finding *f, const struct to_span *span) {
  char name[TO_WHY_TYPE_BYTES];

  copy_name(span, name);
  add_type(f, name);
  bool is_one = span->kind == TO_SPAN_TASK && strcmp(f->ask->slow, "*") == 0;
  if ((!is_one && strcmp(name, f->ask->slow) != 0) || span->open || !span->from_known ||
      !span->until_known)
    return;
  if (span->until - span->from > length(&f->task)) set_interval(&f->task, span);
}

void to_why_finding_init(struct to_why_finding *f, const struct to_why_ask *ask) {
  *f = (struct to_why_finding){ .ask = ask };
}

void to_why_look(struct to_why_finding *f, const struct to_span *span, uint64_t wall_ns) {
  bool is_task = span->kind == TO_SPAN_TASK, is_region = span->kind == TO_SPAN_REGION;

  if (span->kind == TO_SPAN_GOROUTINE) {
    if (!f->any || span->from < f->first) f->first = span->from;
    if (!f->any || span->until > f->last) f->last = span->until;
    f->any = true;
  }
  if (is_task) add_task(f, span->more->value);
  if (f->ask->slow != NULL && (is_task || is_region)) check_slow(f, span);
  if (f->ask->has_task && is_task && span->more->value == f->ask->task &&
      length(&f->task) < 0) /* task ids are unique: the first one counts */
    set_interval(&f->task, span);
  if (f->ask->goroutine != 0 && (is_task || is_region || span->kind == TO_SPAN_GOROUTINE))
    check_moment(f, span, wall_ns);
}

static tb_rc no_task(const struct to_why_finding *f, struct tb_diag *diag) {
  if (f->tasks == 0)
    return tb_fail(
        diag, TB_NOTFOUND,
        "the trace has no tasks: a Go program makes them with trace.NewTask() of runtime/trace, "
        "a C program with ta_task_begin()");
  if (f->below != 0 && f->above != 0)
    return tb_fail(diag, TB_NOTFOUND,
                   "no task %" PRIu64 "; the nearest are %" PRIu64 " and %" PRIu64, f->ask->task,
                   f->below, f->above);
  return tb_fail(diag, TB_NOTFOUND, "no task %" PRIu64 "; the nearest is %" PRIu64, f->ask->task,
                 f->below != 0 ? f->below : f->above);
}

static tb_rc no_type(const struct to_why_finding *f, struct tb_diag *diag) {
  struct tb_nearest nearest = { .word = f->ask->slow };
  char list[400] = "";

  if (f->types == 0) {
    struct to_why_finding none = *f;
    none.tasks = 0;
    return no_task(&none, diag);
  }
  for (size_t i = 0; i < f->types; i++) {
    size_t n = strlen(list);
    tb_nearest_try(&nearest, f->type[i]);
    if (n + TO_WHY_TYPE_BYTES + 4 < sizeof list)
      snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", f->type[i]);
  }
  if (nearest.best != NULL && strcmp(nearest.best, f->ask->slow) != 0)
    return tb_fail(diag, TB_NOTFOUND, "no complete task or region \"%s\"; did you mean %s?",
                   f->ask->slow, nearest.best);
  return tb_fail(diag, TB_NOTFOUND, "no complete task or region \"%s\"; the trace has %s",
                 f->ask->slow, list);
}

static tb_rc no_state(const struct to_why_finding *f, struct tb_diag *diag) {
  if (!f->ask->at_is_wall && (f->ask->at < f->first || f->ask->at > f->last))
    return tb_fail(diag, TB_NOTFOUND,
                   "the time is outside of the trace, which covers %" PRId64 " to %" PRId64,
                   f->first, f->last);
  if (!f->goroutine_seen)
    return tb_fail(diag, TB_NOTFOUND, "the trace has no goroutine %" PRIu64 "", f->ask->goroutine);
  return tb_fail(diag, TB_NOTFOUND,
                 "goroutine %" PRIu64 " is unknown at that time; the trace covers %" PRId64
                 " to %" PRId64,
                 f->ask->goroutine, f->first, f->last);
}

tb_rc to_why_choose(const struct to_why_finding *f, struct tb_diag *diag,
                    struct to_why_interval *out) {
  const struct to_why_interval *found = &f->task;

  if (f->ask->goroutine != 0) {
    if (length(&f->state) < 0) return no_state(f, diag);
    found = length(&f->region) >= 0 ? &f->region : length(&f->task) >= 0 ? &f->task : &f->state;
  }
  if (length(found) < 0) return f->ask->slow != NULL ? no_type(f, diag) : no_task(f, diag);
  if (found->life == 0)
    return tb_fail(diag, TB_NOTFOUND, "it is unknown which goroutine ended %s", found->name);
  *out = *found;
  return TB_OK;
}
