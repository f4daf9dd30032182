/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/put.h"

#include <string.h>

#include "agent/emit/core/cut.h"
#include "agent/emit/events/experiments.h"
#include "agent/emit/stacks/stacks.h"

enum {
  STRING_HEAD = 2 + 2 * TW_VARINT_BYTES_MAX, /* bytes of a table's first string beside its text */
  EXPERIMENTS_BYTES_MAX = TW_BATCH_BYTES_MAX,
};

/* Batches. */

static void give_up(uint32_t gen) {
  ta_give_up(gen, TA_LOST_NO_BATCH);
  ta_emit_wake(true);
}

/* The largest size of which each thread could have two batches: for the generation that ends and for the next. */
static enum ta_batch_size fair_size(void) {
  uint64_t share = ta_emit.pool.mapped_bytes / 2 / (ta_threads_end() + 1);
  enum ta_batch_size size = TA_BATCH_LARGE;

  while (size > TA_BATCH_SMALL && ta_batch_block_bytes(size) > share) size--;
  return size;
}

/* Takes a batch with room for need_bytes, of that size if that is fair. Returns NULL if the generation is given up.
 * experiment: 0 for an ordinary batch. */
static struct ta_batch *take_batch(const struct ta_thread *t, enum ta_batch_size size,
                                   size_t need_bytes, uint8_t experiment) {
  uint32_t gen = ta_gen(t);
  enum ta_batch_size fair = fair_size();

  if (ta_given_up(gen)) return NULL;
  if (size > fair) size = fair;
  while (size < TA_BATCH_LARGE && !ta_batch_has_room(size, need_bytes)) size++;
  struct ta_batch *batch = ta_pool_acquire(&ta_emit.pool, size, need_bytes);
  if (batch == NULL) {
    give_up(gen);
    return NULL;
  }
  struct tw_batch head = { .gen = ta_gen_number(gen),
                           .thread = (int64_t)t->system_id,
                           .time = t->time - ta_emit.origin,
                           .experiment = experiment };
  batch->gen = gen;
  tw_write_open(&batch->write, batch->room, ta_batch_room_bytes(batch->size), ta_emit.version,
                &head);
  return batch;
}

static void post(struct ta_batch *batch) {
  struct ta_pool *pool = &ta_emit.pool;

  if (TB_UNLIKELY(atomic_load_explicit(&ta_emit.flusher_state, memory_order_relaxed) ==
                  TA_NOT_STARTED))
    atomic_fetch_add_explicit(&ta_emit.late_bytes, (size_t)(batch->write.pos - batch->room),
                              memory_order_relaxed);
  ta_pool_post(pool, batch);
  ta_emit_wake(atomic_load_explicit(&pool->taken, memory_order_relaxed) > pool->max / 2);
}

/* A thread that fills a batch gets a larger one next. Each generation in which it fills none makes the next one's first
 * batch smaller. */
static enum ta_batch_size next_size(struct ta_thread *t, enum ta_batch_use use, bool filled) {
  struct ta_fill *fill = &t->fill[use];
  uint32_t gen = ta_gen(t), quiet = gen - fill->gen;

  if (filled) {
    fill->gen = gen;
    if (fill->size < TA_BATCH_LARGE) fill->size++;
  } else if (quiet > 1) {
    fill->gen = gen - 1;
    fill->size = fill->size >= quiet ? (uint8_t)(fill->size - (quiet - 1)) : TA_BATCH_SMALL;
  }
  return fill->size;
}

bool ta_next_batch(struct ta_thread *t, struct ta_open_batches *open_batches) {
  enum ta_batch_size size = next_size(t, TA_FOR_EVENTS, open_batches->events != NULL);
  if (open_batches->events != NULL) {
    open_batches->events->write.pos = open_batches->pos;
    post(open_batches->events);
  }
  open_batches->pos = open_batches->end = NULL;
  uint64_t now = ta_now(t);
  if ((int64_t)(now - t->time) > 0) t->time = now;
  open_batches->events = take_batch(t, size, TA_EVENT_BYTES_MAX, 0);
  if (open_batches->events == NULL) {
    atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
    return false;
  }
  open_batches->pos = open_batches->events->write.pos;
  open_batches->end = open_batches->events->write.end;
  return true;
}

static void give_back(struct ta_batch **batch) {
  if (*batch != NULL) ta_pool_release(&ta_emit.pool, *batch);
  *batch = NULL;
}

void ta_drop_open_batches(struct ta_thread *t, bool give) {
  for (int i = 0; i < 2; i++) {
    struct ta_open_batches *open_batches = &t->open_batches[i];
    if (give) {
      give_back(&open_batches->events);
      give_back(&open_batches->strings);
      give_back(&open_batches->bytes.batch);
    }
    *open_batches = (struct ta_open_batches){ 0 };
  }
}

void ta_post_open_batches(struct ta_open_batches *open_batches) {
  if (open_batches->events != NULL) {
    open_batches->events->write.pos = open_batches->pos;
    ta_pool_post(&ta_emit.pool, open_batches->events);
  }
  if (open_batches->strings != NULL) ta_pool_post(&ta_emit.pool, open_batches->strings);
  if (open_batches->bytes.batch != NULL) ta_pool_post(&ta_emit.pool, open_batches->bytes.batch);
  *open_batches = (struct ta_open_batches){ 0 };
}

/* Experiments. */

struct ta_batch *ta_take_experimental(struct ta_thread *t, uint8_t experiment, size_t need_bytes) {
  return take_batch(t, next_size(t, TA_FOR_BYTES, false), need_bytes, experiment);
}

static bool is_half_full(const struct ta_batch *batch) {
  return batch->write.pos - batch->room > (ptrdiff_t)ta_batch_room_bytes(batch->size) / 2;
}

void ta_post_bytes(struct ta_thread *t) {
  struct ta_bytes *bytes = &t->at->bytes;

  if (bytes->batch != NULL) {
    if (is_half_full(bytes->batch)) next_size(t, TA_FOR_BYTES, true);
    post(bytes->batch);
  }
  *bytes = (struct ta_bytes){ 0 };
}

void ta_post_experiments(const struct ta_thread *t) {
  struct ta_batch *batch =
      take_batch(t, TA_BATCH_LARGE, EXPERIMENTS_BYTES_MAX, TW_EXPERIMENT_SPECS);

  if (batch == NULL) return;
  ta_experiments_lock();
  bool any = ta_experiments_write(&batch->write);
  ta_experiments_unlock();
  if (any)
    post(batch);
  else
    ta_pool_release(&ta_emit.pool, batch);
}

/* Numbers and texts. */

uint64_t ta_next_id(struct ta_thread *t) {
  if (t->next_id == t->ids_end) {
    t->next_id = atomic_fetch_add_explicit(&ta_emit.ids, TA_IDS_AT_ONCE, memory_order_relaxed);
    t->ids_end = t->next_id + TA_IDS_AT_ONCE;
  }
  return t->next_id++;
}

uint64_t ta_put_text(struct ta_thread *t, const char *text) {
  struct ta_open_batches *open_batches = t->at;
  size_t len = ta_cut(text, strnlen(text, TW_STRING_BYTES_MAX + 1));

  if (len == 0) return 0;
  uint64_t id = ta_next_id(t);
  for (bool filled = false;; filled = true) {
    if (open_batches->strings == NULL)
      open_batches->strings =
          take_batch(t, next_size(t, TA_FOR_STRINGS, filled), STRING_HEAD + len, 0);
    if (open_batches->strings == NULL) return 0;
    if (tw_write_string(&open_batches->strings->write, id, text, len) == TB_OK) return id;
    post(open_batches->strings);
    open_batches->strings = NULL;
  }
}

/* Stacks. */

__attribute__((noinline, cold)) uint64_t ta_put_stack(struct ta_thread *t, const void *from) {
  uint64_t pcs[TA_FRAMES_MAX + TA_FRAMES_OURS] TA_UNSET;

  if (ta_emit.stack_depth == 0) return 0;
  return ta_stacks_put(ta_gen(t), pcs, ta_frames_here(t, from, pcs, ta_emit.stack_depth));
}

__attribute__((noinline, cold)) void ta_put_stacked(struct ta_thread *t, uint8_t type, unsigned n,
                                                    uint64_t a, uint64_t b, uint64_t c,
                                                    const void *from) {
  uint64_t args[] = { a, b, c, 0 };

  args[n] = ta_put_stack(t, from);
  ta_put(t, type, n + 1, args[0], args[1], args[2], args[3]);
}

/* Statuses. */

void ta_put_go_status(struct ta_thread *t, const struct ta_go *go, uint8_t status, bool assists) {
  status = ta_wire_status(status);
  if (TB_UNLIKELY(status == TW_GO_BAD)) {
    ta_misuse(t, "the status of a goroutine was not said before its event");
    return;
  }
  bool on_thread = status == TW_GO_RUNNING || status == TW_GO_SYSCALL;
  uint64_t thread = on_thread ? t->system_id : UINT64_MAX;

  if (ta_emit.version >= 23)
    ta_put(t, TW_EV_GO_STATUS_STACK, 4, ta_go_id(go), thread, status, ta_name_stack(t, go));
  else
    ta_put(t, TW_EV_GO_STATUS, 3, ta_go_id(go), thread, status, 0);
  if (TB_UNLIKELY(assists)) ta_put_then(t, TW_EV_GC_MARK_ASSIST_ACTIVE, 1, ta_go_id(go), 0);
}

void ta_put_proc_status(struct ta_thread *t, uint8_t status) {
  if (TB_UNLIKELY(status == TW_PROC_BAD)) {
    ta_misuse(t, "the status of a proc was not said before its event");
    return;
  }
  ta_put(t, TW_EV_PROC_STATUS, 2, t->place, status, 0, 0);
  if (TB_UNLIKELY(t->sweeps != 0)) ta_put_then(t, TW_EV_GC_SWEEP_ACTIVE, 1, t->place, 0);
  t->proc_gen = ta_gen(t);
  t->proc_seq = 0;
}

void ta_put_proc_start(struct ta_thread *t, uint64_t ticks) {
  if (t->proc_gen != ta_gen(t)) ta_put_proc_status(t, TW_PROC_IDLE);
  ta_put_at(t, ticks, TW_EV_PROC_START, 2, t->place, ++t->proc_seq, 0, 0);
}

/* Advances a word of this generation. If sequence numbers run out, the generation is given up. */
static uint64_t step(uint64_t word, uint32_t gen, uint8_t to, unsigned steps) {
  struct ta_doing d = ta_doing(word);

  if (TB_UNLIKELY(d.seq + steps > TA_GO_SEQ_MAX)) {
    give_up(gen);
    d.seq = 0;
    word = ta_doing_word(d);
  }
  return ta_doing_step(word, to, steps);
}

uint64_t ta_change_own(struct ta_thread *t, uint8_t to, unsigned steps) {
  uint64_t word = atomic_load_explicit(&t->go->word, memory_order_relaxed);

  word = step(word, ta_gen(t), to, steps);
  atomic_store_explicit(&t->go->word, word, memory_order_release);
  return ta_doing(word).seq;
}

/* In a later generation it is the same wait if the goroutine was waiting at its start and has not changed since. */
static bool is_same_wait(struct ta_doing begun, struct ta_doing now) {
  if (now.gen == begun.gen) return now.seq == begun.seq;
  return now.seq == 0 && now.entry == TA_GO_KEPT_WAITING;
}

/* The flusher visits each waiting goroutine once a generation. If it did not visit one in the last complete generation,
 * a thread that was left behind made it or set it waiting, and it is in no generation since
 * (agent/emit/generation/generation.c). */
static bool is_stray(struct ta_doing was, uint32_t gen) {
  if (TB_LIKELY(was.gen + 1 >= gen)) return false;
  if (was.status == TW_GO_RUNNING || was.status == TW_GO_SYSCALL) return false;
  return was.gen + 2 < gen || ta_gen_before_is_reported(gen);
}

/* begun: NULL, or the word with which the goroutine's wait must have begun. */
static enum ta_change change(struct ta_thread *t, struct ta_go *go, const struct ta_doing *begun,
                             unsigned from, uint8_t to, unsigned steps, uint64_t *seq) {
  uint32_t gen = ta_gen(t);
  uint64_t word = atomic_load_explicit(&go->word, memory_order_acquire), is;
  struct ta_doing was;

  for (;;) {
    was = ta_doing(word);
    if ((from & TA_FROM(was.status)) == 0) return TA_UNFIT;
    if (begun != NULL && !is_same_wait(*begun, was)) return TA_UNFIT;
    if (was.gen > gen) return TA_LATE;
    if (is_stray(was, gen)) { /* unless the flusher has visited it since the word was read */
      uint64_t now = atomic_load(&go->word);
      if (now == word) return TA_UNFIT;
      word = now;
      continue;
    }
    is = TB_LIKELY(was.gen == gen) ? word : ta_doing_word(ta_doing_in(was, gen));
    is = step(is, gen, to, steps);
    if (atomic_compare_exchange_weak_explicit(&go->word, &word, is, memory_order_acq_rel,
                                              memory_order_acquire))
      break;
  }
  if (was.gen != gen) ta_put_go_status(t, go, was.status, was.assists);
  if (seq != NULL) *seq = ta_doing(is).seq;
  return TA_CHANGED;
}

enum ta_change ta_change(struct ta_thread *t, struct ta_go *go, unsigned from, uint8_t to,
                         unsigned steps, uint64_t *seq) {
  return change(t, go, NULL, from, to, steps, seq);
}

enum ta_change ta_change_wait(struct ta_thread *t, struct ta_go *go, uint64_t begun,
                              uint64_t *seq) {
  struct ta_doing wait = ta_doing(begun);

  return change(t, go, &wait, TA_FROM(TA_GO_KEPT_WAITING), TA_GO_KEPT_RUNNABLE, 1, seq);
}
