/* SPDX-License-Identifier: Apache-2.0 */
/* The one session of a process: its start, its end, and the calls in between.
 *
 * The gate is a lock that is held only briefly. A call that waits releases it and is counted as a user of the session; the
 * thread that ends the session makes the users stop waiting, and then waits for them to leave. */
#include "agent/emit/generation/session.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/forward.h"
#include "agent/emit/events/experiments.h"
#include "agent/emit/events/gc.h"
#include "agent/emit/events/locks.h"
#include "agent/emit/generation/flusher.h"
#include "agent/emit/generation/memory.h"
#include "agent/emit/generation/samples.h"
#include "agent/emit/generation/settings.h"
#include "agent/emit/generation/stream_outlet.h"
#include "agent/emit/stacks/stacks.h"
#include "agent/emit/stacks/symbols.h"
#include "agent/host/counter.h"
#include "agent/host/keep.h"
#include "agent/host/pin.h"
#include "agent/host/process.h"
#include "agent/host/spawn.h"

enum {
  PERIOD_MS = 1000,
  GENERATION_BYTES = 4 << 20,
  MEMORY_BYTES = 16 << 20,
  MEMORY_BYTES_MIN = 2 << 20,
  VERSION = 26,
  STACK_BYTES = 512 << 10,
  TIDY_MS = 1000, /* least time that stop() gives the flusher to end, whatever the deadline */
};

struct session {
  struct ta_flusher flusher;
  ta_forward *forward; /* NULL: the outlet is the caller's */
  pthread_t thread;
  bool has_thread;
  /* Guarded by the gate. */
  bool late;      /* start_late() was called, run() was not */
  bool starting;  /* its threads are being created */
  bool failed;    /* its threads could not be created */
  bool stopping;  /* a call to stop() is under way */
  unsigned users; /* calls that wait */
};

static TA_AT_FORK pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
/* In a forked child: the variables below and the tables are still the parent's. */
static TA_AT_FORK bool inherited;
static pthread_cond_t moved; /* a field that the gate guards has changed */
static struct session *session;
static bool changing;         /* a session is being opened or freed */
static atomic_bool recording; /* the session's stream is a flight recorder's */

static void forget_parent(void) {
  inherited = false;
  ta_threads_forget();
  ta_goes_forget();
  ta_pool_fini(&ta_emit.pool);
  ta_samples_forget();
  ta_symbols_keep_or_forget();
  session = NULL;
  changing = false;
  ta_cond_init(&moved);
}

static void open_gate(void) {
  pthread_mutex_lock(&gate);
  if (inherited) forget_parent();
}
static void close_gate(void) {
  pthread_mutex_unlock(&gate);
}
static void close_gate_and_report(void) {
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&gate);
}

/* The flusher's thread. */

static void *thread_main(void *self) {
  struct session *s = self;

  ta_flusher_run(&s->flusher);
  return NULL;
}

static int start_thread(struct session *s) {
  s->has_thread = ta_spawn(&s->thread, "traceagent-emit", STACK_BYTES, thread_main, s) == 0;
  return s->has_thread ? TA_OK : TA_E_THREAD;
}

/* Starting and stopping. */

/* A forked child has no flusher, and only the thread that forked: no other may hold a lock. */
static TA_CODE_AT_FORK void lock_for_fork(void) {
  ta_names_lock();
  ta_emit_lock();
  ta_experiments_lock();
  ta_symbols_fork();
}

static TA_CODE_AT_FORK void unlock(void) {
  ta_experiments_unlock();
  ta_emit_unlock();
  ta_names_unlock();
}

static TA_CODE_AT_FORK void unlock_parent(void) {
  ta_symbols_forked();
  unlock();
}

/* Most children call exec() next, and each page they write to is copied: the rest is reset when the child first takes the gate. */
static TA_CODE_AT_FORK void start_child(void) {
  atomic_store(&ta_emit.word, 0);
  ta_self = NULL;
  ta_symbols_forked_child();
  gate = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  inherited = true;
  unlock();
}

static bool fork_is_watched;

static void watch_fork(void) {
  static const struct ta_fork_hooks hooks = { lock_for_fork, unlock_parent, start_child };

  ta_cond_init(&moved);
  fork_is_watched = ta_process_hook_fork(&hooks);
}

static struct session *new_session(const struct ta_emit_config *c) {
  struct session *s = calloc(1, sizeof *s);

  if (s == NULL) return NULL;
  uint64_t period_ms = c->generation_ms != 0 ? c->generation_ms : PERIOD_MS;
  ta_flusher_init(&s->flusher, period_ms * 1000000,
                  c->generation_bytes != 0 ? c->generation_bytes : GENERATION_BYTES);
  s->flusher.deserted = ta_emit_end_deserted;
  return s;
}

/* If a thread was left behind, the batches stay mapped, because the thread may still write into one. */
static void free_session(struct session *s) {
  if (!ta_generation_is_lost(&s->flusher.generation) && !ta_threads_any_left_behind())
    ta_pool_fini(&ta_emit.pool);
  ta_flusher_fini(&s->flusher);
  free(s);
}

/* Prepares for stacks and samples, if the configuration has them. */
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
        TA_E_CONFIG,
        "samples_signal: the program has replaced the agent's handler, choose another");
  default: return ta_forward_fault(TA_E_CONFIG, "samples_signal cannot be caught");
  }
}

/* From here on threads may write. Generations are numbered on from the previous session, so that no thread mistakes an old
 * one for a new one. After a fork the parent may have been two generations ahead of `done`. */
static int begin(struct session *s, const struct ta_outlet *out,
                 const struct ta_emit_config *config) {
  uint32_t gen = atomic_load(&ta_emit.done) + 3;

  ta_names_find("", 0); /* adds the agent's own names */
  ta_threads_reset();
  ta_goes_reset();
  struct ta_rate rate;
  bool cycles = config->monotonic_clock == 0 && ta_cycles_are_trusted();
  /* A late session must not sleep: it measures the cycle counter's rate during its first generation. */
  struct ta_ticks clock =
      s->late ? ta_ticks_begin_late(cycles, &rate) : ta_ticks_begin(cycles, &rate);
  ta_emit.session++;
  ta_emit.first_gen = gen;
  ta_emit.version = config->version != 0 ? config->version : VERSION;
  ta_emit.clock[gen & 1] = clock;
  ta_emit.origin = ta_ticks_at(&clock, &rate.since);
  atomic_store(&ta_emit.counts_cycles, clock.factor != 0);
  ta_emit.allocfree = config->allocfree != 0;
  ta_memory_begin();
  ta_gc_reset(gen);
  atomic_store(&ta_emit.done, gen - 1);
  atomic_store(&ta_emit.ids, TA_LOCKS_IDS_END); /* lower ids are those of names and locks */
  ta_locks_clear(gen - 2);
  ta_locks_clear(gen - 1);
  atomic_store(&ta_emit.workers, 0);
  atomic_store(&ta_emit.generations, 0);
  atomic_store(&ta_emit.lost_generations, 0);
  atomic_store(&ta_emit.untraced, 0);
  atomic_store(&ta_emit.lost_stacks, 0);
  atomic_store(&ta_emit.samples, 0);
  atomic_store(&ta_emit.lost_samples, 0);
  int error = begin_stacks(config, s->flusher.period_ns);
  if (error != TA_OK) return error;
  ta_experiments_lock();
  struct ta_outlet to = *out;
  if (to.patience_ns == 0) to.patience_ns = ta_flusher_patience(&s->flusher);
  ta_generation_open(&s->flusher.generation, &to, rate);
  if (s->late) ta_flusher_wait_for_run();
  atomic_store(&ta_emit.word, (uint64_t)gen << 32);
  ta_experiments_unlock();
  if (s->late) return TA_OK;
  error = start_thread(s);
  if (error != TA_OK) {
    ta_generation_end(&s->flusher.generation, TA_END_LAST);
    ta_samples_stop();
  }
  return error;
}

/* Does not write *out_session after an error. */
static int open_session(const struct ta_outlet *out, const struct ta_emit_config *config,
                        uint64_t memory_bytes, ta_forward *forward, bool late,
                        struct session **out_session) {
  struct session *s;

  if (!ta_fence_choose())
    return ta_forward_fault(TA_E_OFF, "membarrier(2) was allowed once and is no longer");
  if (!fork_is_watched || ta_goes_make(TA_GOES_MAX) != TB_OK ||
      ta_threads_make(TA_THREADS_MAX) != TB_OK || (s = new_session(config)) == NULL)
    return TA_E_NOMEM;
  s->forward = forward;
  s->late = late;
  atomic_store(&recording, out->snap != NULL);
  int error =
      ta_pool_init(&ta_emit.pool, memory_bytes) == TB_OK ? begin(s, out, config) : TA_E_NOMEM;
  if (error == TA_OK)
    *out_session = s;
  else
    free_session(s);
  return error;
}

/* Claims the right to make a session. Returns false if there is a session, or another thread makes one. */
static bool begin_change(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, watch_fork);
  open_gate();
  while (changing) pthread_cond_wait(&moved, &gate);
  bool free = session == NULL;
  changing |= free;
  close_gate();
  return free;
}

static void end_change(struct session *s) {
  open_gate();
  session = s;
  changing = false;
  close_gate_and_report();
}

int ta_emit_start_to(const struct ta_outlet *out, const struct ta_emit_config *config,
                     uint64_t memory_bytes) {
  KEEP_ERRNO;
  struct ta_emit_config c = ta_emit_config_of(config);
  struct session *s = NULL;
  int error = ta_emit_config_check(&c);

  if (error != TA_OK) return error;
  ta_counter_ask();
  if (!ta_pin()) return TA_E_NOMEM;
  if (!begin_change()) return TA_E_BUSY;
  error = open_session(out, &c, memory_bytes, NULL, false, &s);
  end_change(s);
  return error;
}

static int start_stream(const struct ta_forward_config *where, const struct ta_emit_config *how,
                        bool late, struct session **out_session) {
  struct ta_forward_config stream = ta_forward_config_of(where);
  uint64_t memory = stream.spool_bytes != 0 ? stream.spool_bytes : MEMORY_BYTES;
  ta_forward *forward;

  if (memory < MEMORY_BYTES_MIN) return ta_forward_fault(TA_E_CONFIG, "spool_bytes is below 2 MiB");
  stream.spool_bytes = memory - memory / 4;
  int error = late ? ta_forward_open_late(&stream, &forward) : ta_forward_open(&stream, &forward);
  if (error != TA_OK) return error;
  bool records = ta_forward_records(forward);
  if (records) ta_forward_cut_by(forward, ta_flusher_cut);
  struct ta_outlet out = ta_stream_outlet(forward, records);
  error = open_session(&out, how, memory / 4, forward, late, out_session);
  if (error == TA_OK) return error;
  if (late)
    ta_forward_abandon(forward);
  else
    ta_forward_close(forward, 0);
  return error;
}

static int start(const struct ta_forward_config *where, const struct ta_emit_config *how,
                 bool late) {
  struct ta_emit_config c = ta_emit_config_of(how);
  struct session *s = NULL;
  int error = ta_emit_config_check(&c);

  if (error != TA_OK) return error;
  ta_counter_ask();
  if (!ta_pin()) return TA_E_NOMEM;
  if (!begin_change()) return TA_E_BUSY;
  error = start_stream(where, &c, late, &s);
  end_change(s);
  return error;
}

int ta_emit_start(const struct ta_forward_config *where, const struct ta_emit_config *how) {
  KEEP_ERRNO;
  return start(where, how, false);
}

/* Late. */

int ta_emit_start_late(const struct ta_forward_config *where, const struct ta_emit_config *how) {
  KEEP_ERRNO;
  return start(where, how, true);
}

static int run_late(struct session *s, uint64_t first_try_ns) {
  int error = s->forward != NULL ? ta_forward_run(s->forward, first_try_ns) : TA_OK;

  if (error == TA_OK) error = start_thread(s);
  if (error != TA_OK) ta_flusher_end(&s->flusher);
  return error;
}

int ta_emit_run(uint64_t first_try_ns) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;

  if (!ta_process_is_owner()) return TA_E_OFF;
  open_gate();
  struct session *s = session;
  bool ours = s != NULL && s->late && !s->stopping;
  if (ours) s->late = false;
  if (ours) s->starting = true;
  close_gate();
  if (!ours) return TA_E_OFF;
  int error = run_late(s, first_try_ns);
  open_gate();
  s->starting = false;
  s->failed = error != TA_OK;
  close_gate_and_report();
  return error;
}

void ta_emit_abandon_at_exit(void) {
  KEEP_ERRNO;

  if (!ta_process_is_owner()) return;
  open_gate();
  bool keeps = session != NULL && session->forward != NULL && ta_forward_keeps(session->forward);
  if (session != NULL && session->late && !keeps) atomic_store(&ta_emit.word, 0);
  close_gate();
  if (keeps) ta_emit_abandon();
}

void ta_emit_abandon(void) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;

  if (!ta_process_is_owner()) return;
  open_gate();
  struct session *s = session;
  bool ours = s != NULL && s->late && !s->stopping;
  if (ours) {
    session = NULL;
    changing = true;
  }
  close_gate();
  if (!ours) return;
  ta_flusher_end(&s->flusher);
  ta_symbols_close();
  if (s->forward != NULL) ta_forward_abandon(s->forward);
  free_session(s);
  end_change(NULL);
}

/* Waiting. */

static int64_t left_ms(uint64_t until_ns) {
  uint64_t now = ta_mono_ns();

  if (until_ns == UINT64_MAX) return -1;
  return until_ns > now ? (int64_t)((until_ns - now) / 1000000) : 0;
}

/* Returns the session, which exists until leave_session(); NULL: there is none. */
static struct session *use_session(void) {
  if (!ta_process_is_owner()) return NULL;
  open_gate();
  struct session *s = session != NULL && !session->stopping ? session : NULL;
  if (s != NULL) s->users++;
  close_gate();
  return s;
}

static void leave_session(struct session *s) {
  open_gate();
  s->users--;
  close_gate_and_report();
}

/* Not cancellable: a cancelled thread would never leave the session. */
int ta_emit_sync(int64_t deadline_ms) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;
  uint64_t until = ta_deadline_ns(deadline_ms);
  struct session *s = use_session();

  if (s == NULL) return TA_E_OFF;
  uint64_t n = ta_flusher_ask(&s->flusher);
  int error = !ta_flusher_wait(&s->flusher, n, until) ? TA_E_TIMEOUT
              : s->forward != NULL                    ? ta_forward_sync(s->forward, left_ms(until))
                                                      : TA_OK;
  leave_session(s);
  return error;
}

/* Takes no lock: may be called from a signal handler. A session that is ending ignores the request. */
int ta_emit_snap(uint64_t last_ms) {
  KEEP_ERRNO;

  if (ta_is_off()) return TA_E_OFF;
  if (!atomic_load(&recording)) return TA_E_CONFIG;
  ta_flusher_snap(last_ms);
  return TA_OK;
}

/* Claims the session for one call of stop(); sets *out to NULL if there is none. */
static int begin_stop(uint64_t until_ns, struct session **out) {
  struct timespec until = ta_timespec(until_ns);
  int timed_out = 0;

  open_gate();
  while (session != NULL && session->stopping && timed_out == 0)
    timed_out = until_ns == UINT64_MAX ? pthread_cond_wait(&moved, &gate)
                                       : pthread_cond_timedwait(&moved, &gate, &until);
  *out = session;
  bool busy = session != NULL && session->stopping;
  if (session != NULL) session->stopping = true;
  close_gate();
  return session == NULL ? TA_E_OFF : busy ? TA_E_TIMEOUT : TA_OK;
}

static void wait_until_started(struct session *s) {
  open_gate();
  while (s->starting) pthread_cond_wait(&moved, &gate);
  close_gate();
}

/* Waits for the users; afterwards no call finds the session. */
static void take_away(struct session *s) {
  open_gate();
  while (s->users > 0) pthread_cond_wait(&moved, &gate);
  session = NULL;
  changing = true;
  close_gate();
}

/* Waits until all data is acked, or the deadline has passed. */
static int end_stream(struct session *s, uint64_t until, uint64_t patience_ns) {
  if (s->forward == NULL) return TA_OK;
  int error = s->failed ? TA_E_THREAD : ta_forward_end(s->forward, until, patience_ns);
  ta_forward_over(s->forward);
  return error;
}

static int end(struct session *s, uint64_t until, uint64_t patience_ns) {
  if (s->has_thread) pthread_join(s->thread, NULL);
  ta_samples_stop();
  ta_symbols_close();
  int error = end_stream(s, until, patience_ns);
  take_away(s);
  if (s->forward != NULL && s->failed)
    ta_forward_abandon(s->forward);
  else if (s->forward != NULL)
    error = ta_forward_free(s->forward, error);
  free_session(s);
  end_change(NULL);
  return error;
}

/* The flusher does not end while a thread is stopped in the middle of an event. */
static int give_stop_up(struct session *s) {
  open_gate();
  s->stopping = false;
  close_gate_and_report();
  return TA_E_TIMEOUT;
}

static int stop(int64_t deadline_ms, uint64_t patience_ns) {
  uint64_t until = ta_deadline_ns(deadline_ms), least = ta_deadline_ns(TIDY_MS);
  struct session *s;

  if (!ta_process_is_owner()) return TA_E_OFF;
  ta_emit_run(0);
  int error = begin_stop(until, &s);
  if (error != TA_OK) return error;
  wait_until_started(s);
  ta_flusher_stop(&s->flusher, patience_ns == UINT64_MAX ? until : 0);
  bool ended = ta_flusher_wait(&s->flusher, 0, until > least ? until : least) ||
               !ta_flusher_abandon(&s->flusher);
  return ended ? end(s, until, patience_ns) : give_stop_up(s);
}

int ta_emit_stop(int64_t deadline_ms) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;
  return stop(deadline_ms, UINT64_MAX);
}

int ta_emit_stop_by_outlook(int64_t deadline_ms, uint64_t patience_ms) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;
  return stop(deadline_ms, patience_ms * UINT64_C(1000000));
}

/* Call with the gate held and a session. With the caller's own outlet there is no stream, and the figures are 0. */
static int read_stream(struct ta_forward_status *out) {
  int error = session->forward != NULL ? ta_forward_status(session->forward, out) : TA_OK;

  out->faults += atomic_load(&session->flusher.keeper.failed);
  return error;
}

int ta_emit_status(struct ta_emit_status *out) {
  KEEP_ERRNO;
  if (out == NULL) return TA_E_MISUSE;
  struct ta_emit_status status = { .size = out->size,
                                   .cycle_clock = atomic_load(&ta_emit.counts_cycles) };
  struct ta_forward_status stream = { .size = sizeof stream };
  int error = TA_E_OFF;

  if (!ta_process_is_owner()) return TA_E_OFF;
  open_gate();
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
    memcpy(out, &status, out->size < sizeof status ? out->size : sizeof status);
  }
  close_gate();
  return error;
}

int ta_emit_forward_status(struct ta_forward_status *out) {
  KEEP_ERRNO;
  if (out == NULL) return TA_E_MISUSE;
  struct ta_forward_status stream = { .size = sizeof stream };
  size_t size = out->size;

  open_gate();
  int error = session != NULL ? read_stream(&stream) : TA_E_OFF;
  close_gate();
  if (error != TA_OK) return error;
  stream.size = size;
  memcpy(out, &stream, size < sizeof stream ? size : sizeof stream);
  return TA_OK;
}

ta_name ta_name_of(const char *text) {
  return text == NULL ? 0 : ta_names_find(text, strlen(text));
}
