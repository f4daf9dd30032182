/* SPDX-License-Identifier: Apache-2.0 */
/* Three passes over the valid records. The first finds how far each stream is settled, which the log reports after the
 * records; the second rebuilds the table; the third replays the remaining records in order. */
#include "collector/store/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/walk.h"
#include "base/grow.h"
#include "base/text/hex.h"
#include "collector/wal/scanner.h"
#include "proto/allocator.h"
#include "proto/frame.h"

struct recovery {
  struct tc_commit *commit;
  struct tc_sealer *sealer;
  struct tc_streams *streams;
  unsigned loops;
  struct tc_wal_scan scan;
  struct known { /* a stream's furthest state in any record */
    struct tc_settled settled;
    const struct tc_wal_entry *checkpoint; /* or NULL */
    bool lost_checkpoint;                  /* the checkpoint cannot be used */
    uint64_t lost_seq; /* last record that only the lost checkpoint had; 0: none */
    unsigned char header[sizeof((struct tc_stream_intro *)NULL)->header];
    uint32_t header_len;
  } * known;
  size_t nknown, known_cap;
  struct tb_mem mem;
  struct tb_map by_ref; /* index in known */
  uint64_t wall_ns;     /* of the group that is replayed */
  uint64_t lsn;         /* of the record that is replayed */
  struct tc_recovered *out;
  struct tb_diag *diag;
};

static struct known *known_of(const struct recovery *recovery, uint32_t ref) {
  uint64_t *slot = tb_map_find(&recovery->by_ref, ref);

  return slot == NULL ? NULL : &recovery->known[*slot];
}

static tb_rc know(struct recovery *recovery, uint32_t ref, struct known **out) {
  uint64_t *slot;
  bool fresh;

  if (TB_GROW(recovery->known, recovery->known_cap, recovery->nknown) != TB_OK ||
      tb_map_put(&recovery->by_ref, ref, &slot, &fresh) != TB_OK)
    return tb_fail(recovery->diag, TB_NOMEM, "recovery: no memory");
  if (fresh) {
    recovery->known[recovery->nknown] = (struct known){ 0 };
    *slot = recovery->nknown++;
  }
  *out = &recovery->known[*slot];
  return TB_OK;
}

static tb_rc note_settled(struct recovery *recovery, uint32_t ref,
                          const Tracecollect__V1__LogSettled *message) {
  struct known *known;

  TB_TRY(know(recovery, ref, &known));
  if (message->seq >= known->settled.seq) tc_settled_from_log(message, ref, &known->settled);
  return TB_OK;
}

/* Takes the trace header from a later mention: the first one may be older than the header, and the file with the header's
 * record may be deleted while a power failure brought an older file back. */
static tb_rc note_stream(struct recovery *recovery, const Tracecollect__V1__LogStream *message) {
  struct known *known;

  TB_TRY(know(recovery, message->ref, &known));
  if (message->trace_header.len > 0 && message->trace_header.len <= sizeof known->header) {
    memcpy(known->header, message->trace_header.data, message->trace_header.len);
    known->header_len = (uint32_t)message->trace_header.len;
  }
  return message->settled == NULL ? TB_OK : note_settled(recovery, message->ref, message->settled);
}

static tb_rc note_checkpoint(struct recovery *recovery, const struct tc_wal_entry *entry) {
  struct known *known;

  TB_TRY(know(recovery, entry->head.ref, &known));
  if (known->checkpoint == NULL || entry->head.seq >= known->checkpoint->head.seq)
    known->checkpoint = entry;
  return TB_OK;
}

/* Returns the checkpoint to resume the stream from; NULL: none, or the stream is settled past it. */
static const struct tc_wal_entry *checkpoint_of(const struct recovery *recovery,
                                                const struct tc_stream *stream) {
  const struct known *known = known_of(recovery, stream->ref);
  const struct tc_wal_entry *checkpoint = known != NULL ? known->checkpoint : NULL;

  return checkpoint != NULL && checkpoint->head.seq > stream->intro.settled.seq ? checkpoint : NULL;
}

/* Returns the last record that need not be replayed. */
static uint64_t kept_seq(const struct recovery *recovery, const struct tc_stream *stream) {
  const struct tc_wal_entry *checkpoint = checkpoint_of(recovery, stream);

  return checkpoint != NULL ? checkpoint->head.seq : stream->intro.settled.seq;
}

/* Returns TB_OK with *out NULL if the sector has become unreadable since the scan: the record counts as damaged. */
static tb_rc payload_of(struct recovery *recovery, const struct tc_wal_entry *entry,
                        const unsigned char **out) {
  if (!tc_wal_scan_has_payload(&recovery->scan, entry))
    TB_TRY(tc_sealer_replay_flush(recovery->sealer, recovery->diag)); /* it borrows the window */
  tb_rc rc = tc_wal_scan_payload(&recovery->scan, entry, recovery->diag, out);

  if (rc != TB_CORRUPT) return rc;
  recovery->out->corrupt++;
  tb_diag_clear(recovery->diag);
  *out = NULL;
  return TB_OK;
}

/* Unpacks a message of the log. Returns NULL with TB_OK in *rc if it is unreadable and to be skipped. A message with a
 * valid checksum that does not parse is an error: it was written so, and a start must not drop whole streams. */
static void *unpack(struct recovery *recovery, const struct tc_wal_entry *entry, size_t skip,
                    const ProtobufCMessageDescriptor *type, tb_rc *rc) {
  const unsigned char *payload;
  struct tp_allocator heap;

  *rc = payload_of(recovery, entry, &payload);
  if (*rc != TB_OK || payload == NULL) return NULL;
  tp_allocator_init(&heap);
  void *message =
      protobuf_c_message_unpack(type, &heap.allocator, entry->head.len - skip, payload + skip);
  if (message == NULL)
    *rc = heap.is_short ? tb_fail(recovery->diag, TB_NOMEM, "recovery: no memory")
                        : tb_fail(recovery->diag, TB_CORRUPT,
                                  "wal: the record of kind %u at lsn %" PRIu64
                                  " does not parse, though its checksum is right",
                                  entry->head.kind, entry->head.lsn);
  return message;
}

static Tracecollect__V1__LogSnapshot *unpack_snapshot(struct recovery *recovery,
                                                      const struct tc_wal_entry *entry, tb_rc *rc) {
  return unpack(recovery, entry, 4, &tracecollect__v1__log_snapshot__descriptor, rc);
}

static tb_rc learn_known(struct recovery *recovery) {
  tb_rc rc = TB_OK;

  for (size_t i = 0; rc == TB_OK && i < recovery->scan.nentries; i++) {
    const struct tc_wal_entry *entry = &recovery->scan.entries[i];
    if (entry->head.kind == TC_WAL_SNAPSHOT) {
      Tracecollect__V1__LogSnapshot *snapshot = unpack_snapshot(recovery, entry, &rc);
      for (size_t k = 0; snapshot != NULL && rc == TB_OK && k < snapshot->n_streams; k++)
        rc = note_stream(recovery, snapshot->streams[k]);
      if (snapshot != NULL) tracecollect__v1__log_snapshot__free_unpacked(snapshot, NULL);
    } else if (entry->head.kind == TC_WAL_SETTLED) {
      Tracecollect__V1__LogSettled *settled =
          unpack(recovery, entry, 0, &tracecollect__v1__log_settled__descriptor, &rc);
      if (settled == NULL) continue;
      rc = note_settled(recovery, entry->head.ref, settled);
      tracecollect__v1__log_settled__free_unpacked(settled, NULL);
    } else if (entry->head.kind == TC_WAL_CHECKPOINT || entry->head.kind == TC_WAL_RUN) {
      rc = note_checkpoint(recovery, entry);
    }
  }
  return rc;
}

/* Adds the stream to the table and the sealer as its first mention has it, which is before all of its records in the log. */
static tb_rc add_stream(struct recovery *recovery, const Tracecollect__V1__LogStream *message) {
  struct tc_stream_intro intro;

  if (tc_streams_by_ref(recovery->streams, message->ref) != NULL) return TB_OK;
  if (tc_intro_from_log(message, recovery->loops, &intro) != TB_OK)
    return TB_OK; /* not one of ours */
  const struct known *known = known_of(recovery, intro.ref);
  if (known != NULL && known->settled.seq > intro.settled.seq) intro.settled = known->settled;
  if (known != NULL && intro.header_len == 0) {
    memcpy(intro.header, known->header, known->header_len);
    intro.header_len = known->header_len;
  }
  /* The stream was forgotten after all of it was settled and then returned: the later one counts. */
  struct tc_stream *stream = tc_streams_by_id(recovery->streams, intro.id);
  if (stream != NULL) tc_streams_remove(recovery->streams, stream);
  if (tc_streams_add(recovery->streams, &intro, &stream) != TB_OK)
    return tb_fail(recovery->diag, TB_NOMEM, "recovery: no memory");
  stream->logged = true;
  stream->durable_seq = stream->staged_seq = message->durable_seq;
  stream->closed = message->closed;
  stream->contact_wall_ns = message->contact_wall_ns;
  return tc_sealer_add_stream(recovery->sealer, &stream->intro, recovery->diag);
}

/* Reports a gap. The log must keep its place until a meta has the loss. */
static tb_rc note_gap(struct recovery *recovery, struct tc_stream *stream, uint64_t first_seq,
                      uint64_t last_seq) {
  TB_TRY(tc_sealer_replay_gap(recovery->sealer, stream->ref, first_seq, last_seq, recovery->diag));
  tc_streams_hold(recovery->streams, stream, recovery->lsn, last_seq, false);
  return TB_OK;
}

/* Reports records that only an unusable checkpoint had; once, before the stream's first record. */
static tb_rc note_lost_checkpoint(struct recovery *recovery, struct tc_stream *stream) {
  struct known *known = known_of(recovery, stream->ref);

  if (known == NULL || known->lost_seq == 0) return TB_OK;
  uint64_t last_seq = known->lost_seq;
  known->lost_seq = 0;
  return note_gap(recovery, stream, kept_seq(recovery, stream) + 1, last_seq);
}

/* Reports a gap if a snapshot names later durable records than the files before it have. */
static tb_rc check_stream(struct recovery *recovery, const Tracecollect__V1__LogStream *message) {
  struct tc_stream *stream = tc_streams_by_ref(recovery->streams, message->ref);

  if (stream == NULL) return TB_OK;
  TB_TRY(note_lost_checkpoint(recovery, stream));
  if (message->durable_seq <= stream->durable_seq) return TB_OK;
  if (message->durable_seq > kept_seq(recovery, stream))
    TB_TRY(note_gap(recovery, stream, stream->durable_seq + 1, message->durable_seq));
  stream->durable_seq = stream->staged_seq = message->durable_seq;
  return TB_OK;
}

typedef tb_rc stream_fn(struct recovery *recovery, const Tracecollect__V1__LogStream *message);

static tb_rc each_stream(struct recovery *recovery, const struct tc_wal_entry *entry,
                         stream_fn *each) {
  tb_rc rc = TB_OK;

  if (entry->head.kind == TC_WAL_STREAM) {
    Tracecollect__V1__LogStream *message =
        unpack(recovery, entry, 0, &tracecollect__v1__log_stream__descriptor, &rc);
    if (message == NULL) return rc;
    rc = each(recovery, message);
    tracecollect__v1__log_stream__free_unpacked(message, NULL);
  } else if (entry->head.kind == TC_WAL_SNAPSHOT) {
    Tracecollect__V1__LogSnapshot *snapshot = unpack_snapshot(recovery, entry, &rc);
    if (snapshot == NULL) return rc;
    for (size_t i = 0; rc == TB_OK && i < snapshot->n_streams; i++)
      rc = each(recovery, snapshot->streams[i]);
    if (snapshot->next_ref > recovery->streams->next_ref)
      recovery->streams->next_ref = snapshot->next_ref;
    tracecollect__v1__log_snapshot__free_unpacked(snapshot, NULL);
  }
  return rc;
}

/* Called when the sealer adopted a segment with records up to seq. Takes its settled state into the table, and so into the
 * first snapshot: if this start is killed, the next one must know which segment the chain of hashes continues from. */
static void skip_to(struct recovery *recovery, struct tc_stream *stream, uint64_t seq) {
  if (seq > stream->intro.settled.seq)
    stream->intro.settled = *tc_sealer_settled(recovery->sealer, stream->ref);
}

static tb_rc replay_record(struct recovery *recovery, const struct tc_wal_entry *entry) {
  const struct tc_wal_head *head = &entry->head;
  struct tc_stream *stream = tc_streams_by_ref(recovery->streams, head->ref);
  const unsigned char *payload;
  uint64_t adopted;

  if (stream == NULL || head->seq <= stream->durable_seq)
    return TB_OK; /* sent again after a poisoned file */
  TB_TRY(payload_of(recovery, entry, &payload));
  if (payload == NULL) return TB_OK; /* the next record of the stream shows the gap */
  if (head->seq > stream->durable_seq + 1 && head->seq > kept_seq(recovery, stream) + 1)
    TB_TRY(note_gap(recovery, stream, stream->durable_seq + 1, head->seq - 1));
  stream->durable_seq = stream->staged_seq = head->seq;
  stream->closed = head->kind == TP_CLOSE;
  if (head->kind == TP_HEADER && head->len <= sizeof stream->intro.header) {
    memcpy(stream->intro.header, payload, head->len);
    stream->intro.header_len = head->len;
  }
  if (head->seq <= kept_seq(recovery, stream)) {
    /* The archive has the record; only a header is needed for later records. */
    if (head->kind != TP_HEADER) return TB_OK;
  } else {
    bool ends = head->kind == TP_GENEND || head->kind == TP_LOSS || head->kind == TP_CLOSE;
    tc_streams_hold(recovery->streams, stream, head->lsn, head->seq, ends);
    recovery->out->records++;
  }
  TB_TRY(tc_sealer_replay(recovery->sealer, stream->ref, head->kind, head->seq, head->gen, payload,
                          head->len, entry->payload_crc, recovery->wall_ns, recovery->diag,
                          &adopted));
  if (adopted != 0) skip_to(recovery, stream, adopted);
  return TB_OK;
}

/* Makes the log keep the checkpoint, like the stream's records after it. */
static void hold_checkpoint(struct recovery *recovery, const struct tc_wal_entry *entry) {
  struct tc_stream *stream = tc_streams_by_ref(recovery->streams, entry->head.ref);

  if (stream == NULL || checkpoint_of(recovery, stream) != entry || !TAILQ_EMPTY(&stream->units))
    return;
  if (stream->durable_seq < entry->head.seq)
    stream->durable_seq = stream->staged_seq = entry->head.seq;
  tc_streams_hold(recovery->streams, stream, entry->head.lsn, entry->head.seq, false);
}

/* Drops an unusable checkpoint: its records will be in no segment. The log may still have the last ones, from the stream's
 * first mention on. */
static void lose_checkpoint(struct recovery *recovery, const struct tc_stream *stream,
                            const struct tc_wal_entry *checkpoint, bool was_read) {
  struct known *known = known_of(recovery, stream->ref);
  uint64_t seq = checkpoint->head.seq;
  uint64_t last = stream->durable_seq < seq ? stream->durable_seq : seq;

  tc_sealer_note_checkpoint_lost(recovery->sealer, stream->ref, checkpoint->head.lsn, seq);
  if (was_read) recovery->out->corrupt++; /* otherwise payload_of() counted it */
  known->checkpoint = NULL;
  known->lost_checkpoint = true;
  if (last > stream->intro.settled.seq) known->lost_seq = last;
}

static tb_rc resume_all(struct recovery *recovery) {
  for (struct tc_stream *stream = LIST_FIRST(&recovery->streams->all); stream != NULL;
       stream = LIST_NEXT(stream, all)) {
    const struct tc_wal_entry *checkpoint = checkpoint_of(recovery, stream);
    const unsigned char *payload;
    uint64_t adopted;
    if (checkpoint == NULL) continue;
    TB_TRY(payload_of(recovery, checkpoint, &payload));
    tb_rc rc = payload == NULL ? TB_BROKEN
                               : tc_sealer_resume(recovery->sealer, stream->ref, payload,
                                                  checkpoint->head.len, recovery->diag, &adopted);
    if (rc == TB_OK)
      skip_to(recovery, stream, adopted);
    else if (rc == TB_BROKEN)
      lose_checkpoint(recovery, stream, checkpoint, payload != NULL);
    else
      return rc;
  }
  return TB_OK;
}

static tb_rc replay_all(struct recovery *recovery) {
  for (size_t i = 0; i < recovery->scan.nentries; i++) {
    const struct tc_wal_entry *entry = &recovery->scan.entries[i];
    recovery->lsn = entry->head.lsn;
    tc_sealer_replay_from(recovery->sealer, entry->head.lsn);
    switch (entry->head.kind) {
    case TC_WAL_SNAPSHOT: TB_TRY(each_stream(recovery, entry, check_stream)); break;
    case TC_WAL_GROUP: recovery->wall_ns = entry->head.gen; break;
    case TC_WAL_STREAM: break;  /* handled by the second pass */
    case TC_WAL_SETTLED: break; /* handled by the first pass */
    case TC_WAL_CHECKPOINT:
    case TC_WAL_RUN: hold_checkpoint(recovery, entry); break;
    default: TB_TRY(replay_record(recovery, entry));
    }
  }
  return TB_OK;
}

static tb_rc stream_of_pending(void *self, const unsigned char id[16], const char *identity,
                               const char *service, const char *instance, uint32_t *out_ref) {
  struct recovery *recovery = self;
  struct tc_stream *stream = tc_streams_by_id(recovery->streams, id);

  if (stream == NULL) {
    struct tc_stream_intro intro = { 0 };
    memcpy(intro.id, id, sizeof intro.id);
    strncpy(intro.identity, identity, sizeof intro.identity - 1);
    strncpy(intro.service, service, sizeof intro.service - 1);
    strncpy(intro.instance, instance, sizeof intro.instance - 1);
    intro.home = recovery->streams->next_ref % recovery->loops;
    if (tc_streams_add(recovery->streams, &intro, &stream) != TB_OK)
      return tb_fail(recovery->diag, TB_NOMEM, "recovery: no memory");
    stream->logged = stream->closed = true; /* only in the archive: it is forgotten after a while */
    TB_TRY(tc_sealer_add_stream(recovery->sealer, &stream->intro, recovery->diag));
  }
  *out_ref = stream->ref;
  return TB_OK;
}

/* Returns whether the file belongs to a lost checkpoint: it may have records that the log lacks. */
static bool is_worth_keeping(const struct recovery *recovery, const char *name) {
  char hex[2 * TC_STREAM_BYTES + 1];

  for (const struct tc_stream *stream = LIST_FIRST(&recovery->streams->all); stream != NULL;
       stream = LIST_NEXT(stream, all)) {
    const struct known *known = known_of(recovery, stream->ref);
    if (known == NULL || !known->lost_checkpoint) continue;
    tb_hex(stream->intro.id, TC_STREAM_BYTES, hex);
    if (strncmp(name, hex, sizeof hex - 1) == 0) return true;
  }
  return false;
}

/* Removes half-written files, which would be in the way: all but those of a checkpoint are rebuilt from the log. */
static tb_rc remove_parts(const struct recovery *recovery, const struct tc_statedir *dirs,
                          struct tb_diag *diag) {
  const char *name;
  int open_fd = dirs->open;
  DIR *dir;

  TB_TRY(tc_dir_open(open_fd, "open", diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "open", diag, &name)) == TB_OK && name != NULL) {
    if (!tc_name_ends(name, ".part") || tc_sealer_has_part(recovery->sealer, name)) continue;
    bool keep = is_worth_keeping(recovery, name);
    if ((keep ? renameat(open_fd, name, dirs->quarantine, name) : unlinkat(open_fd, name, 0)) != 0)
      rc = tb_fail(diag, TB_IO, "open/%s: %s", name, strerror(errno));
  }
  closedir(dir);
  return rc;
}

static tb_rc recover(struct recovery *recovery, const struct tc_statedir *dirs) {
  TB_TRY(tc_wal_scan(dirs->wal, recovery->diag, &recovery->scan));
  recovery->out->unreadable = recovery->scan.unreadable;
  recovery->out->unreadable_file = recovery->scan.unreadable_file;
  recovery->out->unreadable_at = recovery->scan.unreadable_at;
  recovery->out->had_log = recovery->scan.nfiles > 0;
  recovery->out->corrupt = recovery->scan.corrupt;
  recovery->out->torn_bytes = recovery->scan.torn_bytes;
  TB_TRY(tc_wal_scan_to_disk(dirs->wal, &recovery->scan, recovery->diag));
  TB_TRY(learn_known(recovery));
  /* Add the log's streams before pending segments look for theirs; replay records last. */
  for (size_t i = 0; i < recovery->scan.nentries; i++)
    TB_TRY(each_stream(recovery, &recovery->scan.entries[i], add_stream));
  TB_TRY(resume_all(recovery));
  TB_TRY(remove_parts(recovery, dirs, recovery->diag));
  TB_TRY(tc_sealer_offer_pending(recovery->sealer, stream_of_pending, recovery, recovery->diag));
  TB_TRY(replay_all(recovery));
  TB_TRY(tc_sealer_replay_done(recovery->sealer, recovery->scan.next_lsn, recovery->diag));
  TB_TRY(tc_commit_open_log(recovery->commit, recovery->scan.next_lsn, recovery->scan.previous_end,
                            recovery->diag));
  for (size_t i = 0; i < recovery->scan.nfiles; i++)
    TB_TRY(tc_wal_add_old_file(tc_commit_wal(recovery->commit), recovery->scan.files[i].start,
                               recovery->scan.files[i].bytes));
  return TB_OK;
}

tb_rc tc_recover(struct tc_commit *commit, struct tc_sealer *sealer, const struct tc_statedir *dirs,
                 unsigned loops, struct tb_diag *diag, struct tc_recovered *out) {
  struct recovery recovery = { .commit = commit,
                               .sealer = sealer,
                               .streams = tc_commit_streams(commit),
                               .loops = loops,
                               .out = out,
                               .diag = diag };

  *out = (struct tc_recovered){ 0 };
  tb_mem_init(&recovery.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&recovery.by_ref, &recovery.mem, 0x9e3779b97f4a7c15u); /* no peer chooses refs */
  tb_rc rc = recover(&recovery, dirs);
  tc_wal_scan_free(&recovery.scan);
  tb_map_fini(&recovery.by_ref);
  free(recovery.known);
  return rc;
}
