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

enum { HEAD_BYTES = sizeof mark + 4, TAIL_BYTES = 4 };

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

static tb_rc unpack(const unsigned char *bytes, size_t n, const char *name, struct tb_diag *diag,
                    tc_meta **out) {
  if (n < HEAD_BYTES + TAIL_BYTES || memcmp(bytes, mark, sizeof mark) != 0)
    return tb_fail(diag, TB_CORRUPT, "%s: does not begin as a meta does", name);
  uint32_t len = get_u32(bytes + sizeof mark);
  if (len != n - HEAD_BYTES - TAIL_BYTES)
    return tb_fail(diag, TB_CORRUPT, "%s: says %u bytes, has %zu", name, len,
                   n - HEAD_BYTES - TAIL_BYTES);
  if (tb_crc32c(0, bytes + HEAD_BYTES, len) != get_u32(bytes + HEAD_BYTES + len))
    return tb_fail(diag, TB_CORRUPT, "%s: checksum is wrong", name);
  struct tp_allocator heap;
  tp_allocator_init(&heap);
  tc_meta *meta = tracecollect__v1__segment_meta__unpack(&heap.allocator, len, bytes + HEAD_BYTES);
  if (meta == NULL && heap.is_short) return tb_fail(diag, TB_NOMEM, "%s: no memory", name);
  if (meta == NULL) return tb_fail(diag, TB_CORRUPT, "%s: message does not parse", name);
  if (meta->format != 1 || meta->stream.len != 16 || !tc_day_valid(meta->day)) {
    tc_meta_free(meta);
    return tb_fail(diag, TB_CORRUPT, "%s: format, stream or day is not one of ours", name);
  }
  *out = meta;
  return TB_OK;
}

tb_rc tc_meta_read(int dir_fd, const char *name, struct tb_diag *diag, tc_meta **out) {
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
  free(bytes);
  close(fd);
  return rc;
}

void tc_meta_free(tc_meta *meta) {
  if (meta != NULL) tracecollect__v1__segment_meta__free_unpacked(meta, NULL);
}

tb_rc tc_meta_write(int dir_fd, const char *name, const tc_meta *meta, bool sync,
                    struct tb_diag *diag) {
  char temp[NAME_MAX + 8];
  size_t len = tracecollect__v1__segment_meta__get_packed_size(meta);
  unsigned char *bytes = len <= TC_META_BYTES_MAX ? malloc(HEAD_BYTES + len + TAIL_BYTES) : NULL;

  if (bytes == NULL) return tb_fail(diag, TB_NOMEM, "%s: no memory for %zu bytes", name, len);
  uint32_t word = htole32((uint32_t)len);
  memcpy(bytes, mark, sizeof mark);
  memcpy(bytes + sizeof mark, &word, 4);
  tracecollect__v1__segment_meta__pack(meta, bytes + HEAD_BYTES);
  word = htole32(tb_crc32c(0, bytes + HEAD_BYTES, len));
  memcpy(bytes + HEAD_BYTES + len, &word, 4);

  snprintf(temp, sizeof temp, "%s.new", name);
  unlinkat(dir_fd, temp, 0); /* of a run that was killed here */
  int fd = tc_file_create(dir_fd, temp, O_WRONLY);
  bool good = fd >= 0 && tc_write_all(fd, bytes, HEAD_BYTES + len + TAIL_BYTES, 0) == 0 &&
              (!sync || fsync(fd) == 0);
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
