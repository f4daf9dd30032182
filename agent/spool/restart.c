/* SPDX-License-Identifier: Apache-2.0 */
/* Restarts a stream after the collector lost records that it had acked: its state was wiped, or restored from an older copy.
 * The agent has freed these records, so the collector can never have the whole stream again. A new stream begins: HEADER, a
 * LOSS for the freed records, then the whole generations that the spool still holds, under new numbers. */
#include "agent/spool/restart.h"

#include "agent/spool/losses.h"
#include "base/check.h"
#include "proto/frame.pb-c.h"

/* Result of removing the old stream's front. */
struct remains {
  bool open;                /* the last removed generation is still being written */
  struct ta_count whole;    /* in remaining generations */
  struct ta_count reported; /* in remaining LOSS runs */
};

/* Removed are generations that are partly acked or abandoned, and LOSS runs: the new stream's first LOSS counts them all. */
static bool is_removed(const struct ta_run *run) {
  if (run->held) return false;
  if (run->kind == TA_RUN_GENERATION) return run->acked_records > 0 || run->lost;
  return run->kind != TA_RUN_CLOSE;
}

/* Returns whether the removal loses a generation: one whose end was acked is counted already, as is an abandoned one. */
static bool becomes_lost(const struct ta_runs *r, const struct ta_run *run) {
  bool whole = !run->open && r->place[TA_ACKED].at == run->bytes;

  return run->kind == TA_RUN_GENERATION && !run->lost && !whole;
}

/* Returns the first run that remains, or TA_NONE. */
static uint32_t remove_front(struct ta_spool *s, struct remains *rest) {
  struct ta_runs *r = &s->runs;
  uint32_t at = r->place[TA_ACKED].run;

  while (at != TA_NONE && is_removed(&r->run[at])) {
    const struct ta_run *run = &r->run[at];
    if (becomes_lost(r, run)) s->counters.lost_generations++;
    rest->open = run->open;
    if (r->place[TA_SEALED].run == at) r->place[TA_SEALED].run = TA_NONE;
    ta__note_gone(s, run);
    uint32_t next = run->next;
    ta_runs_release(r, at);
    at = next;
  }
  if (at == TA_NONE) r->last = TA_NONE;
  return at;
}

static void count_rest(const struct ta_runs *r, uint32_t at, struct remains *rest) {
  for (; at != TA_NONE; at = r->run[at].next) {
    const struct ta_run *run = &r->run[at];
    if (run->held) return;
    if (run->kind == TA_RUN_GENERATION && !run->lost) ta_count_add(&rest->whole, run->all);
    if (run->kind == TA_RUN_LOSS) ta_count_add(&rest->reported, run->all);
  }
}

/* No record of the new stream is acked yet: whatever does not remain is lost. */
static void count_anew(struct ta_counters *c, const struct remains *rest) {
  c->spooled = rest->whole;
  c->lost = c->produced;
  ta_count_sub(&c->lost, c->spooled);
  c->acked = (struct ta_count){ 0 };
  c->lost_generations += c->acked_generations;
  c->acked_generations = 0;
}

static void put_loss(struct ta_spool *s, uint64_t order, const struct remains *rest) {
  struct ta_run *loss = ta_runs_prepend(&s->runs, TA_RUN_LOSS, s->gone.first_gen, order);

  loss->last_gen = s->gone.last_gen;
  loss->first_wall_ns = s->gone.first_wall_ns;
  loss->last_wall_ns = s->gone.last_wall_ns;
  loss->reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_FORGOTTEN;
  loss->open = rest->open;
  loss->all = s->counters.lost;
  ta_count_sub(&loss->all, rest->reported);
}

/* Composes CLOSE, the last record, again: it reports the counters, which have changed. */
static void put_close(struct ta_spool *s) {
  struct ta_run *run = &s->runs.run[s->runs.last];
  struct ta_place *sealed = &s->runs.place[TA_SEALED];

  ta__word_close(s, run);
  if (sealed->run == s->runs.last && sealed->at > 0) sealed->at = run->bytes;
  run->sealed_bytes = run->sealed_records = 0;
}

/* Numbers the frame at TA_GRANTED, which was sealed in the old stream or is the new HEADER or LOSS. */
static bool number_next(struct ta_spool *s) {
  struct ta_place *p = &s->runs.place[TA_GRANTED];
  struct ta_run *run = &s->runs.run[p->run];
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame;

  if (run->kind == TA_RUN_LOSS && run->bytes == 0) ta__word_loss(run);
  ta_runs_load_head(&s->runs, *p, head);
  if (run->kind != TA_RUN_GENERATION && run->sealed_records == 0) {
    ta_run_read_unsealed(head, &frame);
    ta__seal(s, &frame);
  } else {
    if (!TB_CHECK(tp_frame_open(head, NULL, &frame) == TB_OK)) return false;
    tp_frame_renumber(head, ++s->seq);
    ta__count_reported(s, run, &frame);
    ta_runs_store_head(&s->runs, *p, head);
  }
  ta_runs_step(&s->runs, p, TP_HEADER_BYTES + frame.len);
  ta_runs_settle(&s->runs, p);
  return true;
}

/* Renumbers all records up to TA_SEALED, because their headers contain the old numbers. */
static void number_anew(struct ta_spool *s) {
  struct ta_place *place = s->runs.place;

  s->seq = s->acked_seq = s->counters.reported_seq = 0;
  s->counters.reported = (struct ta_count){ 0 };
  if (place[TA_SEALED].run == TA_NONE) place[TA_SEALED] = place[TA_ACKED];
  ta_runs_settle(&s->runs, &place[TA_SEALED]);
  place[TA_GRANTED] = place[TA_ACKED];
  while (!ta_place_equal(&place[TA_GRANTED], &place[TA_SEALED]) && number_next(s)) continue;
  place[TA_SENT] = place[TA_GRANTED] = place[TA_ACKED];
}

tb_rc ta_spool_restart(struct ta_spool *s) {
  struct remains rest = { 0 };

  pthread_mutex_lock(&s->lock);
  tb_rc rc = s->filling ? TB_AGAIN : TB_OK;
  if (rc == TB_OK) {
    uint64_t order = ta__records_settled(s);
    uint32_t first = remove_front(s, &rest);
    s->runs.place[TA_ACKED] = (struct ta_place){ .run = first, .page = TA_NONE };
    count_rest(&s->runs, first, &rest);
    count_anew(&s->counters, &rest);
    s->settled = s->settled_lost = (struct ta_count){ 0 };
    if (s->gone.first_gen != 0) put_loss(s, order, &rest);
    ta_run_slot(ta_runs_prepend(&s->runs, TA_RUN_HEADER, 0, order), TP_HEADER, s->header.bytes,
                s->header.n);
    if (s->finished) put_close(s);
    number_anew(s);
  }
  pthread_mutex_unlock(&s->lock);
  return rc;
}
