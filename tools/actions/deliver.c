/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/deliver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/base/logger.h"
#include "tools/actions/exec.h"
#include "tools/actions/text.h"
#include "tools/actions/webhook.h"

enum { PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 60000, WAIT_MAX_S = 3600 };
static const uint64_t give_up_ns = UINT64_C(3600000000000);

struct ac_line {
  const struct ac_action *action;
  struct ac_progress *progress;
  int stop_fd;
  pthread_t thread;
  pthread_mutex_t lock; /* protects the fields below */
  pthread_cond_t changed;
  bool stopping;
  uint64_t last; /* id of the newest firing that was queued */
  struct ac_waiting waiting;
};

/* Call with the lock, which is released meanwhile. Waits until a task is due or something
 * changes. */
static void wait_for_one(struct ac_line *line) {
  uint64_t due_ns = ac_waiting_due(&line->waiting), now_ns = tc_mono_ns();

  if (due_ns == UINT64_MAX) {
    pthread_cond_wait(&line->changed, &line->lock);
    return;
  }
  struct timespec until =
      tc_from_now(due_ns > now_ns ? (unsigned)((due_ns - now_ns) / 1000000) + 1 : 0);
  pthread_cond_timedwait(&line->changed, &line->lock, &until);
}

/* Returns false if the thread is to end. */
static bool take_task(struct ac_line *line, struct ac_task *out) {
  pthread_mutex_lock(&line->lock);
  while (!line->stopping && !ac_waiting_take(&line->waiting, tc_mono_ns(), out)) wait_for_one(line);
  bool goes_on = !line->stopping;
  pthread_mutex_unlock(&line->lock);
  return goes_on;
}

static tb_rc put_task(struct ac_line *line, const struct ac_task *task) {
  struct ac_task given_up;

  pthread_mutex_lock(&line->lock);
  tb_rc rc = ac_waiting_put(&line->waiting, task, &given_up);
  if (rc == TB_OK) line->last = task->id;
  pthread_cond_signal(&line->changed);
  pthread_mutex_unlock(&line->lock);
  if (given_up.text != NULL)
    tc_log_about(tc_log_subject_of(given_up.rule), TC_ERROR, "actions",
                 "%s: %d firings wait; the oldest of rule=%s, which has the most, is given up",
                 line->action->id, AC_WAITING_MAX, given_up.rule);
  free(given_up.text);
  return rc;
}

static bool is_named_in(const Tracecollect__V1__Firing *firing, const char *action) {
  for (size_t i = 0; i < firing->n_actions; i++)
    if (strcmp(firing->actions[i], action) == 0) return true;
  return false;
}

tb_rc ac_line_add(struct ac_line *line, const Tracecollect__V1__Firing *firing) {
  struct ac_task task = { .id = firing->id };

  if (firing->id <= line->last || !is_named_in(firing, line->action->id) ||
      firing->id <= ac_progress_of(line->progress, line->action->id, firing->rule))
    return TB_OK;
  snprintf(task.rule, sizeof task.rule, "%s", firing->rule);
  TB_TRY(ac_text(line->action->kind, firing, &task.text, &task.len));
  tb_rc rc = put_task(line, &task);
  if (rc != TB_OK) free(task.text);
  return rc;
}

/* *out_wait_s: minimum pause before the next try. */
static enum ac_outcome attempt(const struct ac_line *line, const struct ac_task *task,
                               struct tb_diag *diag, unsigned *out_wait_s) {
  tb_diag_clear(diag);
  *out_wait_s = 0;
  return line->action->kind == AC_EXEC
             ? ac_exec(line->action, task, line->stop_fd, diag)
             : ac_webhook(line->action, task, line->stop_fd, diag, out_wait_s);
}

static void try_later(struct ac_line *line, struct ac_task *task, unsigned wait_s,
                      const struct tb_diag *why) {
  if (task->pause_ms == 0)
    task->pause_ms = PAUSE_FIRST_MS;
  else
    task->pause_ms = 2 * task->pause_ms < PAUSE_MAX_MS ? 2 * task->pause_ms : PAUSE_MAX_MS;
  if (wait_s < task->pause_ms / 1000) wait_s = task->pause_ms / 1000;
  if (wait_s > WAIT_MAX_S) wait_s = WAIT_MAX_S;
  tc_log(TC_WARN, "actions", "%s: %s; again in %u s", line->action->id, why->text, wait_s);
  pthread_mutex_lock(&line->lock);
  ac_waiting_later(&line->waiting, task, tc_mono_ns() + wait_s * UINT64_C(1000000000));
  pthread_mutex_unlock(&line->lock);
}

/* Notes progress: of all rules if no other task waits, of this rule otherwise. */
static void note_progress(struct ac_line *line, struct ac_task *task) {
  struct tb_diag diag;
  uint64_t id = task->id;
  char rule[AC_RULE_MAX + 1];

  tb_diag_clear(&diag);
  memcpy(rule, task->rule, sizeof rule);
  pthread_mutex_lock(&line->lock);
  ac_waiting_over(&line->waiting, task);
  if (line->waiting.n == 0) {
    id = line->last;
    rule[0] = '\0';
  }
  pthread_mutex_unlock(&line->lock);
  if (ac_progress_note(line->progress, line->action->id, rule, id, &diag) != TB_OK)
    tc_log(TC_ERROR, "actions", "%s; after a restart %s is done again", diag.text,
           line->action->id);
}

/* Returns false if the thread is to end before the task is done. */
static bool deliver(struct ac_line *line, struct ac_task *task) {
  struct tb_diag diag;
  unsigned wait_s;
  enum ac_outcome outcome = attempt(line, task, &diag, &wait_s);

  if (outcome == AC_LATER && diag.rc == TB_BUSY) return false;
  if (outcome == AC_LATER && tc_wall_ns() <= task->id + give_up_ns) {
    try_later(line, task, wait_s, &diag);
    return true;
  }
  if (outcome != AC_DONE)
    tc_log(TC_ERROR, "actions", "%s: %s; given up", line->action->id, diag.text);
  note_progress(line, task);
  return true;
}

static void *run_line(void *self) {
  struct ac_line *line = self;
  struct ac_task task;

  while (take_task(line, &task) && deliver(line, &task)) continue;
  return NULL;
}

tb_rc ac_line_start(const struct ac_action *action, struct ac_progress *progress, int stop_fd,
                    struct ac_line **out) {
  struct ac_line *line = calloc(1, sizeof *line);

  if (line == NULL) return TB_NOMEM;
  line->action = action;
  line->progress = progress;
  line->stop_fd = stop_fd;
  line->last = ac_progress_of(progress, action->id, "");
  pthread_mutex_init(&line->lock, NULL);
  tc_cond_init(&line->changed);
  if (tc_thread_start(&line->thread, NULL, run_line, line) == 0) {
    *out = line;
    return TB_OK;
  }
  pthread_cond_destroy(&line->changed);
  pthread_mutex_destroy(&line->lock);
  free(line);
  return TB_NOMEM;
}

void ac_line_stop(struct ac_line *line) {
  if (line == NULL) return;
  pthread_mutex_lock(&line->lock);
  line->stopping = true;
  pthread_cond_signal(&line->changed);
  pthread_mutex_unlock(&line->lock);
  pthread_join(line->thread, NULL);
  ac_waiting_fini(&line->waiting);
  pthread_cond_destroy(&line->changed);
  pthread_mutex_destroy(&line->lock);
  free(line);
}
