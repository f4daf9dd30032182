/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/month.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/walk.h"
#include "base/grow.h"

static const char ending[] = ".ledger", mark[] = "TCMETA1\n";

enum { MONTH_CHARS = 7, PATH_BYTES = 48 }; /* YYYY-MM */

/* ---- a file's bytes */

struct bytes {
  unsigned char *at;
  size_t n;
};

static tb_rc read_file(int fd, const char *path, struct tb_diag *diag, struct bytes *out) {
  struct stat st;

  *out = (struct bytes){ 0 };
  if (fstat(fd, &st) != 0)
    return tb_fail(diag, tc_errno_rc(errno), "%s: %s", path, strerror(errno));
  out->n = (size_t)st.st_size;
  out->at = malloc(out->n + 1);
  if (out->at == NULL) return tb_fail(diag, TB_NOMEM, "%s: no memory for its bytes", path);
  if (tc_read_all(fd, out->at, out->n, 0) == 0) return TB_OK;
  tb_rc rc = tb_fail(diag, tc_read_rc(errno), "%s: %s", path, strerror(errno));
  free(out->at);
  *out = (struct bytes){ 0 };
  return rc;
}

/* ---- records one after the other */

struct cursor {
  struct bytes bytes;
  size_t at;
  size_t end;        /* of the last whole record */
  size_t damaged_at; /* from here up to at; SIZE_MAX: nothing is */
};

/* Where the next record may begin, from at on; n: nowhere. */
static size_t next_mark(const struct bytes *bytes, size_t at) {
  const unsigned char *found =
      at >= bytes->n ? NULL : memmem(bytes->at + at, bytes->n - at, mark, sizeof mark - 1);

  return found == NULL ? bytes->n : (size_t)(found - bytes->at);
}

/* *out NULL: there is none. */
static tb_rc next_record(struct cursor *cursor, const char *path, const struct tc_keys *keys,
                         struct tb_diag *diag, tc_meta **out, enum tc_signed *out_by) {
  size_t len;

  *out = NULL;
  cursor->damaged_at = SIZE_MAX;
  while (cursor->at < cursor->bytes.n) {
    struct tb_diag why = { 0 };
    tb_rc rc = tc_meta_unpack_first(cursor->bytes.at + cursor->at, cursor->bytes.n - cursor->at,
                                    path, keys, &why, out, &len, out_by);
    if (rc == TB_OK) {
      cursor->end = cursor->at + len;
      return TB_OK;
    }
    if (rc != TB_CORRUPT) return tb_fail(diag, rc, "%s", why.text);
    if (cursor->damaged_at == SIZE_MAX) cursor->damaged_at = cursor->at;
    cursor->at = next_mark(&cursor->bytes, cursor->at + 1);
  }
  return TB_OK;
}

/* ---- reading */

struct tc_month_reader {
  int archive_fd;
  struct tc_month_options options;
  char (*names)[16];
  size_t nnames, names_cap, next; /* next: the month that is to be opened */
  struct cursor cursor;
  char path[PATH_BYTES];
  tc_meta *meta; /* that was given last */
};

static bool is_ledger(const char *name) {
  return strlen(name) == MONTH_CHARS + sizeof ending - 1 && tc_name_ends(name, ending);
}

static bool is_asked(const struct tc_month_reader *reader, const char *name) {
  return reader->options.only == NULL || strncmp(reader->options.only, name, MONTH_CHARS) == 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(a, b);
}

static tb_rc find_months(struct tc_month_reader *reader, struct tb_diag *diag) {
  const char *name;
  DIR *dir;

  TB_TRY(tc_dir_open(reader->archive_fd, "archive", diag, &dir));
  tb_rc rc = TB_OK;
  while (rc == TB_OK && (rc = tc_dir_next(dir, "archive", diag, &name)) == TB_OK && name != NULL) {
    if (!is_ledger(name) || !is_asked(reader, name)) continue;
    if (TB_GROW(reader->names, reader->names_cap, reader->nnames) != TB_OK)
      rc = tb_fail(diag, TB_NOMEM, "archive: no memory for its names");
    else
      strcpy(reader->names[reader->nnames++], name);
  }
  closedir(dir);
  if (reader->nnames > 1) qsort(reader->names, reader->nnames, sizeof *reader->names, by_name);
  return rc;
}

tb_rc tc_month_reader_new(int archive_fd, const struct tc_month_options *options,
                          struct tb_diag *diag, struct tc_month_reader **out) {
  struct tc_month_reader *reader = calloc(1, sizeof *reader);

  if (reader == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory to read its ledgers");
  reader->archive_fd = archive_fd;
  reader->options = *options;
  tb_rc rc = find_months(reader, diag);
  if (rc != TB_OK) {
    tc_month_reader_free(reader);
    return rc;
  }
  *out = reader;
  return TB_OK;
}

void tc_month_reader_free(struct tc_month_reader *reader) {
  if (reader == NULL) return;
  tc_meta_free(reader->meta);
  free(reader->cursor.bytes.at);
  free(reader->names);
  free(reader);
}

static tb_rc open_and_read(struct tc_month_reader *reader, const char *name, struct tb_diag *diag,
                           struct bytes *out) {
  int fd = openat(reader->archive_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0) return tb_fail(diag, tc_errno_rc(errno), "%s: %s", reader->path, strerror(errno));
  tb_rc rc = read_file(fd, reader->path, diag, out);
  if (rc == TB_OK && reader->options.sync && (fsync(fd) != 0 || fsync(reader->archive_fd) != 0)) {
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", reader->path, strerror(errno));
    free(out->at);
    *out = (struct bytes){ 0 };
  }
  close(fd);
  return rc;
}

/* One that cannot be read has no records. */
static tb_rc open_next(struct tc_month_reader *reader, struct tb_diag *diag) {
  const char *name = reader->names[reader->next++];
  struct tb_diag why = { 0 };

  free(reader->cursor.bytes.at);
  reader->cursor = (struct cursor){ 0 };
  snprintf(reader->path, sizeof reader->path, "archive/%s", name);
  tb_rc rc = open_and_read(reader, name, &why, &reader->cursor.bytes);
  if (rc == TB_OK) return TB_OK;
  if (tc_rc_is_short(rc) || reader->options.problem == NULL)
    return tb_fail(diag, rc, "%s", why.text);
  reader->options.problem(reader->options.self, why.text);
  return TB_OK;
}

static void report_damage(const struct tc_month_reader *reader) {
  char text[PATH_BYTES + 80];

  if (reader->options.problem == NULL) return;
  snprintf(text, sizeof text, "%s: damaged from byte %zu to %zu", reader->path,
           reader->cursor.damaged_at, reader->cursor.at);
  reader->options.problem(reader->options.self, text);
}

tb_rc tc_month_reader_next(struct tc_month_reader *reader, struct tb_diag *diag,
                           struct tc_month_record *out) {
  struct cursor *cursor = &reader->cursor;

  tc_meta_free(reader->meta);
  reader->meta = NULL;
  *out = (struct tc_month_record){ .path = reader->path, .by = TC_SIGNED_NOT };
  for (;;) {
    TB_TRY(next_record(cursor, reader->path, reader->options.keys, diag, &reader->meta, &out->by));
    if (reader->meta != NULL) break;
    if (reader->next == reader->nnames) return TB_OK;
    TB_TRY(open_next(reader, diag));
  }
  if (cursor->damaged_at != SIZE_MAX) report_damage(reader);
  out->meta = reader->meta;
  out->offset = cursor->at;
  cursor->at = cursor->end;
  return TB_OK;
}

/* ---- writing */

void tc_month_init(struct tc_month *month) {
  *month = (struct tc_month){ .fd = -1 };
}

void tc_month_close(struct tc_month *month) {
  if (month->fd >= 0) close(month->fd);
  tc_month_init(month);
}

static tb_rc fail(const struct tc_month *month, struct tb_diag *diag) {
  return tb_fail(diag, tc_errno_rc(errno), "archive/%s: %s", month->name, strerror(errno));
}

static tb_rc find_end(struct tc_month *month, struct tb_diag *diag) {
  struct cursor cursor = { 0 };
  enum tc_signed by;
  tc_meta *meta;
  tb_rc rc;

  TB_TRY(read_file(month->fd, month->name, diag, &cursor.bytes));
  do {
    rc = next_record(&cursor, month->name, NULL, diag, &meta, &by);
    tc_meta_free(meta);
    cursor.at = cursor.end;
  } while (rc == TB_OK && meta != NULL);
  free(cursor.bytes.at);
  month->end = cursor.end;
  return rc;
}

static tb_rc open_month(struct tc_month *month, int archive_fd, const char *day,
                        struct tb_diag *diag) {
  char name[sizeof month->name];

  snprintf(name, sizeof name, "%.*s%s", MONTH_CHARS, day, ending);
  if (month->fd >= 0 && strcmp(month->name, name) == 0) return TB_OK;
  tc_month_close(month);
  memcpy(month->name, name, sizeof name);
  month->fd = openat(archive_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (month->fd < 0) return fail(month, diag);
  month->is_new = true; /* as far as is known */
  tb_rc rc = find_end(month, diag);
  if (rc != TB_OK) tc_month_close(month);
  return rc;
}

static bool write_record(struct tc_month *month, int archive_fd, const unsigned char *bytes,
                         size_t n, bool durable) {
  return ftruncate(month->fd, (off_t)month->end) == 0 &&
         tc_write_all(month->fd, bytes, n, month->end) == 0 &&
         (!durable || fdatasync(month->fd) == 0) &&
         (!durable || !month->is_new || fsync(archive_fd) == 0);
}

/* What is there of a record that was not written to its end does not count. */
static bool cut_off(const struct tc_month *month, bool durable) {
  return ftruncate(month->fd, (off_t)month->end) == 0 && (!durable || fdatasync(month->fd) == 0);
}

static tb_rc append(struct tc_month *month, int archive_fd, const unsigned char *bytes, size_t n,
                    bool durable, struct tb_diag *diag) {
  if (!write_record(month, archive_fd, bytes, n, durable)) {
    tb_rc rc = fail(month, diag);
    month->unsure = !cut_off(month, durable);
    return rc;
  }
  month->is_new = month->unsure = false;
  month->end += n;
  return TB_OK;
}

tb_rc tc_month_append(struct tc_month *month, int archive_fd, const tc_meta *meta,
                      const struct tc_keys *signer, bool durable, struct tb_diag *diag) {
  unsigned char *bytes;
  size_t n;

  TB_TRY(open_month(month, archive_fd, meta->day, diag));
  if (tc_meta_pack(meta, signer, &bytes, &n) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "archive/%s: no memory for a record", month->name);
  tb_rc rc = append(month, archive_fd, bytes, n, durable, diag);
  free(bytes);
  return rc;
}

int tc_month_lock(int archive_fd, bool exclusive) {
  int fd = openat(archive_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0 || flock(fd, exclusive ? LOCK_EX | LOCK_NB : LOCK_SH) == 0) return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}

/* ---- what records stand for */

void tc_month_covers_fini(struct tc_month_covers *covers) {
  free(covers->items);
  *covers = (struct tc_month_covers){ 0 };
}

tb_rc tc_month_covers_add(struct tc_month_covers *covers, const tc_meta *record) {
  TB_TRY(TB_GROW(covers->items, covers->cap, covers->n));
  struct tc_month_cover *cover = &covers->items[covers->n++];

  *cover = (struct tc_month_cover){ .first_seq = record->generations[0]->first_seq,
                                    .last_seq = tc_meta_last_seq(record),
                                    .last_gen = record->folded->last_gen,
                                    .hash = tc_meta_hash(record) };
  memcpy(cover->stream, record->stream.data, sizeof cover->stream);
  strncpy(cover->day, record->day, sizeof cover->day - 1);
  covers->is_sorted = false;
  return TB_OK;
}

static int by_place(const struct tc_month_cover *a, const struct tc_month_cover *b) {
  int order = memcmp(a->stream, b->stream, sizeof a->stream);

  return order != 0 ? order : strcmp(a->day, b->day);
}

static int by_place_and_seq(const void *a, const void *b) {
  const struct tc_month_cover *x = a, *y = b;
  int order = by_place(x, y);

  return order != 0 ? order : (x->last_seq > y->last_seq) - (x->last_seq < y->last_seq);
}

const struct tc_month_cover *tc_month_covers_find(struct tc_month_covers *covers,
                                                  const unsigned char stream[16], const char *day,
                                                  uint64_t seq) {
  struct tc_month_cover key = { .last_seq = seq };
  size_t from = 0, upto = covers->n;

  memcpy(key.stream, stream, sizeof key.stream);
  strncpy(key.day, day, sizeof key.day - 1);
  if (!covers->is_sorted && covers->n > 1)
    qsort(covers->items, covers->n, sizeof key, by_place_and_seq);
  covers->is_sorted = true;
  while (from < upto) { /* the first that is not less */
    size_t middle = from + (upto - from) / 2;
    if (by_place_and_seq(&covers->items[middle], &key) < 0)
      from = middle + 1;
    else
      upto = middle;
  }
  return from < covers->n && by_place(&covers->items[from], &key) == 0 ? &covers->items[from]
                                                                       : NULL;
}

bool tc_month_covers_it(struct tc_month_covers *covers, const tc_meta *meta) {
  if (!meta->expired && meta->n_generations > 0) return false;
  return tc_month_covers_find(covers, meta->stream.data, meta->day, tc_meta_last_seq(meta)) != NULL;
}
