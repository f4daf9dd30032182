/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all of agent/emit: the generation, the threads, and the section in which a thread writes.
 *
 *   struct ta_thread *t = ta_enter();      -- NULL: write nothing
 *   if (t != NULL) {
 *     ta_put(t, TW_EV_HEAP_ALLOC, 1, bytes, 0, 0, 0);
 *     ta_leave(t);
 *   }
 *
 * Time is divided into generations. A thread marks itself busy, then reads the generation; the flusher increments the
 * generation, then checks which threads are busy: at least one of the two sees the other (agent/emit/core/fence.h). So
 * the generation of a thread in a section is not over, and once the flusher has seen every thread outside a section or
 * in the new generation, it owns the old generation alone. Neither takes a lock, and a thread never waits.
 *
 * Each thread has two sets of open batches, one for each parity of the generation: it may fill one while the
 * flusher takes the other. If a thread wrote nothing in a whole generation, the flusher writes its status, from `now`;
 * `claim` decides which of the two does so (agent/emit/generation/generation.c).
 *
 * A thread that does not leave (a longjmp() out of a section, a hold that lasts too long) would stop all delivery. So
 * after a time the flusher leaves the thread behind: that generation is lost, the thread's batches are not read, and
 * nothing is written for the thread until it enters again as a new goroutine, or ends (agent/emit/generation/enter.c).
 *
 * `word` also counts pauses: no generation ends inside one, because the format cannot express a pause that continues.
 *
 * Cost      two stores to the thread's own cache line, two loads of one that changes once a generation.
 */
#ifndef TA_EMIT_CORE_EMIT_H
#define TA_EMIT_CORE_EMIT_H

#include "agent/emit/core/fence.h"
#include "agent/emit/core/go.h"
#include "agent/emit/core/misuse.h"
#include "agent/emit/core/names.h"
#include "agent/emit/core/pool.h"
#include "agent/emit/core/ticks.h"

enum { TA_THREADS_MAX = 1 << 15, TA_IDS_AT_ONCE = 64 };
enum { TA_BUSY_HELD = 2 }; /* in a section that spans several calls (agent/emit/events/held.h) */

#define TA_NO_GEN     UINT32_MAX /* 0 means off */
#define TA_COMES_BACK UINT32_MAX

/* A batch of an experiment's bytes. */
enum ta_bytes_kind { TA_BYTES_BARE, TA_BYTES_NAMED, TA_BYTES_BLOBS };
struct ta_bytes {
  struct ta_batch *batch;
  uint32_t name; /* of the sub-stream */
  uint8_t experiment, kind;
};

struct ta_open_batches {
  unsigned char *pos, *end; /* in the batch of events; both NULL: there is none */
  struct ta_batch *events, *strings;
  struct ta_bytes bytes;
};

/* Size of a thread's next batch of one use, chosen by how fast it filled the last ones. */
enum ta_batch_use { TA_FOR_EVENTS, TA_FOR_STRINGS, TA_FOR_BYTES, TA_BATCH_USES };
struct ta_fill {
  uint32_t gen; /* in which the thread last filled one */
  uint8_t size; /* enum ta_batch_size, of the next one */
};

/* The state a thread holds: nothing, or its proc and a goroutine that runs or sits in a system call. */
enum ta_holds { TA_HOLDS_NOTHING, TA_HOLDS_RUNNING, TA_HOLDS_SYSCALL };

struct ta_thread {
  atomic_uint busy;           /* in a section */
  uint32_t running_gen;       /* equals gen while it runs a goroutine, else TA_NO_GEN */
  uint64_t time;              /* of its last event, ticks */
  struct ta_ticks clock;      /* this generation's */
  struct ta_open_batches *at; /* this generation's */
  struct ta_open_batches open_batches[2];
  _Atomic uint32_t gen; /* the one it last entered */

  struct ta_go *go, *own; /* goroutine that it runs or waits with; its own goroutine */
  uint32_t hold;          /* enum ta_holds */
  uint32_t nested;        /* waits and calls begun inside another */
  uint32_t holds;         /* nesting depth of ta_hold_begin(); 0: an ordinary section */
  uint32_t proc_gen;      /* generation in which its proc's status was written last */
  uint32_t proc_seq;
  uint32_t pause_gen;  /* 0: it has not stopped the world */
  uint64_t call_ticks; /* when its system call began */
  uint64_t sweeps;     /* TA_HELD_SWEEPS while its proc sweeps, else 0 */
  uint64_t next_id, ids_end;
  struct ta_fill fill[TA_BATCH_USES];
  uint32_t session;           /* that it belongs to */
  uint32_t place;             /* its proc's id */
  _Atomic uint32_t state;     /* enum ta_thread_state */
  _Atomic uint64_t system_id; /* gettid() */
  _Atomic uint32_t claim;     /* the generation its status was last written for */
  _Atomic uint64_t now;       /* its goroutine, the goroutine's name, enum ta_holds */
  _Atomic uint64_t before;    /* `now` when it entered `gen`, if it skipped the generation before */
  _Atomic uint32_t before_gen; /* the generation that it skipped */
  _Atomic uint64_t dropped, misused;
  uint32_t next_free;
  /* The generation that ended without waiting for this thread, TA_COMES_BACK while it enters again, else 0. */
  _Atomic uint32_t left_behind;
  uint32_t skipped_gen;    /* flusher only: the generation in which it left the thread behind */
  struct ta_bounds stack;  /* as allocated for the thread */
  _Atomic uintptr_t timer; /* id of the timer of its samples, plus 1; 0: none */
} __attribute__((aligned(128)));

enum ta_thread_state { TA_THREAD_FREE, TA_THREAD_LIVE, TA_THREAD_DEAD };

enum ta_flusher_sleep {
  TA_AWAKE,
  TA_RESTS,
  TA_SLEEPS,
  TA_NOT_STARTED, /* there is no flusher yet */
};
enum { TA_DUE_BYTES = 64 << 10 }; /* bytes posted without a flusher at which one is started */

struct ta_emit {
  _Atomic uint64_t word; /* generation << 32 | pauses; 0: off */
  uint64_t origin;       /* ticks; time on the wire counts from here */
  uint32_t session, first_gen;
  struct ta_ticks clock[2]; /* by the generation's parity */
  atomic_bool counts_cycles;
  unsigned version;
  unsigned stack_depth; /* frames of an event's stack at most; 0: events have no stacks */
  bool unwinds;         /* by unwind tables if there are no frame pointers */
  bool allocfree;       /* memory is traced (agent/emit/generation/memory.h) */
  struct ta_pool pool __attribute__((aligned(128)));
  _Atomic uint32_t done
      __attribute__((aligned(128))); /* the last generation that is over and written */
  _Atomic uint32_t given_up[2];      /* by parity: a generation that is lost */
  atomic_uint given_up_why[2];       /* enum ta_loss */
  atomic_uint flusher_state;         /* enum ta_flusher_state */
  atomic_size_t late_bytes;          /* posted before there is a flusher */
  atomic_bool due; /* a flusher is needed: TA_DUE_BYTES were posted, or a generation given up */
  _Atomic uint64_t ids; /* next id of tasks and of texts used once; threads take TA_IDS_AT_ONCE */
  _Atomic uint32_t workers, workers_gen;
  _Atomic uint64_t generations, lost_generations;
  _Atomic uint64_t untraced; /* calls of threads beyond the limit */
  _Atomic uint64_t lost_stacks, samples, lost_samples;
};

extern struct ta_emit ta_emit;
extern struct ta_thread *ta_threads; /* a table that grows; NULL before the first session */
extern __thread struct ta_thread *ta_self __attribute__((tls_model("initial-exec")));
/* True if this thread may be inside its allocator or a signal handler: then nothing is allocated, and no lock of libc is
 * taken. */
extern __thread bool ta_in_hook __attribute__((tls_model("initial-exec")));

static inline uint32_t ta_gen_of(uint64_t word) {
  return (uint32_t)(word >> 32);
}

/* The generation's number on the wire. */
static inline uint64_t ta_gen_number(uint32_t gen) {
  return (uint64_t)(gen - ta_emit.first_gen) + 1;
}

/* Slow paths of ta_enter(): for a new generation (t is busy already), for a new thread. */
struct ta_thread *ta_enter_gen(struct ta_thread *t);
struct ta_thread *ta_enter_new(void);
/* Creates the thread key. Call it before the program has many: an early key costs a thread no memory. */
void ta_enter_prepare(void);

static inline void ta_leave(struct ta_thread *t) {
  atomic_store_explicit(&t->busy, 0, memory_order_release);
}

/* t is busy already. Returns true if t was left behind and starts again, else false. If t is in a hold, the call is counted as
 * misuse. */
bool ta_begin_in_hold(struct ta_thread *t);

/* Begins a section of t. Returns false if t is in one already, because this is a signal handler. A signal handler that
 * runs before the store has a whole section of its own. */
static inline bool ta_begin(struct ta_thread *t) {
  if (TB_UNLIKELY(atomic_load_explicit(&t->busy, memory_order_relaxed) != 0))
    return ta_begin_in_hold(t);
  ta_fence_light(&t->busy);
  return true;
}

static inline uint32_t ta_gen_now(void) {
  return ta_gen_of(atomic_load(&ta_emit.word));
}

static inline bool ta_is_off(void) {
  return atomic_load_explicit(&ta_emit.word, memory_order_relaxed) == 0;
}

static inline struct ta_thread *ta_enter(void) {
  struct ta_thread *t = ta_self;

  if (ta_is_off()) return NULL;
  if (t == NULL) return ta_enter_new();
  if (!ta_begin(t)) return NULL;
  if (TB_LIKELY(ta_gen_now() == atomic_load_explicit(&t->gen, memory_order_relaxed))) return t;
  return ta_enter_gen(t);
}

/* The time, by the clock of t's generation; on t's thread. */
static inline uint64_t ta_now(const struct ta_thread *t) {
  return ta_ticks_now(&t->clock);
}

static inline uint32_t ta_gen(const struct ta_thread *t) {
  return atomic_load_explicit(&t->gen, memory_order_relaxed);
}

/* On t's thread; behind: its left_behind. A generation older than t's own does not count: the flusher is about to see
 * that t has entered a newer one. */
static inline bool ta_is_left_behind(const struct ta_thread *t, uint32_t behind) {
  return behind != 0 && behind != TA_COMES_BACK && behind >= ta_gen(t);
}

/* Begins a section on a thread that runs a goroutine outside waits and calls; anything else is counted as misuse. */
struct ta_thread *ta_enter_running_slowly(struct ta_thread *t); /* NULL, or busy */

static inline struct ta_thread *ta_enter_running(void) {
  struct ta_thread *t = ta_self;

  if (TB_UNLIKELY(t == NULL)) return ta_is_off() ? NULL : ta_enter_running_slowly(NULL);
  if (!ta_begin(t)) return NULL;
  if (TB_LIKELY(ta_gen_now() == t->running_gen)) return t;
  return ta_enter_running_slowly(t);
}

/* `now`, decoded: 2 bits hold, 12 a name, one each for assists (goroutine) and sweeps (proc), the rest a goroutine. */
struct ta_held {
  uint64_t id;
  uint32_t name;
  bool assists, sweeps;
  enum ta_holds hold;
};

#define TA_HELD_ASSISTS (UINT64_C(1) << 14)
#define TA_HELD_SWEEPS  (UINT64_C(1) << 15)

static inline struct ta_held ta_held(uint64_t now) {
  return (struct ta_held){ .id = now >> 16,
                           .sweeps = (now & TA_HELD_SWEEPS) != 0,
                           .assists = (now & TA_HELD_ASSISTS) != 0,
                           .name = now >> 2 & 0xfff,
                           .hold = now & 3 };
}

/* Names the goroutine; on its thread, or before it has one. */
static inline void ta_go_name(struct ta_go *go, uint32_t name) {
  uint64_t id = atomic_load_explicit(&go->id, memory_order_relaxed);

  atomic_store_explicit(&go->name, name, memory_order_relaxed);
  go->held = id << 16 | (go->held & TA_HELD_ASSISTS) | (uint64_t)name << 2;
}

/* Sets what t holds from now on. */
static inline void ta_hold(struct ta_thread *t, struct ta_go *go, enum ta_holds hold) {
  t->go = go;
  t->hold = hold;
  t->running_gen = hold == TA_HOLDS_RUNNING ? ta_gen(t) : TA_NO_GEN;
  atomic_store_explicit(&t->now, go->held | t->sweeps | hold, memory_order_relaxed);
}

/* Threads' places: for max threads, at most TA_THREADS_MAX; only a process's first call sets max. take returns NULL if
 * all are taken. give_back is for a thread that has written its last event. */
TB_MUST tb_rc ta_threads_make(uint32_t max);
struct ta_thread *ta_threads_acquire(void);
void ta_threads_release(struct ta_thread *t);
void ta_threads_free(struct ta_thread *t); /* flusher only: t is dead, and its end is written */
bool ta_threads_are_all_taken(void);
bool ta_threads_any_left_behind(void);
void ta_threads_reset(void);  /* between two sessions; living threads keep their places */
void ta_threads_forget(void); /* in a forked child */
uint32_t ta_threads_end(void);

/* Why a generation is given up. */
enum ta_loss {
  TA_LOST_NO_BATCH, /* no memory for a thread's events, or for a goroutine's changes of status */
  TA_LOST_PAUSE,    /* a pause did not end */
  TA_LOST_STUCK,    /* a thread did not leave the middle of an event */
  TA_LOST_FENCE,    /* membarrier(2) is no longer permitted: the session is over */
};

/* Gives up a generation. Two may be given up at the same time: the one that ends, and the next. */
static inline void ta_give_up(uint32_t gen, enum ta_loss why) {
  uint32_t before = atomic_load(&ta_emit.given_up[gen & 1]);

  /* A thread that was left behind in an old generation must not give up a newer one. */
  while (before < gen) {
    atomic_store(&ta_emit.given_up_why[gen & 1], why);
    if (atomic_compare_exchange_strong(&ta_emit.given_up[gen & 1], &before, gen)) return;
  }
}
static inline bool ta_given_up(uint32_t gen) {
  return atomic_load(&ta_emit.given_up[gen & 1]) >= gen;
}

/* Whether the previous generation is over and written, so that its places may be used again. */
static inline bool ta_gen_before_is_reported(uint32_t gen) {
  return atomic_load(&ta_emit.done) + 1 >= gen;
}

/* The lock of places and goroutines; never held while anything is written or waited for. */
void ta_emit_lock(void);
void ta_emit_unlock(void);
/* Wakes the flusher if it sleeps, or if it rests and this is urgent. */
void ta_emit_wake(bool urgent);

#endif
