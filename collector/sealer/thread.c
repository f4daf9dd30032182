/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer's thread: does the posted work, publishes whole files, writes verdicts, runs retention, sleeps. A step that
 * fails leaves everything in place and is tried again later. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/sealer/base/accounting.h"
#include "collector/sealer/catalog/live.h"
#include "collector/sealer/checkpoint/checkpoint.h"
#include "collector/sealer/private.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/rebuild.h"
#include "collector/sealer/seal/records.h"
#include "collector/sealer/seal/rests.h"
#include "collector/sealer/seal/runs.h"
#include "collector/sealer/seal/show.h"

enum { SEAL_FROM = 64, METAS_AT_ONCE = 64, PROVE_NS = 10000000 };

static const uint64_t RETRY_NS = 100000000, OUTBOX_RETRY_NS = 1000000, NO_REST_NS = 1;
static const uint64_t TURN_NS = 50000000;
/* How long to wait out a shortage of memory, which others may release. A shortage of descriptors is waited out however
 * long: peers can cause it, and a restart would have no more descriptors. */
static const uint64_t SHORTAGE_NS = UINT64_C(30000000000);
static const uint64_t RESERVE_EVERY_NS = 1000000000, RUNS_EVERY_NS = 1000000000;
/* Rows of live streams are written every second, and sooner after an agent attached or detached. */
static const uint64_t LIVE_EVERY_NS = 1000000000, LIVE_SOON_NS = 50000000;

static void release_record(struct tc_sealer *sealer, struct tc_record *record) {
  struct tc__stream *stream = tc__find_stream(&sealer->seal.streams, record->stream);

  if (stream != NULL && stream->conn == record->conn && record->conn != 0)
    tc_reply_queue_released(&sealer->seal.outbox.replies, &stream->released, record->conn,
                            record->stream, stream->loop, (uint64_t)record->len + TP_HEADER_BYTES);
  record->free(record);
}

/* The caller frees the records after all bytes are written: the segments' queues point into them. */
static tb_rc do_records(struct tc_sealer *sealer, struct tc_work *work, struct tb_diag *diag) {
  if (!sealer->work.is_begun) sealer->work.at = work->records.head;
  sealer->work.is_begun = true;
  for (; sealer->work.at != NULL; sealer->work.at = sealer->work.at->next) {
    struct tc_record *record = sealer->work.at;
    TB_MAGIC_CHECK(record, TC_RECORD_MAGIC);
    struct tc__stream *stream = tc__find_stream(&sealer->seal.streams, record->stream);
    if (stream == NULL) continue;
    if (tc__is_late(&sealer->env)) return TB_AGAIN;
    struct tc__item item = { .kind = record->kind,
                             .seq = record->seq,
                             .gen = record->gen,
                             .wall_ns = work->records.wall_ns,
                             .payload = record->payload,
                             .len = record->len,
                             .crc = record->crc };
    TB_TRY(tc__archive_record(&sealer->seal, stream, &item, diag));
    assert(tc__stream_check(stream) == NULL);
    tc__cut_accounting(&sealer->seal.queue, stream);
    tc__mark_live(&sealer->seal.streams, stream);
  }
  return TB_OK;
}

static void free_records(struct tc_sealer *sealer, struct tc_work *work) {
  while (work->records.head != NULL) {
    struct tc_record *record = work->records.head;
    work->records.head = record->next;
    release_record(sealer, record);
  }
}

/* Starts writing the files of all checkpoints that follow in the queue (streams that hold the same part of the log are
 * requested together), so that the first sync waits for all of them and one journal commit serves many. */
static tb_rc begin_checkpoints(struct tc_sealer *sealer, struct tc_work *work,
                               struct tb_diag *diag) {
  for (; work != NULL && work->kind == TC_WORK_CHECKPOINT && !work->checkpoint.disk_begun;
       work = work->next) {
    struct tc__stream *stream = tc__find_stream(&sealer->seal.streams, work->stream);
    struct tc_segment *segment =
        stream != NULL && stream->open != NULL ? stream->open->segment : NULL;
    if (segment != NULL) TB_TRY(tc_segment_flush(segment, diag));
    if (segment != NULL && sealer->env.opt.durable) tc_segment_to_disk(segment, true);
    work->checkpoint.disk_begun = true;
  }
  return TB_OK;
}

static tb_rc do_work(struct tc_sealer *sealer, struct tc_work *work, struct tb_diag *diag) {
  struct tc__stream *stream = tc__find_stream(&sealer->seal.streams, work->stream);

  if (work->kind == TC_WORK_STREAM) return tc_sealer_add_stream(sealer, work->intro, diag);
  if (work->kind == TC_WORK_RECORDS) {
    TB_TRY(do_records(sealer, work, diag));
    TB_TRY(tc__flush_dirty(&sealer->seal, true, diag));
    sealer->work.is_begun = false;
    sealer->seal.end_lsn = work->records.end_lsn;
    free_records(sealer, work);
    return TB_OK;
  }
  if (work->kind == TC_WORK_BARRIER) return TB_OK; /* answered after all before it is published */
  if (stream == NULL) return TB_OK;
  switch (work->kind) {
  case TC_WORK_ATTACHED:
    tc_reply_queue_unjoin(&stream->released);
    sealer->live.soon = true;
    stream->conn = work->attached.conn;
    stream->loop = work->attached.loop;
    memcpy(stream->peer, work->attached.peer, sizeof stream->peer);
    break;
  case TC_WORK_DETACHED:
    tc_reply_queue_unjoin(&stream->released);
    sealer->live.soon = true;
    stream->conn = 0;
    stream->peer[0] = '\0';
    break;
  case TC_WORK_COUNTERS: tc__count_in(&sealer->seal.queue, stream, &work->counters); break;
  case TC_WORK_ABANDON: TB_TRY(tc__archive_abandon(&sealer->seal, stream, diag)); break;
  case TC_WORK_CHECKPOINT:
    TB_TRY(begin_checkpoints(sealer, work, diag));
    TB_TRY(tc__archive_checkpoint(&sealer->seal, stream, work->checkpoint.held_lsn, diag));
    break;
  case TC_WORK_GIVE_UP:
    TB_TRY(tc__archive_give_up(&sealer->seal, stream, work->give_up_seq, diag));
    break;
  case TC_WORK_FORGET: tc__streams_forget(&sealer->seal.streams, stream); return TB_OK;
  case TC_WORK_VERDICT:
    tc__take_verdict(&sealer->seal.verdicts, stream, work->verdict);
    work->verdict = NULL;
    return TB_OK;
  default: return TB_OK;
  }
  tc__mark_live(&sealer->seal.streams, stream);
  return TB_OK;
}

static bool take_inbox(struct tc_sealer *sealer) {
  struct tc_work *chain = tc_spsc_queue_take(&sealer->inbox);

  if (chain == NULL) return false;
  *sealer->work.tail = chain;
  while (chain->next != NULL) chain = chain->next;
  sealer->work.tail = &chain->next;
  return true;
}

static void answer_barriers(struct tc_sealer *sealer) {
  /* The next request must see the streams as they are now. */
  tc__flush_live(&sealer->catalog, &sealer->seal.streams);
  while (sealer->work.barriers != NULL) {
    struct tc_work *work = sealer->work.barriers;
    struct tc_reply *reply = tc_reply_new(TC_REPLY_BARRIER, 0, 0, work->barrier.loop);
    if (reply != NULL) reply->barrier = work->barrier.cookie;
    if (!tc_reply_queue_put(&sealer->seal.outbox.replies, reply))
      return; /* out of memory: a later turn tries again */
    sealer->work.barriers = work->next;
    tc_work_free(work);
  }
  sealer->work.barriers_tail = &sealer->work.barriers;
}

/* Answers barriers after the catalog shows all published segments and the open runs. */
static tb_rc settle_barriers(struct tc_sealer *sealer, struct tb_diag *diag) {
  uint64_t until_ns = atomic_load(&sealer->stop) ? UINT64_MAX : tc_mono_ns() + TC__SHOW_NS;
  bool done;

  if (sealer->work.barriers == NULL) return TB_OK;
  TB_TRY(tc__show_open_runs(&sealer->seal, until_ns, diag, &done));
  if (done) answer_barriers(sealer);
  return TB_OK;
}

/* Each published generation later returns a verdict. While records are waiting, apply slightly more verdicts than files were
 * published, so that verdicts neither pile up nor delay the records. */
static tb_rc publish(struct tc_sealer *sealer, struct tb_diag *diag) {
  size_t verdicts = sealer->seal.queue.n + sealer->seal.queue.n / 4 + 1;

  TB_TRY(tc__publish_queue(&sealer->seal, diag));
  tc_reply_queue_flush(&sealer->seal.outbox.replies); /* analysis can begin meanwhile */
  return tc__apply_verdicts(&sealer->seal.verdicts, verdicts, diag);
}

static tb_rc apply_more_verdicts(struct tc_sealer *sealer, uint64_t until_ns,
                                 struct tb_diag *diag) {
  while (sealer->seal.verdicts.first != NULL && tc_spsc_queue_is_empty(&sealer->inbox) &&
         !tc__is_late(&sealer->env) && tc_mono_ns() < until_ns) {
    tc_count(&sealer->env.opt.stats->sealer_turns, 1);
    TB_TRY(tc__apply_verdicts(&sealer->seal.verdicts, METAS_AT_ONCE, diag));
  }
  return TB_OK;
}

/* A small archive grows in small steps, so that retention can keep its size. */
static bool is_much_queued(const struct tc_sealer *sealer) {
  uint64_t size = sealer->env.opt.config->retention_bytes;

  return sealer->seal.queue.n >= SEAL_FROM || (size != 0 && sealer->seal.queue.bytes >= size / 64);
}

/* Uses at most half of the time, as many small pieces of work may be waiting. */
static void retain_between(struct tc_sealer *sealer) {
  if (!atomic_load(&sealer->stop) && tc_mono_ns() >= sealer->retaining.next_ns)
    tc__retain(&sealer->retaining);
}

/* Verifies resumed runs for one slice. */
static tb_rc prove_between(struct tc_sealer *sealer, struct tb_diag *diag) {
  if (sealer->seal.unproven == 0 || atomic_load(&sealer->stop)) return TB_OK;
  tb_rc rc = tc__prove_some(&sealer->seal, tc_mono_ns() + PROVE_NS, diag);
  return rc == TB_AGAIN ? TB_OK : rc;
}

/* Ends after TURN_NS, so that closed files are published and settled under any load; a stop does all work. */
static tb_rc work_off(struct tc_sealer *sealer, struct tb_diag *diag) {
  uint64_t until_ns = atomic_load(&sealer->stop) ? UINT64_MAX : tc_mono_ns() + TURN_NS;

  tc__clear_rests(&sealer->seal);
  while (sealer->work.first != NULL || take_inbox(sealer)) {
    struct tc_work *work = sealer->work.first;
    TB_MAGIC_CHECK(work, TC_WORK_MAGIC);
    if (tc__is_late(&sealer->env)) return TB_AGAIN;
    tc_count(&sealer->env.opt.stats->sealer_turns, 1); /* after a start there may be long work */
    TB_TRY(do_work(sealer, work, diag));
    sealer->work.first = work->next;
    if (work->next == NULL) sealer->work.tail = &sealer->work.first;
    work->next = NULL;
    if (work->kind == TC_WORK_BARRIER) {
      *sealer->work.barriers_tail = work;
      sealer->work.barriers_tail = &work->next;
      tc__begin_show(&sealer->seal);
    } else {
      tc_work_free(work);
    }
    if (is_much_queued(sealer) || sealer->work.barriers != NULL) {
      TB_TRY(publish(sealer, diag));
      TB_TRY(settle_barriers(sealer, diag));
    }
    tc_reply_queue_flush(&sealer->seal.outbox.replies);
    retain_between(sealer);
    if (tc_mono_ns() >= until_ns) break;
  }
  if (tc_mono_ns() - sealer->aged_mono_ns >= RUNS_EVERY_NS) {
    sealer->aged_mono_ns = tc_mono_ns();
    TB_TRY(tc__seal_old_runs(&sealer->seal, diag));
  }
  TB_TRY(publish(sealer, diag));
  TB_TRY(settle_barriers(sealer, diag)); /* left by a turn in which the disk failed */
  TB_TRY(prove_between(sealer, diag));
  tc__readers_serve(&sealer->readers, &sealer->seal);
  tc_reply_queue_flush(&sealer->seal.outbox.replies);
  return apply_more_verdicts(sealer, until_ns, diag);
}

static void post_settled(struct tc_sealer *sealer) {
  size_t done = 0;

  while (
      done < sealer->seal.outbox.settled.n &&
      tc_spsc_queue_post(&sealer->seal.outbox.settled.box, sealer->seal.outbox.settled.items[done]))
    done++;
  if (done == 0) return;
  sealer->seal.outbox.settled.n -= done;
  memmove(sealer->seal.outbox.settled.items, sealer->seal.outbox.settled.items + done,
          sealer->seal.outbox.settled.n * sizeof(struct tc_settled *));
}

static void wait_for(struct tc_sealer *sealer, enum tc_shortage why, const struct tb_diag *diag) {
  atomic_store(&sealer->env.opt.stats->archive_waits, why);
  if (tc_wait_failed(&sealer->trouble.wait, why, tc_mono_ns()))
    tc__note_as(&sealer->env, TC_ERROR, 0, "%s: %s; the archive waits, the log keeps what is acked",
                tc_shortage_text(why), diag->text);
}

/* Free space gained only from the reserve does not count. */
static bool has_room(const struct tc_sealer *sealer) {
  return sealer->trouble.wait.why != TC_SHORT_SPACE ||
         tc__disk_free(&sealer->env) >= sealer->env.opt.config->disk_free_min;
}

static void end_wait(struct tc_sealer *sealer) {
  enum tc_shortage why = sealer->trouble.wait.why;
  uint64_t took_ns;

  if (why == TC_SHORT_NONE || !has_room(sealer) ||
      !tc_wait_is_over(&sealer->trouble.wait, tc_mono_ns(), &took_ns))
    return;
  tc__note(&sealer->env, "archive: is written again after %.1f s (%s)", (double)took_ns / 1e9,
           tc_shortage_text(why));
  atomic_store(&sealer->env.opt.stats->archive_waits, TC_SHORT_NONE);
}

/* Waits for a full disk, and for a while for memory: the work stays queued, so agents send no more than their
 * credit. Other errors are reported. In each case the work is tried again. */
static void react(struct tc_sealer *sealer, tb_rc rc, const struct tb_diag *diag) {
  if (rc == TB_OK) tc_wait_wrote(&sealer->trouble.wait);
  if (!tc_rc_is_short(rc)) sealer->trouble.short_mono_ns = 0;
  if (rc == TB_OK || rc == TB_AGAIN) {
    sealer->trouble.is_reported = false;
    return;
  }
  uint64_t now = tc_mono_ns();
  sealer->trouble.retry_mono_ns = now + RETRY_NS;
  wait_for(sealer, tc_shortage_of(rc, sealer->env.opt.dirs->state), diag);
  if (tc_rc_is_full(rc) && tc_reserve_release(&sealer->reserve))
    tc__note_as(&sealer->env, TC_ERROR, 0,
                "disk: full; the reserve is used up to seal what is acked");
  if (tc_rc_is_full(rc) || rc == TB_NOFILES || sealer->trouble.is_reported) return;
  if (tc_rc_is_short(rc) && sealer->trouble.short_mono_ns == 0) sealer->trouble.short_mono_ns = now;
  if (tc_rc_is_short(rc) && now - sealer->trouble.short_mono_ns < SHORTAGE_NS) return;
  sealer->trouble.is_reported = true; /* unless a reply below cannot be allocated */
  for (unsigned loop = 0; loop < sealer->env.opt.loops; loop++) {
    struct tc_reply *reply = tc_reply_new(TC_REPLY_FAILED, 0, 0, loop);
    if (reply != NULL) snprintf(reply->text, sizeof reply->text, "%s", diag->text);
    sealer->trouble.is_reported &= tc_reply_queue_put(&sealer->seal.outbox.replies, reply);
  }
}

static bool has_work(void *self) {
  struct tc_sealer *sealer = self;
  unsigned head = atomic_load(&sealer->inbox.head), tail = atomic_load(&sealer->inbox.tail);

  return head != tail || atomic_load(&sealer->stop) || tc__readers_ask(&sealer->readers);
}

/* The last turn left work for the next one. */
static bool is_behind(const struct tc_sealer *sealer) {
  return sealer->work.first != NULL || sealer->seal.verdicts.first != NULL ||
         sealer->seal.unproven > 0 || tc__rebuilds(&sealer->catalog);
}

static void retain_while_idle(struct tc_sealer *sealer) {
  do tc__retain(&sealer->retaining);
  while (tc__retains(&sealer->retaining) && !is_behind(sealer) && !has_work(sealer));
}

static void do_turn(struct tc_sealer *sealer) {
  struct tb_diag diag = { 0 };
  uint64_t now = tc_mono_ns();

  assert(tc__catalog_check(&sealer->catalog) == NULL);
  tc_count(&sealer->env.opt.stats->sealer_turns, 1);
  if (now >= sealer->trouble.retry_mono_ns) {
    sealer->trouble.retry_mono_ns = 0;
    react(sealer, work_off(sealer, &diag), &diag);
  }
  end_wait(sealer);
  post_settled(sealer);
  if (now - sealer->live.mono_ns >= (sealer->live.soon ? LIVE_SOON_NS : LIVE_EVERY_NS)) {
    sealer->live.mono_ns = now;
    sealer->live.soon = false;
    tc__flush_live(&sealer->catalog, &sealer->seal.streams);
  }
  tc__rebuild_some(&sealer->seal);
  if (sealer->trouble.retry_mono_ns == 0 &&
      (sealer->reserve_mono_ns == 0 || now - sealer->reserve_mono_ns >= RESERVE_EVERY_NS)) {
    sealer->reserve_mono_ns = now;
    tc_reserve_fill(&sealer->reserve, tc__disk_free(&sealer->env),
                    sealer->env.opt.config->disk_free_min);
  }
  if (!atomic_load(&sealer->stop)) {
    retain_while_idle(sealer);
    tc__look_for_missing(&sealer->missing, tc__takes_segments(&sealer->retaining));
  }
  tc_reply_queue_flush(&sealer->seal.outbox.replies);
}

static uint64_t sleep_ns(const struct tc_sealer *sealer) {
  if (sealer->seal.outbox.replies.waiting > 0 || sealer->seal.outbox.settled.n > 0 ||
      sealer->work.barriers != NULL)
    return OUTBOX_RETRY_NS;
  if (tc__retains(&sealer->retaining)) return NO_REST_NS;
  if (sealer->trouble.retry_mono_ns != 0) return RETRY_NS;
  if (is_behind(sealer)) return NO_REST_NS;
  return sealer->live.soon ? LIVE_SOON_NS : LIVE_EVERY_NS;
}

static void *run_thread(void *self) {
  struct tc_sealer *sealer = self;

  for (;;) {
    bool stop = atomic_load(&sealer->stop);
    if (stop) sealer->trouble.retry_mono_ns = 0;
    do_turn(sealer);
    if (stop) break; /* after a whole turn since the last post */
    /* While a full disk holds work back, do not wake for new work. */
    tc_wakeup_sleep(&sealer->wakeup, sleep_ns(sealer),
                    sealer->trouble.retry_mono_ns != 0 ? NULL : has_work, sealer);
  }
  struct tb_diag diag = { 0 };
  if (sealer->work.first == NULL && !tc__is_late(&sealer->env) &&
      tc__seal_borders(&sealer->seal, &diag) == TB_OK)
    (void)!tc__publish_queue(&sealer->seal, &diag);
  if (!tc__is_late(&sealer->env)) tc__end_retention(&sealer->retaining);
  if (tc__is_late(&sealer->env))
    tc__note(&sealer->env,
             "shutdown: the archive is not done in shutdown.deadline; the rest is in the log, and "
             "the next start continues");
  tc_reply_queue_flush(&sealer->seal.outbox.replies);
  post_settled(sealer);
  tc__flush_live(&sealer->catalog, &sealer->seal.streams);
  tc__readers_end(&sealer->readers);
  return NULL;
}

tb_rc tc_sealer_start(struct tc_sealer *sealer, struct tb_diag *diag) {
  int rc = tc_thread_start(&sealer->thread, NULL, run_thread, sealer);

  if (rc != 0) return tb_fail(diag, TB_IO, "sealer: %s", strerror(rc));
  pthread_setname_np(sealer->thread, "tc-sealer");
  sealer->started = true;
  return TB_OK;
}

void tc_sealer_set_deadline(struct tc_sealer *sealer, uint64_t mono_ns) {
  atomic_store(&sealer->env.deadline_mono_ns, mono_ns);
}

void tc_sealer_stop(struct tc_sealer *sealer, uint64_t deadline_mono_ns) {
  if (!sealer->started) return;
  tc_sealer_set_deadline(sealer, deadline_mono_ns);
  atomic_store(&sealer->stop, true);
  tc_wakeup_wake(&sealer->wakeup);
  pthread_join(sealer->thread, NULL);
  sealer->started = false;
}

bool tc_sealer_post(struct tc_sealer *sealer, struct tc_work *chain) {
  return tc_spsc_queue_post(&sealer->inbox, chain);
}

struct tc_settled *tc_sealer_take_settled(struct tc_sealer *sealer) {
  return tc_spsc_queue_take(&sealer->seal.outbox.settled.box);
}

void tc_sealer_show_runs(struct tc_sealer *sealer) {
  if (sealer->env.opt.config->segment_generations_max <= 1) return; /* never open at a border */
  tc__readers_wait(&sealer->readers, &sealer->wakeup);
}
