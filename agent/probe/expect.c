/* SPDX-License-Identifier: Apache-2.0 */
/* A test's script of events: each thread that passes an event waits until the script reaches that event, so that threads
 * continue in the script's order. A script belongs to one process: in a forked child no thread waits, and no lock is taken,
 * because it may never be unlocked. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "agent/host/keep.h"
#include "traceprobe.h"

enum {
  STREAM_BYTES = 32,
  LINE_BYTES = 400,
  PAST = 12,
  FAULT_BYTES = 16 << 10,
  DEADLINE_MS = 30000
};

/* A thread that waits at an event; on the thread's own stack. */
struct waiter {
  struct waiter *next;
  char stream[STREAM_BYTES], text[LINE_BYTES];
  bool may_go;
};

struct ta_expect {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct ta_probe_group group;
  pid_t owner; /* the process of the script */
  int64_t deadline_ms;
  struct waiter *first, *paused; /* threads that wait; the one that pause() found */
  bool over;                     /* failed or closing: threads no longer wait */
  unsigned steps;
  char past[PAST][STREAM_BYTES + LINE_BYTES + 4];
  char fault[FAULT_BYTES];
};

static bool is_here(const struct ta_expect *x) {
  return x != NULL && getpid() == x->owner;
}

/* Names that threads gave themselves, each stored once and never freed. A thread has only a pointer, since there is little
 * room for a library's thread-local variables. */
struct named {
  struct named *next;
  char text[STREAM_BYTES];
};
static struct named *_Atomic names;
static __thread const struct named *own_stream;

static const struct named *find_name(const char *text) {
  for (const struct named *name = atomic_load(&names); name != NULL; name = name->next)
    if (strncmp(name->text, text, STREAM_BYTES - 1) == 0) return name;
  return NULL;
}

void ta_expect_name(const char *stream) {
  KEEP_ERRNO;

  own_stream = NULL;
  if (stream == NULL || *stream == '\0') return;
  if ((own_stream = find_name(stream)) != NULL) return;
  struct named *name = calloc(1, sizeof *name);
  if (name == NULL) return;
  snprintf(name->text, sizeof name->text, "%s", stream);
  name->next = atomic_load(&names);
  while (!atomic_compare_exchange_weak(&names, &name->next, name)) {
  }
  own_stream = name;
}

static void wait_for_script(void *self, const struct ta_call *call) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;
  struct ta_expect *x = self;
  struct waiter w = { .next = NULL }, **end;

  if (!is_here(x)) return;
  ta_call_text(call, w.text, sizeof w.text);
  if (own_stream != NULL)
    memcpy(w.stream, own_stream->text, sizeof w.stream);
  else
    pthread_getname_np(pthread_self(), w.stream, sizeof w.stream);
  pthread_mutex_lock(&x->lock);
  if (!x->over) {
    for (end = &x->first; *end != NULL;) end = &(*end)->next;
    *end = &w;
    pthread_cond_broadcast(&x->changed);
    while (!w.may_go && !x->over) pthread_cond_wait(&x->changed, &x->lock);
    for (end = &x->first; *end != &w;) end = &(*end)->next;
    *end = w.next;
    pthread_cond_broadcast(&x->changed);
  }
  pthread_mutex_unlock(&x->lock);
}

/* Text of a failure: the events so far, the expected event and the one that occurred, and where each thread waits. */

static void append(struct ta_expect *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void append(struct ta_expect *x, const char *fmt, ...) {
  size_t n = strlen(x->fault);
  va_list args;

  va_start(args, fmt);
  vsnprintf(x->fault + n, sizeof x->fault - n, fmt, args);
  va_end(args);
}

static void append_past(struct ta_expect *x) {
  unsigned from = x->steps > PAST ? x->steps - PAST : 0;

  if (from > 0) append(x, "  ... %u more\n", from);
  for (unsigned i = from; i < x->steps; i++) append(x, "  %s\n", x->past[i % PAST]);
}

static void append_waiting(struct ta_expect *x, const struct waiter *but) {
  const char *head = "waiting at an event that is not expected yet:\n";

  for (const struct waiter *w = x->first; w != NULL; w = w->next) {
    if (w == but || w->may_go) continue;
    append(x, "%s  %-*s %s\n", head, STREAM_BYTES / 2, w->stream, w->text);
    head = "";
  }
}

static int fail(struct ta_expect *x, int error, const char *stream, const char *text,
                const struct waiter *came) {
  append(x, "step %u of the script:\n", x->steps + 1);
  append_past(x);
  if (text != NULL) append(x, "- %-*s %s\n", STREAM_BYTES / 2, stream, text);
  if (came != NULL)
    append(x, "+ %-*s %s\n", STREAM_BYTES / 2, stream, came->text);
  else if (text != NULL)
    append(x, "  no event on \"%s\" within %lld ms: a deadlock, or the event does not exist\n",
           stream, (long long)x->deadline_ms);
  append_waiting(x, came);
  x->over = true;
  pthread_cond_broadcast(&x->changed);
  return error;
}

static struct waiter *find_waiter(struct ta_expect *x, const char *stream) {
  for (struct waiter *w = x->first; w != NULL; w = w->next)
    if (!w->may_go && strcmp(w->stream, stream) == 0) return w;
  return NULL;
}

static void release(struct ta_expect *x) {
  if (x->paused == NULL) return;
  x->paused->may_go = true;
  x->paused = NULL;
  pthread_cond_broadcast(&x->changed);
}

static int pause_at(struct ta_expect *x, const char *stream, const char *text) {
  struct timespec until = ta_timespec(ta_deadline_ns(x->deadline_ms));
  struct waiter *w;

  if (x->over) return TA_E_MISUSE;
  release(x);
  while ((w = find_waiter(x, stream)) == NULL)
    if (pthread_cond_timedwait(&x->changed, &x->lock, &until) == ETIMEDOUT &&
        find_waiter(x, stream) == NULL)
      return fail(x, TA_E_TIMEOUT, stream, text, NULL);
  if (strcmp(w->text, text) != 0) return fail(x, TA_E_UNEXPECTED, stream, text, w);
  snprintf(x->past[x->steps++ % PAST], sizeof x->past[0], "%-*s %s", STREAM_BYTES / 2, stream,
           text);
  x->paused = w;
  return TA_OK;
}

int ta_expect_pause(ta_expect *x, const char *stream, const char *text) {
  KEEP_ERRNO;

  if (!is_here(x) || stream == NULL || text == NULL) return TA_E_MISUSE;
  pthread_mutex_lock(&x->lock);
  int error = pause_at(x, stream, text);
  pthread_mutex_unlock(&x->lock);
  return error;
}

void ta_expect_go(ta_expect *x) {
  if (!is_here(x)) return;
  pthread_mutex_lock(&x->lock);
  release(x);
  pthread_mutex_unlock(&x->lock);
}

int ta_expect_event(ta_expect *x, const char *stream, const char *text) {
  int error = ta_expect_pause(x, stream, text);

  if (error == TA_OK) ta_expect_go(x);
  return error;
}

const char *ta_expect_fault(const ta_expect *x) {
  return x == NULL ? "" : x->fault;
}

int ta_expect_open(int64_t deadline_ms, ta_expect **out) {
  KEEP_ERRNO;
  if (out == NULL) return TA_E_MISUSE;
  *out = NULL;
  struct ta_expect *x = calloc(1, sizeof *x);

  if (x == NULL) return TA_E_NOMEM;
  x->owner = getpid();
  x->deadline_ms = deadline_ms > 0 ? deadline_ms : DEADLINE_MS;
  pthread_mutex_init(&x->lock, NULL);
  ta_cond_init(&x->changed);
  *out = x;
  return TA_OK;
}

int ta_expect_attach(ta_expect *x, struct ta_tracepoint *at, struct ta_probe *probe) {
  return x == NULL ? TA_E_MISUSE : ta_call_attach(&x->group, at, probe, wait_for_script, x);
}

int ta_expect_end(ta_expect *x) {
  KEEP_ERRNO;
  int error = TA_OK;

  if (!is_here(x)) return TA_E_MISUSE;
  pthread_mutex_lock(&x->lock);
  release(x);
  if (x->fault[0] != '\0')
    error = TA_E_MISUSE;
  else if (!x->over)
    for (struct waiter *w = x->first; w != NULL && error == TA_OK; w = w->next)
      if (!w->may_go) error = fail(x, TA_E_UNEXPECTED, "", NULL, NULL);
  x->over = true;
  pthread_cond_broadcast(&x->changed);
  pthread_mutex_unlock(&x->lock);
  return error;
}

int ta_expect_close(ta_expect *x) {
  if (x == NULL) return TA_OK;
  ta_expect_end(x);
  int error = ta_probe_group_done(&x->group); /* returns when no thread waits any more */
  if (error != TA_OK) return error;
  if (is_here(x)) {
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
  }
  free(x);
  return TA_OK;
}
