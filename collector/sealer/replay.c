/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer while the log is replayed: records take the same way as live ones, except where the last
 * run published a segment and died before it could say so. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/text/hex.h"
#include "collector/sealer/private.h"
#include "proto/frame.pb-c.h"

enum { REPLAY_QUEUE_MAX = 512 };

static tb_rc trace_matches(int dir_fd, const tc_meta *meta, uint64_t first_gen,
                           struct tb_diag *diag, bool *out) {
  char trace[32];
  struct stat st;

  tc_trace_name(first_gen, trace);
  bool there = fstatat(dir_fd, trace, &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (!there && errno != ENOENT)
    return tb_fail(diag, tc_errno_rc(errno), "%s: %s", trace, strerror(errno));
  *out = there && (uint64_t)st.st_size == meta->bytes;
  return TB_OK;
}

bool tc__sync_names(int dir_fd) {
  static const char *const folders[] = { ".", "..", "../.." };

  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    int fd = openat(dir_fd, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    if (!good) return false;
  }
  return true;
}

/* Whether meta is of a segment of this stream, with its whole trace beside it. If so, its names are on the disk: the
 * last run may have died before it came to that, and the log will not keep the records any longer. */
static tb_rc is_published(struct tc_sealer *sealer, const struct tc__stream *stream, int dir_fd,
                          const tc_meta *meta, uint64_t gen, struct tb_diag *diag, bool *out) {
  *out = meta->n_generations > 0 && memcmp(meta->stream.data, stream->id, 16) == 0 &&
         tc_meta_hash(meta).kind != TC_HASH_NONE;
  if (*out && !meta->expired) TB_TRY(trace_matches(dir_fd, meta, gen, diag, out));
  if (!*out || !sealer->opt.durable || tc__sync_names(dir_fd)) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", meta->day, stream->hex,
                 strerror(errno));
}

/* The meta of a segment of this stream that begins with gen; NULL: there is none. A file that cannot be read now may
 * be there: that is an error. */
static tb_rc find_published(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                            uint64_t gen, struct tb_diag *diag, tc_meta **out) {
  struct tb_diag why = { 0 };
  char name[32];
  bool published = false;
  int dir_fd = tc_statedir_stream(sealer->opt.dirs->archive, day, stream->hex, false);

  *out = NULL;
  if (dir_fd < 0 && errno == ENOENT) return TB_OK;
  if (dir_fd < 0)
    return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, stream->hex,
                   strerror(errno));
  tc_meta_name(gen, name);
  tb_rc rc = tc_meta_read(dir_fd, name, &why, out);
  if (rc == TB_OK) rc = is_published(sealer, stream, dir_fd, *out, gen, &why, &published);
  close(dir_fd);
  if (rc != TB_OK || !published) {
    tc_meta_free(*out);
    *out = NULL;
  }
  if (rc == TB_OK || rc == TB_NOTFOUND || rc == TB_CORRUPT || rc == TB_UNREADABLE) return TB_OK;
  return tb_fail(diag, rc, "%s", why.text);
}

static tb_rc adopt(struct tc_sealer *sealer, struct tc__stream *stream, const tc_meta *meta,
                   uint64_t *out_skip_to, struct tb_diag *diag) {
  const Tracecollect__V1__GenerationMeta *first = meta->generations[0],
                                         *last = meta->generations[meta->n_generations - 1];
  struct tc_settled *settled = &stream->settled;

  TB_TRY(tc__put_row(sealer, meta, diag));
  memcpy(settled->day, meta->day, TC_DAY_BYTES);
  settled->hash = tc_meta_hash(meta);
  settled->has_segment = true;
  settled->first_gen = first->gen;
  settled->last_gen = last->gen;
  settled->seq = last->last_seq;
  settled->abandoned_gen = stream->abandoned_gen = 0; /* one before it */
  stream->last_gen = last->gen;
  stream->last_seq = last->last_seq;
  stream->losses.n = stream->reported.losses.n = 0; /* those that came before it stand in it */
  TB_TRY(tc__reported_by(stream, meta));
  *out_skip_to = last->last_seq;
  return tc__settle(sealer, stream);
}

static bool is_pending(const Tracecollect__V1__GenerationMeta *gen) {
  return gen->verdict == NULL ||
         gen->verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING;
}

static size_t count_pending(const tc_meta *meta) {
  size_t n = 0;

  for (size_t i = 0; i < meta->n_generations; i++) n += is_pending(meta->generations[i]);
  return n;
}

static tb_rc offer_meta(struct tc_sealer *sealer, struct tc__stream *stream, const tc_meta *meta) {
  if (count_pending(meta) == 0) {
    stream->begun = false; /* as below */
    return TB_OK;
  }
  struct tc__recent *recent =
      tc__recent_add(stream, meta->day, meta->generations[0]->gen, meta->n_generations);
  if (recent == NULL) return TB_NOMEM;
  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (!is_pending(gen)) {
      stream->begun = false; /* understood by an earlier run: what follows starts again */
      continue;
    }
    struct tc_reply *reply = tc__stream_reply(stream, TC_REPLY_STORED);
    if (reply == NULL) return TB_NOMEM;
    recent->pending++;
    reply->gen = gen->gen;
    reply->offset = gen->offset;
    reply->len = gen->bytes;
    reply->new_run = !stream->begun || gen->gen != stream->last_gen + 1;
    tc__archive_path(meta->day, stream->hex, recent->first_gen, reply->path);
    memcpy(reply->final_path, reply->path, sizeof reply->final_path);
    struct tc_wall wall = tc_generation_wall(gen, meta->last_wall_ns);
    reply->first_wall_ns = wall.first_ns;
    reply->end_wall_ns = wall.last_ns;
    tc_reply_queue_put(&sealer->replies, reply);
    stream->begun = true;
    stream->last_gen = gen->gen;
  }
  return TB_OK;
}

/* Its segment expired since, and its meta was folded: the record of the ledger has all up to its last one. */
static tb_rc adopt_folded(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                          uint64_t seq, uint64_t *out_skip_to, struct tb_diag *diag) {
  struct tc_settled *settled = &stream->settled;
  const tc_meta *record;

  TB_TRY(tc__find_folded(sealer, stream->id, day, seq, diag, &record));
  if (record == NULL) return TB_OK;
  memcpy(settled->day, record->day, TC_DAY_BYTES);
  settled->hash = tc_meta_hash(record);
  settled->has_segment = true;
  settled->first_gen = settled->last_gen = stream->last_gen = record->folded->last_gen;
  settled->seq = stream->last_seq = *out_skip_to = tc_meta_last_seq(record);
  settled->abandoned_gen = stream->abandoned_gen = 0;
  stream->losses.n = stream->reported.losses.n = 0;
  stream->begun = false;
  return tc__settle(sealer, stream);
}

tb_rc tc__adopt_published(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                          uint64_t gen, uint64_t first_seq, struct tb_diag *diag,
                          uint64_t *out_skip_to) {
  tc_meta *meta;
  tb_rc rc = TB_OK;

  TB_TRY(find_published(sealer, stream, day, gen, diag, &meta));
  if (meta == NULL) return adopt_folded(sealer, stream, day, first_seq, out_skip_to, diag);
  if (meta->generations[0]->first_seq == first_seq) {
    rc = adopt(sealer, stream, meta, out_skip_to, diag);
    if (rc == TB_OK && !meta->expired) rc = offer_meta(sealer, stream, meta);
  }
  tc_meta_free(meta);
  return rc;
}

/* A file that the last run published from this record on cannot be taken as it is: an earlier segment's names did
 * not reach the disk, these did. It was never acked, and the log still has all of its records: it is made again. */
tb_rc tc__take_back(struct tc_sealer *sealer, struct tc__stream *stream, const char *day,
                    uint64_t gen, uint64_t first_seq, struct tb_diag *diag) {
  char name[32], trace[32];
  tc_meta *meta = NULL;
  int dir_fd = tc_statedir_stream(sealer->opt.dirs->archive, day, stream->hex, false);

  if (dir_fd < 0 && errno == ENOENT) return TB_OK;
  if (dir_fd < 0)
    return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, stream->hex,
                   strerror(errno));
  tc_meta_name(gen, name);
  tc_trace_name(gen, trace);
  tb_rc rc = tc_meta_read(dir_fd, name, diag, &meta);
  bool has_meta = rc == TB_OK && meta->n_generations > 0;
  bool ours = has_meta ? meta->generations[0]->first_seq == first_seq : rc != TB_OK;
  tc_meta_free(meta);
  if (rc == TB_UNREADABLE) {
    rc = tc__put_trace_aside(sealer, stream, dir_fd, gen, diag->text, diag);
    if (rc == TB_OK) tb_diag_clear(diag);
    close(dir_fd);
    return rc;
  }
  if (rc == TB_NOTFOUND || rc == TB_CORRUPT) {
    tb_diag_clear(diag);
    rc = TB_OK;
  }
  if (rc == TB_OK && ours && has_meta && unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT)
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
  if (rc == TB_OK && ours && unlinkat(dir_fd, trace, 0) != 0 && errno != ENOENT)
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", trace, strerror(errno));
  if (rc == TB_OK && ours && has_meta) rc = tc__sync_name(sealer, dir_fd, name, diag);
  close(dir_fd);
  return rc;
}

const struct tc_settled *tc_sealer_settled(const struct tc_sealer *sealer, uint32_t ref) {
  const struct tc__stream *stream = tb_map_at(&sealer->by_ref, ref);

  assert(stream != NULL);
  return &stream->settled;
}

/* A log may hold more whole generations than there are descriptors. Where the disk has no place for them they stay. */
static tb_rc publish_replayed(struct tc_sealer *sealer, struct tb_diag *diag) {
  tb_rc rc = tc__flush_dirty(sealer, true, diag);

  if (rc == TB_OK) rc = tc__publish_queue(sealer, diag);
  if (!tc_rc_is_full(rc)) return rc;
  tb_diag_clear(diag);
  return TB_OK;
}

void tc_sealer_replay_from(struct tc_sealer *sealer, uint64_t lsn) {
  sealer->work.end_lsn = lsn;
}

tb_rc tc_sealer_replay(struct tc_sealer *sealer, uint32_t ref, unsigned kind, uint64_t seq,
                       uint64_t gen, const unsigned char *payload, uint32_t len, uint32_t crc,
                       uint64_t wall_ns, struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc__stream *stream = tc__sealer_stream(sealer, ref);

  *out_skip_to = 0;
  assert(stream != NULL);
  if (kind != TP_HEADER)
    TB_TRY(tc__learn_reported(sealer, stream, diag)); /* of an idle one: nothing */
  if (kind == TP_BATCH && (stream->open == NULL || !stream->open->segment->in_gen)) {
    char day[TC_DAY_BYTES];
    tc_day(wall_ns, day);
    if (stream->open == NULL && stream->queued == NULL)
      TB_TRY(tc__adopt_published(sealer, stream, day, gen, seq, diag, out_skip_to));
    if (*out_skip_to != 0) return TB_OK;
    TB_TRY(tc__take_back(sealer, stream, day, gen, seq, diag));
  }
  struct tc__item item = { .kind = kind,
                           .seq = seq,
                           .gen = gen,
                           .wall_ns = wall_ns,
                           .payload = payload,
                           .len = len,
                           .crc = crc };
  TB_TRY(tc__archive_record(sealer, stream, &item, diag));
  assert(tc__stream_check(stream) == NULL);
  return sealer->queue.n < REPLAY_QUEUE_MAX ? TB_OK : publish_replayed(sealer, diag);
}

tb_rc tc_sealer_replay_flush(struct tc_sealer *sealer, struct tb_diag *diag) {
  return tc__flush_dirty(sealer, false, diag);
}

tb_rc tc_sealer_replay_gap(struct tc_sealer *sealer, uint32_t ref, uint64_t first_seq,
                           uint64_t last_seq, struct tb_diag *diag) {
  struct tc__stream *stream = tc__sealer_stream(sealer, ref);

  assert(stream != NULL);
  TB_TRY(tc__learn_reported(sealer, stream, diag));
  tc__note_as(sealer, TC_ERROR, ref,
              "stream=%s seq=%" PRIu64 "..%" PRIu64
              ": these records are damaged in the log; their generations are lost",
              stream->hex, first_seq, last_seq);
  struct tc__loss gap = { .first_gen = stream->last_gen + 1,
                          .last_gen = stream->last_gen + 1,
                          .first_seq = first_seq,
                          .seq = last_seq,
                          .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED };
  if (stream->open != NULL && stream->open->segment->in_gen)
    gap.first_gen = gap.last_gen = stream->open->segment->now.gen;
  TB_TRY(tc__quarantine_open(sealer, stream, "records of it are damaged in the log", true, last_seq,
                             diag));
  stream->run_broken = stream->damaged = true;
  return tc__note_loss(sealer, stream, &stream->losses, &gap, NULL);
}

/* Facts that recovery found must not be found again: the damaged file goes, and its gap would be an unknown
 * hole. */
static tb_rc put_gaps_down(struct tc_sealer *sealer) {
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next) {
    if (!stream->damaged) continue;
    struct tc_work *work = tc_work_new(TC_WORK_CHECKPOINT, stream->ref);
    if (work == NULL) return TB_NOMEM;
    work->checkpoint.held_lsn = UINT64_MAX;
    *sealer->work.tail = work;
    sealer->work.tail = &work->next;
    stream->damaged = false;
  }
  return TB_OK;
}

tb_rc tc_sealer_replay_done(struct tc_sealer *sealer, uint64_t end_lsn, struct tb_diag *diag) {
  sealer->work.end_lsn = end_lsn;
  tc_day_ledger_fini(&sealer->folding.recalled);
  tc__take_totals(sealer); /* with what was adopted */
  if (put_gaps_down(sealer) != TB_OK) return tb_fail(diag, TB_NOMEM, "recovery: no memory");
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL && !stream->open->segment->in_gen) stream->open->border_lsn = end_lsn;
  /* A generation taken up continues what the last run understood, but for this one it is the beginning. */
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    if (stream->open != NULL && !stream->begun) stream->open->new_run = stream->begun = true;
  /* The disk has the log to read, and what was taken up to write once a caller waits for it. */
  return tc__flush_dirty(sealer, false, diag);
}

struct pending {
  struct tc_sealer *sealer;
  tb_rc (*stream_of)(void *self, const unsigned char id[16], const char *identity,
                     const char *service, const char *instance, uint32_t *out_ref);
  void *self;
  struct tb_diag *diag;
  tc_meta **ahead; /* of their rows */
  size_t nahead, ahead_cap;
  struct tc_segment_row last; /* that was offered */
  bool has_last;
  bool has_failed; /* not the catalog: what was to be done with a row */
};

/* The row's meta, NULL: tracectl verify says what is wrong with it, there is nothing to offer. If it has more verdicts
 * than its row it got them in the last run, which may have been killed before their name was on the disk: it is now. */
static tb_rc read_meta(const struct tc_sealer *sealer, const char *day, const char *hex,
                       uint64_t first_gen, struct tb_diag *diag, tc_meta **out) {
  char name[32];
  int dir_fd = tc_statedir_stream(sealer->opt.dirs->archive, day, hex, false);
  tb_rc rc = TB_OK;

  *out = NULL;
  if (dir_fd < 0) return TB_OK;
  tc_meta_name(first_gen, name);
  if (tc_meta_read(dir_fd, name, NULL, out) == TB_OK &&
      count_pending(*out) < (*out)->n_generations && sealer->opt.durable && fsync(dir_fd) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, hex, strerror(errno));
  close(dir_fd);
  return rc;
}

/* The last run was killed between a verdict's meta and its row. Takes the meta over. */
static tb_rc remember_ahead(struct pending *pending, tc_meta *meta) {
  if (TB_GROW(pending->ahead, pending->ahead_cap, pending->nahead) != TB_OK) {
    tc_meta_free(meta);
    return TB_NOMEM;
  }
  pending->ahead[pending->nahead++] = meta;
  return TB_OK;
}

static bool was_offered(const struct pending *pending, const struct tc_segment_row *row) {
  int order = pending->has_last ? memcmp(row->stream, pending->last.stream, sizeof row->stream) : 1;

  return order < 0 || (order == 0 && row->first_gen <= pending->last.first_gen);
}

static tb_rc offer(struct pending *pending, const struct tc_segment_row *row) {
  char day[TC_DAY_BYTES], hex[TC_STREAM_HEX_BYTES];
  tc_meta *meta;
  uint32_t ref;

  memcpy(day, row->path + sizeof "archive/" - 1, TC_DAY_BYTES - 1);
  day[TC_DAY_BYTES - 1] = '\0';
  if (!tc_day_valid(day)) return TB_OK;
  tb_hex(row->stream, sizeof row->stream, hex);
  tb_rc rc = read_meta(pending->sealer, day, hex, row->first_gen, pending->diag, &meta);
  if (rc != TB_OK || meta == NULL || meta->n_generations == 0) {
    tc_meta_free(meta);
    return rc;
  }
  rc = pending->stream_of(pending->self, row->stream, meta->identity, row->service, row->instance,
                          &ref);
  struct tc__stream *stream = rc == TB_OK ? tc__sealer_stream(pending->sealer, ref) : NULL;
  if (stream != NULL) rc = offer_meta(pending->sealer, stream, meta);
  if (rc == TB_OK && count_pending(meta) < meta->n_generations)
    return remember_ahead(pending, meta);
  tc_meta_free(meta);
  return rc;
}

static tb_rc offer_row(void *self, const struct tc_segment_row *row) {
  struct pending *pending = self;

  if (was_offered(pending, row)) return TB_OK;
  pending->last = *row;
  pending->has_last = true;
  tb_rc rc = offer(pending, row);
  pending->has_failed = rc != TB_OK;
  return rc;
}

static tb_rc put_ahead(struct pending *pending) {
  struct tc_sealer *sealer = pending->sealer;

  if (pending->nahead == 0) return TB_OK;
  TB_TRY(tc__catalog_begin(sealer, pending->diag));
  for (size_t i = 0; i < pending->nahead; i++)
    TB_TRY(tc__put_row(sealer, pending->ahead[i], pending->diag));
  return tc__catalog_commit(sealer, pending->diag);
}

/* A catalog that cannot be read to its end is rebuilt, and read on behind the row that was offered last. */
static tb_rc offer_rows(struct pending *pending) {
  struct tc_sealer *sealer = pending->sealer;
  struct tb_diag why = { 0 };

  if (!tc__catalog_takes_rows(sealer)) return TB_OK;
  tb_rc rc = tc_catalog_pending(sealer->catalog.db, offer_row, pending, &why);
  if (rc == TB_OK || pending->has_failed) return rc;
  if (rc != TB_CORRUPT) return tb_fail(pending->diag, rc, "%s", why.text);
  TB_TRY(tc__catalog_failed(sealer, &why, pending->diag));
  tc__rebuild_catalog(sealer);
  if (!tc__catalog_takes_rows(sealer)) return TB_OK; /* reported; the next start offers them */
  return tc_catalog_pending(sealer->catalog.db, offer_row, pending, pending->diag);
}

tb_rc tc_sealer_offer_pending(struct tc_sealer *sealer,
                              tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                                 const char *identity, const char *service,
                                                 const char *instance, uint32_t *out_ref),
                              void *self, struct tb_diag *diag) {
  struct pending pending = { .sealer = sealer, .stream_of = stream_of, .self = self, .diag = diag };

  tb_rc rc = offer_rows(&pending);
  if (rc == TB_OK) rc = put_ahead(&pending); /* not while rows are walked */
  if (rc == TB_OK) tc__offer_resumed(sealer);
  for (size_t i = 0; i < pending.nahead; i++) tc_meta_free(pending.ahead[i]);
  free(pending.ahead);
  return rc;
}
