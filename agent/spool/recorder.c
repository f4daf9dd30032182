/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spool/recorder.h"

#include "agent/host/clock.h"
#include "agent/spool/restart.h"

/* Held runs. */

static struct ta_run *first_held(struct ta_spool *s) {
  return s->recorder.first == TA_NONE ? NULL : &s->runs.run[s->recorder.first];
}

/* Returns the run before a run, or TA_NONE. */
static uint32_t run_before(const struct ta_runs *r, uint32_t at) {
  uint32_t before = TA_NONE;

  for (uint32_t i = r->place[TA_ACKED].run; i != at; i = r->run[i].next) before = i;
  return before;
}

/* Frees the oldest held run. Places in it move to the next run or, if there is none, to the end of the run before. */
static void forget_first(struct ta_spool *s) {
  struct ta_runs *r = &s->runs;
  uint32_t at = s->recorder.first, next = r->run[at].next, before = run_before(r, at);
  struct ta_place moved = { .run = next, .page = TA_NONE };

  if (next == TA_NONE && before != TA_NONE)
    moved = (struct ta_place){ .run = before, .page = TA_NONE, .at = r->run[before].bytes };
  for (int p = 0; p < TA_KEPT; p++)
    if (r->place[p].run == at) r->place[p] = moved;
  if (before != TA_NONE) r->run[before].next = next;
  if (r->last == at) r->last = before;
  s->recorder.first = next;
  s->recorder.forgotten_generations++;
  ta_runs_release(r, at);
}

bool ta__recorder_forget(struct ta_spool *s) {
  const struct ta_run *run = first_held(s);

  if (run == NULL || run->open) return false;
  forget_first(s);
  return true;
}

static void forget_before(struct ta_spool *s, uint64_t mono_ns) {
  for (const struct ta_run *run; (run = first_held(s)) != NULL;) {
    if (run->open || run->ended_mono_ns >= mono_ns) return;
    forget_first(s);
  }
}

static uint64_t ago(uint64_t ns) {
  uint64_t now = ta_mono_ns();

  return now > ns ? now - ns : 0;
}

/* Released runs. */

static void count_run(struct ta_snap *snap, const struct ta_run *run) {
  struct ta_snapped *out = &snap->out;

  if (out->first_gen == 0) {
    out->first_gen = run->gen;
    out->from_wall_ns = out->to_wall_ns = run->first_wall_ns;
  }
  out->last_gen = run->last_gen;
  if (run->last_wall_ns > out->to_wall_ns) out->to_wall_ns = run->last_wall_ns;
  if (run->kind == TA_RUN_LOSS) {
    out->lost_generations++;
    return;
  }
  out->generations++;
  ta_count_add(&out->all, run->all);
}

/* Releases the oldest held run: it becomes a part of the stream as if it had been put just now. */
static void release_first(struct ta_spool *s, struct ta_snap *snap) {
  struct ta_run *run = first_held(s);

  run->held = false;
  run->order = s->records;
  s->records += run->held_records;
  ta_count_add(&s->counters.produced, run->all);
  if (run->kind == TA_RUN_LOSS) {
    ta_count_add(&s->counters.lost, run->all);
    s->counters.lost_generations++;
  } else {
    ta_count_add(&s->counters.spooled, run->all);
    if (s->counters.spooled.bytes > s->counters.spooled_peak.bytes)
      s->counters.spooled_peak = s->counters.spooled;
  }
  if (snap != NULL && !run->open) count_run(snap, run);
  s->recorder.first = run->next;
}

void ta_spool_record(struct ta_spool *s, uint64_t keep_ns) {
  s->recorder.keep_ns = keep_ns;
  s->recorder.ends = 1;
  s->recorder.ended_wall_ns = ta_wall_ns();
}

void ta_spool_record_ends(struct ta_spool *s, unsigned ends) {
  pthread_mutex_lock(&s->lock);
  s->recorder.ends = ends;
  pthread_mutex_unlock(&s->lock);
}

static struct ta_snap *free_snap(struct ta_recorder *r) {
  for (struct ta_snap *snap = r->snap; snap < r->snap + TA_SNAPS_MAX; snap++)
    if (snap->out.id == 0) return snap;
  return NULL;
}

static tb_rc begin_snap(struct ta_spool *s, uint64_t last_ns, uint64_t id) {
  struct ta_recorder *r = &s->recorder;
  struct ta_snap *snap = NULL;

  if (r->keep_ns == 0) return TB_UNSUPPORTED;
  if (id != 0 && (snap = free_snap(r)) == NULL) return TB_BUDGET;
  unsigned ends = s->finished ? 0 : r->ends;
  if (snap != NULL) *snap = (struct ta_snap){ .out = { .id = id }, .ends = ends };
  if (last_ns != 0) forget_before(s, ago(last_ns));
  while (r->first != TA_NONE) release_first(s, snap);
  if (r->tail < ends) r->tail = ends;
  if (snap != NULL) snap->records = s->records;
  r->snaps++;
  return TB_OK;
}

tb_rc ta_spool_snap(struct ta_spool *s, uint64_t last_ns, uint64_t id, bool *out_wake) {
  pthread_mutex_lock(&s->lock);
  tb_rc rc = begin_snap(s, last_ns, id);
  *out_wake = rc == TB_OK && s->wake_bytes > 0;
  if (*out_wake) s->wake_bytes = 0;
  pthread_mutex_unlock(&s->lock);
  return rc;
}

/* Results. */

bool ta_spool_snapped(struct ta_spool *s, struct ta_snapped *out) {
  struct ta_recorder *r = &s->recorder;
  bool found = false;

  pthread_mutex_lock(&s->lock);
  for (struct ta_snap *snap = r->snap; !found && snap < r->snap + TA_SNAPS_MAX; snap++) {
    if (snap->out.id == 0 || snap->ends > 0 || ta__records_settled(s) < snap->records) continue;
    *out = snap->out;
    *snap = (struct ta_snap){ 0 };
    found = true;
  }
  pthread_mutex_unlock(&s->lock);
  return found;
}

void ta_spool_unask(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  for (int i = 0; i < TA_SNAPS_MAX; i++) s->recorder.snap[i] = (struct ta_snap){ 0 };
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_recorded(struct ta_spool *s, struct ta_recorded *out) {
  const struct ta_recorder *r = &s->recorder;

  pthread_mutex_lock(&s->lock);
  *out =
      (struct ta_recorded){ .forgotten_generations = r->forgotten_generations, .snaps = r->snaps };
  for (uint32_t at = r->first; r->keep_ns != 0 && at != TA_NONE; at = s->runs.run[at].next) {
    const struct ta_run *run = &s->runs.run[at];
    if (run->kind != TA_RUN_GENERATION) continue;
    out->generations += !run->open;
    out->bytes += run->all.bytes;
  }
  pthread_mutex_unlock(&s->lock);
}

/* Calls of the writer. */

void ta__recorder_began(struct ta_spool *s) {
  struct ta_recorder *r = &s->recorder;
  struct ta_run *run = &s->runs.run[s->runs.last];

  if (r->keep_ns == 0) return;
  run->first_wall_ns = r->ended_wall_ns;
  run->held = r->tail == 0;
  if (run->held && r->first == TA_NONE) r->first = s->runs.last;
}

bool ta__recorder_ended(struct ta_spool *s, struct ta_run *run) {
  struct ta_recorder *r = &s->recorder;

  if (r->keep_ns == 0) return true;
  run->ended_mono_ns = ta_mono_ns();
  r->ended_wall_ns = run->last_wall_ns;
  if (run->held) {
    forget_before(s, ago(r->keep_ns));
    return false;
  }
  if (r->tail > 0) r->tail--;
  for (struct ta_snap *snap = r->snap; snap < r->snap + TA_SNAPS_MAX; snap++) {
    if (snap->out.id == 0 || snap->ends == 0) continue;
    count_run(snap, run);
    snap->ends--;
    snap->records = s->records;
  }
  return true;
}

void ta__recorder_lost(struct ta_spool *s, const struct ta_run *run) {
  for (struct ta_snap *snap = s->recorder.snap; snap < s->recorder.snap + TA_SNAPS_MAX; snap++) {
    struct ta_snapped *out = &snap->out;
    if (out->id == 0 || out->first_gen == 0) continue;
    if (run->gen < out->first_gen || run->gen > out->last_gen) continue;
    out->generations--;
    out->lost_generations++;
    ta_count_sub(&out->all, run->all);
  }
}

void ta__recorder_finish(struct ta_spool *s) {
  struct ta_recorder *r = &s->recorder;

  while (ta__recorder_forget(s)) continue;
  r->tail = 0;
  for (struct ta_snap *snap = r->snap; snap < r->snap + TA_SNAPS_MAX; snap++) {
    snap->ends = 0;
    snap->records = s->records;
  }
}
