/* SPDX-License-Identifier: Apache-2.0 */
/* Walks each file record by record. After an invalid record the walk searches for the next valid one, in steps of 8 bytes.
 * A GROUP has the lsn up to which the log was durable before it: this separates damage from a torn tail. */
#include "collector/wal/scanner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/grow.h"
#include "collector/wal/files.h"
#include "proto/allocator.h"
#include "proto/frame.h"
#include "proto/log.pb-c.h"

enum {
  AHEAD_BYTES = 32 << 20,     /* readahead is requested this far before the walk */
  AHEAD_STEP_BYTES = 1 << 20, /* the most that the kernel takes of one request */
  WINDOW_BYTES = 1 << 20,
  SEARCH_BYTES = 64 << 10,
  BLOCK_BYTES = 4096, /* unit of reads after a read error */
};

static bool parse_name(const char *name, uint64_t *out) {
  if (strlen(name) != 20 || strcmp(name + 16, ".wal") != 0) return false;
  if (strspn(name, "0123456789abcdef") != 16) return false;
  *out = strtoull(name, NULL, 16);
  return true;
}

static int by_start(const void *a, const void *b) {
  const struct tc_wal_scan_file *x = a, *y = b;

  return (x->start > y->start) - (x->start < y->start);
}

/* Returns the end of the file's data: preallocated space that was never written is a hole and need not be read. */
static uint64_t data_end(int fd, uint64_t bytes) {
  uint64_t end = 0;

  for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0;) {
    at = lseek(fd, at, SEEK_HOLE);
    if (at < 0) return bytes;
    end = (uint64_t)at;
  }
  return errno == ENXIO ? end : bytes;
}

static int open_file(int wal_fd, uint64_t start) {
  char name[TC_WAL_NAME_BYTES];

  tc_wal_file_name(start, name);
  return openat(wal_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static tb_rc measure(int wal_fd, const char *name, struct tc_wal_scan_file *file,
                     struct tb_diag *diag) {
  struct stat st;
  int fd = openat(wal_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0) return tb_fail(diag, tc_errno_rc(errno), "wal/%s: %s", name, strerror(errno));
  bool known = fstat(fd, &st) == 0;
  int why = errno;
  if (known) file->bytes = (uint64_t)st.st_size;
  if (known) file->data = data_end(fd, file->bytes);
  close(fd);
  return known ? TB_OK : tb_fail(diag, TB_IO, "wal/%s: %s", name, strerror(why));
}

static tb_rc fail_file(const struct tc_wal_window *w, struct tb_diag *diag) {
  char name[TC_WAL_NAME_BYTES];
  int why = errno;

  tc_wal_file_name(w->file_start, name);
  return tb_fail(diag, tc_read_rc(why), "wal/%s: %s", name, strerror(why));
}

/* Reads n bytes. Replaces only unreadable sectors by zeros: any other error may be gone at the next try. */
static tb_rc fill_window(struct tc_wal_scan *scan, uint64_t from, size_t n, struct tb_diag *diag) {
  struct tc_wal_window *w = &scan->window;

  if (tc_read_all(w->fd, w->bytes, n, from) == 0) return TB_OK;
  for (size_t done = 0, part; done < n; done += part) {
    part = BLOCK_BYTES - (size_t)((from + done) % BLOCK_BYTES);
    if (part > n - done) part = n - done;
    if (tc_read_all(w->fd, w->bytes + done, part, from + done) == 0) continue;
    if (tc_read_rc(errno) != TB_UNREADABLE) return fail_file(w, diag);
    memset(w->bytes + done, 0, part); /* no record has such a magic */
    if (scan->unreadable++ > 0) continue;
    scan->unreadable_file = w->file_start;
    scan->unreadable_at = (from + done) / BLOCK_BYTES * BLOCK_BYTES;
  }
  return TB_OK;
}

static tb_rc window_grow(struct tc_wal_window *w, size_t n, struct tb_diag *diag) {
  if (n <= w->cap) return TB_OK;
  free(w->bytes);
  *w = (struct tc_wal_window){ .fd = w->fd, .file_start = w->file_start };
  w->bytes = malloc(n);
  if (w->bytes == NULL) return tb_fail(diag, TB_NOMEM, "wal: no memory to read %zu bytes of it", n);
  w->cap = n;
  return TB_OK;
}

static bool is_in_window(const struct tc_wal_window *w, const struct tc_wal_scan_file *file,
                         uint64_t offset, size_t n) {
  return w->fd >= 0 && w->file_start == file->start && offset >= w->at &&
         offset + n <= w->at + w->len;
}

/* Returns n bytes at offset, which must be within the file; valid until the window moves. */
static tb_rc view_bytes(struct tc_wal_scan *scan, const struct tc_wal_scan_file *file,
                        uint64_t offset, size_t n, struct tb_diag *diag,
                        const unsigned char **out) {
  struct tc_wal_window *w = &scan->window;

  if (w->fd < 0 || w->file_start != file->start) {
    if (w->fd >= 0) close(w->fd);
    w->len = 0;
    w->file_start = file->start;
    w->fd = open_file(scan->wal_fd, file->start);
    if (w->fd < 0) return fail_file(w, diag);
  }
  if (!is_in_window(w, file, offset, n)) {
    uint64_t left = file->bytes - offset;
    size_t want = n > WINDOW_BYTES ? n : left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
    TB_TRY(window_grow(w, want, diag));
    w->len = 0;
    TB_TRY(fill_window(scan, offset, want, diag));
    w->at = offset;
    w->len = want;
  }
  *out = w->bytes + (offset - w->at);
  return TB_OK;
}

static tb_rc list_files(int wal_fd, struct tb_diag *diag, struct tc_wal_scan *scan) {
  const char *name;
  DIR *dir;

  TB_TRY(tc_dir_open(wal_fd, "wal", diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "wal", diag, &name)) == TB_OK && name != NULL) {
    struct tc_wal_scan_file file = { 0 };
    if (!parse_name(name, &file.start)) continue;
    rc = TB_GROW(scan->files, scan->files_cap, scan->nfiles);
    if (rc == TB_OK) rc = measure(wal_fd, name, &file, diag);
    if (rc == TB_OK) scan->files[scan->nfiles++] = file;
  }
  closedir(dir);
  if (rc == TB_OK && scan->nfiles > 0)
    qsort(scan->files, scan->nfiles, sizeof *scan->files, by_start);
  return rc;
}

/* Reads in pieces, so that a wrong length in a damaged head does not enlarge the window. */
static tb_rc crc_of(struct tc_wal_scan *scan, const struct tc_wal_scan_file *file, uint64_t offset,
                    size_t n, struct tb_diag *diag, uint32_t *out) {
  const unsigned char *p;

  *out = tb_crc32c(0, NULL, 0);
  for (size_t done = 0, part; done < n; done += part) {
    part = n - done < WINDOW_BYTES ? n - done : WINDOW_BYTES;
    TB_TRY(view_bytes(scan, file, offset + done, part, diag, &p));
    *out = tb_crc32c(*out, p, part);
  }
  return TB_OK;
}

/* Reads the record at offset. TB_NOTFOUND: no complete and valid record begins there. */
static tb_rc record_at(struct tc_wal_scan *scan, const struct tc_wal_scan_file *file,
                       uint64_t offset, uint64_t limit, struct tb_diag *diag,
                       struct tc_wal_entry *out) {
  const unsigned char *p;
  uint64_t whole;

  if (limit - offset < TC_WAL_HEAD_BYTES + 4) return TB_NOTFOUND;
  TB_TRY(view_bytes(scan, file, offset, TC_WAL_HEAD_BYTES + 4, diag, &p));
  if (tc_wal_u32(p) != TC_WAL_MAGIC) return TB_NOTFOUND;
  tc_wal_head_get(p, &out->head);
  if (out->head.lsn != file->start + offset) return TB_NOTFOUND;
  if (out->head.len > limit - offset - TC_WAL_HEAD_BYTES - 4) return TB_NOTFOUND;
  whole = TC_WAL_HEAD_BYTES + (uint64_t)out->head.len + 4;
  if (whole <= WINDOW_BYTES) TB_TRY(view_bytes(scan, file, offset, (size_t)whole, diag, &p));
  uint32_t head_crc = tb_crc32c(file->salt, p, TC_WAL_HEAD_BYTES);
  TB_TRY(crc_of(scan, file, offset + TC_WAL_HEAD_BYTES, out->head.len, diag, &out->payload_crc));
  TB_TRY(view_bytes(scan, file, offset + whole - 4, 4, diag, &p));
  out->file = (uint32_t)(file - scan->files);
  return tb_crc32c_join(head_crc, out->payload_crc, out->head.len) == tc_wal_u32(p) ? TB_OK
                                                                                    : TB_NOTFOUND;
}

/* The salt is in the payload that it guards, so the first record is checked with the salt that it names. */
static tb_rc read_salt(struct tc_wal_scan *scan, struct tc_wal_scan_file *file,
                       struct tb_diag *diag) {
  struct tc_wal_entry first;
  const unsigned char *p;

  if (file->bytes < TC_WAL_HEAD_BYTES + 8) return TB_OK;
  TB_TRY(view_bytes(scan, file, TC_WAL_HEAD_BYTES, 4, diag, &p));
  file->salt = tc_wal_u32(p);
  tb_rc rc = record_at(scan, file, 0, file->bytes, diag, &first);
  file->readable = rc == TB_OK && first.head.kind == TC_WAL_SNAPSHOT && first.head.len >= 4;
  return rc == TB_NOTFOUND ? TB_OK : rc;
}

static uint64_t payload_at(const struct tc_wal_scan *scan, const struct tc_wal_entry *entry) {
  return entry->head.lsn - scan->files[entry->file].start + TC_WAL_HEAD_BYTES;
}

bool tc_wal_scan_has_payload(const struct tc_wal_scan *scan, const struct tc_wal_entry *entry) {
  return is_in_window(&scan->window, &scan->files[entry->file], payload_at(scan, entry),
                      entry->head.len);
}

tb_rc tc_wal_scan_payload(struct tc_wal_scan *scan, const struct tc_wal_entry *entry,
                          struct tb_diag *diag, const unsigned char **out) {
  const struct tc_wal_scan_file *file = &scan->files[entry->file];

  TB_TRY(view_bytes(scan, file, payload_at(scan, entry), entry->head.len, diag, out));
  if (tb_crc32c(0, *out, entry->head.len) == entry->payload_crc) return TB_OK;
  return tb_fail(diag, TB_CORRUPT, "wal: lsn %" PRIu64 " cannot be read any more", entry->head.lsn);
}

/* Reads the end of the file before from this file's snapshot; *out is 0 if it is not known. */
static tb_rc previous_end_of(struct tc_wal_scan *scan, const struct tc_wal_scan_file *file,
                             struct tb_diag *diag, uint64_t *out) {
  struct tc_wal_entry first;
  const unsigned char *payload;
  struct tp_allocator heap;

  *out = 0;
  tb_rc rc = record_at(scan, file, 0, file->bytes, diag, &first);
  if (rc == TB_OK) rc = tc_wal_scan_payload(scan, &first, diag, &payload);
  if (rc == TB_NOTFOUND || rc == TB_CORRUPT) return TB_OK;
  TB_TRY(rc);
  tp_allocator_init(&heap);
  Tracecollect__V1__LogSnapshot *snapshot =
      tracecollect__v1__log_snapshot__unpack(&heap.allocator, first.head.len - 4, payload + 4);
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
  case TC_WAL_SNAPSHOT:
  case TC_WAL_GROUP:
  case TC_WAL_STREAM:
  case TC_WAL_SETTLED:
  case TC_WAL_PAD:
  case TC_WAL_CHECKPOINT:
  case TC_WAL_RUN: return true;
  default: return false;
  }
}

/* Requests readahead. The log bypassed the page cache, so after a crash all of it is read from the disk, and a walk that
 * waits for each piece reaches a third of the disk's speed. */
static void ask_ahead(const struct tc_wal_scan *scan, struct tc_wal_scan_file *file,
                      uint64_t offset) {
  if (file->asked >= file->data || file->asked >= offset + AHEAD_BYTES / 2) return;
  int fd = open_file(scan->wal_fd, file->start);
  for (; file->asked < file->data && file->asked < offset + AHEAD_BYTES;
       file->asked += AHEAD_STEP_BYTES)
    if (fd >= 0) (void)posix_fadvise(fd, (off_t)file->asked, AHEAD_STEP_BYTES, POSIX_FADV_WILLNEED);
  if (fd >= 0) close(fd);
}

/* Moves *offset to the next magic, or by SEARCH_BYTES if there is none so far. */
static tb_rc next_magic(struct tc_wal_scan *scan, const struct tc_wal_scan_file *file,
                        uint64_t limit, struct tb_diag *diag, uint64_t *offset) {
  size_t n = limit - *offset < SEARCH_BYTES ? (size_t)(limit - *offset) : SEARCH_BYTES, at = 0;
  const unsigned char *p;

  TB_TRY(view_bytes(scan, file, *offset, n, diag, &p));
  while (at + 4 <= n && tc_wal_u32(p + at) != TC_WAL_MAGIC) at += 8;
  *offset += at;
  return TB_OK;
}

/* Adds all entries of the file up to limit; entries of the torn tail are removed again at the end. */
static tb_rc walk_file(struct tc_wal_scan *scan, struct tc_wal_scan_file *file, uint64_t limit,
                       bool limit_is_durable, struct tb_diag *diag) {
  struct tc_wal_scan_file *behind = file + 1 < scan->files + scan->nfiles ? file + 1 : NULL;
  uint64_t proven = limit_is_durable ? limit : 0; /* known to be durable up to here */
  uint64_t first_damage = 0;
  size_t entries_at_damage = 0;
  uint64_t offset = 0, good_end = 0;
  bool damaged = false, in_damage = false;

  while (offset + TC_WAL_HEAD_BYTES + 4 <= limit) {
    struct tc_wal_entry entry;
    ask_ahead(scan, file, offset);
    if (behind != NULL && offset + AHEAD_BYTES > limit) ask_ahead(scan, behind, 0);
    tb_rc rc = record_at(scan, file, offset, limit, diag, &entry);
    if (rc != TB_OK && rc != TB_NOTFOUND) return rc;
    if (rc == TB_NOTFOUND) {
      if (!in_damage && (!damaged || proven > first_damage)) {
        if (damaged) scan->corrupt++; /* the damaged place before this one is known to be durable */
        damaged = true;
        first_damage = offset;
        entries_at_damage = scan->nentries;
      }
      in_damage = true;
      offset += 8;
      TB_TRY(next_magic(scan, file, limit, diag, &offset));
      continue;
    }
    in_damage = false;
    if (!known_kind(entry.head.kind) && (entry.head.flags & TP_CRITICAL) != 0)
      return tb_fail(diag, TB_UNSUPPORTED, "wal: a critical record of kind %u at lsn %" PRIu64,
                     entry.head.kind, entry.head.lsn);
    if (entry.head.kind == TC_WAL_GROUP && entry.head.seq >= file->start &&
        entry.head.seq - file->start > proven)
      proven = entry.head.seq - file->start;
    TB_TRY(TB_GROW(scan->entries, scan->entries_cap, scan->nentries));
    scan->entries[scan->nentries++] = entry;
    offset += tc_wal_record_bytes(entry.head.len);
    good_end = offset;
  }
  if (damaged && proven > first_damage)
    scan->corrupt++;
  else if (damaged) {
    /* Zeros up to the end are unused space; anything else is a tail that was being written. */
    if (good_end > first_damage) scan->torn_bytes += good_end - first_damage;
    scan->nentries = entries_at_damage;
    good_end = first_damage;
  }
  file->end = file->start + good_end;
  file->proven = file->start + (proven < good_end ? proven : good_end);
  return TB_OK;
}

static const struct tc_wal_scan_file *next_readable(const struct tc_wal_scan *scan, size_t i) {
  for (i++; i < scan->nfiles; i++)
    if (scan->files[i].readable) return &scan->files[i];
  return NULL;
}

tb_rc tc_wal_scan(int wal_fd, struct tb_diag *diag, struct tc_wal_scan *out) {
  *out = (struct tc_wal_scan){ .wal_fd = wal_fd, .window.fd = -1 };
  TB_TRY(list_files(wal_fd, diag, out));
  for (size_t i = 0; i < out->nfiles; i++) {
    TB_TRY(read_salt(out, &out->files[i], diag));
    out->files[i].end = out->files[i].proven = out->files[i].start;
  }
  for (size_t i = 0; i < out->nfiles; i++) {
    struct tc_wal_scan_file *file = &out->files[i];
    /* A file that was made just before a crash may be empty, but its name is taken. */
    uint64_t after = file->start + (file->bytes > 8 ? file->bytes : 8);
    if (after > out->next_lsn) out->next_lsn = (after + 7) & ~UINT64_C(7);
    const struct tc_wal_scan_file *next = next_readable(out, i);
    uint64_t counted = 0;
    if (next != NULL) TB_TRY(previous_end_of(out, next, diag, &counted));
    if (!file->readable) {
      /* Nothing was acked from this file, unless the next one counts a part of it. */
      if (counted > file->start) out->corrupt++;
      continue;
    }
    bool durable = next != NULL && counted >= file->start && counted <= after;
    TB_TRY(walk_file(out, file, durable ? counted - file->start : file->data, durable, diag));
    out->previous_end = file->end;
  }
  return TB_OK;
}

/* Writes the unproven part of the file again, with the same bytes. Does not overwrite a part that cannot be read. */
static tb_rc write_again(int wal_fd, const struct tc_wal_scan_file *file, void *buffer,
                         struct tb_diag *diag) {
  uint64_t from = file->proven - file->start, end = file->end - file->start;
  char name[TC_WAL_NAME_BYTES];
  int failed = 0;

  tc_wal_file_name(file->start, name);
  int fd = openat(wal_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return tb_fail(diag, tc_errno_rc(errno), "wal/%s: %s", name, strerror(errno));
  for (size_t part; failed == 0 && from < end; from += part) {
    part = end - from < WINDOW_BYTES ? (size_t)(end - from) : WINDOW_BYTES;
    failed = tc_read_all(fd, buffer, part, from);
    if (failed == 0) failed = tc_write_all(fd, buffer, part, from);
  }
  if (failed == 0) failed = fdatasync(fd);
  tb_rc rc =
      failed == 0 ? TB_OK : tb_fail(diag, tc_errno_rc(errno), "wal/%s: %s", name, strerror(errno));
  close(fd);
  return rc;
}

tb_rc tc_wal_scan_to_disk(int wal_fd, const struct tc_wal_scan *scan, struct tb_diag *diag) {
  void *buffer = malloc(WINDOW_BYTES);
  tb_rc rc = TB_OK;

  if (buffer == NULL) return tb_fail(diag, TB_NOMEM, "wal: no memory to write it");
  for (size_t i = 0; rc == TB_OK && i < scan->nfiles; i++)
    if (scan->files[i].proven < scan->files[i].end)
      rc = write_again(wal_fd, &scan->files[i], buffer, diag);
  free(buffer);
  if (rc == TB_OK && scan->nfiles > 0 && fsync(wal_fd) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "wal: %s", strerror(errno));
  return rc;
}

void tc_wal_scan_free(struct tc_wal_scan *scan) {
  if (scan->window.bytes != NULL || scan->nfiles > 0) {
    if (scan->window.fd >= 0) close(scan->window.fd);
    free(scan->window.bytes);
  }
  free(scan->files);
  free(scan->entries);
  *scan = (struct tc_wal_scan){ 0 };
}
