/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/top/poll.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "pack/trim.h"
#include "tools/tracectl/report/live.h"
#include "tools/tracectl/report/text.h"
#include "tools/tracectl/report/words.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/top/alerts.h"

enum { SECOND = 1000000000, STOP_MS = 500, REPORT_ROWS = 3, REPORT_FRAMES = 1 };

struct tk_poll {
  struct tk_client_args args;
  struct tk_selector selector;
  void (*fresh)(void);
  pthread_t thread;
  struct tk_client *client; /* of the thread */
  struct tk_alerts *alerts;
  pthread_mutex_t lock; /* protects the fields below */
  pthread_cond_t wake;
  bool stopping, asked; /* asked: poll now, without waiting for a second */
  enum to_window window;
  enum to_analysis_kind kind; /* TO_ANALYSIS_KINDS: no report is shown */
  unsigned columns;           /* of the report's text */
  struct tk_top_model *model;
  bool known;           /* the collector has answered at least once */
  uint64_t answered_ns; /* last answer */
  char fault[200];      /* of the last round; "": none */
  char trouble[300];
  char alert_error[200]; /* "": alerts are received */
};

static uint64_t now_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* ---- a round of requests ---- */

static tb_rc ask_status(struct tk_poll *p, struct tb_diag *diag) {
  const Tracecollect__V1__StatusReply *status;

  TB_TRY(tk_client_ask(p->client, TP_ROUTE_STREAMS, "", NULL, diag, &status));
  pthread_mutex_lock(&p->lock);
  tk_top_take_status(p->model, status, &p->selector, now_ns());
  pthread_mutex_unlock(&p->lock);
  return TB_OK;
}

/* Formats the reports of a kind; returns NULL if memory cannot be allocated. */
static char *text_of(struct tk_report_set *set, const char *kind, unsigned columns) {
  char *text = NULL;
  size_t bytes, shown = 0;
  FILE *out = open_memstream(&text, &bytes);

  if (out == NULL) return NULL;
  const struct tk_report_style style = {
    .out = out, .columns = columns, .rows = REPORT_ROWS, .frames = REPORT_FRAMES
  };
  for (size_t i = 0; i < set->n; i++) {
    if (strcmp(set->report[i]->kind, kind) != 0) continue;
    if (shown++ > 0) fputc('\n', out);
    tp_report_trim(set->report[i], REPORT_ROWS);
    if (tk_report_words(&set->arena, set->report[i]) == TB_OK)
      tk_report_print(set->report[i], NULL, &style);
  }
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

/* Call with the lock. If the kind was changed during the request, the next round shows it. */
static void show_report(struct tk_poll *p, struct tk_report_set *set, enum to_analysis_kind kind) {
  if (kind != p->kind) return;
  if (kind == TO_ANALYSIS_KINDS)
    tk_top_show_report(p->model, NULL, NULL);
  else
    tk_top_show_report(p->model, to_analysis_name(kind),
                       text_of(set, to_analysis_name(kind), p->columns));
}

static tb_rc ask_reports(struct tk_poll *p, struct tb_diag *diag) {
  struct tk_report_ask ask = { 0 };
  struct tk_report_set set;

  ask.kind[TO_ANALYSIS_SYSCALL] = ask.kind[TO_ANALYSIS_STW] = true;
  pthread_mutex_lock(&p->lock);
  enum to_analysis_kind kind = p->kind;
  if (kind < TO_ANALYSIS_KINDS) ask.kind[kind] = true;
  ask.window = p->window;
  pthread_mutex_unlock(&p->lock);
  tk_report_set_init(&set);
  tb_rc rc = tk_report_live(p->client, &ask, &p->selector, &set, diag);
  if (rc == TB_OK) {
    pthread_mutex_lock(&p->lock);
    tk_top_clear_reports(p->model);
    for (size_t i = 0; i < set.n; i++) tk_top_take_report(p->model, set.report[i]);
    show_report(p, &set, kind);
    pthread_mutex_unlock(&p->lock);
  }
  tk_report_set_fini(&set);
  return rc;
}

static tb_rc ask_all(struct tk_poll *p, struct tb_diag *diag) {
  if (p->client == NULL) TB_TRY(tk_client_open(&p->args, diag, &p->client));
  TB_TRY(ask_status(p, diag));
  return ask_reports(p, diag);
}

/* After a failure the connection is closed: a new one reads addresses and certificates again. */
static void end_round(struct tk_poll *p, tb_rc rc, const struct tb_diag *diag) {
  if (rc != TB_OK) {
    tk_client_close(p->client);
    p->client = NULL;
  }
  pthread_mutex_lock(&p->lock);
  p->fault[0] = '\0';
  if (rc == TB_OK) {
    p->known = true;
    p->answered_ns = now_ns();
  } else {
    snprintf(p->fault, sizeof p->fault, "%s", diag->rc != TB_OK ? diag->text : tb_rc_text(rc));
  }
  pthread_mutex_unlock(&p->lock);
  p->fresh();
}

/* ---- alerts ---- */

static void take_alert(void *self, uint64_t wall_ns, const char *text) {
  struct tk_poll *p = self;

  pthread_mutex_lock(&p->lock);
  tk_top_take_alert(p->model, wall_ns, text);
  pthread_mutex_unlock(&p->lock);
  p->fresh();
}

static void take_deafness(void *self, const char *why) {
  struct tk_poll *p = self;

  pthread_mutex_lock(&p->lock);
  snprintf(p->alert_error, sizeof p->alert_error, "%s", why != NULL ? why : "");
  pthread_mutex_unlock(&p->lock);
}

/* ---- the thread ---- */

static bool wait_for_next(struct tk_poll *p) {
  struct timespec until;

  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec++;
  pthread_mutex_lock(&p->lock);
  while (!p->stopping && !p->asked)
    if (pthread_cond_timedwait(&p->wake, &p->lock, &until) != 0) break;
  p->asked = false;
  bool goes_on = !p->stopping;
  pthread_mutex_unlock(&p->lock);
  return goes_on;
}

static void *run_poll(void *self) {
  struct tk_poll *p = self;

  do {
    struct tb_diag diag;
    tb_diag_clear(&diag);
    end_round(p, ask_all(p, &diag), &diag);
  } while (wait_for_next(p));
  tk_client_close(p->client);
  return NULL;
}

/* ---- for the screen ---- */

static void free_poll(struct tk_poll *p) {
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->lock);
  if (p->model != NULL) tk_top_show_report(p->model, NULL, NULL);
  free(p->model);
  free(p);
}

/* pthread_timedjoin_np() only supports the wall clock. */
static struct timespec deadline(void) {
  struct timespec until;

  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += STOP_MS * 1000000L;
  if (until.tv_nsec >= SECOND) until.tv_sec++, until.tv_nsec -= SECOND;
  return until;
}

tb_rc tk_poll_start(const struct tk_client_args *args, const struct tk_selector *selector,
                    enum to_window window, void (*fresh)(void), struct tb_diag *diag,
                    struct tk_poll **out) {
  struct tk_poll *p = calloc(1, sizeof *p);

  if (p == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  p->args = *args;
  p->selector = *selector;
  p->window = window;
  p->kind = TO_ANALYSIS_KINDS;
  p->fresh = fresh;
  p->model = calloc(1, sizeof *p->model);
  pthread_mutex_init(&p->lock, NULL);
  tc_cond_init(&p->wake);
  if (p->model == NULL) {
    free_poll(p);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  struct tk_alert_sink sink = { p, take_alert, take_deafness };
  tb_rc rc = tk_alerts_start(&p->args, &p->selector, sink, diag, &p->alerts);
  if (rc == TB_OK && pthread_create(&p->thread, NULL, run_poll, p) == 0) {
    *out = p;
    return TB_OK;
  }
  struct timespec until = deadline();
  if (rc == TB_OK && !tk_alerts_stop(p->alerts, &until))
    return tb_fail(diag, TB_NOMEM, "no thread");
  free_poll(p);
  return tb_fail(diag, TB_NOMEM, "no thread");
}

bool tk_poll_stop(struct tk_poll *p) {
  struct timespec until = deadline();

  pthread_mutex_lock(&p->lock);
  p->stopping = true;
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
  if (pthread_timedjoin_np(p->thread, NULL, &until) != 0) {
    pthread_detach(p->thread);
    return false;
  }
  if (!tk_alerts_stop(p->alerts, &until)) return false;
  free_poll(p);
  return true;
}

void tk_poll_set_window(struct tk_poll *p, enum to_window window) {
  pthread_mutex_lock(&p->lock);
  p->window = window;
  p->asked = true;
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

void tk_poll_set_report(struct tk_poll *p, enum to_analysis_kind kind, unsigned columns) {
  pthread_mutex_lock(&p->lock);
  p->kind = kind;
  p->columns = columns;
  p->asked = true;
  pthread_cond_signal(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

const struct tk_top_model *tk_poll_look(struct tk_poll *p) {
  pthread_mutex_lock(&p->lock);
  if (p->fault[0] != '\0' && p->known)
    snprintf(p->trouble, sizeof p->trouble, "no answer for %llu s: %s; trying again",
             (unsigned long long)((now_ns() - p->answered_ns) / SECOND), p->fault);
  else
    snprintf(p->trouble, sizeof p->trouble, "%s", p->fault);
  return p->model;
}

const char *tk_poll_trouble(const struct tk_poll *p) {
  return p->trouble[0] != '\0' ? p->trouble : NULL;
}

const char *tk_poll_deafness(const struct tk_poll *p) {
  return p->alert_error[0] != '\0' ? p->alert_error : NULL;
}

void tk_poll_done(struct tk_poll *p) {
  pthread_mutex_unlock(&p->lock);
}
