/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts when a threshold of alert.* is passed. Each threshold is also a built-in trigger rule, which fires at the same time. At
 * most one alert of a kind is sent in alert.every of the stream's own time, the rest are counted; the rule also fires at most that
 * often by the collector's clock. A call that is still open is reported once, when a generation ends or a second has passed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "collector/analysis/feed_private.h"
#include "online/spans/spans.h"
#include "pack/text.h"

enum { NAME_BYTES = 200, WHERE_BYTES = 1024 };
static const uint64_t firing_every_min_ns = 100000000;

static tb_rc copy_text(struct tc_feed_encoder *source, const char *before, const char *text,
                       char **out) {
  size_t bytes = strlen(before) + strlen(text) + 1;
  void *copy;

  if (*text == '\0') return TB_OK;
  TB_TRY(tb_arena_alloc(&source->arena, bytes, &copy));
  snprintf(copy, bytes, "%s%s", before, text);
  *out = copy;
  return TB_OK;
}

/* Gives the alert the command and the pages of its finding. */
static tb_rc fill_links(struct tc_feed_encoder *source, const char *why,
                        Tracecollect__V1__Alert *alert) {
  const char *page = tc_feed_page(source->env.feed);
  struct tc_part part = {
    .service = source->origin.service, .gen = source->gen, .goroutine = alert->goroutine, .why = why
  };
  char fetch[TC_PART_FETCH_BYTES], path[TC_PART_PATH_BYTES];

  memcpy(part.stream, source->origin.stream, sizeof part.stream);
  if (alert->begin_wall_ns != 0)
    tc_part_times(&part, alert->kind == TRACECOLLECT__V1__ALERT_KIND__ALERT_LEAK,
                  alert->begin_wall_ns, alert->begin_wall_ns + alert->duration_ns);
  tc_part_fetch(&part, fetch);
  TB_TRY(copy_text(source, "", fetch, &alert->fetch));
  tc_part_why(&part, path);
  TB_TRY(copy_text(source, "", path, &alert->why));
  tc_part_timeline(&part, path);
  return page != NULL ? copy_text(source, page, path, &alert->page) : TB_OK;
}

static tb_rc fill(struct tc_feed_encoder *source, const struct to_callstack *stack,
                  const char *text, const char *why, Tracecollect__V1__Alert *alert) {
  char line[TC__ALERT_BYTES + 2 * TC_NAME_MAX + 8];
  int len = snprintf(line, sizeof line, "%s/%s: %s", source->origin.service,
                     source->origin.instance, text);

  alert->begin_wall_ns = to_analyses_wall(source->analyses, alert->begin_ns);
  TB_TRY(tp_copy_text(&source->arena, (struct to_string){ line, (size_t)len }, &alert->text));
  TB_TRY(tp_take_stack(&source->arena, stack, &alert->n_stack, &alert->stack));
  return fill_links(source, why, alert);
}

void tc__publish_alert(struct tc_feed_encoder *source, Tracecollect__V1__Alert *alert,
                       const struct to_callstack *stack, to_ns until, const char *text,
                       const char *why) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;
  char words[TC__ALERT_BYTES];

  (void)to_words_write(to_analyses_program(source->analyses), text, words, sizeof words);
  if (fill(source, stack, words, why, alert) != TB_OK) {
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
    return;
  }
  message.alerts = &alert;
  message.n_alerts = 1;
  tc__source_publish(source, TC_FEED_ALERT, source->gen, alert->begin_wall_ns,
                     to_analyses_wall(source->analyses, until), &message);
}

/* Counts the alert. Returns false if it is suppressed. */
static bool pass(struct tc_feed_encoder *source, struct tc__alert_gate *limiter, to_ns now) {
  tc_metric_add(&source->env.metrics->alerts_total, 1);
  if (limiter->opened_once && now >= limiter->opened &&
      (uint64_t)(now - limiter->opened) < source->env.config->alert_every) {
    limiter->suppressed++;
    tc_metric_add(&source->env.metrics->alerts_suppressed_total, 1);
    return false;
  }
  limiter->opened_once = true;
  limiter->opened = now;
  return true;
}

/* A firing takes a lock shared by all loops, an entry of the firing history and a log line. The stream's clock comes from its
 * program: a clock that jumps would fire with each span, so this limit uses ours. */
static bool may_fire(struct tc_feed_encoder *source, struct tc__alert_gate *limiter) {
  uint64_t every = source->env.config->alert_every;
  const struct tc_pace_limits limits = { .every_ns = every > firing_every_min_ns
                                                         ? every
                                                         : firing_every_min_ns };

  if (tc_pace_takes(&limiter->firings, &limits, tc_mono_ns())) return true;
  tc_metric_add(&source->env.metrics->alerts_unfired_total, 1);
  return false;
}

/* rule: the name of the built-in rule. */
static void show(struct tc_feed_encoder *source, const char *rule, struct tc__alert_gate *limiter,
                 Tracecollect__V1__Alert *alert, const struct to_callstack *stack, to_ns until,
                 const char *text, const char *why) {
  if (source->env.passed != NULL && may_fire(source, limiter))
    source->env.passed(source->env.self, rule, text, source->gen, until);
  if (!source->wanted) return;
  alert->suppressed = limiter->suppressed;
  limiter->suppressed = 0;
  tc__publish_alert(source, alert, stack, until, text, why);
}

/* Returns where to describe the span for its finding, or NULL. */
static struct tc_exceeded_text *exceed(const struct tc_feed_encoder *source,
                                       const struct tc_exceeded *span) {
  return source->env.exceeded == NULL ? NULL : source->env.exceeded(source->env.self, span);
}

static void describe_span(const struct to_watched *span, char *out, size_t bytes) {
  bool stw = span->what == TO_WORLD_RESTARTED, open = span->what == TO_SYSCALL_LONG;
  struct to_string where = { "", 0 };

  if (span->stack != NULL && span->stack->len > 0) where = span->stack->frames[0]->function;
  snprintf(out, bytes, "%s %s%.3f ms%s%.*s, goroutine %" PRId64,
           stw    ? "world stopped for"
           : open ? "system call blocks since"
                  : "system call blocked for",
           span->lower_bound ? "over " : "", (double)(span->end - span->begin) / 1e6,
           where.len > 0 ? " in " : "", (int)(where.len < WHERE_BYTES ? where.len : WHERE_BYTES),
           where.data, span->goroutine);
}

/* A stop is of all goroutines: the moment of one explains nothing. */
static void explain_span(const struct to_watched *span, char why[TC_WHY_BYTES]) {
  why[0] = '\0';
  if (span->what != TO_WORLD_RESTARTED && span->goroutine > 0)
    tc_why_moment(span->goroutine, span->begin + (span->end - span->begin) / 2, why);
}

static void show_span(struct tc_feed_encoder *source, const struct to_watched *span,
                      struct tc__alert_gate *limiter) {
  const struct tc_config *config = source->env.config;
  bool stw = span->what == TO_WORLD_RESTARTED, open = span->what == TO_SYSCALL_LONG;
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  char text[TC__ALERT_BYTES], why[TC_WHY_BYTES];

  alert.kind = stw ? TRACECOLLECT__V1__ALERT_KIND__ALERT_STW
                   : TRACECOLLECT__V1__ALERT_KIND__ALERT_SYSCALL_BLOCKED;
  alert.id = (char *)(uintptr_t)(stw ? span->id : "/syscall/blocked");
  alert.duration_ns = (uint64_t)(span->end - span->begin);
  alert.threshold_ns = stw ? config->alert_stw : config->alert_syscall_blocked;
  alert.open = open;
  alert.lower_bound = span->lower_bound;
  alert.begin_ns = span->begin;
  alert.goroutine = span->goroutine;
  alert.thread = span->thread;
  describe_span(span, text, sizeof text);
  explain_span(span, why);
  show(source, stw ? "alert.stw" : "alert.syscall_blocked", limiter, &alert, span->stack, span->end,
       text, why);
}

/* Appends the time a task's regions spent in each state, longest first: ", in its regions 120 ms waiting for sync, 3.2 ms
 * running". */
static void append_region_times(const struct to_region_time *did, char *line, size_t bytes) {
  static const char *const words[TO_REGION_PARTS] = {
    [TO_PART_RUNNING] = "running",
    [TO_PART_RUNNABLE] = "waiting for a P",
    [TO_PART_SYNC] = "waiting for a lock or a group",
    [TO_PART_CHAN] = "waiting for a channel",
    [TO_PART_NET] = "waiting for the network",
    [TO_PART_SLEEP] = "sleeping",
    [TO_PART_WAITING] = "waiting",
    [TO_PART_SYSCALL] = "in system calls",
    [TO_PART_SYSCALL_NO_P] = "in blocking system calls",
  };
  struct to_region_time left = *did;

  for (unsigned said = 0; said < TO_REGION_PARTS; said++) {
    unsigned most = 0;
    for (unsigned part = 1; part < TO_REGION_PARTS; part++)
      if (left.ns[part] > left.ns[most]) most = part;
    if (left.ns[most] == 0) return;
    size_t n = strlen(line);
    snprintf(line + n, bytes - n, "%s%.3f ms %s", said == 0 ? ", in its regions " : ", ",
             (double)left.ns[most] / 1e6, words[most]);
    left.ns[most] = 0;
  }
}

static void describe_task(const struct tc_feed_encoder *source, const struct to_watched_task *task,
                          char *out, size_t bytes) {
  snprintf(out, bytes, "task %" PRIu64 " (%.*s) took %.3f ms", task->task,
           (int)(task->type.len < NAME_BYTES ? task->type.len : NAME_BYTES), task->type.data,
           (double)(task->end - task->begin) / 1e6);
  if (task->did != NULL) append_region_times(task->did, out, bytes);
  size_t n = strlen(out);
  snprintf(out + n, bytes - n, "; why: tracectl why --stream %s --task %" PRIu64, source->hex,
           task->task);
}

static void show_task(struct tc_feed_encoder *source, const struct to_watched_task *task) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  char text[TC__ALERT_BYTES], why[TC_WHY_BYTES];

  alert.kind = TRACECOLLECT__V1__ALERT_KIND__ALERT_TASK;
  alert.id = (char *)(uintptr_t) "/task/slow";
  alert.duration_ns = (uint64_t)(task->end - task->begin);
  alert.threshold_ns = source->env.config->alert_task;
  alert.begin_ns = task->begin;
  alert.goroutine = task->goroutine;
  alert.thread = TO_NONE;
  describe_task(source, task, text, sizeof text);
  tc_why_task(task->task, why);
  show(source, "alert.task", &source->task_gate, &alert, task->stack, task->end, text, why);
}

void tc__task_alert(struct tc_feed_encoder *source, const struct to_watched_task *task) {
  char type[NAME_BYTES + 1];

  snprintf(type, sizeof type, "%.*s", (int)task->type.len, task->type.data);
  struct tc_exceeded_text *said = exceed(source, &(struct tc_exceeded){ .kind = "slow_task",
                                                                        .cause = type,
                                                                        .stack = task->stack,
                                                                        .begin = task->begin,
                                                                        .end = task->end });
  if (said != NULL) describe_task(source, task, said->words, sizeof said->words);
  if (said != NULL) tc_why_task(task->task, said->why);
  if (pass(source, &source->task_gate, task->end)) show_task(source, task);
}

/* A call blocks once it has lost its P or has run for syscall.blocked_after, unless it is idle (waits for work). */
static bool blocks_too_long(const struct tc_feed_encoder *source, const struct to_watched *span) {
  const struct tc_config *config = source->env.config;
  uint64_t length = (uint64_t)(span->end - span->begin);

  return config->alert_syscall_blocked > 0 && !span->idle &&
         length >= config->alert_syscall_blocked &&
         (span->blocked || length >= config->syscall_blocked_after);
}

/* Any goroutine may happen to stop the world: where it did is no part of the cause. */
static void note_span(const struct tc_feed_encoder *source, const struct to_watched *span) {
  bool stw = span->what == TO_WORLD_RESTARTED;
  struct tc_exceeded_text *said =
      exceed(source, &(struct tc_exceeded){ .kind = stw ? "long_stop" : "blocked_call",
                                            .cause = stw ? span->id : "",
                                            .stack = stw ? NULL : span->stack,
                                            .begin = span->begin,
                                            .end = span->end,
                                            .is_known = span->reported });

  if (said != NULL) describe_span(span, said->words, sizeof said->words);
  if (said != NULL) explain_span(span, said->why);
}

void tc__span_alert(struct tc_feed_encoder *source, const struct to_watched *span) {
  const struct tc_config *config = source->env.config;
  struct tc__alert_gate *limiter = NULL;

  if (span->what == TO_WORLD_RESTARTED) {
    if (config->alert_stw > 0 && (uint64_t)(span->end - span->begin) >= config->alert_stw)
      limiter = &source->stw_gate;
  } else if (span->what != TO_SYSCALL_BLOCKED && blocks_too_long(source, span)) {
    limiter = &source->syscall_gate;
  }
  if (limiter == NULL) return;
  note_span(source, span);
  if (!span->reported && pass(source, limiter, span->end)) show_span(source, span, limiter);
}

void tc_feed_encoder_overdue(struct tc_feed_encoder *source) {
  uint64_t age = source->env.config->alert_syscall_blocked;
  uint64_t blocked = source->env.config->syscall_blocked_after;

  if (age == 0 || source->analyses == NULL) return;
  if (age < blocked) age = blocked; /* the only alert: not before the call counts as blocked */
  if (age <= INT64_MAX) to_analyses_overdue(source->analyses, (to_ns)age);
}
