/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a generation: ta_emit.word moves to the next one, every thread leaves the old one, and the flusher completes the old
 * one: with the open batches, the status of goroutines and procs that no event named, tables and clocks.
 *
 * Every goroutine and proc has a status in every generation, because a generation must be readable alone. A thread that did
 * not enter the ending generation still has its last state, which the flusher writes. But the thread may enter the next
 * generation at this very moment. So the flusher reads what the thread holds, then moves the thread's claim to the old
 * generation by a compare-and-swap. If that succeeds, what it read is valid. If it fails, the thread has entered; it stored
 * its old state in `before` first. */
#include "agent/emit/generation/generation.h"

#include <sched.h>
#include <syslog.h>

#include "agent/emit/events/experiments.h"
#include "agent/emit/events/gc.h"
#include "agent/emit/generation/memory.h"
#include "agent/emit/generation/tables.h"
#include "base/check.h"

enum {
  END_MARK = 52,
  FIRST_VERSION_WITH_END_MARK = 26,
  SPINS = 100,
  NAP_NS = 50000,
  NAMES_WAIT_NS = 50000000, /* longest wait for functions' names, but for the last generation */
  NAMES_WAIT_LAST_NS = 500000000,
  PATIENCE_LAST_NS = 1000000000,
  STRAY = TA_GO_SEQ_MAX, /* sequence number of a goroutine that is not in the trace */
};

static uint64_t names_wait_ns(const struct ta_generation *k, enum ta_end_kind kind) {
  uint64_t last = atomic_load(&k->names_wait_ns);

  if (kind != TA_END_LAST) return NAMES_WAIT_NS;
  return last > NAMES_WAIT_LAST_NS ? last : NAMES_WAIT_LAST_NS;
}

static void ship(struct ta_generation *k, uint32_t gen, struct tw_write *w) {
  size_t n = tw_write_close(w);

  k->out.put(k->out.self, ta_gen_number(gen), w->room, n);
  k->bytes += n;
}

/* Called first in a generation, so that readers know each event's definition before the event. */
static void write_experiments(struct ta_generation *k, uint32_t gen) {
  struct tw_batch head = { .gen = ta_gen_number(gen),
                           .thread = TB_NO_THREAD,
                           .time = k->time,
                           .experiment = TW_EXPERIMENT_SPECS };

  if (ta_emit.version < TA_FIRST_VERSION_WITH_EXPERIMENTS) return;
  tw_write_open(&k->write, k->room, sizeof k->room, ta_emit.version, &head);
  if (ta_experiments_write(&k->write)) ship(k, gen, &k->write);
}

void ta_generation_open(struct ta_generation *k, const struct ta_outlet *out, struct ta_rate rate) {
  unsigned char header[TW_HEADER_BYTES];

  k->out = *out;
  k->began = rate.since;
  k->rate = rate;
  k->time = k->bytes = 0;
  k->later = NULL;
  k->later_end = &k->later;
  k->lost = false;
  tw_header_write(header, ta_emit.version);
  out->header(out->self, header, sizeof header);
  write_experiments(k, ta_emit.first_gen);
}

/* Batches of threads. */

static void ship_batch(struct ta_generation *k, struct ta_batch *batch) {
  ship(k, batch->gen, &batch->write);
  ta_pool_release(&ta_emit.pool, batch);
}

/* Ships the posted batches of gen and keeps those of the next generation for later. Returns whether there were any. */
static bool collect_batches(struct ta_generation *k, uint32_t gen) {
  struct ta_batch *batch = ta_pool_collect(&ta_emit.pool), *next;
  bool any = batch != NULL;

  for (; batch != NULL; batch = next) {
    next = batch->next;
    if (batch->gen == gen) {
      ship_batch(k, batch);
      continue;
    }
    if (batch->gen < gen) { /* a thread that was left behind has written it */
      ta_pool_release(&ta_emit.pool, batch);
      continue;
    }
    batch->next = NULL;
    *k->later_end = batch;
    k->later_end = &batch->next;
  }
  return any;
}

static void ship_later(struct ta_generation *k) {
  for (struct ta_batch *batch = k->later, *next; batch != NULL; batch = next) {
    next = batch->next;
    ship_batch(k, batch);
  }
  k->later = NULL;
  k->later_end = &k->later;
}

bool ta_generation_collect(struct ta_generation *k) {
  return collect_batches(k, ta_gen_of(atomic_load(&ta_emit.word)));
}

static void ship_open_batches(struct ta_generation *k, struct ta_open_batches *open_batches) {
  if (open_batches->events != NULL) {
    open_batches->events->write.pos = open_batches->pos;
    ship_batch(k, open_batches->events);
  }
  if (open_batches->strings != NULL) ship_batch(k, open_batches->strings);
  if (open_batches->bytes.batch != NULL) ship_batch(k, open_batches->bytes.batch);
  *open_batches = (struct ta_open_batches){ 0 };
}

/* Leaving the generation. */

/* A thread that was left behind and enters again first clears its open batches. Until then its generation is not known. */
static bool has_left(const struct ta_thread *t, uint32_t gen) {
  if (atomic_load(&t->left_behind) == TA_COMES_BACK) return false;
  return atomic_load(&t->busy) == 0 || atomic_load(&t->gen) > gen;
}

/* The thread may enter a later generation at this very moment. The thread stores its generation and then reads left_behind;
 * the flusher stores left_behind and then reads the generation. So at least one sees the other's store. If both do, one
 * compare-and-swap wins. */
static void leave_behind(struct ta_thread *t, uint32_t gen) {
  uint32_t since = atomic_load(&t->left_behind), ours = gen;

  if (since == TA_COMES_BACK && atomic_load(&t->gen) > gen) {
    /* If it is still coming back, it takes no part in this generation. */
    if (atomic_load(&t->left_behind) == TA_COMES_BACK) t->skipped_gen = gen;
    return;
  }
  if (!atomic_compare_exchange_strong(&t->left_behind, &since, gen)) return; /* look again */
  bool sees = ta_fence_heavy(); /* if it fails, the next generation's end gives the session up */
  if (sees && since == 0 && has_left(t, gen) &&
      atomic_compare_exchange_strong(&t->left_behind, &ours, 0))
    return;
  t->skipped_gen = gen;
  ta_give_up(gen, TA_LOST_STUCK);
}

/* Returns whether an earlier generation left the thread behind, for gen as well; one that is coming back is waited for. */
static bool stays_behind(struct ta_thread *t, uint32_t gen) {
  uint32_t since = atomic_load(&t->left_behind);

  if (since == 0 || since == TA_COMES_BACK) return false;
  if (!atomic_compare_exchange_strong(&t->left_behind, &since, gen)) return false;
  t->skipped_gen = gen;
  if (atomic_load(&t->gen) >= gen) ta_give_up(gen, TA_LOST_STUCK); /* it was coming back */
  return true;
}

static void wait_until_left(struct ta_thread *t, uint32_t gen, uint64_t until_ns) {
  if (stays_behind(t, gen)) return;
  for (int i = 0; t->skipped_gen != gen && !has_left(t, gen); i++) {
    if (i < SPINS) {
      sched_yield();
    } else if (ta_mono_ns() < until_ns) {
      nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    } else {
      leave_behind(t, gen);
    }
  }
}

static void wait_until_all_left(const struct ta_generation *k, uint32_t gen,
                                enum ta_end_kind kind) {
  uint64_t patience = k->out.patience_ns;

  if (kind == TA_END_LAST && patience > PATIENCE_LAST_NS) patience = PATIENCE_LAST_NS;
  uint64_t until_ns = ta_mono_ns() + patience;
  for (uint32_t i = 0; i < ta_threads_end(); i++) wait_until_left(&ta_threads[i], gen, until_ns);
}

/* Moves the word to the next generation. Returns false if the world is stopped. */
static bool move_on(uint32_t gen, enum ta_end_kind kind) {
  uint64_t word = (uint64_t)gen << 32;

  if (kind == TA_END_NEXT)
    return atomic_compare_exchange_strong(&ta_emit.word, &word, word + (UINT64_C(1) << 32));
  atomic_store(&ta_emit.word, kind == TA_END_LAST ? 0 : word + (UINT64_C(1) << 32));
  return true;
}

/* Events that no thread wrote. */

void ta_generation_open_batch(struct ta_generation *k, uint32_t gen, int64_t thread) {
  struct tw_batch head = { .gen = ta_gen_number(gen), .thread = thread, .time = k->time };

  tw_write_open(&k->write, k->room, sizeof k->room, ta_emit.version, &head);
}

void ta_generation_close_batch(struct ta_generation *k, uint32_t gen) {
  if (!tw_write_is_empty(&k->write)) ship(k, gen, &k->write);
}

/* Writes an event at the generation's beginning: into the open batch or, if that is full, into a new one of no thread. */
static void write_event(struct ta_generation *k, uint32_t gen, uint8_t type, const uint64_t *args) {
  if (tw_write_event(&k->write, type, k->write.time, args) != TB_AGAIN) return;
  ta_generation_close_batch(k, gen);
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  TB_CHECK(tw_write_event(&k->write, type, k->write.time, args) == TB_OK);
}

/* Writes go's status and, right after it, the operation that go is in the middle of. */
static void write_go(struct ta_generation *k, uint32_t gen, const struct ta_held *go,
                     uint64_t thread, uint8_t status) {
  if (ta_emit.version < 23)
    write_event(k, gen, TW_EV_GO_STATUS, (uint64_t[]){ go->id, thread, status });
  else
    write_event(k, gen, TW_EV_GO_STATUS_STACK,
                (uint64_t[]){ go->id, thread, status, ta_name_id(go->name, gen, TA_AS_STACK) });
  if (go->assists) write_event(k, gen, TW_EV_GC_MARK_ASSIST_ACTIVE, &go->id);
}

/* Returns the state that t held throughout gen. If t wrote events in gen, there is nothing to write: TA_HOLDS_NOTHING. */
static struct ta_held state_if_silent(struct ta_thread *t, uint32_t gen) {
  struct ta_held nothing = { .hold = TA_HOLDS_NOTHING };
  uint64_t now = atomic_load_explicit(&t->now, memory_order_relaxed);
  uint32_t claim = atomic_load(&t->claim);

  if (claim == 0 || claim == gen) return nothing;
  if (claim < gen && atomic_compare_exchange_strong(&t->claim, &claim, gen)) return ta_held(now);
  if (atomic_load_explicit(&t->before_gen, memory_order_relaxed) != gen) return nothing;
  return ta_held(atomic_load_explicit(&t->before, memory_order_relaxed));
}

static void write_thread(struct ta_generation *k, struct ta_thread *t, uint32_t gen) {
  struct ta_held held = state_if_silent(t, gen);
  uint64_t thread = atomic_load_explicit(&t->system_id, memory_order_relaxed), place = t->place;
  static const uint8_t proc[] = { [TA_HOLDS_NOTHING] = TW_PROC_IDLE,
                                  [TA_HOLDS_RUNNING] = TW_PROC_RUNNING,
                                  [TA_HOLDS_SYSCALL] = TW_PROC_SYSCALL },
                       go[] = {
                         [TA_HOLDS_RUNNING] = TW_GO_RUNNING, [TA_HOLDS_SYSCALL] = TW_GO_SYSCALL
                       };

  if (held.hold == TA_HOLDS_NOTHING && !held.sweeps) return;
  ta_generation_open_batch(k, gen, (int64_t)thread);
  write_event(k, gen, TW_EV_PROC_STATUS, (uint64_t[]){ place, proc[held.hold] });
  if (held.sweeps) write_event(k, gen, TW_EV_GC_SWEEP_ACTIVE, &place);
  if (held.hold != TA_HOLDS_NOTHING) write_go(k, gen, &held, thread, go[held.hold]);
  ta_generation_close_batch(k, gen);
}

static void finish_threads(struct ta_generation *k, uint32_t gen) {
  for (uint32_t i = 0; i < ta_threads_end(); i++) {
    struct ta_thread *t = &ta_threads[i];
    if (t->skipped_gen != gen) {
      ship_open_batches(k, &t->open_batches[gen & 1]);
      write_thread(k, t, gen);
    }
    if (atomic_load(&t->state) == TA_THREAD_DEAD) ta_threads_free(t);
  }
}

/* Ends a waiting goroutine that must not be in the trace. The flusher visits every waiting goroutine in every generation, so
 * d.gen is at least the generation before. If it is older, a thread that had been left behind created the goroutine or set it
 * waiting. Its place stays taken, because that thread may still use it, and releases it when it enters again. */
static bool end_stray(struct ta_go *go, uint32_t gen) {
  uint64_t word = atomic_load_explicit(&go->word, memory_order_acquire);
  struct ta_doing d = ta_doing(word), dead = { .gen = gen, .seq = STRAY, .status = TA_GO_DEAD };
  uint8_t status = ta_wire_status(d.status);

  if (d.gen + 1 >= gen || (status != TW_GO_WAITING && status != TW_GO_RUNNABLE)) return false;
  return atomic_compare_exchange_strong(&go->word, &word, ta_doing_word(dead));
}

/* Returns the status that go had throughout gen, if the flusher has to write it; otherwise TW_GO_BAD. */
static uint8_t unwritten_status(struct ta_go *go, uint32_t gen, bool *out_assists) {
  uint64_t word = atomic_load_explicit(&go->word, memory_order_acquire);
  uint8_t status;

  for (;;) {
    struct ta_doing d = ta_doing(word);
    if (d.gen == gen || d.status == TW_GO_BAD) return TW_GO_BAD;
    status = ta_wire_status(d.gen > gen ? d.entry : d.status);
    *out_assists = d.gen > gen ? d.entry_assists : d.assists;
    if (status != TW_GO_WAITING && status != TW_GO_RUNNABLE) return TW_GO_BAD;
    if (d.gen > gen) return d.skipped ? status : TW_GO_BAD;
    if (atomic_compare_exchange_weak_explicit(&go->word, &word, ta_doing_word(ta_doing_in(d, gen)),
                                              memory_order_acq_rel, memory_order_acquire))
      return status;
  }
}

static void finish_goes(struct ta_generation *k, uint32_t gen) {
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  for (uint32_t i = ta_goes_next(0); i != UINT32_MAX; i = ta_goes_next(i + 1)) {
    struct ta_go *go = &ta_goes[i];
    uint64_t id = atomic_load_explicit(&go->id, memory_order_relaxed);
    struct ta_held held = { .id = id,
                            .name = atomic_load_explicit(&go->name, memory_order_relaxed) };
    uint8_t status = end_stray(go, gen) ? TW_GO_BAD : unwritten_status(go, gen, &held.assists);
    if (status != TW_GO_BAD) write_go(k, gen, &held, UINT64_MAX, status);
    struct ta_doing d = ta_doing(atomic_load(&go->word));
    if (d.status == TA_GO_DEAD && d.gen <= gen && d.seq != STRAY) {
      ta_emit_lock();
      ta_goes_release(go, id);
      ta_emit_unlock();
    }
  }
  ta_generation_close_batch(k, gen);
}

/* Writes that a garbage collection was under way when the generation began. The event must be in a running goroutine, and the
 * program may have none: so the agent creates one for it. */
static void write_collection(struct ta_generation *k, uint32_t gen) {
  enum { PROC = TA_THREADS_MAX, THREAD = 0 }; /* numbers that no thread has */
  uint64_t seq = ta_gc_active(gen), proc = PROC;

  if (seq == 0) return;
  ta_emit_lock();
  uint64_t go = ta_goes_number();
  ta_emit_unlock();
  ta_generation_open_batch(k, gen, THREAD);
  write_event(k, gen, TW_EV_PROC_STATUS, (uint64_t[]){ proc, TW_PROC_IDLE });
  write_event(k, gen, TW_EV_PROC_START, (uint64_t[]){ proc, 1 });
  write_event(k, gen, TW_EV_GO_CREATE,
              (uint64_t[]){ go, ta_name_id(TA_NAME_AGENT, gen, TA_AS_STACK), 0 });
  write_event(k, gen, TW_EV_GO_START, (uint64_t[]){ go, 1 });
  write_event(k, gen, TW_EV_GC_ACTIVE, &seq);
  write_event(k, gen, TW_EV_GO_DESTROY, NULL);
  write_event(k, gen, TW_EV_PROC_STOP, NULL);
  ta_generation_close_batch(k, gen);
}

static void write_clocks(struct ta_generation *k, uint32_t gen) {
  struct tw_clocks clocks = { .frequency = TA_TICKS_A_SECOND,
                              .time = k->time,
                              .mono_ns = k->began.mono_ns,
                              .wall_sec = k->began.wall_ns / 1000000000u,
                              .wall_nsec = k->began.wall_ns % 1000000000u };
  ta_generation_open_batch(k, gen, TB_NO_THREAD);
  TB_CHECK(tw_write_sync(&k->write, &clocks) == TB_OK);
  ta_generation_close_batch(k, gen);
}

/* Makes the next generation's clock, in the place of an unused older one. Returns the rate to use if the generation ends. */
static struct ta_rate make_clock(const struct ta_generation *k, uint32_t gen,
                                 const struct ta_moment *next) {
  struct ta_rate rate = k->rate;

  ta_emit.clock[(gen + 1) & 1] = ta_ticks_next(&ta_emit.clock[gen & 1], &rate, next);
  return rate;
}

static void begin_gen(struct ta_generation *k, uint32_t gen, const struct ta_moment *now,
                      struct ta_rate rate) {
  const struct ta_ticks *clock = &ta_emit.clock[gen & 1];

  atomic_store(&ta_emit.counts_cycles, clock->factor != 0);
  k->began = *now;
  k->time = ta_ticks_at(clock, now) - ta_emit.origin;
  k->rate = rate;
  k->bytes = 0;
}

/* Without the fence the flusher cannot find out which threads are in the middle of an event, now or later. */
static void give_session_up(struct ta_generation *k, uint64_t gen) {
  atomic_store(&ta_emit.word, 0);
  k->lost = true;
  k->out.lose(k->out.self, gen, TA_LOST_FENCE);
  k->out.end(k->out.self, gen);
  atomic_fetch_add(&ta_emit.generations, 1);
  atomic_fetch_add(&ta_emit.lost_generations, 1);
  if (k->out.log != NULL)
    k->out.log(k->out.self, LOG_ERR,
               "tracing ends: membarrier(2) is no longer allowed, probably by a seccomp filter. "
               "Install filters before the trace begins, or allow membarrier");
}

bool ta_generation_is_lost(const struct ta_generation *k) {
  return k->lost;
}

bool ta_generation_end(struct ta_generation *k, enum ta_end_kind kind) {
  uint32_t gen = ta_gen_of(atomic_load(&ta_emit.word));
  uint64_t number = ta_gen_number(gen);
  struct ta_moment next = ta_moment_now(&ta_emit.clock[gen & 1], &k->rate);
  struct ta_rate rate = make_clock(k, gen, &next);
  static const unsigned char end_mark = END_MARK;

  if (!move_on(gen, kind)) return false;
  if (!ta_fence_heavy()) {
    give_session_up(k, number);
    return true;
  }
  if (kind == TA_END_FORCED && !ta_given_up(gen)) ta_give_up(gen, TA_LOST_PAUSE);
  wait_until_all_left(k, gen, kind);
  if (ta_given_up(gen)) {
    k->out.lose(k->out.self, number, (enum ta_loss)atomic_load(&ta_emit.given_up_why[gen & 1]));
    atomic_fetch_add(&ta_emit.lost_generations, 1);
  }
  collect_batches(k, gen);
  finish_threads(k, gen);
  finish_goes(k, gen);
  write_collection(k, gen);
  ta_tables_write(k, gen, names_wait_ns(k, kind));
  ta_memory_write(k, gen);
  write_clocks(k, gen);
  if (ta_emit.version >= FIRST_VERSION_WITH_END_MARK) k->out.put(k->out.self, number, &end_mark, 1);
  k->out.end(k->out.self, number);
  atomic_fetch_add(&ta_emit.generations, 1);
  atomic_store(&ta_emit.done, gen);
  begin_gen(k, gen + 1, &next, rate);
  if (kind != TA_END_LAST) {
    ta_experiments_lock();
    write_experiments(k, gen + 1);
    ta_experiments_unlock();
  }
  ship_later(k);
  return true;
}
