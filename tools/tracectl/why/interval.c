/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/interval.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"

enum { TYPES_MAX = 64, TYPE_BYTES = 100 };

struct finding {
  const struct tk_why_ask *ask;
  struct tk_why_interval task, region, state; /* name "": not found */
  to_ns first, last;                          /* of the trace */
  bool any, goroutine_seen;
  uint64_t tasks, below, above; /* the task ids next to the one that is asked */
  char type[TYPES_MAX][TYPE_BYTES];
  size_t types;
};

static void copy_name(const struct to_span *span, char out[TYPE_BYTES]) {
  struct to_string name = span->more == NULL ? (struct to_string){ 0 } : span->more->name;
  int len = name.len < TYPE_BYTES ? (int)name.len : TYPE_BYTES - 1;

  snprintf(out, TYPE_BYTES, "%.*s", len, len > 0 ? name.data : "");
  tk_plain_text(out);
}

static void note_type(struct finding *f, const char *name) {
  for (size_t i = 0; i < f->types; i++)
    if (strcmp(f->type[i], name) == 0) return;
  if (f->types < TYPES_MAX && name[0] != 0) snprintf(f->type[f->types++], TYPE_BYTES, "%s", name);
}

static void note_task(struct finding *f, uint64_t id) {
  f->tasks++;
  if (id < f->ask->task && id > f->below) f->below = id;
  if (id > f->ask->task && (f->above == 0 || id < f->above)) f->above = id;
}

/* The goroutine that ended a task knows why it took so long; of an open one that is the one which began it. */
static struct tk_why_interval interval_of(const struct to_span *span) {
  bool by_another = span->kind == TO_SPAN_TASK && !span->open;

  return (struct tk_why_interval){ .from = span->from,
                                   .until = span->until,
                                   .life = by_another ? span->by_life : span->life,
                                   .open = span->open };
}

static void name_it(struct tk_why_interval *i, const struct to_span *span) {
  char name[TYPE_BYTES];

  copy_name(span, name);
  if (span->kind == TO_SPAN_TASK)
    snprintf(i->name, TK_WHY_NAME, "task %" PRIu64 " (%s)", span->more->value, name);
  else if (span->kind == TO_SPAN_REGION)
    snprintf(i->name, TK_WHY_NAME, "region %s of goroutine %" PRId64, name, span->id);
  else
    snprintf(i->name, TK_WHY_NAME, "goroutine %" PRId64 " (%s)", span->id,
             to_go_state_name(span->state));
}

static void take(struct tk_why_interval *place, const struct to_span *span) {
  *place = interval_of(span);
  name_it(place, span);
}

static to_ns length(const struct tk_why_interval *i) {
  return i->name[0] == 0 ? -1 : i->until - i->from;
}

static bool is_at(const struct tk_why_ask *ask, const struct tk_span *at) {
  const struct to_span *span = at->span;

  if (!ask->at_is_wall) return span->from <= ask->at && ask->at <= span->until;
  return at->has_wall && at->wall_ns <= ask->at_wall_ns &&
         ask->at_wall_ns <= at->wall_ns + (uint64_t)(span->until - span->from);
}

/* The innermost one is the shortest. */
static void look_around(struct finding *f, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool own = span->kind == TO_SPAN_TASK ? span->more->goroutine == (int64_t)f->ask->goroutine
                                        : span->id == (int64_t)f->ask->goroutine;
  struct tk_why_interval *place = span->kind == TO_SPAN_TASK     ? &f->task
                                  : span->kind == TO_SPAN_REGION ? &f->region
                                                                 : &f->state;

  if (!own) return;
  f->goroutine_seen |= span->kind == TO_SPAN_GOROUTINE;
  if (!is_at(f->ask, at)) return;
  if (length(place) < 0 || span->until - span->from < length(place)) take(place, span);
}

static void look_for_slow(struct finding *f, const struct to_span *span) {
  char name[TYPE_BYTES];

  copy_name(span, name);
  note_type(f, name);
  if (strcmp(name, f->ask->slow) != 0 || span->open || !span->from_known || !span->until_known)
    return;
  if (span->until - span->from > length(&f->task)) take(&f->task, span);
}

static void look_at(struct finding *f, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_task = span->kind == TO_SPAN_TASK, is_region = span->kind == TO_SPAN_REGION;

  if (span->kind == TO_SPAN_GOROUTINE) {
    if (!f->any || span->from < f->first) f->first = span->from;
    if (!f->any || span->until > f->last) f->last = span->until;
    f->any = true;
  }
  if (is_task) note_task(f, span->more->value);
  if (f->ask->slow != NULL && (is_task || is_region)) look_for_slow(f, span);
  if (f->ask->has_task && is_task && span->more->value == f->ask->task &&
      length(&f->task) < 0) /* numbers are given once: the first one it is */
    take(&f->task, span);
  if (f->ask->goroutine != 0 && (is_task || is_region || span->kind == TO_SPAN_GOROUTINE))
    look_around(f, at);
}

static int no_task(const struct finding *f) {
  if (f->tasks == 0)
    return tk_fail(
        "report",
        "%s: no task is in it: a Go program makes them by trace.NewTask() of runtime/trace, "
        "a C program by ta_task_begin()",
        f->ask->place.name);
  if (f->below != 0 && f->above != 0)
    return tk_fail("report", "%s: no task %" PRIu64 "; the nearest are %" PRIu64 " and %" PRIu64,
                   f->ask->place.name, f->ask->task, f->below, f->above);
  return tk_fail("report", "%s: no task %" PRIu64 "; the nearest is %" PRIu64, f->ask->place.name,
                 f->ask->task, f->below != 0 ? f->below : f->above);
}

static int no_type(const struct finding *f) {
  struct tb_nearest nearest = { .word = f->ask->slow };
  char list[400] = "";

  if (f->types == 0) {
    struct finding none = *f;
    none.tasks = 0;
    return no_task(&none);
  }
  for (size_t i = 0; i < f->types; i++) {
    size_t n = strlen(list);
    tb_nearest_try(&nearest, f->type[i]);
    if (n + TYPE_BYTES + 4 < sizeof list)
      snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", f->type[i]);
  }
  if (nearest.best != NULL && strcmp(nearest.best, f->ask->slow) != 0)
    return tk_fail("report", "%s: no complete task or region \"%s\"; did you mean %s?",
                   f->ask->place.name, f->ask->slow, nearest.best);
  return tk_fail("report", "%s: no complete task or region \"%s\"; it has %s", f->ask->place.name,
                 f->ask->slow, list);
}

static int no_state(const struct finding *f) {
  if (!f->ask->at_is_wall && (f->ask->at < f->first || f->ask->at > f->last))
    return tk_fail("report",
                   "%s: --at lies outside of the trace, which has %" PRId64 " to %" PRId64,
                   f->ask->place.name, f->first, f->last);
  if (!f->goroutine_seen)
    return tk_fail("report", "%s: no goroutine %" PRIu64 " is in it", f->ask->place.name,
                   f->ask->goroutine);
  return tk_fail("report",
                 "%s: goroutine %" PRIu64 " is not known at that time; the trace has %" PRId64
                 " to %" PRId64,
                 f->ask->place.name, f->ask->goroutine, f->first, f->last);
}

static int choose(const struct finding *f, struct tk_why_interval *out) {
  const struct tk_why_interval *found = &f->task;

  if (f->ask->goroutine != 0) {
    if (length(&f->state) < 0) return no_state(f);
    found = length(&f->region) >= 0 ? &f->region : length(&f->task) >= 0 ? &f->task : &f->state;
  }
  if (length(found) < 0) return f->ask->slow != NULL ? no_type(f) : no_task(f);
  if (found->life == 0)
    return tk_fail("report", "%s: no goroutine is known that ended %s", f->ask->place.name, found->name);
  *out = *found;
  return TK_DONE;
}

int tk_why_find(const struct tk_why_ask *ask, struct tk_why_interval *out) {
  char error[TK_QUERY_ERROR];
  struct tk_pass *pass;
  struct tk_span at;
  int got;

  struct finding *f = calloc(1, sizeof *f);
  if (f == NULL) return tk_fail("report", "out of memory");
  f->ask = ask;
  if (!tk_pass_begin(&ask->place, 0, &pass, error)) {
    free(f);
    return error[0] == 0 ? TK_FAILED : tk_fail("report", "%s", error);
  }
  while ((got = tk_pass_next(pass, &at, error)) == 1) look_at(f, &at);
  tk_pass_end(pass);
  int code = got < 0 ? tk_fail("report", "%s", error) : choose(f, out);
  free(f);
  return code;
}
