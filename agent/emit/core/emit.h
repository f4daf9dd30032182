/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all of agent/emit: the generation, the threads, and the section in which a thread writes.
 *
 *   struct ta_thread *t = ta_enter();      -- NULL: nothing is to be written
 *   if (t != NULL) {
 *     ta_put(t, TW_EV_HEAP_ALLOC, 1, bytes, 0, 0, 0);
 *     ta_leave(t);
 *   }
 *
 * Time is cut into generations. A thread marks itself busy, then reads the generation; the flusher
 * moves the generation on, then looks which threads are busy: of the two at least one sees the other
 * (agent/emit/core/fence.h). So a thread in a section knows that its generation is not over, and once the flusher
 * has seen every thread outside or in the new generation, the old generation belongs to the flusher alone. Neither
 * takes a lock, and a thread never waits.
 *
 * Each thread has two sets of open batches, one for each parity of the generation: it may fill one while the
 * flusher takes the other. The flusher writes the status of a thread that was silent for a whole generation from `now`;
 * `claim` is the word by which they agree who does it (agent/emit/generation/generation.c).
 *
 * A thread that does not leave (a longjmp() out of a section, a section that holds for too long) would stop all
 * delivery. So the flusher waits for a time and then leaves the thread behind: that generation is lost, the thread's
 * batches are not read, and nothing is written for the thread until it comes in again as a new goroutine, or
 * ends (agent/emit/generation/enter.c).
 *
 * The generation's word also counts pauses: no generation ends inside one, because the format cannot say that a
 * pause is still going on.
 *
 * Cost      two stores to a line of the thread's own, two loads of one that changes once a generation.
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
enum {
  TA_BUSY_HELD = 2
}; /* in a section that lasts over several calls (agent/emit/events/held.h) */

#define TA_NO_GEN     UINT32_MAX /* off is 0 */
#define TA_COMES_BACK UINT32_MAX

/* A batch of an experiment's bytes, and what it holds. */
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

/* How large a thread's batches of one use are to be, by how fast it filled the last ones. */
enum ta_batch_use { TA_FOR_EVENTS, TA_FOR_STRINGS, TA_FOR_BYTES, TA_BATCH_USES };
struct ta_fill {
  uint32_t gen; /* in which it last filled one */
  uint8_t size; /* enum ta_batch_size, of the next one */
};

/* The state a thread holds: nothing, or its proc and a goroutine that runs or sits in a system call. */
enum ta_holds { TA_HOLDS_NOTHING, TA_HOLDS_RUNNING, TA_HOLDS_SYSCALL };

struct ta_thread {
  atomic_uint busy;           /* in a section */
  uint32_t running_gen;       /* the same as gen while it holds what runs, else TA_NO_GEN */
  uint64_t time;              /* of its last event, ticks */
  struct ta_ticks clock;      /* this generation's */
  struct ta_open_batches *at; /* this generation's */
  struct ta_open_batches open_batches[2];
  _Atomic uint32_t gen; /* the one it last entered */

  struct ta_go *go, *own; /* what it runs or waits with; its own goroutine */
  uint32_t hold;          /* enum ta_holds */
  uint32_t nested;        /* waits and calls begun inside another */
  uint32_t holds;         /* of the section it is in, one inside the other; 0: an ordinary one */
  uint32_t proc_gen;      /* its proc's status was written in this one */
  uint32_t proc_seq;
  uint32_t pause_gen;  /* 0: it has not stopped the world */
  uint64_t call_ticks; /* when its system call began */
  uint64_t sweeps;     /* its proc does: TA_HELD_SWEEPS, else 0 */
  uint64_t next_id, ids_end;
  struct ta_fill fill[TA_BATCH_USES];
  uint32_t session;            /* it is part of */
  uint32_t place;              /* its proc's id */
  _Atomic uint32_t state;      /* enum ta_thread_state */
  _Atomic uint64_t system_id;  /* gettid() */
  _Atomic uint32_t claim;      /* the generation its status was last written for */
  _Atomic uint64_t now;        /* what it holds: goroutine, its name, enum ta_holds */
  _Atomic uint64_t before;     /* the same when it entered `gen`, if it skipped the one before */
  _Atomic uint32_t before_gen; /* the one it skipped */
  _Atomic uint64_t dropped, misused;
  uint32_t next_free;
  /* The generation that ended without waiting for it any longer, TA_COMES_BACK while it enters again, else 0. */
  _Atomic uint32_t left_behind;
  uint32_t skipped_gen;   /* the flusher's own: the generation in which it left the thread behind */
  struct ta_bounds stack; /* what the thread was given */
  _Atomic uintptr_t timer; /* of its samples, and one; 0: none */
} __attribute__((aligned(128)));

enum ta_thread_state { TA_THREAD_FREE, TA_THREAD_LIVE, TA_THREAD_DEAD };

enum ta_flusher_sleep {
  TA_AWAKE,
  TA_RESTS,
  TA_SLEEPS,
  TA_NOT_STARTED, /* there is no flusher yet */
};
enum { TA_DUE_BYTES = 64 << 10 }; /* posted before there is a flusher: then it is time for one */

struct ta_emit {
  _Atomic uint64_t word; /* generation << 32 | pauses; 0: off */
  uint64_t origin;       /* ticks; time on the wire counts from here */
  uint32_t session, first_gen;
  struct ta_ticks clock[2]; /* by the generation's parity */
  atomic_bool counts_cycles;
  unsigned version;
  unsigned stack_depth; /* of events' stacks, frames at most; 0: they have none */
  bool unwinds;         /* by tables where there are no frame pointers */
  bool allocfree;       /* memory is traced (agent/emit/generation/memory.h) */
  struct ta_pool pool __attribute__((aligned(128)));
  _Atomic uint32_t done
      __attribute__((aligned(128))); /* the last generation that is over and written */
  _Atomic uint32_t given_up[2];      /* by parity: a generation that is lost */
  atomic_uint given_up_why[2];       /* enum ta_loss */
  atomic_uint drowsy;                /* enum ta_drowsy */
  atomic_size_t late_bytes;          /* posted before there is a flusher */
  atomic_bool due;                   /* a flusher: so much was posted, or a generation given up */
  _Atomic uint64_t ids; /* of tasks and of texts that are used once, given out by the dozen */
  _Atomic uint32_t workers, workers_gen;
  _Atomic uint64_t generations, lost_generations;
  _Atomic uint64_t untraced; /* calls of threads that found no place */
  _Atomic uint64_t lost_stacks, samples, lost_samples;
};

extern struct ta_emit ta_emit;
extern struct ta_thread *ta_threads; /* a table that grows; NULL before the first session */
extern __thread struct ta_thread *ta_self __attribute__((tls_model("initial-exec")));
/* This thread may be in the middle of its allocator, or in a signal handler: nothing is allocated, and no lock of
 * libc's is taken. */
extern __thread bool ta_in_hook __attribute__((tls_model("initial-exec")));

static inline uint32_t ta_gen_of(uint64_t word) {
  return (uint32_t)(word >> 32);
}

/* The generation's number on the wire. */
static inline uint64_t ta_gen_number(uint32_t gen) {
  return (uint64_t)(gen - ta_emit.first_gen) + 1;
}

/* The slow ways in: a new generation, a thread that is new; t is busy already, or NULL. */
struct ta_thread *ta_enter_gen(struct ta_thread *t);
struct ta_thread *ta_enter_new(void);
/* Before the program has many keys of pthread_key_create(): an early one costs a thread no memory. */
void ta_enter_prepare(void);

static inline void ta_leave(struct ta_thread *t) {
  atomic_store_explicit(&t->busy, 0, memory_order_release);
}

/* t is busy already: false, and counted if that is because it holds. True: it was left behind, and starts again. */
bool ta_begin_in_hold(struct ta_thread *t);

/* t is in a section; false: it is already, and this is a signal handler. One that comes before the store has a whole
 * section of its own. */
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

/* The time, on t's thread and in its generation. */
static inline uint64_t ta_now(const struct ta_thread *t) {
  return ta_ticks_now(&t->clock);
}

/* The generation t is in. */
static inline uint32_t ta_gen(const struct ta_thread *t) {
  return atomic_load_explicit(&t->gen, memory_order_relaxed);
}

/* On t's thread, behind: its left_behind. An older generation than t's own has no say: the flusher is about to find
 * that t has gone on. */
static inline bool ta_is_left_behind(const struct ta_thread *t, uint32_t behind) {
  return behind != 0 && behind != TA_COMES_BACK && behind >= ta_gen(t);
}

/* A section on a thread that runs a goroutine with nothing in the way; the rest is misuse, and counted. */
struct ta_thread *ta_enter_running_slowly(struct ta_thread *t); /* NULL, or busy */

static inline struct ta_thread *ta_enter_running(void) {
  struct ta_thread *t = ta_self;

  if (TB_UNLIKELY(t == NULL)) return ta_is_off() ? NULL : ta_enter_running_slowly(NULL);
  if (!ta_begin(t)) return NULL;
  if (TB_LIKELY(ta_gen_now() == t->running_gen)) return t;
  return ta_enter_running_slowly(t);
}

/* The meaning of `now`: 2 bits hold, 12 a name, one each whether the goroutine assists and the proc sweeps, the rest a
 * goroutine. */
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

/* On its thread, or before it has one. */
static inline void ta_go_name(struct ta_go *go, uint32_t name) {
  uint64_t id = atomic_load_explicit(&go->id, memory_order_relaxed);

  atomic_store_explicit(&go->name, name, memory_order_relaxed);
  go->held = id << 16 | (go->held & TA_HELD_ASSISTS) | (uint64_t)name << 2;
}

/* Says what t holds from now on. */
static inline void ta_hold(struct ta_thread *t, struct ta_go *go, enum ta_holds hold) {
  t->go = go;
  t->hold = hold;
  t->running_gen = hold == TA_HOLDS_RUNNING ? ta_gen(t) : TA_NO_GEN;
  atomic_store_explicit(&t->now, go->held | t->sweeps | hold, memory_order_relaxed);
}

/* Threads' places: for max threads, at most TA_THREADS_MAX; the first call of a process decides. take answers NULL
 * when all are taken. give_back is for a thread that has written its last. */
TB_MUST tb_rc ta_threads_make(uint32_t max);
struct ta_thread *ta_threads_take(void);
void ta_threads_give_back(struct ta_thread *t);
void ta_threads_free(struct ta_thread *t); /* the flusher's: it is dead, and its end is written */
bool ta_threads_are_all_taken(void);
bool ta_threads_any_left_behind(void);
void ta_threads_reset(void);  /* between two sessions; those that live keep their places */
void ta_threads_forget(void); /* in a forked child */
uint32_t ta_threads_end(void);

/* Why a generation is given up. */
enum ta_loss {
  TA_LOST_NO_BATCH, /* no memory for a thread's events, or for a goroutine's changes of status */
  TA_LOST_PAUSE,    /* a pause did not end */
  TA_LOST_STUCK,    /* a thread did not leave the middle of an event */
  TA_LOST_FENCE,    /* membarrier(2) is not allowed any more: the session is over */
};

/* Two generations may be given up at once: one that ends, and the next. */
static inline void ta_give_up(uint32_t gen, enum ta_loss why) {
  uint32_t before = atomic_load(&ta_emit.given_up[gen & 1]);

  /* A thread that was left behind in an old generation has no say in a newer one. */
  while (before < gen) {
    atomic_store(&ta_emit.given_up_why[gen & 1], why);
    if (atomic_compare_exchange_strong(&ta_emit.given_up[gen & 1], &before, gen)) return;
  }
}
static inline bool ta_given_up(uint32_t gen) {
  return atomic_load(&ta_emit.given_up[gen & 1]) >= gen;
}

/* Whether the generation before is over and written: its places may be used again. */
static inline bool ta_gen_before_is_reported(uint32_t gen) {
  return atomic_load(&ta_emit.done) + 1 >= gen;
}

/* The lock of places and goroutines; never held while anything is written or waited for. */
void ta_emit_lock(void);
void ta_emit_unlock(void);
/* Wakes the flusher if it sleeps; if it only rests, then when that is urgent. */
void ta_emit_wake(bool urgent);

#endif
