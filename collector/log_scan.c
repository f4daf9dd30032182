/* SPDX-License-Identifier: Apache-2.0 */
/* Each file is walked record by record; where a record does not validate, the walk looks for the next
 * place that does, 8 bytes at a time. A GROUP says up to which lsn the log was durable when it was
 * written: that is the proof that tells damage from a torn tail. */
#include "collector/log_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/heap.h"
#include "collector/log_files.h"
#include "collector/statedir.h"
#include "proto/frame.h"
#include "proto/log.pb-c.h"

enum {
  AHEAD_BYTES = 32 << 20,     /* so far before the walk the disk is asked */
  AHEAD_STEP_BYTES = 1 << 20, /* at once: what the kernel takes of one asking */
};

static tb_rc grow(void *array, size_t *cap, size_t want, size_t item_bytes) {
  void **at = array;

  if (want <= *cap) return TB_OK;
  size_t grown = *cap == 0 ? 256 : 2 * *cap;
  void *moved = reallocarray(*at, grown, item_bytes);
  if (moved == NULL) return TB_NOMEM;
  *at = moved;
  *cap = grown;
  return TB_OK;
}

static bool parse_name(const char *name, uint64_t *out) {
  if (strlen(name) != 20 || strcmp(name + 16, ".wal") != 0) return false;
  if (strspn(name, "0123456789abcdef") != 16) return false;
  *out = strtoull(name, NULL, 16);
  return true;
}

static int by_start(const void *a, const void *b) {
  const struct tc_log_scan_file *x = a, *y = b;

  return (x->start > y->start) - (x->start < y->start);
}

/* Where the file's data ends: what was preallocated and never written is a hole, and need not be read. */
static uint64_t data_end(int fd, uint64_t bytes) {
  uint64_t end = 0;

  for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0;) {
    at = lseek(fd, at, SEEK_HOLE);
    if (at < 0) return bytes;
    end = (uint64_t)at;
  }
  return errno == ENXIO ? end : bytes;
}

static tb_rc map_file(int wal_fd, const char *name, struct tc_log_scan_file *file,
                      struct tb_diag *diag) {
  struct stat st;
  int fd = openat(wal_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0) return tb_fail(diag, TB_IO, "wal/%s: %s", name, strerror(errno));
  void *map = MAP_FAILED;
  bool looked = fstat(fd, &st) == 0;
  if (looked && st.st_size > 0) map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int why = errno;
  if (map != MAP_FAILED) file->data = data_end(fd, (uint64_t)st.st_size);
  close(fd);
  if (looked && st.st_size == 0) return TB_OK;
  if (map == MAP_FAILED) return tb_fail(diag, TB_IO, "wal/%s: %s", name, strerror(why));
  file->map = map;
  file->bytes = (uint64_t)st.st_size;
  return TB_OK;
}

static tb_rc list_files(int wal_fd, struct tb_diag *diag, struct tc_log_scan *scan) {
  const char *name;
  DIR *dir;

  TB_TRY(tc_dir_open(wal_fd, "wal", diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "wal", diag, &name)) == TB_OK && name != NULL) {
    struct tc_log_scan_file file = { 0 };
    if (!parse_name(name, &file.start)) continue;
    rc = grow(&scan->files, &scan->files_cap, scan->nfiles + 1, sizeof *scan->files);
    if (rc == TB_OK) rc = map_file(wal_fd, name, &file, diag);
    if (rc == TB_OK) scan->files[scan->nfiles++] = file;
  }
  closedir(dir);
  if (rc == TB_OK && scan->nfiles > 0)
    qsort(scan->files, scan->nfiles, sizeof *scan->files, by_start);
  return rc;
}

/* The record at offset, if it is whole and right. */
static bool record_at(const struct tc_log_scan_file *file, uint64_t offset, uint64_t limit,
                      struct tc_log_entry *out) {
  if (limit - offset < TC_LOG_HEAD_BYTES + 4) return false;
  const unsigned char *p = file->map + offset;
  if (tc_log_u32(p) != TC_LOG_MAGIC) return false;
  tc_log_head_get(p, &out->head);
  if (out->head.lsn != file->start + offset) return false;
  if (out->head.len > limit - offset - TC_LOG_HEAD_BYTES - 4) return false;
  out->payload = p + TC_LOG_HEAD_BYTES;
  out->payload_crc = tb_crc32c(0, out->payload, out->head.len);
  return tb_crc32c_join(tb_crc32c(file->salt, p, TC_LOG_HEAD_BYTES), out->payload_crc,
                        out->head.len) == tc_log_u32(out->payload + out->head.len);
}

/* The salt stands in the payload it guards, so the first record is checked with what it says itself. */
static bool read_salt(struct tc_log_scan_file *file) {
  struct tc_log_entry first;

  if (file->bytes < TC_LOG_HEAD_BYTES + 8) return false;
  file->salt = tc_log_u32(file->map + TC_LOG_HEAD_BYTES);
  return record_at(file, 0, file->bytes, &first) && first.head.kind == TC_LOG_SNAPSHOT &&
         first.head.len >= 4;
}

/* 0: it does not say. */
static tb_rc previous_end_of(const struct tc_log_scan_file *file, struct tb_diag *diag,
                             uint64_t *out) {
  struct tc_log_entry first;
  struct tc_heap heap;

  *out = 0;
  if (!record_at(file, 0, file->bytes, &first)) return TB_OK;
  tc_heap_init(&heap);
  Tracecollect__V1__LogSnapshot *snapshot = tracecollect__v1__log_snapshot__unpack(
      &heap.allocator, first.head.len - 4, first.payload + 4);
  if (snapshot == NULL)
    return heap.is_short ? tb_fail(diag, TB_NOMEM, "wal: no memory for a snapshot") : TB_OK;
  *out = snapshot->previous_end;
  tracecollect__v1__log_snapshot__free_unpacked(snapshot, NULL);
  return TB_OK;
}

static bool known_kind(unsigned kind) {
  switch (kind) {
  case TP_HEADER:
  case TP_BATCH:
  case TP_GENEND:
  case TP_LOSS:
  case TP_CLOSE:
  case TC_LOG_SNAPSHOT:
  case TC_LOG_GROUP:
  case TC_LOG_STREAM:
  case TC_LOG_SETTLED:
  case TC_LOG_PAD:
  case TC_LOG_CHECKPOINT: return true;
  default: return false;
  }
}

/* The log was written past the page cache, so after a crash all of it comes from the disk, and a walk that faults its way
 * through waits for each piece: a third of what the disk can do. What lies ahead is asked for in time. */
static void ask_ahead(struct tc_log_scan_file *file, uint64_t offset) {
  while (file->asked < file->data && file->asked < offset + AHEAD_BYTES) {
    uint64_t left = file->data - file->asked;
    (void)madvise((void *)(uintptr_t)(file->map + file->asked),
                  left < AHEAD_STEP_BYTES ? (size_t)left : AHEAD_STEP_BYTES, MADV_WILLNEED);
    file->asked += AHEAD_STEP_BYTES;
  }
}

/* The next place where a record may begin; not further than the disk has been asked for. */
static uint64_t next_magic(const struct tc_log_scan_file *file, uint64_t offset, uint64_t limit) {
  uint64_t end = file->asked < limit ? file->asked : limit;

  while (offset + 4 <= end && tc_log_u32(file->map + offset) != TC_LOG_MAGIC) offset += 8;
  return offset;
}

/* All entries of the file up to limit; the torn tail is cut off again at the end. */
static tb_rc walk_file(struct tc_log_scan *scan, struct tc_log_scan_file *file, uint64_t limit,
                       bool limit_is_durable, struct tb_diag *diag) {
  struct tc_log_scan_file *behind = file + 1 < scan->files + scan->nfiles ? file + 1 : NULL;
  uint64_t proven = limit_is_durable ? limit : 0; /* durable up to here, as far as the walk knows */
  uint64_t first_damage = 0;
  size_t entries_at_damage = 0;
  uint64_t offset = 0, good_end = 0;
  bool damaged = false, in_damage = false;

  while (offset + TC_LOG_HEAD_BYTES + 4 <= limit) {
    struct tc_log_entry entry;
    ask_ahead(file, offset);
    if (behind != NULL && offset + AHEAD_BYTES > limit)
      ask_ahead(behind, 0); /* from its beginning on */
    if (!record_at(file, offset, limit, &entry)) {
      if (!in_damage && (!damaged || proven > first_damage)) {
        if (damaged) scan->corrupt++; /* the place before this one is proven durable by now */
        damaged = true;
        first_damage = offset;
        entries_at_damage = scan->nentries;
      }
      in_damage = true;
      offset = next_magic(file, offset + 8, limit);
      continue;
    }
    in_damage = false;
    if (!known_kind(entry.head.kind) && (entry.head.flags & TP_CRITICAL) != 0)
      return tb_fail(diag, TB_UNSUPPORTED, "wal: a critical record of kind %u at lsn %" PRIu64,
                     entry.head.kind, entry.head.lsn);
    if (entry.head.kind == TC_LOG_GROUP && entry.head.seq >= file->start &&
        entry.head.seq - file->start > proven)
      proven = entry.head.seq - file->start;
    TB_TRY(grow(&scan->entries, &scan->entries_cap, scan->nentries + 1, sizeof *scan->entries));
    scan->entries[scan->nentries++] = entry;
    offset += tc_log_record_bytes(entry.head.len);
    good_end = offset;
  }
  if (damaged && proven > first_damage)
    scan->corrupt++;
  else if (damaged) {
    /* Zeros to the end are a file that was never full; anything else a tail that was being written. */
    if (good_end > first_damage) scan->torn_bytes += good_end - first_damage;
    scan->nentries = entries_at_damage;
    good_end = first_damage;
  }
  file->end = file->start + good_end;
  file->proven = file->start + (proven < good_end ? proven : good_end);
  return TB_OK;
}

static const struct tc_log_scan_file *next_readable(const struct tc_log_scan *scan, size_t i) {
  for (i++; i < scan->nfiles; i++)
    if (scan->files[i].readable) return &scan->files[i];
  return NULL;
}

tb_rc tc_log_scan(int wal_fd, struct tb_diag *diag, struct tc_log_scan *out) {
  *out = (struct tc_log_scan){ 0 };
  TB_TRY(list_files(wal_fd, diag, out));
  for (size_t i = 0; i < out->nfiles; i++) {
    out->files[i].readable = read_salt(&out->files[i]);
    out->files[i].end = out->files[i].proven = out->files[i].start;
  }
  for (size_t i = 0; i < out->nfiles; i++) {
    struct tc_log_scan_file *file = &out->files[i];
    /* A file that was only just made when the process died has no bytes yet, but its name is taken. */
    uint64_t after = file->start + (file->bytes > 8 ? file->bytes : 8);
    if (after > out->next_lsn) out->next_lsn = (after + 7) & ~UINT64_C(7);
    const struct tc_log_scan_file *next = next_readable(out, i);
    uint64_t counted = 0;
    if (next != NULL) TB_TRY(previous_end_of(next, diag, &counted));
    if (!file->readable) {
      /* Nothing was acked from it, unless the next one says that some of it counts. */
      if (counted > file->start) out->corrupt++;
      continue;
    }
    bool durable = next != NULL && counted >= file->start && counted <= after;
    TB_TRY(walk_file(out, file, durable ? counted - file->start : file->data, durable, diag));
    out->previous_end = file->end;
  }
  return TB_OK;
}

tb_rc tc_log_scan_to_disk(int wal_fd, const struct tc_log_scan *scan, struct tb_diag *diag) {
  tb_rc rc = TB_OK;

  for (size_t i = 0; rc == TB_OK && i < scan->nfiles; i++) {
    const struct tc_log_scan_file *file = &scan->files[i];
    uint64_t from = file->proven - file->start;
    char name[TC_LOG_NAME_BYTES];
    if (file->proven >= file->end) continue;
    tc_log_file_name(file->start, name);
    int fd = openat(wal_fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 ||
        tc_write_all(fd, file->map + from, (size_t)(file->end - file->proven), from) != 0 ||
        fdatasync(fd) != 0)
      rc = tb_fail(diag, tc_errno_rc(errno), "wal/%s: %s", name, strerror(errno));
    if (fd >= 0) close(fd);
  }
  if (rc == TB_OK && scan->nfiles > 0 && fsync(wal_fd) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "wal: %s", strerror(errno));
  return rc;
}

void tc_log_scan_free(struct tc_log_scan *scan) {
  for (size_t i = 0; i < scan->nfiles; i++)
    if (scan->files[i].map != NULL)
      munmap((void *)(uintptr_t)scan->files[i].map, scan->files[i].bytes);
  free(scan->files);
  free(scan->entries);
  *scan = (struct tc_log_scan){ 0 };
}
