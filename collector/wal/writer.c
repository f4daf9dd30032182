/* SPDX-License-Identifier: Apache-2.0 */
/* A group is built in one buffer and written by one pwrite. Copying costs 0.05 ms a MB and lets the write bypass the page
 * cache (level `durable`, which waits for the disk anyway). Through the cache the same MB costs 0.2 ms for finding,
 * copying, marking, writing and dropping pages, and several times that if the pages are new to the machine; and the log
 * of a busy collector would fill its host's memory. For O_DIRECT each group is padded to a block by a PAD.
 *
 * Files are preallocated: a full disk shows when a file is made, not during a commit, and fdatasync has no file size to
 * write. */
#include "collector/wal/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "proto/frame.h"

enum {
  PAD_BYTES_MIN = TC_WAL_HEAD_BYTES + 8,
  PAD_BYTES_MAX = TC_WAL_BLOCK + PAD_BYTES_MIN,
  HUGE_PAGE = 2 << 20,
};

struct tc_wal {
  struct tc_wal_options opt;
  struct tc_wal_files files;
  int fd; /* -1: the next group begins a new file */
  uint32_t salt;
  uint64_t start, size; /* of the current file */
  uint64_t end;         /* end lsn of the last durable group */

  unsigned char *group; /* aligned to a block */
  size_t group_cap, staged;
};

tb_rc tc_wal_new(const struct tc_wal_options *options, struct tb_diag *diag, struct tc_wal **out) {
  struct tc_wal *log = calloc(1, sizeof *log);

  if (log == NULL) return tb_fail(diag, TB_NOMEM, "log: no memory");
  log->opt = *options;
  if (log->opt.sync == NULL) log->opt.sync = fdatasync;
  tc_wal_files_init(&log->files, options->wal_fd, options->durable);
  log->fd = -1;
  log->start = options->next_lsn;
  log->end = options->previous_end;
  *out = log;
  return TB_OK;
}

void tc_wal_free(struct tc_wal *log) {
  if (log == NULL) return;
  if (log->fd >= 0) close(log->fd);
  tc_wal_files_fini(&log->files);
  free(log->group);
  free(log);
}

static uint64_t blocks(uint64_t bytes) { /* rounded up to whole blocks, in bytes */
  return (bytes + TC_WAL_BLOCK - 1) & ~(uint64_t)(TC_WAL_BLOCK - 1);
}

/* Returns the size of the largest group: one that was almost full and got the largest record. */
static uint64_t group_bytes_max(const struct tc_wal *log) {
  return blocks(log->opt.group_bytes + tc_wal_record_bytes(TP_FRAME_BYTES_MAX) + PAD_BYTES_MAX);
}

/* Makes room for a record and a PAD after it. */
static tb_rc make_room(struct tc_wal *log, uint64_t record_bytes) {
  uint64_t want = blocks(log->staged + record_bytes + PAD_BYTES_MAX);

  if (want <= log->group_cap) return TB_OK;
  if (want < group_bytes_max(log)) want = group_bytes_max(log); /* usually the only allocation */
  want = (want + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1);
  unsigned char *moved = aligned_alloc(HUGE_PAGE, (size_t)want);
  if (moved == NULL) return TB_NOMEM;
  (void)madvise(moved, (size_t)want, MADV_HUGEPAGE); /* makes a write of 1 MB a third faster */
  if (log->staged > 0) memcpy(moved, log->group, log->staged);
  free(log->group);
  log->group = moved;
  log->group_cap = (size_t)want;
  return TB_OK;
}

static void put_record(struct tc_wal *log, struct tc_wal_head *head, const void *payload,
                       uint32_t payload_crc) {
  unsigned char *at = log->group + log->staged, *tail = at + TC_WAL_HEAD_BYTES + head->len;
  size_t bytes = (size_t)tc_wal_record_bytes(head->len);

  head->lsn = log->end + log->staged;
  tc_wal_head_put(head, at);
  if (head->len > 0) memcpy(at + TC_WAL_HEAD_BYTES, payload, head->len);
  uint32_t crc =
      htole32(tb_crc32c_join(tb_crc32c(log->salt, at, TC_WAL_HEAD_BYTES), payload_crc, head->len));
  memcpy(tail, &crc, sizeof crc);
  memset(tail + sizeof crc, 0, (size_t)(at + bytes - tail) - sizeof crc);
  log->staged += bytes;
}

static tb_rc stage_record(struct tc_wal *log, struct tc_wal_head *head, const void *payload,
                          uint32_t payload_crc) {
  TB_TRY(make_room(log, tc_wal_record_bytes(head->len)));
  put_record(log, head, payload, payload_crc);
  return TB_OK;
}

/* Pads the group to a multiple of the block size. */
static void pad_group(struct tc_wal *log) {
  static const unsigned char zeros[PAD_BYTES_MAX];
  size_t gap = (size_t)(blocks(log->staged) - log->staged);

  if (gap == 0) return;
  if (gap < PAD_BYTES_MIN) gap += TC_WAL_BLOCK;
  struct tc_wal_head head = { .kind = TC_WAL_PAD,
                              .len = (uint32_t)(gap - TC_WAL_HEAD_BYTES - sizeof(uint32_t)) };
  put_record(log, &head, zeros, tb_crc32c(0, zeros, head.len));
  assert(log->staged % TC_WAL_BLOCK == 0 && log->staged <= log->group_cap);
}

static int write_group(struct tc_wal *log) {
  size_t done = 0;

  pad_group(log);
  while (done < log->staged) {
    ssize_t n = pwrite(log->fd, log->group + done, log->staged - done,
                       (off_t)(log->end - log->start + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    /* After a short write, write a partial block again as a whole. */
    n &= ~(ssize_t)(TC_WAL_BLOCK - 1);
    errno = EIO;
    if (n == 0) return -1;
    done += (size_t)n;
  }
  return log->opt.durable ? log->opt.sync(log->fd) : 0;
}

tb_rc tc_wal_commit(struct tc_wal *log, struct tb_diag *diag) {
  if (log->staged == 0) return TB_OK;
  int failed = write_group(log);
  int why = errno;
  size_t staged = log->staged;
  log->staged = 0;
  if (failed == 0) {
    log->end += staged;
    return TB_OK;
  }
  char name[TC_WAL_NAME_BYTES];
  tc_wal_file_name(log->start, name);
  tc_wal_files_poison(&log->files);
  close(log->fd);
  log->fd = -1;
  log->start += log->size;
  return tb_fail(diag, tc_errno_rc(why), "wal/%s: %s; the file is given up from lsn %" PRIu64, name,
                 strerror(why), log->end);
}

/* Packs a snapshot's payload: the salt, then the message. */
static tb_rc pack_snapshot(struct tc_wal *log, uint64_t wall_ns, unsigned char **out,
                           uint32_t *out_len) {
  Tracecollect__V1__LogSnapshot snapshot = TRACECOLLECT__V1__LOG_SNAPSHOT__INIT;

  TB_TRY(log->opt.snapshot.fill(log->opt.snapshot.self, &snapshot));
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

/* Begins the next file with the snapshot and makes it durable before anything else is staged. */
static tb_rc begin_file(struct tc_wal *log, const unsigned char *snapshot, uint32_t len,
                        struct tb_diag *diag) {
  uint64_t before = log->end;
  uint64_t least = blocks(tc_wal_record_bytes(len) + PAD_BYTES_MAX) + 2 * group_bytes_max(log);

  log->size = blocks(log->opt.file_bytes < least ? least : log->opt.file_bytes);
  TB_TRY(tc_wal_files_make(&log->files, log->start, log->size, diag, &log->fd));
  struct tc_wal_head head = { .kind = TC_WAL_SNAPSHOT, .flags = TP_CRITICAL, .len = len };
  log->end = log->start; /* from here on LSNs are positions in this file */
  tb_rc rc = stage_record(log, &head, snapshot, tb_crc32c(0, snapshot, len));
  if (rc == TB_OK && write_group(log) != 0) rc = tc_errno_rc(errno);
  if (rc == TB_OK) {
    log->end += log->staged;
  } else {
    tb_fail(diag, rc, "log: the first group of a file: %s", strerror(errno));
    close(log->fd);
    log->fd = -1;
    log->end = before;
    tc_wal_files_undo(&log->files);
  }
  log->staged = 0;
  return rc;
}

static tb_rc open_file(struct tc_wal *log, uint64_t wall_ns, struct tb_diag *diag) {
  unsigned char *snapshot;
  uint32_t len;

  if (getrandom(&log->salt, sizeof log->salt, 0) != (ssize_t)sizeof log->salt)
    return tb_fail(diag, TB_IO, "getrandom: %s", strerror(errno));
  tb_rc rc = pack_snapshot(log, wall_ns, &snapshot, &len);
  if (rc != TB_OK) return tb_fail(diag, rc, "log: no memory for the snapshot of the streams");
  size_t files = log->files.n;
  rc = begin_file(log, snapshot, len, diag);
  if (rc != TB_OK && log->files.n > files)
    log->start += log->size; /* the failed file is still there: begin after it */
  free(snapshot);
  return rc;
}

tb_rc tc_wal_begin(struct tc_wal *log, uint64_t wall_ns, struct tb_diag *diag) {
  assert(log->staged == 0);
  if (log->fd >= 0 && log->end - log->start + group_bytes_max(log) > log->size) {
    close(log->fd);
    log->fd = -1;
    log->start += log->size;
  }
  if (log->fd < 0) TB_TRY(open_file(log, wall_ns, diag));
  struct tc_wal_head head = {
    .kind = TC_WAL_GROUP, .flags = TP_CRITICAL, .seq = log->end, .gen = wall_ns
  };
  if (stage_record(log, &head, NULL, 0) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_NOMEM, "log: no memory for a group");
}

bool tc_wal_group_full(const struct tc_wal *log) {
  return log->staged >= log->opt.group_bytes;
}

tb_rc tc_wal_stage(struct tc_wal *log, struct tc_wal_head *head, const void *payload,
                   uint32_t payload_crc) {
  assert(log->fd >= 0 && log->staged > 0);
  assert(head->len <= TP_FRAME_BYTES_MAX);
  return stage_record(log, head, payload, payload_crc);
}

tb_rc tc_wal_add_old_file(struct tc_wal *log, uint64_t start_lsn, uint64_t bytes) {
  return tc_wal_files_add(&log->files, start_lsn, bytes);
}

void tc_wal_trim(struct tc_wal *log, uint64_t lsn) {
  /* Only the newest snapshot names all streams. While no file is open, the file with that snapshot is not known, as the
   * last file may be empty: nothing is trimmed. */
  if (log->fd >= 0) tc_wal_files_trim(&log->files, lsn);
}

size_t tc_wal_missing(const struct tc_wal *log) {
  char name[TC_WAL_NAME_BYTES];
  size_t n = 0;

  for (size_t i = 0; i < log->files.n; i++) {
    tc_wal_file_name(log->files.items[i].start, name);
    n += faccessat(log->files.wal_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  }
  return n;
}

uint64_t tc_wal_durable_lsn(const struct tc_wal *log) {
  return log->end;
}

uint64_t tc_wal_bytes(const struct tc_wal *log) {
  uint64_t bytes = 0;

  for (size_t i = 0; i < log->files.n; i++) bytes += log->files.items[i].bytes;
  return bytes;
}

size_t tc_wal_file_count(const struct tc_wal *log) {
  return log->files.n;
}
