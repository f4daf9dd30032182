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

enum { HEAD_BYTES = 40, HEAD_CRC_AT = 12, ZSTD_LEVEL = 3, BASE_EVERY = 32 };

static const char magic[4] = { 'T', 'C', 'R', '1' };

static void put_u32(unsigned char *at, uint32_t value) {
  for (unsigned i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static void put_u64(unsigned char *at, uint64_t value) {
  for (unsigned i = 0; i < 8; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_number(const unsigned char *at, unsigned bytes) {
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* ---- a head */

struct head {
  uint32_t bytes, crc;
  uint64_t from_ns, until_ns, back; /* back: bytes to the base; 0: none */
};

/* Sums all bytes but those of the checksum. */
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
  put_u64(out + 32, head->back);
  put_u32(out + HEAD_CRC_AT, head_crc(out));
}

static bool read_head(const unsigned char bytes[HEAD_BYTES], struct head *out) {
  if (memcmp(bytes, magic, sizeof magic) != 0 ||
      get_number(bytes + HEAD_CRC_AT, 4) != head_crc(bytes))
    return false;
  *out = (struct head){ .bytes = (uint32_t)get_number(bytes + 4, 4),
                        .crc = (uint32_t)get_number(bytes + 8, 4),
                        .from_ns = get_number(bytes + 16, 8),
                        .until_ns = get_number(bytes + 24, 8),
                        .back = get_number(bytes + 32, 8) };
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

/* TB_END: there is no complete record at `at`. */
static tb_rc head_at(const struct file *file, uint64_t at, struct tb_diag *diag, struct head *out) {
  unsigned char bytes[HEAD_BYTES];

  if (at > file->bytes || file->bytes - at < HEAD_BYTES) return TB_END;
  TB_TRY(tc_read_exactly(file->fd, file->name, bytes, sizeof bytes, at, diag));
  if (!read_head(bytes, out)) return TB_END;
  return file->bytes - at - HEAD_BYTES >= out->bytes ? TB_OK : TB_END;
}

/* ---- a payload */

struct payload {
  unsigned char *bytes; /* TC_REPORT_RECORD_MAX */
  size_t len;
};

/* Buffers to unpack records with. */
struct scratch {
  unsigned char *packed;
  struct payload base, reply;
  uint64_t base_at; /* place of the record in base; UINT64_MAX: none */
};

static void scratch_free(struct scratch *scratch) {
  free(scratch->packed);
  free(scratch->base.bytes);
  free(scratch->reply.bytes);
}

static tb_rc scratch_make(struct scratch *out) {
  *out = (struct scratch){ .packed = malloc(TC_REPORT_RECORD_MAX),
                           .base.bytes = malloc(TC_REPORT_RECORD_MAX),
                           .reply.bytes = malloc(TC_REPORT_RECORD_MAX),
                           .base_at = UINT64_MAX };
  if (out->packed != NULL && out->base.bytes != NULL && out->reply.bytes != NULL) return TB_OK;
  scratch_free(out);
  return TB_NOMEM;
}

static tb_rc decompress(const void *packed, size_t n, const struct payload *base,
                        struct payload *out) {
  ZSTD_DCtx *context = ZSTD_createDCtx();

  if (context == NULL) return TB_NOMEM;
  if (base != NULL) ZSTD_DCtx_refPrefix(context, base->bytes, base->len);
  out->len = ZSTD_decompressDCtx(context, out->bytes, TC_REPORT_RECORD_MAX, packed, n);
  ZSTD_freeDCtx(context);
  return ZSTD_isError(out->len) ? TB_CORRUPT : TB_OK;
}

static tb_rc unpack_at(const struct file *file, uint64_t at, const struct head *head,
                       unsigned char *packed, const struct payload *base, struct tb_diag *diag,
                       struct payload *out) {
  TB_TRY(tc_read_exactly(file->fd, file->name, packed, head->bytes, at + HEAD_BYTES, diag));
  if (tb_crc32c(0, packed, head->bytes) != head->crc) return TB_CORRUPT;
  return decompress(packed, head->bytes, base, out);
}

static tb_rc unpack_base(struct scratch *s, const struct file *file, uint64_t at,
                         struct tb_diag *diag) {
  struct head head;

  if (s->base_at == at) return TB_OK;
  s->base_at = UINT64_MAX;
  TB_TRY(head_at(file, at, diag, &head));
  if (head.back != 0) return TB_CORRUPT;
  TB_TRY(unpack_at(file, at, &head, s->packed, NULL, diag, &s->base));
  s->base_at = at;
  return TB_OK;
}

/* ---- writing */

/* Place of the next record, and of the base to pack it against. */
struct place {
  uint64_t end, base_at; /* base_at UINT64_MAX: none */
  unsigned since_base;
};

static tb_rc find_place(const struct file *file, struct tb_diag *diag, struct place *out) {
  struct head head;
  tb_rc rc;

  *out = (struct place){ .base_at = UINT64_MAX };
  for (; (rc = head_at(file, out->end, diag, &head)) == TB_OK;
       out->end += HEAD_BYTES + head.bytes) {
    out->since_base++;
    if (head.back != 0) continue;
    out->base_at = out->end;
    out->since_base = 0;
  }
  return rc == TB_END ? TB_OK : rc;
}

/* Returns NULL if the new record becomes a base itself. */
static const struct payload *find_base(const struct file *file, const struct place *place,
                                       struct scratch *scratch) {
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  if (place->base_at == UINT64_MAX || place->since_base + 1 >= BASE_EVERY ||
      unpack_base(scratch, file, place->base_at, &ignored) != TB_OK)
    return NULL;
  return &scratch->base;
}

static size_t compress(const struct tc_report_record *record, const struct payload *base,
                       unsigned char *out, size_t room) {
  ZSTD_CCtx *context = ZSTD_createCCtx();

  if (context == NULL) return 0;
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_LEVEL);
  if (base != NULL) ZSTD_CCtx_refPrefix(context, base->bytes, base->len);
  size_t n = ZSTD_compress2(context, out, room, record->reply, record->len);
  ZSTD_freeCCtx(context);
  return ZSTD_isError(n) ? 0 : n;
}

static tb_rc pack(const struct tc_report_record *record, const struct payload *base, uint64_t back,
                  unsigned char **out, size_t *out_len) {
  size_t room = ZSTD_compressBound(record->len), n;
  unsigned char *bytes = malloc(HEAD_BYTES + room);

  if (bytes == NULL) return TB_NOMEM;
  if ((n = compress(record, base, bytes + HEAD_BYTES, room)) == 0) {
    free(bytes);
    return TB_NOMEM;
  }
  const struct head head = { .bytes = (uint32_t)n,
                             .crc = tb_crc32c(0, bytes + HEAD_BYTES, n),
                             .from_ns = record->from_ns,
                             .until_ns = record->until_ns,
                             .back = base != NULL ? back : 0 };
  write_head(&head, bytes);
  *out = bytes;
  *out_len = HEAD_BYTES + n;
  return TB_OK;
}

/* Replaces whatever follows `at`: it is an incomplete record. */
static tb_rc write_at(const struct file *file, const void *bytes, size_t n, uint64_t at,
                      struct tb_diag *diag) {
  if (file->bytes > at && ftruncate(file->fd, (off_t)at) != 0)
    return tb_fail(diag, tc_errno_rc(errno), "%s: %s", file->name, strerror(errno));
  if (tc_write_all(file->fd, bytes, n, at) == 0) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "%s: %s", file->name, strerror(errno));
}

static tb_rc append(const struct file *file, const struct tc_report_record *record,
                    struct scratch *scratch, struct tb_diag *diag) {
  unsigned char *bytes;
  struct place place;
  size_t n;

  TB_TRY(find_place(file, diag, &place));
  TB_TRY(pack(record, find_base(file, &place, scratch), place.end - place.base_at, &bytes, &n));
  tb_rc rc = write_at(file, bytes, n, place.end, diag);
  free(bytes);
  return rc;
}

tb_rc tc_report_file_append(int dir_fd, const char *name, const struct tc_report_record *record,
                            struct tb_diag *diag) {
  struct scratch scratch;
  struct file file;

  if (record->len > TC_REPORT_RECORD_MAX)
    return tb_fail(diag, TB_BUDGET, "%s: a record of %zu bytes", name, record->len);
  TB_TRY(scratch_make(&scratch));
  tb_rc rc = open_file(dir_fd, name, O_RDWR | O_CREAT, diag, &file);
  if (rc == TB_OK) {
    rc = append(&file, record, &scratch, diag);
    close(file.fd);
  }
  scratch_free(&scratch);
  return rc;
}

/* ---- reading */

struct reading {
  uint64_t from_ns, until_ns;
  void *self;
  tb_rc (*take)(void *self, const struct tc_report_record *record);
  struct scratch scratch;
  uint64_t damaged;
};

static tb_rc unpack(struct scratch *s, const struct file *file, uint64_t at,
                    const struct head *head, struct tb_diag *diag) {
  if (head->back > at) return TB_CORRUPT;
  if (head->back != 0) TB_TRY(unpack_base(s, file, at - head->back, diag));
  return unpack_at(file, at, head, s->packed, head->back != 0 ? &s->base : NULL, diag, &s->reply);
}

static tb_rc read_record(struct reading *r, const struct file *file, uint64_t at,
                         const struct head *head, struct tb_diag *diag) {
  if (head->until_ns < r->from_ns || head->from_ns > r->until_ns) return TB_OK;
  tb_rc rc = unpack(&r->scratch, file, at, head, diag);
  if (rc == TB_CORRUPT || rc == TB_END) {
    r->damaged++;
    return TB_OK;
  }
  if (rc != TB_OK) return rc;
  const struct tc_report_record record = { .from_ns = head->from_ns,
                                           .until_ns = head->until_ns,
                                           .reply = r->scratch.reply.bytes,
                                           .len = r->scratch.reply.len };
  return r->take(r->self, &record);
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
  tb_rc rc = scratch_make(&r.scratch);
  if (rc == TB_OK) {
    rc = read_records(&r, &file, diag);
    scratch_free(&r.scratch);
  }
  close(file.fd);
  *out_damaged = r.damaged;
  return rc;
}
