/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's turn: take submissions, commit, answer, pass on, sleep.
 *
 * A commit blocks this thread, so the disk is idle between commits. A group is committed at once, unless the last one
 * ended less than group_wait ago: then the thread sleeps for the rest of group_wait and is not woken for each record.
 * Under load a group thus has the records of one group_wait. */
#include "collector/commit/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/commit/private.h"

static const uint64_t LOOK_EVERY_NS = 100000000, SETTLED_WAIT_NS = 50000000, RETRY_NS = 1000000,
                      PROBE_NS = 1000000000, FILES_EVERY_NS = 1000000000;
enum { SHARE_MESSAGES = 64, SHARE_BYTES = 64 << 10 };
/* How long a stream without a CLOSE is remembered, for an agent that was cut off. */
static const uint64_t REMEMBER_NS = UINT64_C(24) * 3600 * 1000000000;

static tb_rc set_up(struct tc_commit *commit, struct tb_diag *diag) {
  TB_TRY(tc_wakeup_init(&commit->wakeup, diag));
  if (tc_streams_init(&commit->streams) != TB_OK)
    return tb_fail(diag, TB_IO, "getrandom: %s", strerror(errno));
  commit->inboxes = aligned_alloc(64, (commit->opt.loops + 1) * sizeof *commit->inboxes);
  for (unsigned i = 0; commit->inboxes != NULL && i <= commit->opt.loops; i++)
    tc_spsc_queue_init(&commit->inboxes[i], tc_wakeup_wake, &commit->wakeup);
  if (commit->inboxes == NULL || tc_reply_queue_init(&commit->replies, commit->opt.sink,
                                                     TC_FROM_COMMIT, commit->opt.loops) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "store: no memory");
  return TB_OK;
}

tb_rc tc_commit_new(const struct tc_commit_options *options, struct tb_diag *diag,
                    struct tc_commit **out) {
  struct tc_commit *commit = calloc(1, sizeof *commit);

  if (commit == NULL) return tb_fail(diag, TB_NOMEM, "store: no memory");
  commit->opt = *options;
  commit->wakeup.fd = -1;
  commit->disk_has_room = true;
  commit->backlog_tail = &commit->backlog;
  commit->group_tail = &commit->group;
  commit->work_tail = &commit->work;
  commit->barriers_tail = &commit->barriers;
  tb_rc rc = set_up(commit, diag);
  if (rc != TB_OK) {
    tc_commit_free(commit);
    return rc;
  }
  *out = commit;
  return TB_OK;
}

tb_rc tc_commit_open_log(struct tc_commit *commit, uint64_t next_lsn, uint64_t previous_end,
                         struct tb_diag *diag) {
  struct tc_wal_options options = {
    .wal_fd = commit->opt.dirs->wal,
    .file_bytes = commit->opt.config->log_file_bytes,
    .group_bytes = commit->opt.config->log_group_bytes,
    .durable = commit->opt.durable,
    .next_lsn = next_lsn,
    .previous_end = previous_end,
    .snapshot = { commit, tc__fill_snapshot },
    .sync = commit->opt.sync,
  };

  return tc_wal_new(&options, diag, &commit->log);
}

struct tc_streams *tc_commit_streams(struct tc_commit *commit) {
  return &commit->streams;
}

struct tc_wal *tc_commit_wal(struct tc_commit *commit) {
  return commit->log;
}

void tc_commit_wake(void *commit) {
  tc_wakeup_wake(&((struct tc_commit *)commit)->wakeup);
}

void tc_commit_free(struct tc_commit *commit) {
  if (commit == NULL) return;
  for (unsigned i = 0; commit->inboxes != NULL && i <= commit->opt.loops; i++)
    for (struct tc_submit *msg; (msg = tc_spsc_queue_take(&commit->inboxes[i])) != NULL;)
      tc_submit_free(msg);
  free(commit->inboxes);
  tc_submit_free(commit->held);
  tc__drop_backlog(commit);
  for (struct tc_work *work = commit->work, *next; work != NULL; work = next) {
    next = work->next;
    tc_work_free(work);
  }
  for (struct tc__barrier *barrier = commit->barriers, *next; barrier != NULL; barrier = next) {
    next = barrier->next;
    free(barrier);
  }
  for (size_t i = 0; i < commit->nsettled; i++) tc_settled_free(commit->settled[i]);
  free(commit->settled);
  free(commit->lsns);
  tc_streams_fini(&commit->streams);
  tc_reply_queue_fini(&commit->replies);
  tc_wal_free(commit->log);
  tc_wakeup_fini(&commit->wakeup);
  free(commit);
}

static void look_at_disk(struct tc_commit *commit) {
  struct statvfs fs;
  uint64_t least = commit->opt.config->disk_free_min;

  if (fstatvfs(commit->opt.dirs->state, &fs) != 0) return;
  uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
  tc_gauge(&commit->opt.stats->disk_free_bytes, free_bytes);
  tc_gauge(&commit->opt.stats->disk_free_inodes, fs.f_favail);
  /* Hysteresis: once below the limit, an eighth more must be free. */
  commit->disk_has_room = free_bytes >= least + (commit->disk_has_room ? 0 : least / 8);
  if (commit->disk_has_room) return;
  if (commit->wait.why != TC_SHORT_NONE)
    tc_wait_goes_on(&commit->wait, tc_mono_ns());
  else if (tc__commit_wait_for(commit, TC_SHORT_FREE_MIN))
    tc__commit_note_as(commit, TC_ERROR, 0,
                       "disk: %" PRIu64 " bytes free, less than disk.free_min (%" PRIu64
                       "); nothing is acked until there is more",
                       free_bytes, least);
}

static void look_at_wait(struct tc_commit *commit) {
  enum tc_shortage why = commit->wait.why;
  uint64_t took_ns;

  if (!commit->disk_has_room || !tc_wait_is_over(&commit->wait, tc_mono_ns(), &took_ns)) return;
  tc__commit_note(commit, "log: is written again after %.1f s (%s); acks go on",
                  (double)took_ns / 1e9, tc_shortage_text(why));
  atomic_store(&commit->opt.stats->log_waits, TC_SHORT_NONE);
}

static void look_at_files(struct tc_commit *commit, uint64_t now) {
  struct tc_stats *stats = commit->opt.stats;

  if (now - commit->files_mono_ns < FILES_EVERY_NS) return;
  commit->files_mono_ns = now;
  uint64_t before = atomic_load(&stats->log_files_missing), n = tc_wal_missing(commit->log);
  tc_gauge(&stats->log_files_missing, n);
  if (n > before)
    tc__commit_note_as(commit, TC_ERROR, 0,
                       "wal: %" PRIu64 " of its files are gone: they were removed under the "
                       "running daemon; a crash would lose acked records that are not archived",
                       n);
}

static void look_at_stream(struct tc_commit *commit, struct tc_stream *stream, uint64_t now) {
  uint64_t idle = now - stream->contact_mono_ns, limit = commit->opt.config->agents_abandon_after;
  bool staged = stream->staged_seq > stream->durable_seq;

  if (stream->conn != 0 || staged || stream->ack_due || idle < limit) return;
  if (!stream->closed && !stream->abandoned)
    stream->abandoned = tc__commit_work(commit, TC_WORK_ABANDON, stream->ref) != NULL;
  else if (TAILQ_EMPTY(&stream->units) && (stream->closed || idle >= REMEMBER_NS))
    (void)tc__commit_forget(commit, stream);
}

static void look_after_all(struct tc_commit *commit, uint64_t now) {
  if (now - commit->look_mono_ns < LOOK_EVERY_NS && commit->look_mono_ns != 0) return;
  commit->look_mono_ns = now;
  look_at_disk(commit);
  look_at_wait(commit);
  look_at_files(commit, now);
  for (struct tc_stream *stream = LIST_FIRST(&commit->streams.all), *next; stream != NULL;
       stream = next) {
    next = LIST_NEXT(stream, all);
    look_at_stream(commit, stream, now);
  }
}

/* While the log waits, accept what agents have credit for, so that other messages of their connections are handled. */
static bool has_room(const struct tc_commit *commit) {
  return commit->backlog_bytes < 4 * commit->opt.config->log_group_bytes ||
         tc__commit_waits(commit);
}

/* Takes a sender's share of a round. Returns false if its inbox is empty. */
static bool take_share(struct tc_commit *commit, struct tc_spsc_queue *inbox) {
  uint64_t until_bytes = commit->backlog_bytes + SHARE_BYTES;

  for (unsigned n = 0; n < SHARE_MESSAGES && commit->backlog_bytes < until_bytes; n++) {
    if (!has_room(commit)) return true;
    struct tc_submit *msg = tc_spsc_queue_take(inbox);
    if (msg == NULL) return false;
    if (tc__intake(commit, msg)) continue;
    commit->held = msg;
    return true;
  }
  return true;
}

/* Takes shares in rounds that continue where the last call stopped, so that a sender whose inbox is never empty does not starve
 * the others. */
static void take_in(struct tc_commit *commit) {
  unsigned empty = 0, senders = commit->opt.loops + 1;

  if (commit->held != NULL && !tc__intake(commit, commit->held)) return;
  commit->held = NULL;
  while (empty < senders && has_room(commit) && commit->held == NULL) {
    bool more = take_share(commit, &commit->inboxes[commit->next_sender]);

    commit->next_sender = (commit->next_sender + 1) % senders;
    empty = more ? 0 : empty + 1;
  }
}

static void post_work(struct tc_commit *commit) {
  if (commit->work == NULL || !tc_sealer_post(commit->sealer, commit->work)) return;
  commit->work = NULL;
  commit->work_tail = &commit->work;
  commit->nwork = 0;
}

static bool group_is_due(const struct tc_commit *commit, uint64_t now) {
  if (commit->failed || tc__commit_waits(commit)) return false;
  /* Even an empty group is due, as only a write shows that the wait is over. */
  if (commit->wait.why != TC_SHORT_NONE && !commit->wait.wrote &&
      now - commit->wait.failed_ns >= PROBE_NS)
    return true;
  if (commit->backlog != NULL)
    return commit->backlog_bytes >= commit->opt.config->log_group_bytes ||
           now - commit->group_mono_ns >= commit->opt.config->log_group_wait;
  return commit->nsettled > 0 && now - commit->settled_mono_ns >= SETTLED_WAIT_NS;
}

static bool has_work(void *self) {
  struct tc_commit *commit = self;

  for (unsigned i = 0; i <= commit->opt.loops; i++)
    if (atomic_load(&commit->inboxes[i].head) != atomic_load(&commit->inboxes[i].tail)) return true;
  return atomic_load(&commit->stop);
}

static void sleep_until_due(struct tc_commit *commit) {
  uint64_t now = tc_mono_ns(), wait = LOOK_EVERY_NS;

  bool retry = commit->replies.waiting > 0 || commit->work != NULL || commit->acks != NULL ||
               commit->failed_unreported > 0;
  if (retry || commit->held != NULL) wait = RETRY_NS;
  if (commit->backlog != NULL && !tc__commit_waits(commit) && !commit->failed) {
    /* Gather the next group without being woken for each record. */
    uint64_t due = commit->group_mono_ns + commit->opt.config->log_group_wait;
    struct timespec ts = { .tv_sec = (time_t)(due / 1000000000),
                           .tv_nsec = (long)(due % 1000000000) };
    if (due > now && commit->backlog_bytes < commit->opt.config->log_group_bytes)
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    return;
  }
  if (commit->nsettled > 0 && wait > SETTLED_WAIT_NS) wait = SETTLED_WAIT_NS;
  /* While a message is held, do not wake for later ones. */
  tc_wakeup_sleep(&commit->wakeup, wait, commit->held != NULL ? NULL : has_work, commit);
}

static void do_turn(struct tc_commit *commit) {
  tc_count(&commit->opt.stats->commit_turns, 1);
  look_after_all(commit, tc_mono_ns());
  take_in(commit);
  tc__take_settled(commit);
  if (group_is_due(commit, tc_mono_ns())) tc__commit_group(commit);
  tc__report_failed(commit);
  tc__send_acks(commit);
  tc__pass_barriers(commit);
  post_work(commit);
  tc_reply_queue_flush(&commit->replies);
}

static bool is_late(const struct tc_commit *commit) {
  return commit->deadline_mono_ns != 0 && tc_mono_ns() >= commit->deadline_mono_ns;
}

static void *run_thread(void *self) {
  struct tc_commit *commit = self;

  while (!atomic_load(&commit->stop)) {
    do_turn(commit);
    sleep_until_due(commit);
  }
  /* Records submitted before the stop are committed, if the disk lets us. */
  do {
    take_in(commit);
    if (commit->backlog != NULL && !tc__commit_waits(commit)) tc__commit_group(commit);
    tc__send_acks(commit);
    tc_reply_queue_flush(&commit->replies);
  } while (commit->backlog != NULL && !commit->failed && !tc__commit_waits(commit) &&
           !is_late(commit));
  tc__pass_barriers(commit);
  while (commit->work != NULL && !is_late(commit)) {
    post_work(commit);
    if (commit->work != NULL) tc_wakeup_sleep(&commit->wakeup, RETRY_NS, NULL, NULL);
  }
  return NULL;
}

tb_rc tc_commit_start(struct tc_commit *commit, struct tc_sealer *sealer, struct tb_diag *diag) {
  uint64_t now = tc_mono_ns();

  commit->sealer = sealer;
  for (struct tc_stream *stream = LIST_FIRST(&commit->streams.all); stream != NULL;
       stream = LIST_NEXT(stream, all))
    stream->contact_mono_ns = now;
  tc_gauge(&commit->opt.stats->log_bytes,
           tc_wal_bytes(commit->log)); /* bytes that recovery found */
  int rc = tc_thread_start(&commit->thread, NULL, run_thread, commit);
  if (rc != 0) return tb_fail(diag, TB_IO, "commit thread: %s", strerror(rc));
  pthread_setname_np(commit->thread, "tc-commit");
  commit->started = true;
  return TB_OK;
}

void tc_commit_stop(struct tc_commit *commit, uint64_t deadline_mono_ns) {
  if (!commit->started) return;
  commit->deadline_mono_ns = deadline_mono_ns;
  atomic_store(&commit->stop, true);
  tc_wakeup_wake(&commit->wakeup);
  pthread_join(commit->thread, NULL);
  commit->started = false;
}

void tc_commit_finish(struct tc_commit *commit) {
  if (commit->sealer == NULL || commit->failed) return;
  tc__take_settled(commit);
  if (commit->nsettled > 0) tc__commit_group(commit);
  tc_wal_trim(commit->log, tc_streams_hold_lsn(&commit->streams));
  tc_reply_queue_flush(&commit->replies);
}

bool tc_commit_submit(struct tc_commit *commit, unsigned sender, struct tc_submit *msg) {
  return tc_spsc_queue_post(&commit->inboxes[sender], msg);
}
