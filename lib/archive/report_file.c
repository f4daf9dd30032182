/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/state_dir.h"
#include "base/crc32c.h"

enum { HEAD_BYTES = 32, HEAD_CRC_AT = 12, ZSTD_LEVEL = 3 };

static const char magic[4] = { 'T', 'C', 'R', '1' };

static void put_u32(unsigned char *at, uint32_t value) {
  for (unsigned i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static void put_u64(unsigned char *at, uint64_t value) {
  for (unsigned i = 0; i < 8; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *at, unsigned bytes) {
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* ---- a head */

struct head {
  uint32_t bytes, crc;
  uint64_t from_ns, until_ns;
};

/* Of all but the place of the checksum itself. */
static uint32_t head_crc(const unsigned char *bytes) {
  uint32_t crc = tb_crc32c(0, bytes, HEAD_CRC_AT);

  return tb_crc32c(crc, bytes + HEAD_CRC_AT + 4, HEAD_BYTES - HEAD_CRC_AT - 4);
}

static void write_head(const struct head *head, unsigned char out[HEAD_BYTES]) {
  memcpy(out, magic, sizeof magic);
  put_u32(out + 4, head->bytes);
  put_u32(out + 8, head->crc);
  put_u64(out + 16, head->from_ns);
  put_u64(out + 24, head->until_ns);
  put_u32(out + HEAD_CRC_AT, head_crc(out));
}

static bool read_head(const unsigned char bytes[HEAD_BYTES], struct head *out) {
  if (memcmp(bytes, magic, sizeof magic) != 0 || get(bytes + HEAD_CRC_AT, 4) != head_crc(bytes))
    return false;
  *out = (struct head){ .bytes = (uint32_t)get(bytes + 4, 4),
                        .crc = (uint32_t)get(bytes + 8, 4),
                        .from_ns = get(bytes + 16, 8),
                        .until_ns = get(bytes + 24, 8) };
  return out->bytes <= TC_REPORT_RECORD_MAX;
}

/* ---- a file */

struct file {
  int fd;
  const char *name;
  uint64_t bytes;
};

static tb_rc open_file(int dir_fd, const char *name, int flags, struct tb_diag *diag,
                       struct file *out) {
  struct stat st;

  *out = (struct file){ .fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0640),
                        .name = name };
  if (out->fd < 0 && errno == ENOENT) return TB_NOTFOUND;
  if (out->fd < 0) return tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
  if (fstat(out->fd, &st) == 0) {
    out->bytes = (uint64_t)st.st_size;
    return TB_OK;
  }
  tb_rc rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
  close(out->fd);
  return rc;
}

/* TB_END: no whole record stands there. */
static tb_rc head_at(const struct file *file, uint64_t at, struct tb_diag *diag, struct head *out) {
  unsigned char bytes[HEAD_BYTES];

  if (at > file->bytes || file->bytes - at < HEAD_BYTES) return TB_END;
  TB_TRY(tc_read_exactly(file->fd, file->name, bytes, sizeof bytes, at, diag));
  if (!read_head(bytes, out)) return TB_END;
  return file->bytes - at - HEAD_BYTES >= out->bytes ? TB_OK : TB_END;
}

static tb_rc find_end(const struct file *file, struct tb_diag *diag, uint64_t *out) {
  struct head head;
  tb_rc rc;

  for (*out = 0; (rc = head_at(file, *out, diag, &head)) == TB_OK; *out += HEAD_BYTES + head.bytes)
    continue;
  return rc == TB_END ? TB_OK : rc;
}

/* ---- writing */

static tb_rc pack(const struct tc_report_record *record, unsigned char **out, size_t *out_len) {
  size_t room = HEAD_BYTES + ZSTD_compressBound(record->len);
  unsigned char *bytes = malloc(room);

  if (bytes == NULL) return TB_NOMEM;
  size_t n =
      ZSTD_compress(bytes + HEAD_BYTES, room - HEAD_BYTES, record->reply, record->len, ZSTD_LEVEL);
  if (ZSTD_isError(n)) {
    free(bytes);
    return TB_NOMEM;
  }
  const struct head head = { .bytes = (uint32_t)n,
                             .crc = tb_crc32c(0, bytes + HEAD_BYTES, n),
                             .from_ns = record->from_ns,
                             .until_ns = record->until_ns };
  write_head(&head, bytes);
  *out = bytes;
  *out_len = HEAD_BYTES + n;
  return TB_OK;
}

/* What stood behind the end was never whole. */
static tb_rc write_at(const struct file *file, const void *bytes, size_t n, uint64_t at,
                      struct tb_diag *diag) {
  if (file->bytes > at && ftruncate(file->fd, (off_t)at) != 0)
    return tb_fail(diag, tc_errno_rc(errno), "%s: %s", file->name, strerror(errno));
  if (tc_write_all(file->fd, bytes, n, at) == 0) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "%s: %s", file->name, strerror(errno));
}

tb_rc tc_report_file_append(int dir_fd, const char *name, const struct tc_report_record *record,
                            struct tb_diag *diag) {
  unsigned char *bytes;
  struct file file;
  uint64_t end;
  size_t n;

  if (record->len > TC_REPORT_RECORD_MAX)
    return tb_fail(diag, TB_BUDGET, "%s: a record of %zu bytes", name, record->len);
  TB_TRY(pack(record, &bytes, &n));
  tb_rc rc = open_file(dir_fd, name, O_RDWR | O_CREAT, diag, &file);
  if (rc == TB_OK) {
    rc = find_end(&file, diag, &end);
    if (rc == TB_OK) rc = write_at(&file, bytes, n, end, diag);
    close(file.fd);
  }
  free(bytes);
  return rc;
}

/* ---- reading */

struct scratch {
  unsigned char *packed, *reply; /* TC_REPORT_RECORD_MAX each */
};

/* TB_CORRUPT: it is damaged. */
static tb_rc unpack(const struct head *head, const struct scratch *scratch,
                    struct tc_report_record *out) {
  if (tb_crc32c(0, scratch->packed, head->bytes) != head->crc) return TB_CORRUPT;
  size_t n = ZSTD_decompress(scratch->reply, TC_REPORT_RECORD_MAX, scratch->packed, head->bytes);
  if (ZSTD_isError(n)) return TB_CORRUPT;
  *out = (struct tc_report_record){
    .from_ns = head->from_ns, .until_ns = head->until_ns, .reply = scratch->reply, .len = n
  };
  return TB_OK;
}

struct reading {
  uint64_t from_ns, until_ns;
  void *self;
  tb_rc (*take)(void *self, const struct tc_report_record *record);
  struct scratch scratch;
  uint64_t damaged;
};

static tb_rc read_record(struct reading *r, const struct file *file, uint64_t at,
                         const struct head *head, struct tb_diag *diag) {
  struct tc_report_record record;

  if (head->until_ns < r->from_ns || head->from_ns > r->until_ns) return TB_OK;
  TB_TRY(
      tc_read_exactly(file->fd, file->name, r->scratch.packed, head->bytes, at + HEAD_BYTES, diag));
  if (unpack(head, &r->scratch, &record) == TB_OK) return r->take(r->self, &record);
  r->damaged++;
  return TB_OK;
}

static tb_rc read_records(struct reading *r, const struct file *file, struct tb_diag *diag) {
  struct head head;
  tb_rc rc = TB_OK;

  for (uint64_t at = 0; rc == TB_OK; at += HEAD_BYTES + head.bytes) {
    rc = head_at(file, at, diag, &head);
    if (rc == TB_END) return TB_OK;
    if (rc == TB_OK) rc = read_record(r, file, at, &head, diag);
  }
  return rc;
}

tb_rc tc_report_file_read(int dir_fd, const char *name, uint64_t from_ns, uint64_t until_ns,
                          void *self,
                          tb_rc (*take)(void *self, const struct tc_report_record *record),
                          uint64_t *out_damaged, struct tb_diag *diag) {
  struct reading r = { .from_ns = from_ns, .until_ns = until_ns, .self = self, .take = take };
  struct file file;

  *out_damaged = 0;
  TB_TRY(open_file(dir_fd, name, O_RDONLY, diag, &file));
  r.scratch = (struct scratch){ malloc(TC_REPORT_RECORD_MAX), malloc(TC_REPORT_RECORD_MAX) };
  tb_rc rc = r.scratch.packed != NULL && r.scratch.reply != NULL ? read_records(&r, &file, diag)
                                                                 : TB_NOMEM;
  free(r.scratch.packed);
  free(r.scratch.reply);
  close(file.fd);
  *out_damaged = r.damaged;
  return rc;
}
