/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/gc.h"

#include "agent/emit/events/act.h"

/* Collections. */

static struct {
  uint32_t gen; /* newest generation in which the state was used */
  bool runs;
  uint64_t seq; /* of the last event */
  uint64_t
      active[2]; /* by the generation's parity: the number reserved for its first event; 0: none */
  uint64_t time; /* of the last event, ticks */
} collection;

void ta_gc_reset(uint32_t first_gen) {
  ta_emit_lock();
  collection.gen = first_gen - 1;
  collection.runs = false;
  collection.seq = collection.time = 0;
  ta_emit_unlock();
}

static void come_to(uint32_t gen) {
  while (collection.gen < gen) {
    collection.gen++;
    collection.active[collection.gen & 1] = collection.runs ? ++collection.seq : 0;
  }
}

uint64_t ta_gc_active(uint32_t gen) {
  ta_emit_lock();
  come_to(gen);
  uint64_t seq = collection.active[gen & 1];
  ta_emit_unlock();
  return seq;
}

/* A reader that starts with this generation accepts the first GC begin that it meets, whatever its number: so each
 * event's time is after the previous one's. */
static void take_number(const struct ta_thread *t, struct ta_gc_event *out) {
  uint64_t now = ta_now(t);

  if ((int64_t)(now - t->time) <= 0) now = t->time + 1;
  if ((int64_t)(now - collection.time) <= 0) now = collection.time + 1;
  collection.time = now;
  *out = (struct ta_gc_event){ ++collection.seq, now };
}

enum ta_change ta_gc_change(const struct ta_thread *t, bool runs, struct ta_gc_event *out) {
  enum ta_change is = TA_LATE;

  ta_emit_lock();
  if (collection.gen <= ta_gen(t)) {
    come_to(ta_gen(t));
    is = collection.runs == runs ? TA_UNFIT : TA_CHANGED;
  }
  if (is == TA_CHANGED) {
    collection.runs = runs;
    take_number(t, out);
  }
  ta_emit_unlock();
  return is;
}

/* Begins a section and starts (runs) or ends the collection. Returns NULL to write nothing. */
static struct ta_thread *enter_change(bool runs, struct ta_gc_event *out) {
  struct ta_thread *t = ta_enter_running();
  enum ta_change is = TA_LATE;

  while (t != NULL && (is = ta_gc_change(t, runs, out)) == TA_LATE) t = ta_again(t);
  if (t == NULL || is == TA_CHANGED) return t;
  if (runs)
    ta_misuse(t, "ta_gc_begin(): a collection is under way");
  else
    ta_misuse_end(t, "ta_gc_end(): no collection is under way");
  ta_leave(t);
  return NULL;
}

void ta_gc_begin(void) {
  struct ta_gc_event at;
  struct ta_thread *t = enter_change(true, &at);

  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  ta_put_at(t, at.ticks, TW_EV_GC_BEGIN, 2, at.seq, ta_put_stack(t, TA_CALLER), 0, 0);
  ta_leave(t);
}

void ta_gc_end(void) {
  struct ta_gc_event at;
  struct ta_thread *t = enter_change(false, &at);

  if (t == NULL) return;
  ta_put_at(t, at.ticks, TW_EV_GC_END, 1, at.seq, 0, 0, 0);
  ta_leave(t);
}

/* Sweeps. */

static void set_sweeps(struct ta_thread *t, bool sweeps) {
  t->sweeps = sweeps ? TA_HELD_SWEEPS : 0;
  ta_hold(t, t->go, (enum ta_holds)t->hold);
}

void ta_gc_sweep_begin(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  if (t->sweeps != 0) {
    ta_misuse(t, "ta_gc_sweep_begin(): this thread sweeps");
  } else {
    ta_put_from(t, TW_EV_GC_SWEEP_BEGIN, 0, 0, 0, 0, TA_CALLER);
    set_sweeps(t, true);
  }
  ta_leave(t);
}

void ta_act_sweep_end(struct ta_thread *t, uint64_t swept_bytes, uint64_t reclaimed_bytes) {
  if (t->sweeps == 0) return;
  ta_put(t, TW_EV_GC_SWEEP_END, 2, swept_bytes, reclaimed_bytes, 0, 0);
  set_sweeps(t, false);
}

void ta_gc_sweep_end(uint64_t swept_bytes, uint64_t reclaimed_bytes) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  if (t->sweeps == 0) ta_misuse_end(t, "ta_gc_sweep_end(): this thread does not sweep");
  ta_act_sweep_end(t, swept_bytes, reclaimed_bytes);
  ta_leave(t);
}

/* Mark assists. No other thread changes which goroutine runs. */

static bool assists(const struct ta_thread *t) {
  return ta_doing(atomic_load_explicit(&t->go->word, memory_order_relaxed)).assists;
}

static void set_assists(struct ta_thread *t, bool assists) {
  struct ta_doing d = ta_doing(atomic_load_explicit(&t->go->word, memory_order_relaxed));

  d.assists = assists;
  atomic_store_explicit(&t->go->word, ta_doing_word(d), memory_order_release);
  t->go->held = assists ? t->go->held | TA_HELD_ASSISTS : t->go->held & ~TA_HELD_ASSISTS;
  ta_hold(t, t->go, (enum ta_holds)t->hold);
}

void ta_gc_assist_begin(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  if (assists(t)) {
    ta_misuse(t, "ta_gc_assist_begin(): it assists already");
  } else {
    ta_put_from(t, TW_EV_GC_MARK_ASSIST_BEGIN, 0, 0, 0, 0, TA_CALLER);
    set_assists(t, true);
  }
  ta_leave(t);
}

void ta_act_assist_end(struct ta_thread *t) {
  if (!assists(t)) return;
  ta_put(t, TW_EV_GC_MARK_ASSIST_END, 0, 0, 0, 0, 0);
  set_assists(t, false);
}

void ta_gc_assist_end(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  if (!assists(t)) ta_misuse_end(t, "ta_gc_assist_end(): it does not assist");
  ta_act_assist_end(t);
  ta_leave(t);
}
