/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/experiments.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/forward.h"
#include "agent/emit/events/held.h"
#include "agent/host/keep.h"
#include "agent/host/process.h"
#include "traceexperiment.h"

struct ta_own_row ta_own_rows[UINT8_MAX + 1];
atomic_uint ta_own_experiments;

/* Guards the variables below. A new spec is read into `asked`, gets numbers there, and is then added to `all` as the text that
 * the trace will contain. */
static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_experiments all, asked;

TA_CODE_AT_FORK void ta_experiments_lock(void) {
  pthread_mutex_lock(&lock);
}
TA_CODE_AT_FORK void ta_experiments_unlock(void) {
  pthread_mutex_unlock(&lock);
}

bool ta_experiments_write(struct tw_write *w) {
  char line[TW_EXPERIMENT_LINE_MAX];
  tb_rc rc;

  _Static_assert((TW_OWN_EVENTS_MAX + TW_EXPERIMENTS_MAX) * TW_EXPERIMENT_LINE_MAX <
                     TW_BATCH_BYTES_MAX,
                 "all experiments fit a batch");
  if (all.experiments == 0) return false;
  rc = tw_write_bytes(w, TW_EXPERIMENTS_MAGIC, sizeof TW_EXPERIMENTS_MAGIC - 1);
  for (unsigned i = 0; i < all.experiments && rc == TB_OK; i++) {
    rc = tw_write_bytes(w, line, tw_experiment_write(&all, i, line));
    for (unsigned e = 0; e < all.events && rc == TB_OK; e++)
      if (all.event[e].experiment == i)
        rc = tw_write_bytes(w, line, tw_own_event_write(&all.event[e], line));
  }
  return rc == TB_OK;
}

/* Registering. */

static bool is_blob(const char *label) {
  const char *last = strrchr(label, '_');

  return strcmp(last == NULL ? label : last + 1, "blob") == 0;
}

static bool is_plain(enum tw_arg_type type) {
  return type != TW_ARG_STRING && type != TW_ARG_STACK && type != TW_ARG_G && type != TW_ARG_SEQ;
}

static void fill_row(const struct tw_own_event *event) {
  struct ta_own_row *row = &ta_own_rows[event->type];

  row->plain = true;
  row->running = event->context == TW_CTX_MPG || event->context == TW_CTX_MP;
  row->nargs = event->spec.nargs;
  row->experiment = all.experiment[event->experiment].number;
  row->blob = -1;
  for (uint8_t i = 0; i < event->spec.nargs; i++) {
    const struct tw_arg *arg = &event->spec.args[i];
    row->types[i] = (uint8_t)arg->type;
    if (!is_plain(arg->type)) row->plain = false;
    if (is_blob(arg->label)) row->blob = (int8_t)i;
  }
  atomic_store_explicit(&row->known, true, memory_order_release);
}

static int find_experiment(const char *name) {
  for (unsigned i = 0; i < all.experiments; i++)
    if (strcmp(all.experiment[i].name, name) == 0) return (int)i;
  return -1;
}

/* Numbers `asked`: as the experiment of the same name if there is one, otherwise with the next free numbers. */
static int number_asked(void) {
  int at = find_experiment(asked.experiment[0].name);
  unsigned known = 0;

  if (at < 0 &&
      (all.experiments == TW_EXPERIMENTS_MAX || asked.events > TW_OWN_EVENTS_MAX - all.events))
    return ta_forward_fault(TA_E_CONFIG, "all numbers of experiments or their events are taken");
  asked.experiment[0].number = (uint8_t)(at >= 0 ? (unsigned)at + TW_EXPERIMENT_FIRST
                                                 : all.experiments + TW_EXPERIMENT_FIRST);
  for (unsigned i = 0; i < all.events; i++) known += (int)all.event[i].experiment == at;
  if (at >= 0 && known != asked.events)
    return ta_forward_fault(TA_E_CONFIG, "the experiment is registered with other events");
  for (unsigned i = 0, e = 0; i < asked.events; i++) {
    while (at >= 0 && (int)all.event[e].experiment != at) e++;
    asked.event[i].type = (uint8_t)(TW_OWN_EVENT_FIRST + (at >= 0 ? e++ : all.events + i));
  }
  return TA_OK;
}

/* Sizes of `all` before a spec was added, to remove a spec that is refused halfway. */
struct sizes {
  unsigned experiments, sequences, events;
  size_t text_bytes;
};

static void truncate_all(const struct sizes *to) {
  for (unsigned i = to->events; i < all.events; i++)
    all.place[all.event[i].type - TW_OWN_EVENT_FIRST] = 0;
  all.experiments = to->experiments;
  all.sequences = to->sequences;
  all.events = to->events;
  all.text_bytes = to->text_bytes;
}

/* Adds `asked` event by event, as the trace's text. An experiment that exists already must have the same text. */
static int add_asked(void) {
  char text[2 * TW_EXPERIMENT_LINE_MAX];
  size_t n = tw_experiment_write(&asked, 0, text);
  struct sizes before = { all.experiments, all.sequences, all.events, all.text_bytes };
  struct tb_diag diag;
  tb_rc rc;

  tb_diag_clear(&diag);
  rc = tw_experiments_read(&all, text, n, true, &diag);
  for (unsigned i = 0; i < asked.events && rc == TB_OK; i++)
    rc = tw_experiments_read(&all, text, n + tw_own_event_write(&asked.event[i], text + n), true,
                             &diag);
  if (rc != TB_OK) {
    truncate_all(&before);
    return ta_forward_fault(TA_E_CONFIG, diag.text);
  }
  for (unsigned i = before.events; i < all.events; i++) fill_row(&all.event[i]);
  atomic_store(&ta_own_experiments, all.experiments);
  return TA_OK;
}

/* Leaves the numbers in `asked`. */
static int register_locked(const char *spec, const ta_event *events, unsigned n) {
  struct tb_diag diag;
  int error;

  if (spec == NULL || (events == NULL && n > 0))
    return ta_forward_fault(TA_E_CONFIG, "spec or events is NULL");
  tb_diag_clear(&diag);
  tw_experiments_init(&asked);
  if (tw_experiments_read(&asked, spec, strlen(spec), false, &diag) != TB_OK)
    return ta_forward_fault(TA_E_CONFIG, diag.text);
  if (asked.experiments != 1)
    return ta_forward_fault(TA_E_CONFIG, "a spec has one line that begins with experiment");
  if (asked.events != n)
    return ta_forward_fault(TA_E_CONFIG, "n is not the spec's number of events");
  error = number_asked();
  return error == TA_OK ? add_asked() : error;
}

/* Writes the specs into a running session, before the caller's first event. Even if the experiment is not new: the thread that
 * registered it may not have written the specs yet. In a hold, too: the events will be in the hold's generation. */
static void post_specs(void) {
  struct ta_thread *t = ta_enter_inside(false);

  if (t == NULL) return;
  if (ta_emit.version >= TA_FIRST_VERSION_WITH_EXPERIMENTS) ta_post_experiments(t);
  ta_leave_inside(t);
}

static int check_abi(unsigned abi) {
  char text[120];

  if (abi == TA_EXPERIMENTS_ABI) return TA_OK;
  snprintf(text, sizeof text,
           "compiled with version %u of traceexperiment.h, and this library has version %u", abi,
           (unsigned)TA_EXPERIMENTS_ABI);
  return ta_forward_fault(TA_E_CONFIG, text);
}

int ta_experiment_register_abi(unsigned abi, const char *spec, ta_experiment *out, ta_event *events,
                               unsigned n) {
  KEEP_ERRNO;
  ta_event numbers[TW_OWN_EVENTS_MAX];

  if (check_abi(abi) != TA_OK) return TA_E_CONFIG;
  ta_experiments_lock();
  int error = register_locked(spec, events, n);
  for (unsigned i = 0; error == TA_OK && i < n; i++) numbers[i] = asked.event[i].type;
  ta_experiment number = asked.experiment[0].number;
  ta_experiments_unlock();
  if (error != TA_OK) return error;
  post_specs();
  for (unsigned i = 0; i < n; i++) events[i] = numbers[i]; /* only now may others emit them */
  if (out != NULL) *out = number;
  return TA_OK;
}

enum { FIRST_ABI = 1 };

int(ta_experiment_register)(const char *spec, ta_experiment *out, ta_event *events, unsigned n) {
  return ta_experiment_register_abi(FIRST_ABI, spec, out, events, n);
}
