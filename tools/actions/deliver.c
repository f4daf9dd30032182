/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/deliver.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
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
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  bool stopping;
  uint64_t last; /* the newest that was taken */
  struct ac_task waiting[AC_WAITING_MAX];
  size_t first, n;
};

/* ---- the line ---- */

/* False: it is to end. */
static bool take(struct ac_line *line, struct ac_task *out) {
  pthread_mutex_lock(&line->lock);
  while (line->n == 0 && !line->stopping) pthread_cond_wait(&line->changed, &line->lock);
  bool goes_on = !line->stopping;
  if (goes_on) {
    *out = line->waiting[line->first];
    line->first = (line->first + 1) % AC_WAITING_MAX;
    line->n--;
  }
  pthread_mutex_unlock(&line->lock);
  return goes_on;
}

static void put(struct ac_line *line, const struct ac_task *task) {
  pthread_mutex_lock(&line->lock);
  if (line->n == AC_WAITING_MAX) {
    tc_log(TC_ERROR, "actions", "%s: %d firings wait; the oldest is given up", line->action->id,
           AC_WAITING_MAX);
    free(line->waiting[line->first].text);
    line->first = (line->first + 1) % AC_WAITING_MAX;
    line->n--;
  }
  line->waiting[(line->first + line->n++) % AC_WAITING_MAX] = *task;
  pthread_cond_signal(&line->changed);
  pthread_mutex_unlock(&line->lock);
}

static bool is_named_in(const Tracecollect__V1__Firing *firing, const char *action) {
  for (size_t i = 0; i < firing->n_actions; i++)
    if (strcmp(firing->actions[i], action) == 0) return true;
  return false;
}

tb_rc ac_line_add(struct ac_line *line, const Tracecollect__V1__Firing *firing) {
  struct ac_task task = { .id = firing->id };

  if (firing->id <= line->last || !is_named_in(firing, line->action->id)) return TB_OK;
  TB_TRY(ac_text(line->action->kind, firing, &task.text, &task.len));
  line->last = firing->id;
  put(line, &task);
  return TB_OK;
}

/* ---- the thread ---- */

/* False: it is to end. */
static bool pause_for(const struct ac_line *line, unsigned ms) {
  struct pollfd fd = { .fd = line->stop_fd, .events = POLLIN };

  return poll(&fd, 1, (int)ms) <= 0;
}

/* *out_wait_s: the least pause before the next try. */
static enum ac_outcome attempt(const struct ac_line *line, const struct ac_task *task,
                               struct tb_diag *diag, unsigned *out_wait_s) {
  tb_diag_clear(diag);
  *out_wait_s = 0;
  return line->action->kind == AC_EXEC
             ? ac_exec(line->action, task, line->stop_fd, diag)
             : ac_webhook(line->action, task, line->stop_fd, diag, out_wait_s);
}

/* False: it is to end, and the task is not over. */
static bool deliver(const struct ac_line *line, const struct ac_task *task) {
  unsigned pause_ms = PAUSE_FIRST_MS, wait_s;
  enum ac_outcome outcome;
  struct tb_diag diag;

  while ((outcome = attempt(line, task, &diag, &wait_s)) == AC_LATER) {
    if (diag.rc == TB_BUSY) return false;
    if (tc_wall_ns() > task->id + give_up_ns) break;
    if (wait_s < pause_ms / 1000) wait_s = pause_ms / 1000;
    if (wait_s > WAIT_MAX_S) wait_s = WAIT_MAX_S;
    tc_log(TC_WARN, "actions", "%s: %s; again in %u s", line->action->id, diag.text, wait_s);
    if (!pause_for(line, 1000 * wait_s)) return false;
    pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS;
  }
  if (outcome != AC_DONE)
    tc_log(TC_ERROR, "actions", "%s: %s; given up", line->action->id, diag.text);
  return true;
}

static void *work(void *self) {
  struct ac_line *line = self;
  struct ac_task task;
  bool goes_on = true;

  while (goes_on && take(line, &task)) {
    struct tb_diag diag;
    tb_diag_clear(&diag);
    goes_on = deliver(line, &task);
    if (goes_on && ac_progress_note(line->progress, line->action->id, task.id, &diag) != TB_OK)
      tc_log(TC_ERROR, "actions", "%s; after a restart %s is done again", diag.text,
             line->action->id);
    free(task.text);
  }
  return NULL;
}

tb_rc ac_line_start(const struct ac_action *action, struct ac_progress *progress, int stop_fd,
                    struct ac_line **out) {
  struct ac_line *line = calloc(1, sizeof *line);

  if (line == NULL) return TB_NOMEM;
  line->action = action;
  line->progress = progress;
  line->stop_fd = stop_fd;
  line->last = ac_progress_of(progress, action->id);
  pthread_mutex_init(&line->lock, NULL);
  pthread_cond_init(&line->changed, NULL);
  if (tc_thread_start(&line->thread, NULL, work, line) == 0) {
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
  for (; line->n > 0; line->n--, line->first = (line->first + 1) % AC_WAITING_MAX)
    free(line->waiting[line->first].text);
  pthread_cond_destroy(&line->changed);
  pthread_mutex_destroy(&line->lock);
  free(line);
}
