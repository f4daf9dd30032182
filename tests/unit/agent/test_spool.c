/* SPDX-License-Identifier: Apache-2.0 */
/* The spool, called directly: the test is the writer, the sender and the collector. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/spool/spool.h"
#include "base/check.h"
#include "proto/frame.pb-c.h"
#include "support/caller.h"
#include "support/patience.h"

enum { MIB = 1 << 20, BATCH = 60000 };

static unsigned char noise[BATCH];

static struct ta_spool *open_spool(uint64_t bytes) {
  struct ta_spool *s = calloc(1, sizeof *s);

  cr_assert_eq(ta_spool_init(s, bytes), TB_OK);
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)(i * 7 + i / 256);
  ta_spool_header(s, "go 1.26 trace\0\0", 16);
  return s;
}

static void close_spool(struct ta_spool *s) {
  ta_spool_fini(s);
  free(s);
}

static void put(struct ta_spool *s, uint64_t gen, unsigned batches, size_t bytes) {
  for (unsigned i = 0; i < batches; i++) ta_spool_put(s, gen, noise, bytes);
}

/* Collects what was sent, frame by frame. */
struct wire {
  unsigned char *bytes;
  size_t n, at;
};

static uint64_t grant_all(struct ta_spool *s, uint64_t room) {
  uint64_t total = 0, need;
  size_t n;

  while ((n = ta_spool_grant(s, room - total, &need)) > 0) total += n;
  return total;
}

static void send_granted(struct ta_spool *s, struct wire *w) {
  const unsigned char *bytes;
  size_t n;

  while ((n = ta_spool_span(s, &bytes)) > 0) {
    w->bytes = realloc(w->bytes, w->n + n);
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
    ta_spool_sent(s, n);
  }
}

static bool next(struct wire *w, struct tp_frame *frame) {
  struct tb_diag diag;
  size_t used, need;

  tb_diag_clear(&diag);
  tb_rc rc = tp_frame_take(w->bytes + w->at, w->n - w->at, &diag, frame, &used, &need);
  cr_assert(rc == TB_OK || w->n == w->at, "%s", diag.text);
  if (rc == TB_OK) w->at += used;
  return rc == TB_OK;
}

static struct ta_counters counters(struct ta_spool *s) {
  struct ta_counters c;

  ta_spool_counters(s, &c);
  cr_assert_eq(c.produced.batches, c.acked.batches + c.lost.batches + c.spooled.batches, TT_CALLER);
  cr_assert_eq(c.produced.bytes, c.acked.bytes + c.lost.bytes + c.spooled.bytes, TT_CALLER);
  return c;
}
#define counters(...) TT_CALL(counters(__VA_ARGS__))

static tb_rc ack(struct ta_spool *s, uint64_t seq) {
  return ta_spool_ack(s, seq, NULL);
}

Test(spool, records_come_out_whole_numbered_and_in_order) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  for (size_t n = 1; n < 9000; n += 311) ta_spool_put(s, 1, noise, n); /* across page borders */
  ta_spool_end(s);
  ta_spool_finish(s);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert(next(&w, &f) && f.kind == TP_HEADER && f.seq == 1 && f.len == 16);
  uint64_t seq = 1;
  for (size_t n = 1; n < 9000; n += 311) {
    cr_assert(next(&w, &f));
    cr_assert(f.kind == TP_BATCH && f.seq == ++seq && f.gen == 1 && f.len == n);
    cr_assert_eq(memcmp(f.payload, noise, n), 0);
  }
  cr_assert(next(&w, &f) && f.kind == TP_GENEND && f.seq == ++seq);
  cr_assert(next(&w, &f) && f.kind == TP_CLOSE && f.seq == ++seq);
  cr_assert_not(next(&w, &f));
  cr_assert_not(ta_spool_done(s));
  cr_assert_eq(ack(s, seq), TB_OK);
  cr_assert(ta_spool_done(s));
  free(w.bytes);
  close_spool(s);
}

Test(spool, what_was_sent_and_not_acked_is_sent_again_with_the_same_bytes) {
  struct ta_spool *s = open_spool(MIB);
  struct wire first = { 0 }, second = { 0 };
  struct tp_frame f;

  put(s, 1, 5, 3000);
  grant_all(s, UINT64_MAX);
  send_granted(s, &first);
  cr_assert_eq(ack(s, 2), TB_OK);
  cr_assert_eq(ta_spool_resume(s, 4, NULL), TB_OK); /* the collector received two more */
  cr_assert_eq(grant_all(s, UINT64_MAX), 2 * (TP_HEADER_BYTES + 3000));
  send_granted(s, &second);
  cr_assert(next(&second, &f) && f.seq == 5);
  cr_assert_eq(memcmp(first.bytes + first.n - second.n, second.bytes, second.n), 0);
  cr_assert_eq(counters(s).resent_batches, 2);
  free(first.bytes);
  free(second.bytes);
  close_spool(s);
}

Test(spool, no_frame_is_granted_that_does_not_fit_the_room) {
  struct ta_spool *s = open_spool(MIB);
  uint64_t need;

  put(s, 1, 3, 3000);
  cr_assert_eq(ta_spool_grant(s, 100, &need), TP_HEADER_BYTES + 16);
  cr_assert_eq(need, TP_HEADER_BYTES + 3000);
  cr_assert_eq(ta_spool_grant(s, 3031, &need), 0);
  cr_assert_eq(ta_spool_grant(s, 3032, &need), 3032);
  cr_assert_eq(grant_all(s, UINT64_MAX), 2 * 3032);
  cr_assert_eq(ta_spool_grant(s, UINT64_MAX, &need), 0);
  cr_assert_eq(need, 0);
  close_spool(s);
}

Test(spool, a_sleeping_sender_is_woken_by_one_record_and_a_resting_one_by_a_lot) {
  struct ta_spool *s = open_spool(MIB);

  cr_assert_not(ta_spool_sleep(s)); /* the header waits */
  grant_all(s, UINT64_MAX);
  cr_assert(ta_spool_sleep(s));
  cr_assert(ta_spool_put(s, 1, noise, 1));
  cr_assert_not(ta_spool_put(s, 1, noise, 1)); /* one wake-up is enough */
  cr_assert(ta_spool_rest(s, 100000));
  cr_assert_not(ta_spool_put(s, 1, noise, BATCH));
  cr_assert(ta_spool_put(s, 1, noise, BATCH));
  cr_assert_not(ta_spool_put(s, 1, noise, BATCH));
  put(s, 1, 7, BATCH);
  cr_assert_not(ta_spool_rest(s, 100000)); /* half full: acks are required */
  cr_assert_not(ta_spool_put(s, 1, noise, BATCH));
  close_spool(s);
}

Test(spool, the_end_of_a_generation_ends_a_rest) {
  struct ta_spool *s = open_spool(MIB);

  put(s, 1, 1, 100);
  grant_all(s, UINT64_MAX);
  cr_assert(ta_spool_rest(s, 100000));
  cr_assert(ta_spool_end(s));
  cr_assert_not(ta_spool_rest(s, 100000)); /* the end mark waits */
  put(s, 2, 1, 100);
  cr_assert_not(ta_spool_rest(s, 100000));
  grant_all(s, UINT64_MAX);
  cr_assert(ta_spool_rest(s, 100000));
  put(s, 2, 1, 100);
  cr_assert(ta_spool_rest(s, 100000)); /* an open generation may wait */
  cr_assert(ta_spool_finish(s));
  close_spool(s);
}

Test(spool, the_collector_cannot_ack_what_did_not_go_out) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };

  put(s, 1, 3, 3000);
  cr_assert_eq(ack(s, 1), TB_PROTOCOL);
  grant_all(s, UINT64_MAX);
  cr_assert_eq(ack(s, 1), TB_PROTOCOL); /* granted, but not sent */
  send_granted(s, &w);
  cr_assert_eq(ack(s, 5), TB_PROTOCOL);
  cr_assert_eq(counters(s).acked.batches, 3);             /* 4 records were right to ack */
  cr_assert_eq(ta_spool_resume(s, 3, NULL), TB_NOTFOUND); /* nor forget what was sent */
  free(w.bytes);
  close_spool(s);
}

Test(spool, the_oldest_unsent_generation_goes_first) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  put(s, 1, 2, BATCH);
  ta_spool_end(s);
  grant_all(s, 2 * BATCH); /* the header and part of generation 1, which must stay therefore */
  for (uint64_t gen = 2; gen <= 6; gen++) {
    put(s, gen, 6, BATCH); /* 360 kB */
    ta_spool_end(s);
  }
  cr_assert_eq(counters(s).lost_generations, 3);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert(next(&w, &f) && f.kind == TP_HEADER);
  for (int i = 0; i < 2; i++) cr_assert(next(&w, &f) && f.kind == TP_BATCH && f.gen == 1);
  cr_assert(next(&w, &f) && f.kind == TP_GENEND);
  cr_assert(next(&w, &f) && f.kind == TP_LOSS && f.seq == 5);
  Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, f.len, f.payload);
  cr_assert_eq(loss->first_gen, 2);
  cr_assert_eq(loss->last_gen, 4);
  cr_assert_eq(loss->batches, 18);
  cr_assert_eq(loss->bytes, 18 * BATCH);
  cr_assert_eq(loss->sent_batches, 0);
  tracecollect__v1__loss__free_unpacked(loss, NULL);
  cr_assert(next(&w, &f) && f.kind == TP_BATCH && f.gen == 5);
  free(w.bytes);
  close_spool(s);
}

Test(spool, a_generation_sent_in_part_is_abandoned_and_swallows_its_rest) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  put(s, 1, 4, BATCH);
  grant_all(s, 3 * BATCH);
  send_granted(s, &w);
  cr_assert_eq(ack(s, 2), TB_OK);
  put(s, 1, 40, BATCH);
  cr_assert_eq(counters(s).lost.batches, 44); /* with the acked one */
  ta_spool_end(s);
  put(s, 2, 1, BATCH);
  ta_spool_end(s);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  for (uint64_t seq = 1; seq <= 3; seq++) cr_assert(next(&w, &f) && f.seq == seq);
  cr_assert(next(&w, &f) && f.kind == TP_LOSS);
  Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, f.len, f.payload);
  cr_assert(loss->first_gen == 1 && loss->last_gen == 1 && loss->batches == 44);
  cr_assert_eq(loss->sent_batches, 2);
  tracecollect__v1__loss__free_unpacked(loss, NULL);
  cr_assert(next(&w, &f) && f.kind == TP_BATCH && f.gen == 2);
  cr_assert(next(&w, &f) && f.kind == TP_GENEND && f.gen == 2);
  cr_assert_eq(ack(s, f.seq), TB_OK);
  cr_assert_eq(counters(s).acked.batches, 1);
  cr_assert_eq(counters(s).spooled.batches, 0);
  free(w.bytes);
  close_spool(s);
}

Test(spool, a_generation_its_writer_gives_up_is_told_with_what_still_comes_of_it) {
  for (int sent = 0; sent <= 2; sent++) { /* sent of its two batches */
    struct ta_spool *s = open_spool(MIB);
    struct wire w = { 0 };
    struct tp_frame f;

    put(s, 1, 1, BATCH);
    ta_spool_end(s);
    put(s, 2, 2, BATCH);
    grant_all(s, 3 * TP_HEADER_BYTES + 200 + (size_t)(1 + sent) * (TP_HEADER_BYTES + BATCH));
    send_granted(s, &w);
    ta_spool_lose(s, 2, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
    put(s, 2, 3, BATCH);
    ta_spool_lose(s, 2, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
    ta_spool_end(s);
    ta_spool_lose(s, 3, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH); /* no batch was put */
    ta_spool_end(s);
    put(s, 4, 1, BATCH);
    ta_spool_end(s);
    grant_all(s, UINT64_MAX);
    send_granted(s, &w);
    cr_assert_eq(counters(s).lost.batches, 5);
    cr_assert_eq(counters(s).lost_generations, 2);
    cr_assert_eq(counters(s).last_loss, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
    uint64_t lost = 0, last = 0;
    while (next(&w, &f)) {
      if (f.kind == TP_GENEND) cr_assert(f.gen == 1 || f.gen == 4);
      if (f.kind != TP_LOSS) continue;
      Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, f.len, f.payload);
      cr_assert_eq(loss->reason, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
      cr_assert_eq(loss->sent_batches, last == 0 ? (uint64_t)sent : 0);
      lost += loss->batches;
      last = loss->last_gen;
      tracecollect__v1__loss__free_unpacked(loss, NULL);
    }
    cr_assert_eq(lost, 5);
    cr_assert_eq(last, 3);
    free(w.bytes);
    close_spool(s);
  }
}

static bool look_and_give_up(void *self) {
  struct ta_spool *s = self;
  struct ta_recorded recorded;

  ta_spool_recorded(s, &recorded); /* `tracectl send` does this for its status */
  return counters(s).produced.batches > 0;
}

Test(spool, a_writer_that_waits_for_room_may_look_at_it) {
  struct ta_spool *s = open_spool(MIB);

  s->impatient = look_and_give_up;
  s->impatient_self = s;
  put(s, 1, 30, BATCH);
  cr_assert(s->over);
  cr_assert_eq(counters(s).produced.batches, 30);
  close_spool(s);
}

Test(spool, runs_without_end_neither_grow_it_nor_lose_count) {
  struct ta_spool *s = open_spool(MIB);

  for (uint64_t gen = 1; gen <= 20000; gen++) { /* far more than the spool has runs */
    put(s, gen, 1, 10);
    ta_spool_end(s);
  }
  ta_spool_finish(s);
  cr_assert_eq(counters(s).produced.batches, 20000);
  cr_assert_gt(counters(s).lost.batches, 19000);
  struct wire w = { 0 };
  struct tp_frame f;
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  uint64_t reported = 0, sent = 0;
  while (next(&w, &f)) {
    if (f.kind == TP_BATCH) sent++;
    if (f.kind != TP_LOSS) continue;
    Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, f.len, f.payload);
    reported += loss->batches;
    tracecollect__v1__loss__free_unpacked(loss, NULL);
  }
  cr_assert_eq(reported + sent, 20000);
  cr_assert_eq(ack(s, f.seq), TB_OK);
  cr_assert(ta_spool_done(s));
  free(w.bytes);
  close_spool(s);
}

/* A collector that lost its state. */

static uint64_t frames_of(struct wire *w, enum tp_kind kind) {
  struct wire copy = { .bytes = w->bytes, .n = w->n };
  struct tp_frame f;
  uint64_t n = 0;

  while (next(&copy, &f)) n += f.kind == kind;
  return n;
}

static Tracecollect__V1__Loss loss_in(const struct tp_frame *f) {
  Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, f->len, f->payload);

  cr_assert_not_null(loss);
  Tracecollect__V1__Loss copy = *loss;
  tracecollect__v1__loss__free_unpacked(loss, NULL);
  return copy;
}

Test(spool, a_stream_that_begins_anew_has_its_header_one_loss_and_whole_generations) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  for (uint64_t gen = 1; gen <= 4; gen++) {
    put(s, gen, 3, 1000 + gen);
    ta_spool_end(s);
  }
  grant_all(s, 13 * 1000); /* up to the middle of the third generation */
  send_granted(s, &w);
  cr_assert_eq(ack(s, 7), TB_OK); /* HEADER, the first generation, two batches of the second */
  cr_assert_eq(ta_spool_resume(s, 3, NULL), TB_NOTFOUND);
  cr_assert_eq(ta_spool_restart(s), TB_OK);
  struct ta_counters c = counters(s);
  cr_assert_eq(c.acked.batches, 0);
  cr_assert_eq(c.lost.batches, 6);
  cr_assert_eq(c.lost_generations, 2);
  cr_assert_eq(c.spooled.batches, 6);

  w.n = w.at = 0;
  ta_spool_finish(s);
  cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_OK);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert(next(&w, &f) && f.kind == TP_HEADER && f.seq == 1);
  cr_assert_eq(memcmp(f.payload, "go 1.26 trace\0\0", 16), 0);
  cr_assert(next(&w, &f) && f.kind == TP_LOSS && f.seq == 2);
  Tracecollect__V1__Loss loss = loss_in(&f);
  cr_assert_eq(loss.first_gen, 1);
  cr_assert_eq(loss.last_gen, 2);
  cr_assert_eq(loss.batches, 6);
  cr_assert_eq(loss.bytes, 3 * (1001 + 1002));
  cr_assert_eq(loss.sent_batches, 0);
  cr_assert_eq(loss.reason, TRACECOLLECT__V1__LOSS_REASON__LOSS_FORGOTTEN);
  for (uint64_t seq = 3; seq <= 10; seq++) {
    cr_assert(next(&w, &f) && f.seq == seq); /* next() has checked the checksum */
    cr_assert_eq(f.kind, seq == 6 || seq == 10 ? TP_GENEND : TP_BATCH);
    cr_assert_eq(f.gen, seq <= 6 ? 3 : 4);
    if (f.kind == TP_BATCH) cr_assert_eq(memcmp(f.payload, noise, f.len), 0);
  }
  cr_assert(next(&w, &f) && f.kind == TP_CLOSE && f.seq == 11);
  cr_assert_not(next(&w, &f));
  cr_assert_eq(ack(s, 11), TB_OK);
  cr_assert(ta_spool_done(s));
  cr_assert_eq(counters(s).acked.batches, 6);
  free(w.bytes);
  close_spool(s);
}

Test(spool, the_generation_being_written_is_lost_to_its_end_when_some_of_it_was_acked) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  put(s, 1, 3, 1000);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert_eq(ack(s, 3), TB_OK);
  cr_assert_eq(ta_spool_restart(s), TB_OK);
  w.n = w.at = 0;
  put(s, 1, 2, 1000);
  ta_spool_end(s);
  put(s, 2, 1, 1000);
  ta_spool_end(s);
  cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_OK);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert(next(&w, &f) && f.kind == TP_HEADER && f.seq == 1);
  cr_assert(next(&w, &f) && f.kind == TP_LOSS && f.seq == 2);
  cr_assert_eq(loss_in(&f).batches, 5);
  cr_assert(next(&w, &f) && f.kind == TP_BATCH && f.gen == 2);
  cr_assert(next(&w, &f) && f.kind == TP_GENEND && f.seq == 4);
  cr_assert_eq(ack(s, 4), TB_OK);
  cr_assert_eq(ta_spool_wait(s, 1, &(bool){ false }), TB_OK);
  cr_assert_eq(counters(s).lost_generations, 1);
  free(w.bytes);
  close_spool(s);
}

Test(spool, it_begins_anew_as_often_as_it_must) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };

  for (uint64_t gen = 1; gen <= 1000; gen++) {
    put(s, gen, 2, 500);
    ta_spool_end(s);
    grant_all(s, UINT64_MAX);
    w.n = w.at = 0;
    send_granted(s, &w);
    cr_assert_eq(frames_of(&w, TP_HEADER), gen == 1 || gen % 3 == 1);
    cr_assert_eq(frames_of(&w, TP_LOSS), gen > 1 && gen % 3 == 1);
    cr_assert_eq(ack(s, s->seq), TB_OK);
    if (gen % 3 > 0) continue;
    cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_NOTFOUND);
    cr_assert_eq(ta_spool_restart(s), TB_OK);
    cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_OK);
  }
  cr_assert_eq(counters(s).lost.batches, 2 * 999);
  cr_assert_eq(counters(s).acked.batches, 2);
  cr_assert_leq(s->runs.max - s->runs.free, 2);
  free(w.bytes);
  close_spool(s);
}

/* Whole generations that wait are kept. What was lost before the collector forgot the stream is counted as lost once. */
Test(spool, what_waits_when_it_begins_anew_is_sent_and_the_rest_is_told_as_lost) {
  struct ta_spool *s = open_spool(MIB);
  struct wire w = { 0 };
  struct tp_frame f;

  put(s, 1, 2, 500);
  ta_spool_end(s);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  cr_assert_eq(counters(s).reported_seq, s->seq);
  cr_assert_eq(ack(s, s->seq), TB_OK);
  put(s, 2, 3, 500);
  ta_spool_end(s);
  put(s, 3, 4, 500);
  ta_spool_lose(s, 3, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
  cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_NOTFOUND);
  cr_assert_eq(ta_spool_restart(s), TB_OK);
  cr_assert_eq(counters(s).spooled.batches, 3);
  cr_assert_eq(counters(s).lost.batches, 2 + 4);
  cr_assert_eq(ta_spool_resume(s, 0, NULL), TB_OK);
  grant_all(s, UINT64_MAX);
  w.n = w.at = 0;
  send_granted(s, &w);
  cr_assert(next(&w, &f) && f.kind == TP_HEADER);
  cr_assert(next(&w, &f) && f.kind == TP_LOSS);
  cr_assert_eq(loss_in(&f).batches, 2);
  cr_assert_gt(loss_in(&f).first_wall_ns, 0);
  cr_assert_eq(ack(s, s->seq), TB_OK);
  cr_assert_eq(counters(s).reported_seq, s->seq);
  cr_assert_eq(counters(s).acked.batches, 3);
  cr_assert_eq(counters(s).spooled.batches, 0);
  free(w.bytes);
  close_spool(s);
}

/* Counts a record that arrived for the first time. */
static void note(const struct tp_frame *f, struct ta_count *kept, struct ta_count *reported) {
  if (f->kind == TP_BATCH) ta_count_add(kept, (struct ta_count){ 1, f->len });
  if (f->kind != TP_LOSS) return;
  Tracecollect__V1__Loss loss = loss_in(f);
  ta_count_sub(kept, (struct ta_count){ loss.sent_batches, loss.sent_bytes });
  ta_count_add(reported, (struct ta_count){ loss.batches, loss.bytes });
}

enum { TURNS = TT_LESS(60000, 6000) };

/* Random steps of writer, sender and collector, many times the size of the pool. */
Test(spool, any_order_of_turns_keeps_the_books) {
  struct ta_spool *s = open_spool(MIB);
  uint64_t random = 88172645463325252u, gen = 1, acked = 0, sent = 0, there = 0, streams = 1;
  struct ta_count kept = { 0 }, reported = { 0 }; /* of this stream, as its records say */
  struct wire w = { 0 };
  struct tp_frame f;

  for (int turn = 0; turn < TURNS; turn++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    switch (random % 8) {
    case 0:
    case 1:
    case 2:
    case 3: ta_spool_put(s, gen, noise, random / 8 % BATCH); break;
    case 4:
      if (random / 32 % 16 == 0)
        ta_spool_lose(s, gen, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH);
      if (random / 8 % 4 != 0) break;
      ta_spool_end(s);
      gen++;
      break;
    case 5:
      grant_all(s, random / 8 % 200000);
      send_granted(s, &w);
      while (next(&w, &f)) {
        there = f.seq;               /* received on this connection */
        if (f.seq <= sent) continue; /* again */
        cr_assert_eq(f.seq, ++sent);
        note(&f, &kept, &reported);
      }
      w.n = w.at = 0;
      break;
    case 6:
      acked += random / 8 % (there - acked + 1);
      cr_assert_eq(ack(s, acked), TB_OK);
      break;
    case 7:
      if (random / 8 % 4 != 0) {
        ta_spool_trim(s);
        break;
      }
      if (random / 32 % 8 == 0 && acked > 0) {
        cr_assert_eq(ta_spool_resume(s, acked - 1, NULL), TB_NOTFOUND);
        cr_assert_eq(ta_spool_restart(s), TB_OK);
        acked = sent = 0;
        kept = reported = (struct ta_count){ 0 };
        streams++;
      }
      cr_assert_eq(ta_spool_resume(s, acked, NULL), TB_OK);
      there = acked;
      break;
    }
    counters(s);
  }
  ta_spool_end(s);
  ta_spool_finish(s);
  grant_all(s, UINT64_MAX);
  send_granted(s, &w);
  while (next(&w, &f)) {
    if (f.seq <= sent) continue;
    cr_assert_eq(f.seq, ++sent);
    note(&f, &kept, &reported);
  }
  cr_assert_eq(kept.batches + reported.batches, counters(s).produced.batches);
  cr_assert_eq(kept.bytes + reported.bytes, counters(s).produced.bytes);
  cr_assert_eq(reported.batches, counters(s).lost.batches);
  cr_assert_eq(ack(s, sent), TB_OK);
  cr_assert(ta_spool_done(s));
  cr_assert_eq(counters(s).spooled.batches, 0);
  cr_assert_leq(s->runs.pages.max - s->runs.pages.free, 1);
  cr_assert_gt(counters(s).lost_generations, 0);
  cr_assert_gt(streams, TURNS / 600);
  free(w.bytes);
  close_spool(s);
}

Test(spool, what_only_a_mistake_can_ask_for_is_noted_and_not_done) {
  struct ta_spool *s = open_spool(MIB);
  struct tb_keeper keeper = { 0 };

  tb_check_keep(&keeper);
  ta_spool_header(s, noise, TA_SLOT_BYTES);
  tb_check_keep(NULL);
  cr_assert_eq(keeper.failed, 1);
  cr_assert_str_eq(keeper.where, "spool.c: n <= TA_SLOT_BYTES - TP_HEADER_BYTES");
  cr_assert_eq(grant_all(s, UINT64_MAX), TP_HEADER_BYTES + 16); /* the earlier header */
  close_spool(s);
}
