/* SPDX-License-Identifier: Apache-2.0 */
/* The one session of a process: what it starts from, and what it leaves. */
#include "agent/emit/session.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/emit/experiments.h"
#include "agent/emit/memory.h"
#include "agent/emit/rhythm.h"
#include "agent/emit/samples.h"
#include "agent/emit/stacks.h"
#include "agent/emit/status.h"
#include "agent/emit/symbols.h"
#include "agent/forward.h"
#include "agent/keep.h"
#include "agent/pin.h"

enum {
  FIRST_BYTES =
      offsetof(struct ta_emit_config, allocfree) + sizeof(int), /* of the config in 0.1.0 */
  PERIOD_MS = 1000,
  PERIOD_MS_MAX = 60000,
  GENERATION_BYTES = 4 << 20,
  GENERATION_BYTES_MIN = 64 << 10,
  MEMORY_BYTES = 16 << 20,
  MEMORY_BYTES_MIN = 2 << 20,
  VERSION = 26,
  STACK_BYTES = 512 << 10,
  TIDY_MS = 1000, /* past the deadline of stop(), for the turner to end */
};

struct session {
  struct ta_rhythm rhythm;
  ta_forward *forward; /* NULL: the outlet is the caller's */
  pthread_t thread;
};

/* Written by start and stop, under the gate. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static struct session *session;
static atomic_bool recording; /* it does */

/* The turner's thread. */

static void *thread_main(void *self) {
  struct session *s = self;

  pthread_setname_np(pthread_self(), "traceagent-emit");
  ta_rhythm_run(&s->rhythm);
  return NULL;
}

static int start_thread(struct session *s) {
  pthread_attr_t attr; /* the usual size would be the program's limit of its first thread's stack */
  sigset_t all, before;

  sigfillset(&all);
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&s->thread, &attr, thread_main, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return error == 0 ? TA_OK : TA_E_THREAD;
}

/* Starting and stopping. */

static int check_config(const struct ta_emit_config *c) {
  static const unsigned versions[] = { 22, 23, 25, 26 };
  bool known = c->version == 0;

  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    if (c->version == versions[i]) known = true;
  if (!known) return ta_forward_fault(TA_E_CONFIG, "version is none of 22, 23, 25, 26");
  if (c->generation_ms != 0 &&
      (c->generation_ms < TA_PERIOD_MS_MIN || c->generation_ms > PERIOD_MS_MAX))
    return ta_forward_fault(TA_E_CONFIG, "generation_ms is not 50 to 60000");
  if (c->generation_bytes != 0 && c->generation_bytes < GENERATION_BYTES_MIN)
    return ta_forward_fault(TA_E_CONFIG, "generation_bytes is below 65536");
  if (c->stack_depth > TA_FRAMES_MAX)
    return ta_forward_fault(TA_E_CONFIG, "stack_depth is above 128");
  if (c->samples_hz > TA_SAMPLES_HZ_MAX)
    return ta_forward_fault(TA_E_CONFIG, "samples_hz is above 1000");
  if (c->allocfree != 0 && c->version != 0 && c->version < TA_FIRST_VERSION_WITH_EXPERIMENTS)
    return ta_forward_fault(TA_E_CONFIG, "allocfree needs version 23 or later");
  return TA_OK;
}

/* In a forked child nobody turns, and nobody but the forking thread is left. */
static void lock_for_fork(void) {
  ta_names_lock();
  ta_emit_lock();
  ta_experiments_lock();
}

static void unlock_parent(void) {
  ta_experiments_unlock();
  ta_emit_unlock();
  ta_names_unlock();
}

static void start_child(void) {
  atomic_store(&ta_emit.word, 0);
  ta_threads_forget();
  ta_goes_forget();
  ta_pool_fini(&ta_emit.pool);
  ta_samples_forget();
  ta_symbols_forget();
  session = NULL;
  gate = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
  unlock_parent();
}

static bool fork_is_watched;

static void watch_fork(void) {
  fork_is_watched = pthread_atfork(lock_for_fork, unlock_parent, start_child) == 0;
}

static struct session *new_session(const struct ta_emit_config *c) {
  struct session *s = calloc(1, sizeof *s);

  if (s == NULL) return NULL;
  uint64_t period_ms = c->generation_ms != 0 ? c->generation_ms : PERIOD_MS;
  ta_rhythm_init(&s->rhythm, period_ms * 1000000,
                 c->generation_bytes != 0 ? c->generation_bytes : GENERATION_BYTES);
  return s;
}

static void free_session(struct session *s) {
  if (!ta_turner_is_lost(&s->rhythm.turner)) ta_pool_fini(&ta_emit.pool);
  ta_rhythm_fini(&s->rhythm);
  free(s);
}

/* What stacks and samples need, if they are wanted. */
static int begin_stacks(const struct ta_emit_config *c, uint64_t period_ns) {
  ta_emit.stack_depth = c->stack_depth;
  ta_emit.unwinds = c->stack_tables != 0;
  ta_symbols_open();
  if (c->stack_depth == 0 && c->samples_hz == 0) return TA_OK;
  if (ta_stacks_make() != TB_OK) return TA_E_NOMEM;
  if (c->samples_hz == 0) return TA_OK;
  if (!ta_samples_are_allowed())
    return ta_forward_fault(TA_E_CONFIG,
                            "samples_hz: timer_create(2) is not allowed, probably by seccomp");
  switch (ta_samples_start(c->samples_hz, c->samples_signal, c->stack_depth, period_ns)) {
  case TB_OK: return TA_OK;
  case TB_NOMEM: return TA_E_NOMEM;
  case TB_REFUSED:
    return ta_forward_fault(
        TA_E_CONFIG, "samples_signal has a handler that came after ours of a former session");
  default: return ta_forward_fault(TA_E_CONFIG, "samples_signal is none that can be caught");
  }
}

/* From here on threads may write. Turns are numbered on from the session before, so that nobody takes an old one for
 * new; a forked child's parent may be two ahead of what it has told. */
static int begin(struct session *s, const struct ta_outlet *out,
                 const struct ta_emit_config *config) {
  uint32_t turn = atomic_load(&ta_emit.done) + 3;

  ta_names_find("", 0); /* makes our own */
  ta_threads_reset();
  ta_goes_reset();
  struct ta_rate rate;
  struct ta_ticks clock =
      ta_ticks_begin(config->monotonic_clock == 0 && ta_cycles_are_trusted(), &rate);
  ta_emit.session++;
  ta_emit.first_turn = turn;
  ta_emit.version = config->version != 0 ? config->version : VERSION;
  ta_emit.clock[turn & 1] = clock;
  ta_emit.origin = ta_ticks_at(&clock, &rate.since);
  atomic_store(&ta_emit.counts_cycles, clock.factor != 0);
  ta_emit.allocfree = config->allocfree != 0;
  ta_memory_begin();
  atomic_store(&ta_emit.done, turn - 1);
  atomic_store(&ta_emit.ids, TA_NAMES_MAX); /* below are names */
  atomic_store(&ta_emit.workers, 0);
  atomic_store(&ta_emit.generations, 0);
  atomic_store(&ta_emit.lost_generations, 0);
  atomic_store(&ta_emit.untraced, 0);
  atomic_store(&ta_emit.lost_stacks, 0);
  atomic_store(&ta_emit.samples, 0);
  atomic_store(&ta_emit.lost_samples, 0);
  int error = begin_stacks(config, s->rhythm.period_ns);
  if (error != TA_OK) return error;
  ta_experiments_lock();
  ta_turner_open(&s->rhythm.turner, out, rate);
  atomic_store(&ta_emit.word, (uint64_t)turn << 32);
  ta_experiments_unlock();
  error = start_thread(s);
  if (error != TA_OK) {
    ta_turner_turn(&s->rhythm.turner, TA_TURN_LAST);
    ta_samples_stop();
  }
  return error;
}

/* With the gate held for writing. */
static int open_session(const struct ta_outlet *out, const struct ta_emit_config *config,
                        uint64_t memory_bytes, ta_forward *forward) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct session *s;
  int error;

  pthread_once(&once, watch_fork);
  if (!ta_fence_choose())
    return ta_forward_fault(TA_E_OFF, "membarrier(2) was allowed once and is no longer");
  if (!fork_is_watched || ta_goes_make(TA_GOES_MAX) != TB_OK ||
      ta_threads_make(TA_THREADS_MAX) != TB_OK || (s = new_session(config)) == NULL)
    return TA_E_NOMEM;
  s->forward = forward;
  atomic_store(&recording, out->snap != NULL);
  error = ta_pool_init(&ta_emit.pool, memory_bytes) == TB_OK ? begin(s, out, config) : TA_E_NOMEM;
  if (error == TA_OK)
    session = s;
  else
    free_session(s);
  return error;
}

static struct ta_emit_config config_or_default(const struct ta_emit_config *config) {
  struct ta_emit_config all = { 0 };
  size_t size = config == NULL ? 0 : config->size == 0 ? FIRST_BYTES : config->size;

  if (config != NULL) memcpy(&all, config, size < sizeof all ? size : sizeof all);
  return all;
}

int ta_emit_start_to(const struct ta_outlet *out, const struct ta_emit_config *config,
                     uint64_t memory_bytes) {
  KEEP_ERRNO;
  struct ta_emit_config c = config_or_default(config);
  int error = check_config(&c);

  if (error != TA_OK) return error;
  if (!ta_pin()) return TA_E_NOMEM;
  pthread_rwlock_wrlock(&gate);
  error = session == NULL ? open_session(out, &c, memory_bytes, NULL) : TA_E_BUSY;
  pthread_rwlock_unlock(&gate);
  return error;
}

/* The outlet of a stream. */

static void write_on(void *self, const void *bytes, size_t n) {
  ta_forward_write(self, bytes, n); /* what cannot be taken is counted there */
}

static void lose_on(void *self, uint64_t gen) {
  ta_forward_lose_generation(self, gen);
}

static void end_on(void *self, uint64_t gen) {
  (void)gen;
  ta_forward_end_generation(self);
}

static void snap_on(void *self, uint64_t last_ms) {
  ta_forward_snap(self, last_ms);
  ta_forward_take_snap(self);
}

static void log_on(void *self, int level, const char *text) {
  ta_forward_log(self, level, text);
}

static int start_stream(const struct ta_forward_config *where, const struct ta_emit_config *how) {
  struct ta_forward_config stream = ta_forward_config_of(where);
  uint64_t memory = stream.spool_bytes != 0 ? stream.spool_bytes : MEMORY_BYTES;
  ta_forward *forward;
  int error;

  if (memory < MEMORY_BYTES_MIN) return ta_forward_fault(TA_E_CONFIG, "spool_bytes is below 2 MiB");
  stream.spool_bytes = memory - memory / 4;
  if ((error = ta_forward_open(&stream, &forward)) != TA_OK) return error;
  bool records = ta_forward_records(forward);
  if (records) ta_forward_cut_by(forward, ta_rhythm_cut);
  struct ta_outlet out = { forward, write_on, lose_on, end_on, records ? snap_on : NULL, log_on };
  error = open_session(&out, how, memory / 4, forward);
  if (error != TA_OK) ta_forward_close(forward, 0);
  return error;
}

int ta_emit_start(const struct ta_forward_config *where, const struct ta_emit_config *how) {
  KEEP_ERRNO;
  struct ta_emit_config c = config_or_default(how);
  int error = check_config(&c);

  if (error != TA_OK) return error;
  if (!ta_pin()) return TA_E_NOMEM;
  pthread_rwlock_wrlock(&gate);
  error = session == NULL ? start_stream(where, &c) : TA_E_BUSY;
  pthread_rwlock_unlock(&gate);
  return error;
}

/* Waiting. */

static int64_t left_ms(uint64_t until_ns) {
  uint64_t now = ta_mono_ns();

  if (until_ns == UINT64_MAX) return -1;
  return until_ns > now ? (int64_t)((until_ns - now) / 1000000) : 0;
}

int ta_emit_sync(int64_t deadline_ms) {
  KEEP_ERRNO;
  uint64_t until = ta_deadline_ns(deadline_ms);
  int error = TA_E_OFF;

  pthread_rwlock_rdlock(&gate);
  if (session != NULL) {
    uint64_t n = ta_rhythm_ask(&session->rhythm);
    error = !ta_rhythm_wait(&session->rhythm, n, until) ? TA_E_TIMEOUT
            : session->forward != NULL ? ta_forward_sync(session->forward, left_ms(until))
                                       : TA_OK;
  }
  pthread_rwlock_unlock(&gate);
  return error;
}

/* Takes no lock: it may be called from a signal handler. A session that ends meanwhile takes no notice. */
int ta_emit_snap(uint64_t last_ms) {
  KEEP_ERRNO;

  if (ta_is_off()) return TA_E_OFF;
  if (!atomic_load(&recording)) return TA_E_CONFIG;
  ta_rhythm_snap(last_ms);
  return TA_OK;
}

int ta_emit_stop(int64_t deadline_ms) {
  KEEP_ERRNO;
  uint64_t until = ta_deadline_ns(deadline_ms), least = ta_deadline_ns(TIDY_MS);
  int error = TA_E_OFF;

  pthread_rwlock_wrlock(&gate);
  if (session != NULL) {
    ta_rhythm_stop(&session->rhythm);
    error = TA_E_TIMEOUT;
    if (ta_rhythm_wait(&session->rhythm, 0, until > least ? until : least)) {
      pthread_join(session->thread, NULL);
      ta_samples_stop();
      ta_symbols_close();
      error = session->forward != NULL ? ta_forward_close(session->forward, left_ms(until)) : TA_OK;
      free_session(session);
      session = NULL;
    }
  }
  pthread_rwlock_unlock(&gate);
  return error;
}

/* With the gate held, in a session. An outlet that is the caller's has no stream: its figures are zeroes. */
static int read_stream(struct ta_forward_status *out) {
  int error = session->forward != NULL ? ta_forward_status(session->forward, out) : TA_OK;

  out->faults += atomic_load(&session->rhythm.keeper.failed);
  return error;
}

int ta_emit_status(struct ta_emit_status *out) {
  KEEP_ERRNO;
  if (out == NULL) return TA_E_MISUSE;
  struct ta_emit_status status = { .size = out->size,
                                   .cycle_clock = atomic_load(&ta_emit.counts_cycles) };
  struct ta_forward_status stream = { .size = sizeof stream };
  int error = TA_E_OFF;

  pthread_rwlock_rdlock(&gate);
  if (session != NULL) {
    error = TA_OK;
    status.generations = atomic_load(&ta_emit.generations);
    status.lost_generations = atomic_load(&ta_emit.lost_generations);
    status.dropped = atomic_load(&ta_emit.untraced);
    for (uint32_t i = 0; i < ta_threads_end(); i++) {
      status.threads += atomic_load(&ta_threads[i].state) == TA_THREAD_LIVE;
      status.dropped += atomic_load(&ta_threads[i].dropped);
      status.misused += atomic_load(&ta_threads[i].misused);
    }
    status.lost_stacks = atomic_load(&ta_emit.lost_stacks);
    status.samples = atomic_load(&ta_emit.samples);
    status.lost_samples = atomic_load(&ta_emit.lost_samples);
    error = read_stream(&stream);
    status.faults = stream.faults;
    ta_status_store(&status, &stream, out);
  }
  pthread_rwlock_unlock(&gate);
  return error;
}

int ta_emit_forward_status(struct ta_forward_status *out) {
  KEEP_ERRNO;
  if (out == NULL) return TA_E_MISUSE;
  struct ta_forward_status stream = { .size = sizeof stream };
  size_t size = out->size;

  pthread_rwlock_rdlock(&gate);
  int error = session != NULL ? read_stream(&stream) : TA_E_OFF;
  pthread_rwlock_unlock(&gate);
  if (error != TA_OK) return error;
  stream.size = size;
  memcpy(out, &stream, size < sizeof stream ? size : sizeof stream);
  return TA_OK;
}

ta_name ta_name_of(const char *text) {
  return text == NULL ? 0 : ta_names_find(text, strlen(text));
}
