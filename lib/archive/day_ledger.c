/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/day_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

enum { STREAM_BYTES = 16 };

static tb_rc fail(const char *day, struct tb_diag *diag, tb_rc rc) {
  return tb_fail(diag, rc, "archive/%s/" TC_DAY_LEDGER_NAME ": %s", day,
                 rc == TB_NOMEM ? "no memory for its records" : strerror(errno));
}

void tc_day_ledger_fini(struct tc_day_ledger *ledger) {
  for (size_t i = 0; i < ledger->n; i++) tc_meta_free(ledger->records[i].meta);
  free(ledger->records);
  *ledger = (struct tc_day_ledger){ 0 };
}

/* ---- reading */

struct text { /* a file's bytes */
  unsigned char *at;
  size_t n;
};

static tb_rc read_bytes(int fd, const char *day, struct tb_diag *diag, struct text *out) {
  struct stat st;

  if (fstat(fd, &st) != 0) return fail(day, diag, tc_errno_rc(errno));
  out->n = (size_t)st.st_size;
  out->at = malloc(out->n + 1);
  if (out->at == NULL) return fail(day, diag, TB_NOMEM);
  return tc_read_all(fd, out->at, out->n, 0) == 0 ? TB_OK : fail(day, diag, tc_read_rc(errno));
}

/* Returns the next place where a record may begin, at `at` or later; text->n: nowhere. */
static size_t next_mark(const struct text *text, size_t at) {
  static const char mark[] = "TCMETA1\n";
  const unsigned char *found =
      at >= text->n ? NULL : memmem(text->at + at, text->n - at, mark, sizeof mark - 1);

  return found == NULL ? text->n : (size_t)(found - text->at);
}

static void report_damage(const struct tc_day_ledger *ledger,
                          const struct tc_day_ledger_options *options, size_t from, size_t upto) {
  char text[96];

  if (options->damaged == NULL || from == upto) return;
  snprintf(text, sizeof text, "archive/%s/" TC_DAY_LEDGER_NAME ": damaged from byte %zu to %zu",
           ledger->day, from, upto);
  options->damaged(options->self, text);
}

/* TB_CORRUPT: the bytes do not begin with a valid record; TB_REFUSED: the record belongs to another day. */
static tb_rc unpack(const unsigned char *bytes, size_t n, const char *name, const char *day,
                    const struct tc_day_ledger_options *options, struct tb_diag *diag,
                    struct tc_day_record *out, size_t *out_n) {
  TB_TRY(tc_meta_unpack_first(bytes, n, name, options->keys, diag, &out->meta, out_n, &out->by));
  const tc_meta *meta = out->meta;
  tb_rc rc = TB_OK;
  if (meta->folded == NULL || meta->n_generations != 1 || !meta->expired)
    rc = tb_fail(diag, TB_CORRUPT, "%s: stands for no expired segments", name);
  else if (strcmp(meta->day, day) != 0)
    rc = tb_fail(diag, TB_REFUSED, "%s: belongs to archive/%s", name, meta->day);
  if (rc != TB_OK) tc_meta_free(out->meta);
  return rc;
}

static void leave_out(const struct tc_day_ledger_options *options, const char *why) {
  char text[sizeof((struct tb_diag *)NULL)->text + 64];

  if (options->damaged == NULL) return;
  snprintf(text, sizeof text, "%s; the record is kept, but ignored", why);
  options->damaged(options->self, text);
}

/* *out_end: the end of the last whole record. */
static tb_rc take_records(struct tc_day_ledger *ledger, const struct text *text,
                          const struct tc_day_ledger_options *options, struct tb_diag *diag,
                          size_t *out_end) {
  size_t at = 0, end = 0, len;
  char name[64];

  while (at < text->n) {
    if (TB_GROW(ledger->records, ledger->cap, ledger->n) != TB_OK)
      return fail(ledger->day, diag, TB_NOMEM);
    struct tc_day_record *record = &ledger->records[ledger->n];
    struct tb_diag why = { 0 };
    *record = (struct tc_day_record){ .offset = at, .by = TC_SIGNED_NOT };
    snprintf(name, sizeof name, "archive/%s/" TC_DAY_LEDGER_NAME ": byte %zu", ledger->day, at);
    tb_rc rc = unpack(text->at + at, text->n - at, name, ledger->day, options, &why, record, &len);
    if (rc != TB_OK && rc != TB_CORRUPT && rc != TB_REFUSED)
      return tb_fail(diag, rc, "%s", why.text);
    if (rc == TB_CORRUPT && (len = tc_meta_frame(text->at + at, text->n - at)) == 0) {
      at = next_mark(text, at + 1);
      continue;
    }
    report_damage(ledger, options, end, at);
    if (rc == TB_OK)
      ledger->n++;
    else
      leave_out(options, why.text);
    ledger->foreign += rc == TB_CORRUPT;
    end = at += len;
  }
  *out_end = end;
  return TB_OK;
}

static int by_stream_and_seq(const void *a, const void *b) {
  const struct tc_day_record *x = a, *y = b;
  uint64_t x_seq = tc_meta_last_seq(x->meta), y_seq = tc_meta_last_seq(y->meta);
  int order = memcmp(x->meta->stream.data, y->meta->stream.data, STREAM_BYTES);

  return order != 0 ? order : (x_seq > y_seq) - (x_seq < y_seq);
}

static void report_cut(const struct tc_day_ledger *ledger,
                       const struct tc_day_ledger_options *options, size_t from, size_t upto) {
  char text[120];

  if (options->cut == NULL || from == upto) return;
  snprintf(text, sizeof text,
           "archive/%s/" TC_DAY_LEDGER_NAME ": %zu bytes from byte %zu on are an incomplete record"
           " and were cut off",
           ledger->day, upto - from, from);
  options->cut(options->self, text);
}

/* Cuts off an incomplete record: the metas that it was to replace still exist. */
static bool settle(int fd, int day_fd, const struct text *text, size_t end) {
  return (end == text->n || ftruncate(fd, (off_t)end) == 0) && fsync(fd) == 0 && fsync(day_fd) == 0;
}

tb_rc tc_day_ledger_read(int day_fd, const char *day, const struct tc_day_ledger_options *options,
                         struct tb_diag *diag, struct tc_day_ledger *out) {
  struct text text = { 0 };
  size_t end;

  tc_day_ledger_fini(out);
  strncpy(out->day, day, sizeof out->day - 1);
  int fd = options->settle ? openat(day_fd, TC_DAY_LEDGER_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
                           : openat(day_fd, TC_DAY_LEDGER_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT ? TB_OK : fail(out->day, diag, tc_errno_rc(errno));
  tb_rc rc = read_bytes(fd, out->day, diag, &text);
  if (rc == TB_OK) rc = take_records(out, &text, options, diag, &end);
  if (rc == TB_OK && options->settle) {
    if (settle(fd, day_fd, &text, end))
      report_cut(out, options, end, text.n);
    else
      rc = fail(out->day, diag, tc_errno_rc(errno));
  }
  free(text.at);
  close(fd);
  if (out->n > 1) qsort(out->records, out->n, sizeof *out->records, by_stream_and_seq);
  if (rc != TB_OK) tc_day_ledger_fini(out);
  return rc;
}

/* ---- asking */

static bool is_before(const tc_meta *record, const unsigned char stream[16], uint64_t seq) {
  int order = memcmp(record->stream.data, stream, STREAM_BYTES);

  return order != 0 ? order < 0 : tc_meta_last_seq(record) < seq;
}

const tc_meta *tc_day_ledger_find(const struct tc_day_ledger *ledger,
                                  const unsigned char stream[16], uint64_t seq) {
  size_t from = 0, upto = ledger->n;

  while (from < upto) {
    size_t middle = from + (upto - from) / 2;
    if (is_before(ledger->records[middle].meta, stream, seq))
      from = middle + 1;
    else
      upto = middle;
  }
  if (from == ledger->n) return NULL;
  const tc_meta *record = ledger->records[from].meta;
  return memcmp(record->stream.data, stream, STREAM_BYTES) == 0 ? record : NULL;
}

bool tc_day_ledger_covers(const struct tc_day_ledger *ledger, const tc_meta *meta) {
  return (meta->expired || meta->n_generations == 0) && strcmp(meta->day, ledger->day) == 0 &&
         tc_day_ledger_find(ledger, meta->stream.data, tc_meta_last_seq(meta)) != NULL;
}

/* ---- writing */

static bool write_record(int fd, int day_fd, const unsigned char *bytes, size_t n, off_t at,
                         bool durable) {
  return tc_write_all(fd, bytes, n, (uint64_t)at) == 0 &&
         (!durable || (fdatasync(fd) == 0 && fsync(day_fd) == 0));
}

static tb_rc append(int fd, int day_fd, const char *day, const unsigned char *bytes, size_t n,
                    bool durable, struct tb_diag *diag, bool *out_unsure) {
  struct stat st;

  if (fstat(fd, &st) != 0) return fail(day, diag, tc_errno_rc(errno));
  if (write_record(fd, day_fd, bytes, n, st.st_size, durable)) return TB_OK;
  tb_rc rc = fail(day, diag, tc_errno_rc(errno));
  *out_unsure = ftruncate(fd, st.st_size) != 0 || (durable && fdatasync(fd) != 0);
  return rc;
}

tb_rc tc_day_ledger_append(int day_fd, const tc_meta *record, const struct tc_keys *signer,
                           bool durable, struct tb_diag *diag, bool *out_unsure) {
  unsigned char *bytes;
  size_t n;

  *out_unsure = false;
  if (tc_meta_pack(record, signer, &bytes, &n) != TB_OK) return fail(record->day, diag, TB_NOMEM);
  int fd = openat(day_fd, TC_DAY_LEDGER_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
  tb_rc rc = fd < 0 ? fail(record->day, diag, tc_errno_rc(errno))
                    : append(fd, day_fd, record->day, bytes, n, durable, diag, out_unsure);
  if (fd >= 0) close(fd);
  free(bytes);
  return rc;
}

int tc_day_ledger_lock(int archive_fd, bool exclusive) {
  int fd = openat(archive_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0 || flock(fd, exclusive ? LOCK_EX | LOCK_NB : LOCK_SH) == 0) return fd;
  int why = errno;
  close(fd);
  errno = why;
  return -1;
}
