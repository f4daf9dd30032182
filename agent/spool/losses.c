/* SPDX-License-Identifier: Apache-2.0 */
/* Drops happen in two functions: ta__make_room(), before a batch, and ta__begin_generation(). To make room the agent first
 * forgets what a recorder holds, then waits if the writer allows that, then drops the oldest generation of which nothing was
 * sent, and at last the one being written. */
#include "agent/spool/losses.h"

#include "agent/host/clock.h"
#include "proto/frame.pb-c.h"

enum { WAIT_STEP_NS = 100000000 };

static void set_reason(struct ta_spool *s, struct ta_run *loss, uint32_t reason) {
  loss->reason = s->counters.last_loss = reason;
}

static void set_reason_full(struct ta_spool *s, struct ta_run *loss) {
  set_reason(s, loss,
             s->capped ? TRACECOLLECT__V1__LOSS_REASON__LOSS_RATE_CAP
                       : TRACECOLLECT__V1__LOSS_REASON__LOSS_SPOOL_FULL);
}

/* Drops a generation of which nothing was sealed: its run becomes a LOSS, merged into one before it that has no record yet. If
 * the generation is open, the LOSS counts its later records, too. */
static void drop_whole(struct ta_spool *s, uint32_t at, uint32_t before) {
  struct ta_run *run = &s->runs.run[at];

  if (!run->open) ta__recorder_lost(s, run);
  ta_pages_release_chain(&s->runs.pages, run->first_page);
  ta_count_add(&s->counters.lost, run->all);
  ta_count_sub(&s->counters.spooled, run->all);
  s->counters.lost_generations++;
  run->kind = TA_RUN_LOSS;
  run->first_page = run->last_page = TA_NONE;
  run->bytes = 0;
  set_reason_full(s, run);
  ta_run_touch(&s->runs, run);
  for (int p = 0; p < TA_KEPT; p++)
    if (s->runs.place[p].run == at)
      s->runs.place[p] = (struct ta_place){ .run = at, .page = TA_NONE };
  if (s->runs.place[TA_KEPT].run == at) s->runs.place[TA_KEPT].run = TA_NONE;

  struct ta_run *prev = before == TA_NONE ? NULL : &s->runs.run[before];
  if (prev == NULL || prev->kind != TA_RUN_LOSS || prev->bytes > 0) return;
  ta_count_add(&prev->all, run->all);
  prev->last_gen = run->gen;
  prev->last_wall_ns = run->last_wall_ns;
  prev->open = run->open;
  prev->covers = run->covers;
  ta_run_touch(&s->runs, prev);
  prev->next = run->next;
  if (s->runs.last == at) s->runs.last = before;
  ta_run_untouch(&s->runs, run);
  run->kind = TA_RUN_FREE;
  s->runs.free++;
}

/* Abandons the generation being written, of which a part was sealed: the rest is dropped, and a LOSS follows the run. */
static void abandon(struct ta_spool *s) {
  struct ta_run *run = &s->runs.run[s->runs.last];
  struct ta_place *end = &s->runs.place[TA_SEALED];

  ta_pages_release_chain(&s->runs.pages, s->runs.pages.next[end->page]);
  s->runs.pages.next[end->page] = TA_NONE;
  run->last_page = end->page;
  run->bytes = run->sealed_bytes;
  run->open = false;
  run->lost = true;
  if (run->kept_bytes > run->bytes) run->kept_bytes = run->bytes;
  s->runs.place[TA_KEPT].run = TA_NONE; /* its page may be freed */
  ta_run_touch(&s->runs, run);
  ta_count_add(&s->counters.lost, run->all);
  ta_count_sub(&s->counters.spooled, run->all);
  ta_count_add(&s->counters.spooled, run->acked);
  ta_count_sub(&s->counters.acked, run->acked);
  s->counters.lost_generations++;

  struct ta_run *loss = ta_runs_append(&s->runs, TA_RUN_LOSS, run->gen, s->records);
  loss->order = run->order + run->sealed_records;
  loss->open = true;
  loss->all = run->all;
  loss->sealed = run->sealed;
  loss->first_wall_ns = run->first_wall_ns;
  set_reason_full(s, loss);
}

/* Turns a held generation that is being written into a held LOSS. */
static void spill(struct ta_spool *s, struct ta_run *run) {
  ta_pages_release_chain(&s->runs.pages, run->first_page);
  run->kind = TA_RUN_LOSS;
  run->first_page = run->last_page = TA_NONE;
  run->bytes = 0;
  set_reason_full(s, run);
  ta_run_touch(&s->runs, run);
}

/* Returns the oldest generation of which nothing was sealed, or TA_NONE. The one being written is the last. */
static uint32_t oldest_unsent(struct ta_spool *s, uint32_t *out_before) {
  *out_before = TA_NONE;
  for (uint32_t at = s->runs.place[TA_SEALED].run; at != TA_NONE; at = s->runs.run[at].next) {
    struct ta_run *run = &s->runs.run[at];
    if (run->kind == TA_RUN_GENERATION && run->sealed_records == 0) return at;
    *out_before = at;
  }
  return TA_NONE;
}

/* Waits for acks if the writer allows that; returns false if not, or if it waited long enough. Releases the lock meanwhile. */
static bool waited(struct ta_spool *s) {
  if (s->impatient == NULL || s->over) return false;
  struct timespec until = ta_timespec(ta_mono_ns() + WAIT_STEP_NS);
  pthread_cond_timedwait(&s->moved, &s->lock, &until);
  pthread_mutex_unlock(&s->lock); /* impatient() may call the spool */
  bool enough = s->impatient(s->impatient_self);
  pthread_mutex_lock(&s->lock);
  if (enough) s->over = true;
  return true;
}

struct ta_run *ta__make_room(struct ta_spool *s, size_t bytes) {
  for (;;) {
    struct ta_run *run = ta_runs_writing(&s->runs);
    uint32_t victim, before;
    if (run->kind != TA_RUN_GENERATION) return NULL;
    if (ta_run_pages_wanted(run, bytes) <= s->runs.pages.free) return run;
    if (ta__recorder_forget(s) || waited(s)) continue;
    if (run->held) {
      spill(s, run);
      continue;
    }
    victim = oldest_unsent(s, &before);
    if (victim == TA_NONE)
      abandon(s);
    else
      drop_whole(s, victim, before);
  }
}

void ta__begin_generation(struct ta_spool *s, uint64_t gen) {
  uint32_t victim, before;

  while (s->runs.free <= TA_RUNS_SPARE) {
    if (ta__recorder_forget(s) || waited(s)) continue;
    victim = oldest_unsent(s, &before);
    if (victim == TA_NONE) break;
    drop_whole(s, victim, before);
  }
  if (s->runs.free > TA_RUNS_SPARE) {
    ta_runs_append(&s->runs, TA_RUN_GENERATION, gen, s->records)->open = true;
    ta__recorder_began(s);
    return;
  }
  struct ta_run *last = &s->runs.run[s->runs.last];
  if (last->kind != TA_RUN_LOSS || last->bytes > 0)
    last = ta_runs_append(&s->runs, TA_RUN_LOSS, gen, s->records);
  last->open = true;
  last->last_gen = gen;
  set_reason_full(s, last);
  ta_run_touch(&s->runs, last);
  s->counters.lost_generations++;
}

void ta__lose_writing(struct ta_spool *s, uint32_t reason) {
  uint32_t before = TA_NONE, last = s->runs.last;

  if (s->runs.run[last].kind != TA_RUN_GENERATION) return; /* already lost */
  if (s->runs.run[last].held) {
    spill(s, &s->runs.run[last]);
  } else if (s->runs.run[last].sealed_records > 0) {
    abandon(s);
  } else {
    for (uint32_t at = s->runs.place[TA_SEALED].run; at != last; at = s->runs.run[at].next)
      before = at;
    drop_whole(s, last, before);
  }
  set_reason(s, &s->runs.run[s->runs.last], reason);
  ta_run_touch(&s->runs, &s->runs.run[s->runs.last]);
}

void ta__word_loss(struct ta_run *run) {
  unsigned char packed[TA_SLOT_BYTES - TP_HEADER_BYTES];
  Tracecollect__V1__Loss loss = TRACECOLLECT__V1__LOSS__INIT;

  loss.first_gen = run->gen;
  loss.last_gen = run->last_gen;
  loss.batches = run->all.batches;
  loss.bytes = run->all.bytes;
  loss.reason = (Tracecollect__V1__LossReason)run->reason;
  loss.first_wall_ns = run->first_wall_ns;
  loss.last_wall_ns = run->last_wall_ns;
  loss.sent_batches = run->sealed.batches;
  loss.sent_bytes = run->sealed.bytes;
  ta_run_slot(run, TP_LOSS, packed, tracecollect__v1__loss__pack(&loss, packed));
}

bool ta__say_loss(struct ta_spool *s, struct ta_run *run) {
  if (run->open || s->runs.free < TA_RUNS_SPARE / 2) return false;
  ta__word_loss(run);
  return true;
}
