/* SPDX-License-Identifier: Apache-2.0 */
/* alert: a threshold was passed. One of a kind in alert.every of the stream's own time; the rest is
 * counted. A call that is still open is reported once, when a generation ends or a second has passed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/analysis/feed_private.h"
#include "online/spans/spans.h"
#include "pack/text.h"

enum { LINE_BYTES = 1536, NAME_BYTES = 200 };

/* True: this one is shown. */
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

static tb_rc fill_text(struct tc_feed_encoder *source, const struct to_watched *span,
                       const char *what, Tracecollect__V1__Alert *alert) {
  const char *where = alert->n_stack > 0 ? alert->stack[0]->function : "";
  void *line;

  TB_TRY(tb_arena_take(&source->arena, LINE_BYTES, &line));
  snprintf(line, LINE_BYTES, "%s/%s: %s %s%.3f ms%s%.1024s, goroutine %" PRId64,
           source->origin.service, source->origin.instance, what, span->lower_bound ? "over " : "",
           (double)alert->duration_ns / 1e6, where[0] != '\0' ? " in " : "", where,
           span->goroutine);
  alert->text = line;
  return TB_OK;
}

static tb_rc fill(struct tc_feed_encoder *source, const struct to_watched *span,
                  Tracecollect__V1__Alert *alert) {
  bool stw = span->what == TO_WORLD_RESTARTED;

  alert->kind = stw ? TRACECOLLECT__V1__ALERT_KIND__ALERT_STW
                    : TRACECOLLECT__V1__ALERT_KIND__ALERT_SYSCALL_BLOCKED;
  alert->id = (char *)(uintptr_t)(stw ? span->id : "/syscall/blocked");
  alert->duration_ns = (uint64_t)(span->end - span->begin);
  alert->threshold_ns =
      stw ? source->env.config->alert_stw : source->env.config->alert_syscall_blocked;
  alert->open = span->what == TO_SYSCALL_LONG;
  alert->lower_bound = span->lower_bound;
  alert->begin_ns = span->begin;
  alert->begin_wall_ns = to_analyses_wall(source->analyses, span->begin);
  alert->goroutine = span->goroutine;
  alert->thread = span->thread;
  TB_TRY(tp_take_stack(&source->arena, span->stack, &alert->n_stack, &alert->stack));
  TB_TRY(fill_text(source, span,
                   stw           ? "world stopped for"
                   : alert->open ? "system call blocks since"
                                 : "system call blocked for",
                   alert));
  return tc__source_fetch_line(source, source->gen, source->gen, &alert->fetch);
}

/* What goroutines did in a task's regions, the most first: ", in its regions 120 ms waiting for sync, 3.2 ms running". */
static void say_done(const struct to_region_time *did, char *line, size_t bytes) {
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

static tb_rc fill_task(struct tc_feed_encoder *source, const struct to_watched_task *task,
                       Tracecollect__V1__Alert *alert) {
  char *line;

  alert->kind = TRACECOLLECT__V1__ALERT_KIND__ALERT_TASK;
  alert->id = (char *)(uintptr_t) "/task/slow";
  alert->duration_ns = (uint64_t)(task->end - task->begin);
  alert->threshold_ns = source->env.config->alert_task;
  alert->begin_ns = task->begin;
  alert->begin_wall_ns = to_analyses_wall(source->analyses, task->begin);
  alert->goroutine = task->goroutine;
  alert->thread = TO_NONE;
  TB_TRY(tp_take_stack(&source->arena, task->stack, &alert->n_stack, &alert->stack));
  TB_TRY(tb_arena_take(&source->arena, LINE_BYTES, &line));
  snprintf(line, LINE_BYTES, "%s/%s: task %" PRIu64 " (%.*s) took %.3f ms", source->origin.service,
           source->origin.instance, task->task,
           (int)(task->type.len < NAME_BYTES ? task->type.len : NAME_BYTES), task->type.data,
           (double)alert->duration_ns / 1e6);
  if (task->did != NULL) say_done(task->did, line, LINE_BYTES);
  size_t n = strlen(line);
  snprintf(line + n, LINE_BYTES - n, "; why: tracectl report why --stream %s --task %" PRIu64,
           source->hex, task->task);
  alert->text = line;
  return tc__source_fetch_line(source, source->gen, source->gen, &alert->fetch);
}

void tc__task_alert(struct tc_feed_encoder *source, const struct to_watched_task *task) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;
  struct tc__alert_gate *limiter = &source->task_gate;

  if (!pass(source, limiter, task->end) || !source->wanted) return;
  if (fill_task(source, task, &alert) != TB_OK) {
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
    return;
  }
  alert.suppressed = limiter->suppressed;
  limiter->suppressed = 0;
  tc__publish_alert(source, &alert, task->end);
}

/* As the page itself links to a moment: some time before and after it, the goroutine on top. */
static tb_rc fill_page(struct tc_feed_encoder *source, Tracecollect__V1__Alert *alert) {
  const char *page = tc_feed_page(source->env.feed);
  uint64_t around = alert->duration_ns / 4 + 1000000;
  char pin[40] = "";
  void *url;

  if (page == NULL || alert->begin_wall_ns <= around) return TB_OK;
  if (alert->goroutine > 0) snprintf(pin, sizeof pin, "&pin=%" PRId64, alert->goroutine);
  TB_TRY(tb_arena_take(&source->arena, LINE_BYTES, &url));
  snprintf(url, LINE_BYTES, "%s/timeline/%s?from=%" PRIu64 "&to=%" PRIu64 "%s", page, source->hex,
           alert->begin_wall_ns - around, alert->begin_wall_ns + alert->duration_ns + around, pin);
  alert->page = url;
  return TB_OK;
}

void tc__publish_alert(struct tc_feed_encoder *source, Tracecollect__V1__Alert *alert,
                       to_ns until) {
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;

  if (fill_page(source, alert) != TB_OK) {
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
    return;
  }
  message.alerts = &alert;
  message.n_alerts = 1;
  tc__source_publish(source, TC_FEED_ALERT, source->gen, alert->begin_wall_ns,
                     to_analyses_wall(source->analyses, until), &message);
}

static void show(struct tc_feed_encoder *source, const struct to_watched *span,
                 struct tc__alert_gate *limiter) {
  Tracecollect__V1__Alert alert = TRACECOLLECT__V1__ALERT__INIT;

  if (!source->wanted) return;
  if (fill(source, span, &alert) != TB_OK) {
    tc_feed_miss(source->env.feed, &source->origin, TC_FEED_ALERT, 1);
    return;
  }
  alert.suppressed = limiter->suppressed;
  limiter->suppressed = 0;
  tc__publish_alert(source, &alert, span->end);
}

/* Blocked is what has lost its P, or runs for syscall.blocked_after. A call that waits for work is not. */
static bool blocks_too_long(const struct tc_feed_encoder *source, const struct to_watched *span) {
  const struct tc_config *config = source->env.config;
  uint64_t length = (uint64_t)(span->end - span->begin);

  return config->alert_syscall_blocked > 0 && !span->reported && !span->idle &&
         length >= config->alert_syscall_blocked &&
         (span->blocked || length >= config->syscall_blocked_after);
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
  if (limiter != NULL && pass(source, limiter, span->end)) show(source, span, limiter);
}

void tc_feed_encoder_overdue(struct tc_feed_encoder *source) {
  uint64_t age = source->env.config->alert_syscall_blocked;
  uint64_t blocked = source->env.config->syscall_blocked_after;

  if (age == 0 || source->analyses == NULL) return;
  if (age < blocked) age = blocked; /* each is reported once: not before it counts as blocked */
  if (age <= INT64_MAX) to_analyses_overdue(source->analyses, (to_ns)age);
}
