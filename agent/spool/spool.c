/* SPDX-License-Identifier: Apache-2.0 */
/* The writer takes pages under the lock, copies into them without the lock, and publishes them under the lock: no other thread
 * reads past run->bytes. Only the writer drops, and only records that were never granted; only the sender frees records that
 * were sent. So neither frees memory that the other uses. */
#include "agent/spool/spool.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/host/clock.h"
#include "agent/spool/losses.h"
#include "agent/spool/restart.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "proto/frame.pb-c.h"

enum { GENEND_BYTES_MAX = TP_HEADER_BYTES + 64, CLOSE_REASON_BYTES = 16 };

/* Opening and closing. */

tb_rc ta_spool_init(struct ta_spool *s, uint64_t bytes) {
  *s = (struct ta_spool){ .recorder = { .first = TA_NONE } };
  TB_TRY(ta_runs_init(&s->runs, bytes < TA_SPOOL_BYTES_MIN ? TA_SPOOL_BYTES_MIN : bytes));

  ta_cond_init(&s->moved);
  pthread_mutex_init(&s->lock, NULL);
  return TB_OK;
}

void ta_spool_fini(struct ta_spool *s) {
  if (s->runs.run == NULL) return;
  ta_runs_fini(&s->runs);
  pthread_cond_destroy(&s->moved);
  pthread_mutex_destroy(&s->lock);
  *s = (struct ta_spool){ 0 };
}

/* Writing. */

/* Copies into a chain of pages that no other thread reads yet. */
static void fill(struct ta_pages *pages, struct ta_place *p, const void *bytes, size_t n) {
  for (const unsigned char *from = bytes; n > 0;) {
    if (p->off == TA_PAGE_BYTES) {
      p->page = pages->next[p->page];
      p->off = 0;
    }
    size_t here = TA_PAGE_BYTES - p->off;
    if (here > n) here = n;
    memcpy(ta_page(pages, p->page) + p->off, from, here);
    p->off += (uint32_t)here;
    from += here;
    n -= here;
  }
}

/* Appends a frame to the generation being written; the lock is released while the bytes are copied. */
static void append_frame(struct ta_spool *s, struct ta_run *run, const struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];
  size_t n = TP_HEADER_BYTES + frame->len;
  struct ta_place p = { .off = (uint32_t)(run->bytes % TA_PAGE_BYTES) };

  if (!TB_CHECK(ta_run_pages_wanted(run, n) <= s->runs.pages.free)) return;
  p.page = ta_runs_extend(&s->runs, run, n);
  ta_run_unsealed_head(head, frame);
  s->filling = true;
  pthread_mutex_unlock(&s->lock);
  fill(&s->runs.pages, &p, head, sizeof head);
  fill(&s->runs.pages, &p, frame->payload, frame->len);
  pthread_mutex_lock(&s->lock);
  s->filling = false;
  run->bytes += n;
  ta_run_touch(&s->runs, run);
}

/* Counts n more bytes; returns whether the sender sleeps and now has enough to wake up. */
static bool wake_sender(struct ta_spool *s, uint64_t n) {
  if (s->wake_bytes > n) {
    s->wake_bytes -= n;
    return false;
  }
  bool wake = s->wake_bytes > 0;
  s->wake_bytes = 0;
  return wake;
}

bool ta_spool_header(struct ta_spool *s, const void *bytes, size_t n) {
  if (!TB_CHECK(n <= TA_SLOT_BYTES - TP_HEADER_BYTES)) return false;
  pthread_mutex_lock(&s->lock);
  memcpy(s->header.bytes, bytes, n);
  s->header.n = n;
  ta_run_slot(ta_runs_append(&s->runs, TA_RUN_HEADER, 0, s->records), TP_HEADER, bytes, n);
  s->records++;
  bool wake = wake_sender(s, 1);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

/* Held records are counted when they are released. */
static void count_record(struct ta_spool *s, struct ta_run *run, struct ta_count n) {
  if (run->held) {
    run->held_records++;
  } else {
    ta_count_add(&s->counters.produced, n);
    s->records++;
  }
}

bool ta_spool_put(struct ta_spool *s, uint64_t gen, const void *batch, size_t n) {
  struct tp_frame frame = { .kind = TP_BATCH,
                            .gen = gen,
                            .payload = batch,
                            .len = (uint32_t)n,
                            .payload_crc = tb_crc32c(0, batch, n) };
  struct ta_count one = { 1, n };
  bool wake = false;

  pthread_mutex_lock(&s->lock);
  if (ta_runs_writing(&s->runs) == NULL) ta__begin_generation(s, gen);
  struct ta_run *run = ta__make_room(s, TP_HEADER_BYTES + n);
  if (run != NULL) {
    append_frame(s, run, &frame);
    unsigned char crc[4];
    for (int i = 0; i < 4; i++) crc[i] = (unsigned char)(frame.payload_crc >> 8 * i);
    run->crc = tb_crc32c(run->crc, crc, sizeof crc);
    if (!run->held) {
      ta_count_add(&s->counters.spooled, one);
      if (s->counters.spooled.bytes > s->counters.spooled_peak.bytes)
        s->counters.spooled_peak = s->counters.spooled;
      wake = wake_sender(s, n);
    }
  } else {
    run = ta_runs_writing(&s->runs);
    ta_run_touch(&s->runs, run);
    if (!run->held) ta_count_add(&s->counters.lost, one);
  }
  ta_count_add(&run->all, one);
  run->last_wall_ns = ta_wall_ns();
  count_record(s, run, one);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

bool ta_spool_end(struct ta_spool *s) {
  unsigned char packed[GENEND_BYTES_MAX - TP_HEADER_BYTES];
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  bool wake = false;

  pthread_mutex_lock(&s->lock);
  struct ta_run *run = ta_runs_writing(&s->runs);
  if (run != NULL && (run = ta__make_room(s, GENEND_BYTES_MAX)) != NULL) {
    end.batches = run->all.batches;
    end.bytes = run->all.bytes;
    end.crc = run->crc;
    end.wall_ns = ta_wall_ns();
    end.mono_ns = ta_mono_ns();
    size_t n = tracecollect__v1__generation_end__pack(&end, packed);
    append_frame(s, run,
                 &(struct tp_frame){ .kind = TP_GENEND,
                                     .gen = run->gen,
                                     .payload = packed,
                                     .len = (uint32_t)n,
                                     .payload_crc = tb_crc32c(0, packed, n) });
    count_record(s, run, (struct ta_count){ 0 });
  }
  if ((run = ta_runs_writing(&s->runs)) != NULL) {
    run->open = false;
    ta_run_touch(&s->runs, run);
    if (ta__recorder_ended(s, run))
      wake = wake_sender(s, UINT64_MAX); /* a live reader waits for a whole generation */
  }
  pthread_mutex_unlock(&s->lock);
  return wake;
}

bool ta_spool_lose(struct ta_spool *s, uint64_t gen, uint32_t reason) {
  pthread_mutex_lock(&s->lock);
  if (ta_runs_writing(&s->runs) == NULL) ta__begin_generation(s, gen);
  ta__lose_writing(s, reason);
  bool wake = wake_sender(s, 1);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

static _Atomic(const char *) closes_by; /* see ta_spool_closes_by() */

void ta_spool_closes_by(const char *reason) {
  atomic_store(&closes_by, reason);
}

void ta__word_close(struct ta_spool *s, struct ta_run *run) {
  unsigned char packed[TA_SLOT_BYTES - TP_HEADER_BYTES];
  Tracecollect__V1__Close done = TRACECOLLECT__V1__CLOSE__INIT;
  Tracecollect__V1__Counters counters;

  ta_counters_message(&s->counters, &counters);
  counters.reported_seq = counters.reported_batches = counters.reported_bytes = 0;
  done.counters = &counters;
  char reason[CLOSE_REASON_BYTES];
  const char *by = atomic_load(&closes_by);
  snprintf(reason, sizeof reason, "%s", by != NULL ? by : "closed");
  done.reason = reason;
  ta_run_slot(run, TP_CLOSE, packed, tracecollect__v1__close__pack(&done, packed));
}

bool ta_spool_finish(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  ta__recorder_finish(s);
  ta__word_close(s, ta_runs_append(&s->runs, TA_RUN_CLOSE, 0, s->records));
  s->records++;
  s->finished = true;
  bool wake = wake_sender(s, UINT64_MAX);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

/* Sending. */

void ta__count_reported(struct ta_spool *s, const struct ta_run *run,
                        const struct tp_frame *frame) {
  s->counters.reported_seq = s->seq;
  if (frame->kind == TP_BATCH)
    ta_count_add(&s->counters.reported, (struct ta_count){ 1, frame->len });
  if (frame->kind == TP_LOSS) { /* the sent part of an abandoned generation is counted already */
    ta_count_add(&s->counters.reported, run->all);
    ta_count_sub(&s->counters.reported, run->sealed);
  }
}

void ta__seal(struct ta_spool *s, struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];
  struct ta_place at = s->runs.place[TA_GRANTED];
  struct ta_run *run = &s->runs.run[at.run];

  frame->seq = ++s->seq;
  tp_frame_head_summed(frame, head);
  ta_runs_store_head(&s->runs, at, head);
  run->sealed_bytes += TP_HEADER_BYTES + frame->len;
  run->sealed_records++;
  ta__count_reported(s, run, frame);
  if (frame->kind == TP_BATCH) ta_count_add(&run->sealed, (struct ta_count){ 1, frame->len });
}

/* Returns whether the frame at p is on disk. Only then may it get a number: a successor must find every numbered record. */
static bool is_kept(const struct ta_run *run, const struct ta_place *p) {
  return run->kind == TA_RUN_GENERATION ? p->at < run->kept_bytes : !run->unsaved;
}

/* Returns the next frame that may be sent, and whether it has no number yet (*out_fresh); false: there is none. */
static bool next_frame(struct ta_spool *s, bool *out_fresh, struct tp_frame *out) {
  struct ta_place *p = &s->runs.place[TA_GRANTED], *sealed = &s->runs.place[TA_SEALED];
  unsigned char bytes[TP_HEADER_BYTES];

  ta_runs_settle(&s->runs, p);
  ta_runs_settle(&s->runs, sealed);
  if (p->run == TA_NONE) return false;
  struct ta_run *run = &s->runs.run[p->run];
  if (run->held) return false;
  if (run->kind == TA_RUN_LOSS && run->bytes == 0 && !ta__say_loss(s, run)) return false;
  if (p->at == run->bytes) return false;
  *out_fresh = ta_place_equal(p, sealed);
  if (*out_fresh && s->keeping && !is_kept(run, p)) return false;
  ta_runs_load_head(&s->runs, *p, bytes);
  if (!*out_fresh) {
    return tp_frame_open(bytes, NULL, out) == TB_OK;
  }
  ta_run_read_unsealed(bytes, out);
  return true;
}

size_t ta_spool_grant(struct ta_spool *s, uint64_t room, uint64_t *out_need) {
  struct tp_frame frame;
  size_t total = 0;
  bool fresh;

  *out_need = 0;
  pthread_mutex_lock(&s->lock);
  while (next_frame(s, &fresh, &frame)) {
    size_t bytes = TP_HEADER_BYTES + frame.len;
    if (total > 0 && total + bytes > TA_GRANT_BYTES) break;
    if (bytes > room - total) {
      *out_need = bytes;
      break;
    }
    if (fresh)
      ta__seal(s, &frame);
    else if (frame.kind == TP_BATCH)
      s->counters.resent_batches++;
    ta_runs_step(&s->runs, &s->runs.place[TA_GRANTED], bytes);
    if (fresh) s->runs.place[TA_SEALED] = s->runs.place[TA_GRANTED];
    total += bytes;
  }
  pthread_mutex_unlock(&s->lock);
  return total;
}

size_t ta_spool_span(struct ta_spool *s, const unsigned char **out_bytes) {
  struct ta_place *p = &s->runs.place[TA_SENT], *granted = &s->runs.place[TA_GRANTED];
  size_t n = 0;

  pthread_mutex_lock(&s->lock);
  ta_runs_settle(&s->runs, p);
  ta_runs_settle(&s->runs, granted);
  if (!ta_place_equal(p, granted)) {
    struct ta_run *run = &s->runs.run[p->run];
    uint64_t left = (p->run == granted->run ? granted->at : run->bytes) - p->at;
    *out_bytes = ta_runs_bytes(&s->runs, p, &n);
    if (run->kind == TA_RUN_GENERATION)
      for (uint32_t page = p->page; n < left && s->runs.pages.next[page] == page + 1; page++)
        n += TA_PAGE_BYTES;
    if (n > left) n = (size_t)left;
    if (n > TA_GRANT_BYTES) n = TA_GRANT_BYTES;
  }
  pthread_mutex_unlock(&s->lock);
  return n;
}

void ta_spool_sent(struct ta_spool *s, size_t n) {
  pthread_mutex_lock(&s->lock);
  ta_runs_step(&s->runs, &s->runs.place[TA_SENT], n);
  pthread_mutex_unlock(&s->lock);
}

/* Acks. */

/* Frees the first page of a run. No place is before its end; places exactly at the end move to the next page. */
static void release_page(struct ta_spool *s, struct ta_run *run, uint32_t page) {
  run->first_page = s->runs.pages.next[page];
  for (int p = 0; p < TA_PLACES; p++)
    if (s->runs.place[p].page == page) {
      s->runs.place[p].page = s->runs.pages.next[page];
      s->runs.place[p].off = 0;
    }
  ta_pages_release(&s->runs.pages, page);
}

void ta__note_gone(struct ta_spool *s, const struct ta_run *run) {
  if (run->kind != TA_RUN_GENERATION && run->kind != TA_RUN_LOSS) return;
  if (s->gone.first_gen == 0) {
    s->gone.first_gen = run->gen;
    s->gone.first_wall_ns = run->first_wall_ns;
  }
  s->gone.last_gen = run->last_gen;
  s->gone.last_wall_ns = run->last_wall_ns;
}

static void release_runs(struct ta_spool *s) {
  struct ta_place *acked = &s->runs.place[TA_ACKED];

  for (uint32_t at = acked->run; ta_runs_settle_once(&s->runs, acked); at = acked->run) {
    for (int p = TA_ACKED + 1; p < TA_KEPT; p++) ta_runs_settle(&s->runs, &s->runs.place[p]);
    ta__note_gone(s, &s->runs.run[at]);
    ta_runs_release(&s->runs, at);
  }
}

/* Adds an acked frame to the settled parts of `produced` and `lost`. */
static void count_settled(struct ta_spool *s, const struct ta_run *run,
                          const struct tp_frame *frame) {
  if (frame->kind == TP_BATCH) ta_count_add(&s->settled, (struct ta_count){ 1, frame->len });
  if (frame->kind != TP_LOSS) return;
  ta_count_add(&s->settled, run->all);
  ta_count_sub(&s->settled, run->sealed);
  ta_count_add(&s->settled_lost, run->all);
}

static void ack_frame(struct ta_spool *s, const struct tp_frame *frame) {
  struct ta_place *p = &s->runs.place[TA_ACKED];
  struct ta_run *run = &s->runs.run[p->run];
  struct ta_count one = { 1, frame->len };

  s->acked_seq = frame->seq;
  run->acked_records++;
  if (frame->kind == TP_GENEND) s->counters.acked_generations++;
  count_settled(s, run, frame);
  if (frame->kind == TP_BATCH) {
    ta_count_add(&run->acked, one);
    if (!run->lost) {
      ta_count_add(&s->counters.acked, one);
      ta_count_sub(&s->counters.spooled, one);
    }
  }
  for (size_t n = TP_HEADER_BYTES + frame->len; n > 0;) {
    uint32_t page = p->page;
    size_t here;
    ta_runs_bytes(&s->runs, p, &here);
    if (page != TA_NONE && page != p->page) release_page(s, run, page);
    if (here > n) here = n;
    ta_runs_step(&s->runs, p, here);
    n -= here;
  }
}

/* Returns TB_PROTOCOL if the collector acks a record that was not completely sent, on this or an earlier connection. */
static tb_rc ack_up_to(struct ta_spool *s, uint64_t seq, struct tb_diag *diag) {
  struct ta_place *acked = &s->runs.place[TA_ACKED], *sent = &s->runs.place[TA_SENT];
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame;

  while (s->acked_seq < seq) {
    release_runs(s);
    ta_runs_settle(&s->runs, sent);
    bool whole = !ta_place_equal(acked, sent);
    if (whole) {
      ta_runs_load_head(&s->runs, *acked, head);
      TB_TRY(tp_frame_open(head, diag, &frame));
      whole = acked->run != sent->run || acked->at + TP_HEADER_BYTES + frame.len <= sent->at;
    }
    if (!whole)
      return tb_fail(diag, TB_PROTOCOL, "collector acks record %" PRIu64 ", sent are %" PRIu64, seq,
                     s->acked_seq);
    ack_frame(s, &frame);
  }
  release_runs(s);
  return TB_OK;
}

tb_rc ta_spool_ack(struct ta_spool *s, uint64_t seq, struct tb_diag *diag) {
  pthread_mutex_lock(&s->lock);
  tb_rc rc = ack_up_to(s, seq, diag);
  pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
  return rc;
}

/* Returns the highest number that the collector may have. For an inherited stream that is the last one which may have been sent
 * according to the files, until the collector has agreed: later records come from this process. */
static uint64_t known_seq(const struct ta_spool *s) {
  if (!s->inherited || s->agreed) return UINT64_MAX;
  return s->inherited_seq < s->seq ? s->inherited_seq : s->seq; /* lower if records are damaged */
}

tb_rc ta_spool_resume(struct ta_spool *s, uint64_t durable_seq, struct tb_diag *diag) {
  tb_rc rc;

  pthread_mutex_lock(&s->lock);
  if (durable_seq > known_seq(s)) {
    s->superseded = true;
    rc = tb_fail(diag, TB_REFUSED,
                 "collector has records up to %" PRIu64 ", the spool on disk knows of %" PRIu64
                 " that were sent",
                 durable_seq, known_seq(s));
  } else if (durable_seq < s->acked_seq) {
    rc = tb_fail(diag, TB_NOTFOUND,
                 "collector has records up to %" PRIu64 " of this stream, but acked %" PRIu64,
                 durable_seq, s->acked_seq);
  } else {
    s->runs.place[TA_SENT] = s->runs.place[TA_GRANTED] = s->runs.place[TA_SEALED];
    rc = ack_up_to(s, durable_seq, diag);
    s->runs.place[TA_SENT] = s->runs.place[TA_GRANTED] = s->runs.place[TA_ACKED];
    s->agreed = s->agreed || rc == TB_OK;
    pthread_cond_broadcast(&s->moved);
  }
  pthread_mutex_unlock(&s->lock);
  return rc;
}

/* Sleep, memory, waiting. */

bool ta_spool_sleep(struct ta_spool *s) {
  struct tp_frame frame;
  bool fresh;

  pthread_mutex_lock(&s->lock);
  bool idle = !next_frame(s, &fresh, &frame) && !(s->keeping && s->runs.unsaved > 0);
  s->wake_bytes = idle ? 1 : 0;
  pthread_mutex_unlock(&s->lock);
  return idle;
}

bool ta_spool_rest(struct ta_spool *s, uint64_t bytes) {
  struct tp_frame frame;
  bool fresh;

  pthread_mutex_lock(&s->lock);
  bool ended = next_frame(s, &fresh, &frame) && !s->runs.run[s->runs.place[TA_GRANTED].run].open;
  bool rest = !ended && s->runs.pages.free > s->runs.pages.max / 2;
  s->wake_bytes = rest ? bytes : 0;
  pthread_mutex_unlock(&s->lock);
  return rest;
}

void ta_spool_trim(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  ta_pages_trim(&s->runs.pages);
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_over(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  s->over = true;
  pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_counters(struct ta_spool *s, struct ta_counters *out) {
  pthread_mutex_lock(&s->lock);
  *out = s->counters;
  pthread_mutex_unlock(&s->lock);
}

void ta_counters_message(const struct ta_counters *c, struct Tracecollect__V1__Counters *out) {
  tracecollect__v1__counters__init(out);
  out->produced_batches = c->produced.batches;
  out->produced_bytes = c->produced.bytes;
  out->lost_batches = c->lost.batches;
  out->lost_bytes = c->lost.bytes;
  out->lost_generations = c->lost_generations;
  out->spool_bytes = c->spooled.bytes;
  out->spool_batches = c->spooled.batches;
  out->reported_seq = c->reported_seq;
  out->reported_batches = c->reported.batches;
  out->reported_bytes = c->reported.bytes;
  out->last_loss = (Tracecollect__V1__LossReason)c->last_loss;
}

uint64_t ta__records_settled(struct ta_spool *s) {
  struct ta_place *acked = &s->runs.place[TA_ACKED];

  release_runs(s);
  if (acked->run == TA_NONE) return s->records;
  const struct ta_run *run = &s->runs.run[acked->run];
  if (run->held) return s->records;
  if (acked->run == s->runs.last && acked->at == run->bytes && (run->bytes > 0 || run->open))
    return s->records;
  return run->order + run->acked_records;
}

bool ta_spool_done(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  bool done = (s->finished || s->inherited) && ta__records_settled(s) == s->records;
  pthread_mutex_unlock(&s->lock);
  return done;
}

/* Returns whether records up to target are not settled yet; in a recorder, a snap in progress and all that it releases. */
static bool is_awaited(struct ta_spool *s, uint64_t target) {
  if (s->recorder.keep_ns != 0) target = s->records;
  return s->recorder.tail > 0 || ta__records_settled(s) < target;
}

void ta_spool_set_outlook(struct ta_spool *s, enum ta_outlook outlook) {
  pthread_mutex_lock(&s->lock);
  if (s->tried_ns == 0) s->tried_ns = ta_mono_ns();
  bool stays = s->outlook == outlook || s->outlook == TA_OUTLOOK_WELCOMED ||
               (s->outlook == TA_OUTLOOK_NONE && outlook == TA_OUTLOOK_TRYING);
  if (!stays) s->outlook = outlook;
  if (!stays) pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
}

/* Returns until when acks may be expected. */
static uint64_t wait_limit_ns(const struct ta_spool *s, uint64_t began_ns, uint64_t patience_ns) {
  if (s->outlook == TA_OUTLOOK_NONE) return 0;
  if (s->outlook != TA_OUTLOOK_TRYING) return UINT64_MAX;
  return (s->tried_ns != 0 ? s->tried_ns : began_ns) + patience_ns;
}

/* Returns false if until_ns has passed. */
static bool wait_until(struct ta_spool *s, uint64_t until_ns) {
  struct timespec until = ta_timespec(until_ns);

  if (until_ns == UINT64_MAX) return pthread_cond_wait(&s->moved, &s->lock) == 0;
  return pthread_cond_timedwait(&s->moved, &s->lock, &until) == 0;
}

tb_rc ta_spool_wait_by_outlook(struct ta_spool *s, uint64_t deadline_ns, uint64_t patience_ns,
                               bool *out_kept) {
  uint64_t began_ns = ta_mono_ns();
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&s->lock);
  uint64_t target = s->records;
  while (rc == TB_OK && is_awaited(s, target)) {
    uint64_t until =
        patience_ns == UINT64_MAX ? UINT64_MAX : wait_limit_ns(s, began_ns, patience_ns);
    if (until > deadline_ns) until = deadline_ns;
    if (s->over)
      rc = TB_END;
    else if (!wait_until(s, until) && is_awaited(s, target))
      rc = TB_AGAIN;
  }
  *out_kept = s->keeping && s->kept_records >= target;
  pthread_mutex_unlock(&s->lock);
  return rc;
}

tb_rc ta_spool_wait(struct ta_spool *s, uint64_t deadline_ns, bool *out_kept) {
  return ta_spool_wait_by_outlook(s, deadline_ns, UINT64_MAX, out_kept);
}
