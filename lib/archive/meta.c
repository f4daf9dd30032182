/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/meta.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/crc32c.h"
#include "proto/allocator.h"

static const char mark[8] = { 'T', 'C', 'M', 'E', 'T', 'A', '1', '\n' };

enum { HEAD_BYTES = sizeof mark + 4, TAIL_BYTES = 4, SIGNATURE_FIELD_MAX = 128 };

void tc_meta_name(uint64_t first_gen, char out[32]) {
  snprintf(out, 32, "%016" PRIx64 ".meta", first_gen);
}

void tc_trace_name(uint64_t first_gen, char out[32]) {
  snprintf(out, 32, "%016" PRIx64 ".trace", first_gen);
}

static uint32_t get_u32(const unsigned char *p) {
  uint32_t v;

  memcpy(&v, p, 4);
  return le32toh(v);
}

/* ---- signatures */

/* Packs the field as it appears in the message. */
static size_t pack_signature(struct tc_signature *signature,
                             unsigned char out[SIGNATURE_FIELD_MAX]) {
  tc_meta alone = TRACECOLLECT__V1__SEGMENT_META__INIT;
  Tracecollect__V1__MetaSignature message = TRACECOLLECT__V1__META_SIGNATURE__INIT;

  message.key = (ProtobufCBinaryData){ sizeof signature->key, signature->key };
  message.signature = (ProtobufCBinaryData){ sizeof signature->bytes, signature->bytes };
  alone.signature = &message;
  return tracecollect__v1__segment_meta__pack(&alone, out);
}

/* bytes: the file up to the end of the message. */
static enum tc_signed check_signature(const tc_meta *meta, const unsigned char *bytes, size_t n,
                                      const struct tc_keys *keys) {
  const Tracecollect__V1__MetaSignature *message = meta->signature;
  struct tc_signature signature;
  unsigned char field[SIGNATURE_FIELD_MAX];

  if (message == NULL) return TC_SIGNED_NOT;
  if (message->key.len != sizeof signature.key || message->signature.len != sizeof signature.bytes)
    return TC_SIGNED_WRONG;
  memcpy(signature.key, message->key.data, sizeof signature.key);
  memcpy(signature.bytes, message->signature.data, sizeof signature.bytes);
  size_t len = pack_signature(&signature, field);
  if (n < HEAD_BYTES + len || memcmp(bytes + n - len, field, len) != 0) return TC_SIGNED_WRONG;
  return tc_keys_check(keys, bytes, n - len, &signature);
}

/* ---- reading */

static tb_rc check_fields(const tc_meta *meta, const char *name, struct tb_diag *diag) {
  const Tracecollect__V1__ContentHash *const hashes[] = { meta->hash, meta->previous };

  if (meta->format != 1 || meta->stream.len != 16 || !tc_day_valid(meta->day))
    return tb_fail(diag, TB_CORRUPT, "%s: format, stream or day is invalid", name);
  for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
    if (tc_hash_is_foreign(hashes[i]))
      return tb_fail(diag, TB_CORRUPT,
                     "%s: its content hash is of kind %d, which this program does not know", name,
                     (int)hashes[i]->kind);
  return TB_OK;
}

static tb_rc unpack(const unsigned char *bytes, size_t n, const char *name, struct tb_diag *diag,
                    tc_meta **out) {
  if (n < HEAD_BYTES + TAIL_BYTES || memcmp(bytes, mark, sizeof mark) != 0)
    return tb_fail(diag, TB_CORRUPT, "%s: does not begin with the mark of a meta", name);
  uint32_t len = get_u32(bytes + sizeof mark);
  if (len != n - HEAD_BYTES - TAIL_BYTES)
    return tb_fail(diag, TB_CORRUPT, "%s: should have %u bytes, has %zu", name, len,
                   n - HEAD_BYTES - TAIL_BYTES);
  if (tb_crc32c(0, bytes + HEAD_BYTES, len) != get_u32(bytes + HEAD_BYTES + len))
    return tb_fail(diag, TB_CORRUPT, "%s: checksum is wrong", name);
  struct tp_allocator heap;
  tp_allocator_init(&heap);
  tc_meta *meta = tracecollect__v1__segment_meta__unpack(&heap.allocator, len, bytes + HEAD_BYTES);
  if (meta == NULL && heap.is_short) return tb_fail(diag, TB_NOMEM, "%s: no memory", name);
  if (meta == NULL) return tb_fail(diag, TB_CORRUPT, "%s: message does not parse", name);
  tb_rc rc = check_fields(meta, name, diag);
  if (rc != TB_OK) {
    tc_meta_free(meta);
    return rc;
  }
  *out = meta;
  return TB_OK;
}

tb_rc tc_meta_read(int dir_fd, const char *name, struct tb_diag *diag, tc_meta **out) {
  return tc_meta_read_signed(dir_fd, name, NULL, diag, out, NULL);
}

tb_rc tc_meta_read_signed(int dir_fd, const char *name, const struct tc_keys *keys,
                          struct tb_diag *diag, tc_meta **out, enum tc_signed *out_signed) {
  struct stat st;
  int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0)
    return tb_fail(diag, errno == ENOENT ? TB_NOTFOUND : tc_errno_rc(errno), "%s: %s", name,
                   strerror(errno));
  tb_rc rc = TB_OK;
  unsigned char *bytes = NULL;
  if (fstat(fd, &st) != 0)
    rc = tb_fail(diag, TB_IO, "%s: %s", name, strerror(errno));
  else if (st.st_size > TC_META_BYTES_MAX)
    rc = tb_fail(diag, TB_CORRUPT, "%s: is too large for a meta", name);
  else if ((bytes = malloc((size_t)st.st_size + 1)) == NULL)
    rc = tb_fail(diag, TB_NOMEM, "%s: no memory", name);
  else if (tc_read_all(fd, bytes, (size_t)st.st_size, 0) != 0)
    rc = tb_fail(diag, tc_read_rc(errno), "%s: %s", name, strerror(errno));
  else
    rc = unpack(bytes, (size_t)st.st_size, name, diag, out);
  if (rc == TB_OK && keys != NULL)
    *out_signed = check_signature(*out, bytes, (size_t)st.st_size - TAIL_BYTES, keys);
  free(bytes);
  close(fd);
  return rc;
}

/* Returns the length of the meta at the beginning of bytes, by its mark and length; 0: there is none. */
static size_t first_bytes(const unsigned char *bytes, size_t n) {
  if (n < HEAD_BYTES + TAIL_BYTES || memcmp(bytes, mark, sizeof mark) != 0 ||
      get_u32(bytes + sizeof mark) > n - HEAD_BYTES - TAIL_BYTES)
    return 0;
  return HEAD_BYTES + get_u32(bytes + sizeof mark) + TAIL_BYTES;
}

size_t tc_meta_frame(const unsigned char *bytes, size_t n) {
  size_t len = first_bytes(bytes, n);

  if (len == 0) return 0;
  uint32_t crc = tb_crc32c(0, bytes + HEAD_BYTES, len - HEAD_BYTES - TAIL_BYTES);
  return crc == get_u32(bytes + len - TAIL_BYTES) ? len : 0;
}

tb_rc tc_meta_unpack_first(const unsigned char *bytes, size_t n, const char *name,
                           const struct tc_keys *keys, struct tb_diag *diag, tc_meta **out,
                           size_t *out_n, enum tc_signed *out_signed) {
  size_t len = first_bytes(bytes, n);

  if (len == 0) return tb_fail(diag, TB_CORRUPT, "%s: not a complete meta", name);
  TB_TRY(unpack(bytes, len, name, diag, out));
  if (keys != NULL) *out_signed = check_signature(*out, bytes, len - TAIL_BYTES, keys);
  *out_n = len;
  return TB_OK;
}

uint64_t tc_meta_last_seq(const tc_meta *meta) {
  uint64_t last =
      meta->n_generations > 0 ? meta->generations[meta->n_generations - 1]->last_seq : 0;

  for (size_t i = 0; i < meta->n_losses; i++)
    if (meta->losses[i]->seq > last) last = meta->losses[i]->seq;
  return last;
}

void tc_meta_free(tc_meta *meta) {
  if (meta != NULL) tracecollect__v1__segment_meta__free_unpacked(meta, NULL);
}

struct tc_content_hash tc_meta_hash(const tc_meta *meta) {
  return tc_hash_read(meta->hash);
}

struct tc_content_hash tc_meta_previous(const tc_meta *meta) {
  return tc_hash_read(meta->previous);
}

/* ---- writing */

/* The signature covers the length field: the length of a signature is known before the signature is computed. */
tb_rc tc_meta_pack(const tc_meta *meta, const struct tc_keys *signer, unsigned char **out,
                   size_t *out_len) {
  struct tc_signature signature = { 0 };
  unsigned char field[SIGNATURE_FIELD_MAX];
  tc_meta plain = *meta;

  plain.signature = NULL;
  size_t field_len = signer != NULL ? pack_signature(&signature, field) : 0;
  size_t plain_len = tracecollect__v1__segment_meta__get_packed_size(&plain);
  size_t len = plain_len + field_len;
  if (len > TC_META_BYTES_MAX) return TB_NOMEM;
  unsigned char *bytes = malloc(HEAD_BYTES + len + TAIL_BYTES);
  if (bytes == NULL) return TB_NOMEM;
  uint32_t word = htole32((uint32_t)len);
  memcpy(bytes, mark, sizeof mark);
  memcpy(bytes + sizeof mark, &word, 4);
  tracecollect__v1__segment_meta__pack(&plain, bytes + HEAD_BYTES);
  if (signer != NULL) {
    if (tc_keys_sign(signer, bytes, HEAD_BYTES + plain_len, &signature) != TB_OK) {
      free(bytes);
      return TB_NOMEM;
    }
    pack_signature(&signature, bytes + HEAD_BYTES + plain_len);
  }
  word = htole32(tb_crc32c(0, bytes + HEAD_BYTES, len));
  memcpy(bytes + HEAD_BYTES + len, &word, 4);
  *out = bytes;
  *out_len = HEAD_BYTES + len + TAIL_BYTES;
  return TB_OK;
}

tb_rc tc_meta_write(int dir_fd, const char *name, const tc_meta *meta, const struct tc_keys *signer,
                    bool sync, struct tb_diag *diag) {
  char temp[NAME_MAX + 8];
  unsigned char *bytes;
  size_t len;

  if (tc_meta_pack(meta, signer, &bytes, &len) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "%s: no memory for its bytes", name);
  snprintf(temp, sizeof temp, "%s.new", name);
  unlinkat(dir_fd, temp, 0); /* left by a process that was killed */
  int fd = tc_file_create(dir_fd, temp, O_WRONLY);
  bool good = fd >= 0 && tc_write_all(fd, bytes, len, 0) == 0 && (!sync || fsync(fd) == 0);
  int why = errno;
  if (fd >= 0) close(fd);
  free(bytes);
  return good ? TB_OK : tb_fail(diag, tc_errno_rc(why), "%s: %s", temp, strerror(why));
}

tb_rc tc_meta_sync(int dir_fd, const char *name, struct tb_diag *diag) {
  char temp[NAME_MAX + 8];

  snprintf(temp, sizeof temp, "%s.new", name);
  int fd = openat(dir_fd, temp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  bool good = fd >= 0 && fsync(fd) == 0;
  int why = errno;
  tb_rc rc = fd < 0 && why == ENOENT ? TB_NOTFOUND : tc_errno_rc(why);
  if (fd >= 0) close(fd);
  return good ? TB_OK : tb_fail(diag, rc, "%s: %s", temp, strerror(why));
}

tb_rc tc_meta_publish(int dir_fd, const char *name, struct tb_diag *diag) {
  char temp[NAME_MAX + 8];

  snprintf(temp, sizeof temp, "%s.new", name);
  if (renameat(dir_fd, temp, dir_fd, name) == 0) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
}

unsigned tc_meta_verdict(const tc_meta *meta, const char **out_reason) {
  unsigned worst = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;

  *out_reason = "";
  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__Verdict *verdict = meta->generations[i]->verdict;
    if (verdict == NULL || verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING) {
      *out_reason = "";
      return TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING;
    }
    if (worst != TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK) continue;
    worst = verdict->code;
    *out_reason = verdict->reason;
  }
  return worst;
}
