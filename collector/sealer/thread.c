/* SPDX-License-Identifier: Apache-2.0 */
/* The thread: take work, write what it says, seal what became whole, put down verdicts, look after
 * retention, sleep. A failure anywhere leaves everything in place and is tried again a little later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/sealer/private.h"

enum { SEAL_FROM = 64, VERDICTS_AT_ONCE = 64 };

static const uint64_t RETRY_NS = 100000000, OUTBOX_RETRY_NS = 1000000, NO_REST_NS = 1;
static const uint64_t TURN_NS = 50000000;
/* So long a shortage of memory or descriptors is waited for: others may give theirs back. */
static const uint64_t SHORTAGE_NS = UINT64_C(30000000000);
/* Rows of live streams are written each second; a stream that came or went is shown sooner. */
static const uint64_t RESERVE_EVERY_NS = 1000000000;
static const uint64_t LIVE_EVERY_NS = 1000000000, LIVE_SOON_NS = 50000000;

bool tc__is_late(const struct tc_sealer *archiver) {
  uint64_t deadline = atomic_load_explicit(&archiver->deadline_mono_ns, memory_order_relaxed);

  return deadline != 0 && tc_mono_ns() >= deadline;
}

static void release(struct tc_sealer *archiver, struct tc_record *record) {
  struct tc__stream *stream = tc__sealer_stream(archiver, record->stream);

  if (stream != NULL && stream->conn == record->conn && record->conn != 0)
    tc_reply_queue_released(&archiver->outbox, &stream->released, record->conn, record->stream,
                            stream->loop, (uint64_t)record->len + TP_HEADER_BYTES);
  record->free(record);
}

/* The records are freed once all their bytes are written: queues of segments point into them. */
static tb_rc do_records(struct tc_sealer *archiver, struct tc_work *work, struct tb_diag *diag) {
  if (!archiver->at_begun) archiver->at = work->records.head;
  archiver->at_begun = true;
  for (; archiver->at != NULL; archiver->at = archiver->at->next) {
    struct tc_record *record = archiver->at;
    struct tc__stream *stream = tc__sealer_stream(archiver, record->stream);
    if (stream == NULL) continue;
    if (tc__is_late(archiver)) return TB_AGAIN;
    struct tc__item item = { .kind = record->kind,
                             .seq = record->seq,
                             .gen = record->gen,
                             .wall_ns = work->records.wall_ns,
                             .payload = record->payload,
                             .len = record->len,
                             .crc = record->crc };
    TB_TRY(tc__archive_record(archiver, stream, &item, diag));
    tc__cut_books(archiver, stream);
    tc__mark_live(archiver, stream);
  }
  return TB_OK;
}

static void free_records(struct tc_sealer *archiver, struct tc_work *work) {
  while (work->records.head != NULL) {
    struct tc_record *record = work->records.head;
    work->records.head = record->next;
    release(archiver, record);
  }
}

static tb_rc do_work(struct tc_sealer *archiver, struct tc_work *work, struct tb_diag *diag) {
  struct tc__stream *stream = tc__sealer_stream(archiver, work->stream);

  if (work->kind == TC_WORK_STREAM) return tc_sealer_add_stream(archiver, work->intro, diag);
  if (work->kind == TC_WORK_RECORDS) {
    TB_TRY(do_records(archiver, work, diag));
    TB_TRY(tc__flush_dirty(archiver, true, diag));
    archiver->at_begun = false;
    archiver->end_lsn = work->records.end_lsn;
    free_records(archiver, work);
    return TB_OK;
  }
  if (work->kind == TC_WORK_BARRIER) return tc__seal_borders(archiver, diag);
  if (stream == NULL) return TB_OK;
  switch (work->kind) {
  case TC_WORK_ATTACHED:
    tc_reply_queue_unjoin(&stream->released);
    archiver->live_soon = true;
    stream->conn = work->attached.conn;
    stream->loop = work->attached.loop;
    memcpy(stream->peer, work->attached.peer, sizeof stream->peer);
    break;
  case TC_WORK_DETACHED:
    tc_reply_queue_unjoin(&stream->released);
    archiver->live_soon = true;
    stream->conn = 0;
    stream->peer[0] = '\0';
    break;
  case TC_WORK_COUNTERS: tc__count_in(archiver, stream, &work->counters); break;
  case TC_WORK_ABANDON: TB_TRY(tc__archive_abandon(archiver, stream, diag)); break;
  case TC_WORK_CHECKPOINT: TB_TRY(tc__archive_checkpoint(archiver, stream, diag)); break;
  case TC_WORK_GIVE_UP:
    TB_TRY(tc__archive_give_up(archiver, stream, work->give_up_seq, diag));
    break;
  case TC_WORK_FORGET: tc__forget_stream(archiver, stream); return TB_OK;
  case TC_WORK_VERDICT:
    tc__take_verdict(archiver, stream, work->verdict);
    work->verdict = NULL;
    return TB_OK;
  default: return TB_OK;
  }
  tc__mark_live(archiver, stream);
  return TB_OK;
}

static bool take_inbox(struct tc_sealer *archiver) {
  struct tc_work *chain = tc_spsc_queue_take(&archiver->inbox);

  if (chain == NULL) return false;
  *archiver->work_tail = chain;
  while (chain->next != NULL) chain = chain->next;
  archiver->work_tail = &chain->next;
  return true;
}

static void answer_barriers(struct tc_sealer *archiver) {
  tc__flush_live(archiver); /* who asks next sees the streams as they are now */
  while (archiver->barriers != NULL) {
    struct tc_work *work = archiver->barriers;
    struct tc_reply *reply = tc_reply_new(TC_REPLY_BARRIER, 0, 0, work->barrier.loop);
    if (reply != NULL) reply->barrier = work->barrier.cookie;
    if (!tc_reply_queue_put(&archiver->outbox, reply)) return; /* no memory: by a later turn */
    archiver->barriers = work->next;
    free(work);
  }
  archiver->barriers_tail = &archiver->barriers;
}

static bool has_inbox(struct tc_sealer *archiver) {
  return !tc_spsc_queue_is_empty(&archiver->inbox);
}

/* Each generation that is published comes back as a verdict. While more records wait a few more are written than came, so
 * that verdicts neither pile up nor hold the records up. */
static tb_rc publish(struct tc_sealer *archiver, struct tb_diag *diag) {
  size_t verdicts = archiver->queued + archiver->queued / 4 + 1;

  TB_TRY(tc__publish_queue(archiver, diag));
  tc_reply_queue_flush(&archiver->outbox); /* what was published can be ordered meanwhile */
  return tc__apply_verdicts(archiver, verdicts, diag);
}

static tb_rc apply_more_verdicts(struct tc_sealer *archiver, uint64_t until_ns,
                                 struct tb_diag *diag) {
  while (archiver->verdicts != NULL && !has_inbox(archiver) && !tc__is_late(archiver) &&
         tc_mono_ns() < until_ns) {
    tc_count(&archiver->opt.stats->segment_turns, 1);
    TB_TRY(tc__apply_verdicts(archiver, VERDICTS_AT_ONCE, diag));
  }
  return TB_OK;
}

/* A small archive grows in small steps, so that retention can keep its size. */
static bool is_much_queued(const struct tc_sealer *archiver) {
  uint64_t size = archiver->opt.config->retention_bytes;

  return archiver->queued >= SEAL_FROM || (size != 0 && archiver->queued_bytes >= size / 64);
}

/* Half of the time at most: the works that wait may be many and small. */
static void retain_between(struct tc_sealer *archiver) {
  if (!atomic_load(&archiver->stop) && tc_mono_ns() >= archiver->retain_next_ns)
    tc__retain(archiver);
}

/* Ends after TURN_NS, so that what is sealed is published and settled however much more comes; a stop works all off. */
static tb_rc work_off(struct tc_sealer *archiver, struct tb_diag *diag) {
  uint64_t until_ns = atomic_load(&archiver->stop) ? UINT64_MAX : tc_mono_ns() + TURN_NS;

  while (archiver->work != NULL || take_inbox(archiver)) {
    struct tc_work *work = archiver->work;
    if (tc__is_late(archiver)) return TB_AGAIN;
    tc_count(&archiver->opt.stats->segment_turns, 1); /* after a start there may be long work */
    TB_TRY(do_work(archiver, work, diag));
    archiver->work = work->next;
    if (work->next == NULL) archiver->work_tail = &archiver->work;
    work->next = NULL;
    if (work->kind == TC_WORK_BARRIER) {
      *archiver->barriers_tail = work;
      archiver->barriers_tail = &work->next;
    } else {
      tc_work_free(work);
    }
    if (is_much_queued(archiver) || archiver->barriers != NULL) {
      TB_TRY(publish(archiver, diag));
      answer_barriers(archiver);
    }
    tc_reply_queue_flush(&archiver->outbox);
    retain_between(archiver);
    if (tc_mono_ns() >= until_ns) break;
  }
  TB_TRY(publish(archiver, diag));
  if (archiver->barriers != NULL)
    answer_barriers(archiver); /* of a turn in which the disk failed */
  tc_reply_queue_flush(&archiver->outbox);
  return apply_more_verdicts(archiver, until_ns, diag);
}

static void post_settled(struct tc_sealer *archiver) {
  size_t done = 0;

  while (done < archiver->nsettled_wait &&
         tc_spsc_queue_post(&archiver->settled_box, archiver->settled_wait[done]))
    done++;
  if (done == 0) return;
  archiver->nsettled_wait -= done;
  memmove(archiver->settled_wait, archiver->settled_wait + done,
          archiver->nsettled_wait * sizeof(struct tc_settled *));
}

static void wait_for(struct tc_sealer *archiver, enum tc_shortage why, const struct tb_diag *diag) {
  atomic_store(&archiver->opt.stats->archive_waits, why);
  if (tc_wait_failed(&archiver->wait, why, tc_mono_ns()))
    tc__note_as(archiver, TC_ERROR, 0, "%s: %s; the archive waits, the log keeps what is acked",
                tc_shortage_text(why), diag->text);
}

/* The reserve alone is no room. */
static bool has_room(const struct tc_sealer *archiver) {
  return archiver->wait.why != TC_SHORT_SPACE ||
         tc__disk_free(archiver) >= archiver->opt.config->disk_free_min;
}

static void look_at_wait(struct tc_sealer *archiver) {
  enum tc_shortage why = archiver->wait.why;
  uint64_t took_ns;

  if (why == TC_SHORT_NONE || !has_room(archiver) ||
      !tc_wait_is_over(&archiver->wait, tc_mono_ns(), &took_ns))
    return;
  tc__note(archiver, "archive: is written again after %.1f s (%s)", (double)took_ns / 1e9,
           tc_shortage_text(why));
  atomic_store(&archiver->opt.stats->archive_waits, TC_SHORT_NONE);
}

/* A full disk is waited for, and a shortage for a while: the work stays, so no more comes than agents have
 * credit for. Anything else is told, and tried again all the same. */
static void react(struct tc_sealer *archiver, tb_rc rc, const struct tb_diag *diag) {
  if (rc == TB_OK) tc_wait_wrote(&archiver->wait);
  if (!tc_rc_is_short(rc)) archiver->short_mono_ns = 0;
  if (rc == TB_OK || rc == TB_AGAIN) {
    archiver->told_failed = false;
    return;
  }
  uint64_t now = tc_mono_ns();
  archiver->retry_mono_ns = now + RETRY_NS;
  wait_for(archiver, tc_shortage_of(rc, archiver->opt.dirs->state), diag);
  if (tc_rc_is_full(rc) && tc_reserve_release(&archiver->reserve))
    tc__note_as(archiver, TC_ERROR, 0, "disk: full; the reserve is used up to seal what is acked");
  if (tc_rc_is_full(rc) || archiver->told_failed) return;
  if (tc_rc_is_short(rc) && archiver->short_mono_ns == 0) archiver->short_mono_ns = now;
  if (tc_rc_is_short(rc) && now - archiver->short_mono_ns < SHORTAGE_NS) return;
  archiver->told_failed = true; /* but if there is no memory to say it */
  for (unsigned loop = 0; loop < archiver->opt.loops; loop++) {
    struct tc_reply *reply = tc_reply_new(TC_REPLY_FAILED, 0, 0, loop);
    if (reply != NULL) snprintf(reply->text, sizeof reply->text, "%s", diag->text);
    archiver->told_failed &= tc_reply_queue_put(&archiver->outbox, reply);
  }
}

static bool has_work(void *self) {
  struct tc_sealer *archiver = self;
  unsigned head = atomic_load(&archiver->inbox.head), tail = atomic_load(&archiver->inbox.tail);

  return head != tail || atomic_load(&archiver->stop);
}

/* The last turn left some for the next one. */
static bool is_behind(const struct tc_sealer *archiver) {
  return archiver->work != NULL || archiver->verdicts != NULL;
}

static void retain_while_idle(struct tc_sealer *archiver) {
  do tc__retain(archiver);
  while (tc__retains(archiver) && !is_behind(archiver) && !has_work(archiver));
}

static void turn(struct tc_sealer *archiver) {
  struct tb_diag diag = { 0 };
  uint64_t now = tc_mono_ns();

  tc_count(&archiver->opt.stats->segment_turns, 1);
  if (now >= archiver->retry_mono_ns) {
    archiver->retry_mono_ns = 0;
    react(archiver, work_off(archiver, &diag), &diag);
  }
  look_at_wait(archiver);
  post_settled(archiver);
  if (now - archiver->live_mono_ns >= (archiver->live_soon ? LIVE_SOON_NS : LIVE_EVERY_NS)) {
    archiver->live_mono_ns = now;
    archiver->live_soon = false;
    if (archiver->opt.stats->catalog_stale) tc__rebuild_catalog(archiver);
    tc__flush_live(archiver);
  }
  if (archiver->retry_mono_ns == 0 &&
      (archiver->reserve_mono_ns == 0 || now - archiver->reserve_mono_ns >= RESERVE_EVERY_NS)) {
    archiver->reserve_mono_ns = now;
    tc_reserve_fill(&archiver->reserve, tc__disk_free(archiver),
                    archiver->opt.config->disk_free_min);
  }
  if (!atomic_load(&archiver->stop)) retain_while_idle(archiver);
  tc_reply_queue_flush(&archiver->outbox);
}

static uint64_t sleep_ns(const struct tc_sealer *archiver) {
  if (archiver->outbox.waiting > 0 || archiver->nsettled_wait > 0 || archiver->barriers != NULL)
    return OUTBOX_RETRY_NS;
  if (tc__retains(archiver)) return NO_REST_NS; /* with what came meanwhile */
  if (archiver->retry_mono_ns != 0) return RETRY_NS;
  if (is_behind(archiver)) return NO_REST_NS;
  return archiver->live_soon ? LIVE_SOON_NS : LIVE_EVERY_NS;
}

static void *run(void *self) {
  struct tc_sealer *archiver = self;

  for (;;) {
    bool stop = atomic_load(&archiver->stop);
    if (stop) archiver->retry_mono_ns = 0;
    turn(archiver);
    if (stop) break; /* one whole turn after the last post */
    /* With work held back by a full disk new work is no reason to wake. */
    tc_wakeup_sleep(&archiver->wakeup, sleep_ns(archiver),
                    archiver->retry_mono_ns != 0 ? NULL : has_work, archiver);
  }
  struct tb_diag diag = { 0 };
  if (archiver->work == NULL && !tc__is_late(archiver) &&
      tc__seal_borders(archiver, &diag) == TB_OK)
    (void)!tc__publish_queue(archiver, &diag);
  if (tc__is_late(archiver))
    tc__note(archiver, "shutdown: the archive is not done in shutdown.deadline; what is left is in "
                       "the log, the next start goes on with it");
  tc_reply_queue_flush(&archiver->outbox);
  post_settled(archiver);
  tc__flush_live(archiver);
  return NULL;
}

tb_rc tc_sealer_start(struct tc_sealer *archiver, struct tb_diag *diag) {
  int rc = tc_thread_start(&archiver->thread, NULL, run, archiver);

  if (rc != 0) return tb_fail(diag, TB_IO, "segment thread: %s", strerror(rc));
  pthread_setname_np(archiver->thread, "tc-segment");
  archiver->started = true;
  return TB_OK;
}

void tc_sealer_set_deadline(struct tc_sealer *archiver, uint64_t mono_ns) {
  atomic_store(&archiver->deadline_mono_ns, mono_ns);
}

void tc_sealer_stop(struct tc_sealer *archiver, uint64_t deadline_mono_ns) {
  if (!archiver->started) return;
  tc_sealer_set_deadline(archiver, deadline_mono_ns);
  atomic_store(&archiver->stop, true);
  tc_wakeup_wake(&archiver->wakeup);
  pthread_join(archiver->thread, NULL);
  archiver->started = false;
}

bool tc_sealer_post(struct tc_sealer *archiver, struct tc_work *chain) {
  return tc_spsc_queue_post(&archiver->inbox, chain);
}

struct tc_settled *tc_sealer_take_settled(struct tc_sealer *archiver) {
  return tc_spsc_queue_take(&archiver->settled_box);
}
