/* SPDX-License-Identifier: Apache-2.0 */
/* A group of records leaves in one pwritev: between two payloads lie the checksum of the one and the
 * head of the next, kept in `edges`, so a record costs two iovecs and no copy of its payload.
 *
 * Files are preallocated: a full disk shows when a file is made, not in the middle of a commit, and
 * fdatasync has no size to write. */
#include "collector/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collector/statedir.h"
#include "proto/frame.h"

enum { EDGE_BYTES = TC_LOG_TAIL_BYTES + TC_LOG_HEAD_BYTES };

struct log_file {
  uint64_t start, bytes;
};

struct tc_log {
  struct tc_log_options opt;
  int fd; /* -1: the next group begins a new file */
  uint32_t salt;
  uint64_t start, size; /* of the current file */
  uint64_t end;         /* lsn behind the last durable group */
  unsigned poisoned;

  struct log_file *files; /* the current one is the last */
  size_t nfiles, files_cap;

  /* the group */
  unsigned char *edges;
  size_t edges_cap, edges_used;
  struct piece {
    const void *payload;
    uint32_t len;
    uint32_t
        edge; /* offset of the head in edges; the tail before it belongs to the previous record */
  } * pieces;
  size_t npieces, pieces_cap;
  uint64_t staged_bytes;
  struct iovec *iov;
  size_t iov_cap;
};

void tc_log_file_name(uint64_t start_lsn, char out[24]) {
  snprintf(out, 24, "%016" PRIx64 ".wal", start_lsn);
}

tb_rc tc_log_new(const struct tc_log_options *options, struct tb_diag *diag, struct tc_log **out) {
  struct tc_log *log = calloc(1, sizeof *log);

  if (log == NULL) return tb_fail(diag, TB_NOMEM, "log: no memory");
  log->opt = *options;
  if (log->opt.sync == NULL) log->opt.sync = fdatasync;
  log->fd = -1;
  log->start = options->next_lsn;
  log->end = options->previous_end;
  *out = log;
  return TB_OK;
}

void tc_log_free(struct tc_log *log) {
  if (log == NULL) return;
  if (log->fd >= 0) close(log->fd);
  free(log->files);
  free(log->edges);
  free(log->pieces);
  free(log->iov);
  free(log);
}

/* Grows *array to hold `want` items of item_bytes. */
static tb_rc reserve(void *array, size_t *cap, size_t want, size_t item_bytes) {
  void **at = array;

  if (want <= *cap) return TB_OK;
  size_t grown = *cap == 0 ? 64 : *cap;
  while (grown < want) grown *= 2;
  void *moved = reallocarray(*at, grown, item_bytes);
  if (moved == NULL) return TB_NOMEM;
  *at = moved;
  *cap = grown;
  return TB_OK;
}

tb_rc tc_log_add_old_file(struct tc_log *log, uint64_t start_lsn, uint64_t bytes) {
  TB_TRY(reserve(&log->files, &log->files_cap, log->nfiles + 1, sizeof *log->files));
  log->files[log->nfiles++] = (struct log_file){ start_lsn, bytes };
  return TB_OK;
}

static tb_rc stage(struct tc_log *log, struct tc_log_head *head, const void *payload,
                   uint32_t payload_crc) {
  TB_TRY(reserve(&log->edges, &log->edges_cap, log->edges_used + EDGE_BYTES, 1));
  TB_TRY(reserve(&log->pieces, &log->pieces_cap, log->npieces + 1, sizeof *log->pieces));
  head->lsn = log->end + log->staged_bytes;
  uint64_t record_bytes = tc_log_record_bytes(head->len);
  unsigned char *edge = log->edges + log->edges_used;
  tc_log_head_put(head, edge);
  uint32_t crc = htole32(
      tb_crc32c_join(tb_crc32c(log->salt, edge, TC_LOG_HEAD_BYTES), payload_crc, head->len));
  size_t tail = (size_t)(record_bytes - TC_LOG_HEAD_BYTES - head->len);
  assert(tail >= 4 && tail < TC_LOG_TAIL_BYTES);
  memset(edge + TC_LOG_HEAD_BYTES, 0, tail);
  memcpy(edge + TC_LOG_HEAD_BYTES, &crc, 4);
  log->pieces[log->npieces++] = (struct piece){ payload, head->len, (uint32_t)log->edges_used };
  log->edges_used += TC_LOG_HEAD_BYTES + tail;
  log->staged_bytes += record_bytes;
  return TB_OK;
}

static void forget_group(struct tc_log *log) {
  log->npieces = 0;
  log->edges_used = 0;
  log->staged_bytes = 0;
}

/* The i-th record's iovecs: its head joined with the tail before it, then its payload. */
static size_t build_iov(struct tc_log *log) {
  size_t n = 0;
  size_t from = 0; /* in edges: what is not yet in an iovec */

  for (size_t i = 0; i < log->npieces; i++) {
    const struct piece *piece = &log->pieces[i];
    if (piece->len == 0) continue; /* head and tail lie together */
    size_t upto = piece->edge + TC_LOG_HEAD_BYTES;
    log->iov[n++] = (struct iovec){ log->edges + from, upto - from };
    log->iov[n++] = (struct iovec){ (void *)(uintptr_t)piece->payload, piece->len };
    from = upto;
  }
  if (from < log->edges_used)
    log->iov[n++] = (struct iovec){ log->edges + from, log->edges_used - from };
  return n;
}

static int write_group(struct tc_log *log) {
  if (reserve(&log->iov, &log->iov_cap, 2 * log->npieces + 1, sizeof *log->iov) != TB_OK) {
    errno = ENOMEM;
    return -1;
  }
  size_t left = build_iov(log);
  struct iovec *iov = log->iov;
  uint64_t at = log->end - log->start;
  while (left > 0) {
    ssize_t done = pwritev(log->fd, iov, (int)(left < IOV_MAX ? left : IOV_MAX), (off_t)at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return -1;
    at += (uint64_t)done;
    for (; left > 0 && (size_t)done >= iov->iov_len; iov++, left--) done -= (ssize_t)iov->iov_len;
    if (left > 0 && done > 0) {
      iov->iov_base = (char *)iov->iov_base + done;
      iov->iov_len -= (size_t)done;
    }
  }
  return log->opt.durable ? log->opt.sync(log->fd) : 0;
}

tb_rc tc_log_commit(struct tc_log *log, struct tb_diag *diag) {
  if (log->npieces == 0) return TB_OK;
  uint64_t staged = log->staged_bytes;
  int failed = write_group(log);
  int why = errno;
  forget_group(log);
  if (failed == 0) {
    log->end += staged;
    return TB_OK;
  }
  char name[24];
  tc_log_file_name(log->start, name);
  close(log->fd);
  log->fd = -1;
  log->start += log->size;
  log->poisoned++;
  return tb_fail(diag, TB_IO, "wal/%s: %s; the file is given up from lsn %" PRIu64, name,
                 strerror(why), log->end);
}

/* A snapshot's payload: the salt, then the message that has it too. */
static tb_rc pack_snapshot(struct tc_log *log, uint64_t wall_ns, unsigned char **out,
                           uint32_t *out_len) {
  Tracecollect__V1__LogSnapshot snapshot = TRACECOLLECT__V1__LOG_SNAPSHOT__INIT;

  TB_TRY(log->opt.snapshot.fill(log->opt.snapshot.self, &snapshot));
  snapshot.salt = log->salt;
  snapshot.previous_end = log->end;
  snapshot.wall_ns = wall_ns;
  size_t bytes = tracecollect__v1__log_snapshot__get_packed_size(&snapshot);
  unsigned char *payload = bytes < UINT32_MAX - 4 ? malloc(bytes + 4) : NULL;
  if (payload == NULL) return TB_NOMEM;
  uint32_t salt = htole32(log->salt);
  memcpy(payload, &salt, 4);
  tracecollect__v1__log_snapshot__pack(&snapshot, payload + 4);
  *out = payload;
  *out_len = (uint32_t)(bytes + 4);
  return TB_OK;
}

static tb_rc fail_file(struct tc_log *log, struct tb_diag *diag, const char *name, int why) {
  if (log->fd >= 0) {
    close(log->fd);
    log->fd = -1;
    unlinkat(log->opt.wal_fd, name, 0);
  }
  forget_group(log);
  return tb_fail(diag, why == ENOSPC || why == EDQUOT || why == EFBIG ? TB_BUDGET : TB_IO,
                 "wal/%s: %s", name, strerror(why));
}

static tb_rc make_file(struct tc_log *log, const unsigned char *snapshot, uint32_t snapshot_len,
                       struct tb_diag *diag) {
  char name[24];

  tc_log_file_name(log->start, name);
  log->fd = tc_file_create(log->opt.wal_fd, name, O_RDWR);
  if (log->fd < 0) return fail_file(log, diag, name, errno);
  log->size = (log->opt.file_bytes + 7) & ~UINT64_C(7);
  uint64_t least =
      tc_log_record_bytes(snapshot_len) + 2 * log->opt.group_bytes + TP_FRAME_BYTES_MAX;
  if (log->size < least) log->size = (least + 7) & ~UINT64_C(7);
  if (fallocate(log->fd, 0, 0, (off_t)log->size) != 0) {
    if (errno != EOPNOTSUPP) return fail_file(log, diag, name, errno);
    if (ftruncate(log->fd, (off_t)log->size) != 0) return fail_file(log, diag, name, errno);
  }
  uint64_t before = log->end;
  struct tc_log_head head = { .kind = TC_LOG_SNAPSHOT, .flags = TP_CRITICAL, .len = snapshot_len };
  log->end = log->start; /* lsn = position, from here in this file */
  tb_rc rc = stage(log, &head, snapshot, tb_crc32c(0, snapshot, snapshot_len));
  if (rc != TB_OK || write_group(log) != 0 || fsync(log->opt.wal_fd) != 0) {
    int why = rc != TB_OK ? ENOMEM : errno;
    log->end = before;
    return fail_file(log, diag, name, why);
  }
  log->end += log->staged_bytes;
  forget_group(log);
  return TB_OK;
}

static tb_rc open_file(struct tc_log *log, uint64_t wall_ns, struct tb_diag *diag) {
  unsigned char *snapshot;
  uint32_t len;

  TB_TRY(reserve(&log->files, &log->files_cap, log->nfiles + 1, sizeof *log->files));
  if (getrandom(&log->salt, sizeof log->salt, 0) != (ssize_t)sizeof log->salt)
    return tb_fail(diag, TB_IO, "getrandom: %s", strerror(errno));
  tb_rc rc = pack_snapshot(log, wall_ns, &snapshot, &len);
  if (rc != TB_OK) return tb_fail(diag, rc, "log: no memory for the snapshot of the streams");
  rc = make_file(log, snapshot, len, diag);
  free(snapshot);
  TB_TRY(rc);
  log->files[log->nfiles++] = (struct log_file){ log->start, log->size };
  return TB_OK;
}

tb_rc tc_log_begin(struct tc_log *log, uint64_t wall_ns, struct tb_diag *diag) {
  assert(log->npieces == 0);
  uint64_t most = log->opt.group_bytes + TP_FRAME_BYTES_MAX;
  if (log->fd >= 0 && log->end - log->start + most > log->size) {
    close(log->fd);
    log->fd = -1;
    log->start += log->size;
  }
  if (log->fd < 0) TB_TRY(open_file(log, wall_ns, diag));
  struct tc_log_head head = {
    .kind = TC_LOG_GROUP, .flags = TP_CRITICAL, .seq = log->end, .gen = wall_ns
  };
  return stage(log, &head, NULL, 0);
}

bool tc_log_group_full(const struct tc_log *log) {
  return log->staged_bytes >= log->opt.group_bytes;
}

tb_rc tc_log_stage(struct tc_log *log, struct tc_log_head *head, const void *payload,
                   uint32_t payload_crc) {
  assert(log->fd >= 0 && log->npieces > 0);
  return stage(log, head, payload, payload_crc);
}

void tc_log_trim(struct tc_log *log, uint64_t lsn) {
  size_t gone = 0;

  /* The current file, or with none the last one, stays: recovery needs a snapshot. */
  while (gone + 1 < log->nfiles && log->files[gone].start + log->files[gone].bytes <= lsn) {
    char name[24];
    tc_log_file_name(log->files[gone].start, name);
    if (unlinkat(log->opt.wal_fd, name, 0) != 0 && errno != ENOENT) break;
    gone++;
  }
  if (gone == 0) return;
  log->nfiles -= gone;
  memmove(log->files, log->files + gone, log->nfiles * sizeof *log->files);
}

uint64_t tc_log_durable_lsn(const struct tc_log *log) {
  return log->end;
}

size_t tc_log_files(const struct tc_log *log) {
  return log->nfiles;
}

unsigned tc_log_poisoned(const struct tc_log *log) {
  return log->poisoned;
}
