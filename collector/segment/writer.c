/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/writer.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/grow.h"
#include "collector/segment/private.h"

enum {
  EXPERIMENTAL_BATCH =
      49, /* event type at the start of such a batch; the experiment's number follows */
  EXPERIMENT_READABLE = 1, /* AllocFree */
  COPY_BYTES = 256 << 10,
  DISK_BYTES =
      1 << 20, /* piece for sync_file_range(): whole pages, so that none is written twice */
};

bool tc_batch_is_unsafe(const unsigned char *batch, uint32_t len) {
  return len >= 2 && batch[0] == EXPERIMENTAL_BATCH && batch[1] != EXPERIMENT_READABLE;
}

struct tc_wall tc_segment_gen_wall(const struct tc_segment_gen *gen) {
  Tracecollect__V1__GenerationMeta meta = TRACECOLLECT__V1__GENERATION_META__INIT;
  Tracecollect__V1__Verdict verdict = TRACECOLLECT__V1__VERDICT__INIT;

  verdict.code = (Tracecollect__V1__VerdictCode)gen->verdict.code;
  meta.verdict = &verdict;
  meta.first_ns = gen->verdict.first_ns;
  meta.last_ns = gen->verdict.last_ns;
  meta.end_wall_ns = gen->end_wall_ns;
  tc_clock_ticks_put(&gen->ticks, &meta);
  return tc_generation_wall(&meta, gen->first_wall_ns);
}

unsigned tc_go_version(const unsigned char *header, uint32_t len) {
  static const unsigned known[] = { 22, 23, 25, 26 };

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char want[17] = { 0 };
    snprintf(want, sizeof want, "go 1.%u trace", known[i]);
    if (len == 16 && memcmp(header, want, 16) == 0) return known[i];
  }
  return 0;
}

static tb_rc fail_file(const struct tc_segment *segment, struct tb_diag *diag) {
  return tb_fail(diag, tc_errno_rc(errno), "open/%s: %s", segment->name, strerror(errno));
}

static tb_rc fail_read(const struct tc_segment *segment, uint64_t offset, struct tb_diag *diag) {
  return tb_fail(diag, tc_read_rc(errno), "open/%s: from offset %" PRIu64 " on: %s", segment->name,
                 offset, strerror(errno));
}

static tb_rc fail_hash(tb_rc rc, struct tb_diag *diag) {
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "segment: no memory for its hash");
}

static void count_bytes(struct tc_segment *segment, size_t n, uint32_t crc) {
  segment->crc = tb_crc32c_join(segment->crc, crc, n);
  segment->bytes += n;
}

static tb_rc add_bytes(struct tc_segment *segment, const void *bytes, size_t n, uint32_t crc,
                       struct tb_diag *diag) {
  count_bytes(segment, n, crc);
  return fail_hash(tc_hasher_add(segment->hasher, bytes, n), diag);
}

void tc_segment_name(const char *stream_hex, uint64_t first_gen, char out[TC_FILE_NAME_BYTES]) {
  snprintf(out, TC_FILE_NAME_BYTES, "%.32s-%016" PRIx64 ".part", stream_hex, first_gen);
}

/* Allocates a segment without opening its file. */
static tb_rc segment_alloc(int open_fd, const char *stream_hex, uint64_t first_gen,
                           enum tc_hash_kind kind, struct tb_diag *diag, struct tc_segment **out) {
  struct tc_segment *segment = calloc(1, sizeof *segment);

  if (segment == NULL) return tb_fail(diag, TB_NOMEM, "segment: no memory");
  segment->open_fd = open_fd;
  segment->fd = -1;
  segment->first_gen = first_gen;
  tc_segment_name(stream_hex, first_gen, segment->name);
  tb_rc rc = fail_hash(tc_hasher_new(kind, &segment->hasher), diag);
  if (rc != TB_OK) {
    tc_segment_free(segment);
    return rc;
  }
  *out = segment;
  return TB_OK;
}

struct tc_segment *tc_segment_discard(struct tc_segment *segment) {
  bool has_file =
      segment->fd >= 0 || segment->descriptors != NULL; /* its descriptor may be closed */
  bool removed = !has_file || unlinkat(segment->open_fd, segment->name, 0) == 0;

  if (!removed && errno != ENOENT) return segment;
  tc_segment_free(segment);
  return NULL;
}

tb_rc tc_segment_new(int open_fd, const char *stream_hex, uint64_t first_gen, const void *header,
                     size_t header_len, enum tc_hash_kind kind, struct tb_diag *diag,
                     struct tc_segment **out) {
  struct tc_segment *segment;

  *out = NULL;
  assert(header_len <= sizeof segment->header);
  TB_TRY(segment_alloc(open_fd, stream_hex, first_gen, kind, diag, &segment));
  segment->header_len = header_len;
  if (header_len > 0) memcpy(segment->header, header, header_len);
  segment->go_version = tc_go_version(segment->header, (uint32_t)header_len);
  segment->fd = tc_file_create(open_fd, segment->name, O_RDWR);
  tb_rc rc = TB_OK;
  if (segment->fd < 0)
    rc = fail_file(segment, diag);
  else
    rc = add_bytes(segment, segment->header, header_len, tb_crc32c(0, segment->header, header_len),
                   diag);
  if (rc != TB_OK) {
    *out = tc_segment_discard(segment);
    return rc;
  }
  if (header_len > 0)
    segment->queue[segment->nqueue++] = (struct iovec){ segment->header, header_len };
  *out = segment;
  return TB_OK;
}

/* State of reading a file from its beginning: header, complete generations, perhaps an open one. */
struct reading {
  const struct tc_segment_part *part;
  size_t next;   /* index of the next generation */
  uint64_t left; /* bytes to the next border */
  bool known;    /* the current generation's hash is known */
  bool in_whole; /* inside a complete generation whose hash is being computed */
};

/* A generation has no hash if the collector was configured for another kind when it was written. */
static void next_border(struct tc_segment *segment, struct reading *reading) {
  const struct tc_segment_part *part = reading->part;
  bool is_xxh3 = tc_hasher_kind(segment->hasher) == TC_HASH_XXH3;

  if (reading->in_whole) tc_hasher_end(segment->hasher, part->gens[reading->next - 1].hash);
  reading->known = reading->in_whole = false;
  if (reading->next == part->ngens) {
    reading->left = UINT64_MAX;
    if (part->now != NULL) tc_hasher_begin(segment->hasher);
    return;
  }
  struct tc_segment_gen *gen = &part->gens[reading->next++];
  reading->left = gen->bytes;
  reading->known = is_xxh3 && gen->has_hash;
  reading->in_whole = !reading->known;
  gen->has_hash = is_xxh3;
  if (reading->known)
    tc_hasher_take(segment->hasher, gen->hash);
  else
    tc_hasher_begin(segment->hasher);
}

static tb_rc take_bytes(struct tc_segment *segment, struct reading *reading,
                        const unsigned char *bytes, size_t n, struct tb_diag *diag) {
  while (n > 0) {
    while (reading->left == 0) next_border(segment, reading);
    size_t take = reading->left < n ? (size_t)reading->left : n;
    if (reading->known)
      count_bytes(segment, take, tb_crc32c(0, bytes, take));
    else
      TB_TRY(add_bytes(segment, bytes, take, tb_crc32c(0, bytes, take), diag));
    bytes += take;
    n -= take;
    reading->left -= take;
  }
  return TB_OK;
}

static tb_rc sum_up(struct tc_segment *segment, const struct tc_segment_part *part,
                    unsigned char *buf, struct tb_diag *diag) {
  struct reading reading = { .part = part, .left = part->header_len };

  while (segment->bytes < part->bytes) {
    uint64_t left = part->bytes - segment->bytes;
    size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
    if (tc_read_all(segment->fd, buf, n, segment->bytes) != 0)
      return fail_read(segment, segment->bytes, diag);
    TB_TRY(take_bytes(segment, &reading, buf, n, diag));
  }
  while (reading.left == 0) next_border(segment, &reading);
  return TB_OK;
}

/* Computes checksum and hashes of the file's first part->bytes. */
static tb_rc sum_up_file(struct tc_segment *segment, const struct tc_segment_part *part,
                         struct tb_diag *diag) {
  struct stat st;

  if (fstat(segment->fd, &st) != 0) return fail_file(segment, diag);
  if ((uint64_t)st.st_size < part->bytes)
    return tb_fail(diag, TB_CORRUPT, "open/%s: has %" PRIu64 " bytes of %" PRIu64, segment->name,
                   (uint64_t)st.st_size, part->bytes);
  unsigned char *buf = malloc(COPY_BYTES);
  if (buf == NULL) return tb_fail(diag, TB_NOMEM, "segment: no memory");
  tb_rc rc = sum_up(segment, part, buf, diag);
  free(buf);
  return rc;
}

tb_rc tc_segment_resume(int open_fd, const char *stream_hex, struct tc_segment_part *part,
                        enum tc_hash_kind kind, struct tb_diag *diag, struct tc_segment **out) {
  struct tc_segment *segment;

  TB_TRY(segment_alloc(open_fd, stream_hex, part->first_gen, kind, diag, &segment));
  tb_rc rc = TB_OK;
  segment->fd = openat(open_fd, segment->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (segment->fd < 0)
    rc = tb_fail(diag, errno == ENOENT ? TB_CORRUPT : tc_errno_rc(errno), "open/%s: %s",
                 segment->name, strerror(errno));
  else if (!part->is_vouched_for || !tc__segment_trust(segment, part))
    rc = sum_up_file(segment, part, diag);
  if (rc == TB_OK && (segment->crc != part->crc || part->header_len > sizeof segment->header))
    rc = tb_fail(diag, TB_CORRUPT, "open/%s: checksum is wrong", segment->name);
  if (rc == TB_OK && tc_read_all(segment->fd, segment->header, part->header_len, 0) != 0)
    rc = fail_read(segment, 0, diag);
  if (rc == TB_OK && ftruncate(segment->fd, (off_t)part->bytes) != 0) rc = fail_file(segment, diag);
  if (rc != TB_OK) {
    tc_segment_free(segment);
    return rc;
  }
  segment->header_len = part->header_len;
  segment->go_version = tc_go_version(segment->header, (uint32_t)part->header_len);
  segment->written = part->bytes;
  segment->in_gen = part->now != NULL;
  if (part->now != NULL) segment->now = *part->now;
  segment->gens = TB_MOVE(part->gens);
  segment->ngens = segment->gens_cap = part->ngens;
  *out = segment;
  return TB_OK;
}

uint64_t tc_segment_border(const struct tc_segment *segment) {
  return segment->in_gen ? segment->now.offset : segment->bytes;
}

void tc_segment_free(struct tc_segment *segment) {
  if (segment == NULL) return;
  tc_descriptors_remove(segment);
  if (segment->fd >= 0) close(segment->fd);
  tc_hasher_free(segment->hasher);
  tc_hasher_free(segment->border);
  for (size_t i = 0; i < segment->ngens; i++) free(segment->gens[i].verdict.reason);
  free(segment->gens);
  free(segment);
}

static tb_rc remember_border(struct tc_segment *segment) {
  if (segment->border == NULL) TB_TRY(tc_hasher_new(TC_HASH_SHA256, &segment->border));
  return tc_hasher_copy(segment->border, segment->hasher);
}

/* Begins a generation; keeps the sums at the border if complete generations precede it. */
static tb_rc begin_gen(struct tc_segment *segment, uint64_t gen, uint64_t seq,
                       struct tb_diag *diag) {
  if (segment->ngens > 0) {
    if (tc_hasher_kind(segment->hasher) == TC_HASH_SHA256)
      TB_TRY(fail_hash(remember_border(segment), diag));
    segment->border_crc = segment->crc;
  }
  tc_hasher_begin(segment->hasher);
  segment->now = (struct tc_segment_gen){
    .gen = gen, .offset = segment->bytes, .first_seq = seq, .verdict.thread = TB_NO_THREAD
  };
  segment->in_gen = true;
  return TB_OK;
}

tb_rc tc_segment_append(struct tc_segment *segment, uint64_t gen, uint64_t seq, const void *payload,
                        uint32_t len, uint32_t crc, struct tb_diag *diag) {
  if (!segment->in_gen) TB_TRY(begin_gen(segment, gen, seq, diag));
  if (segment->nqueue == TC_SEGMENT_QUEUE) TB_TRY(tc_segment_flush(segment, diag));
  struct tc_segment_gen *now = &segment->now;
  uint32_t le = htole32(crc);
  now->crc_of_crcs = tb_crc32c(now->crc_of_crcs, &le, sizeof le);
  now->crc = tb_crc32c_join(now->crc, crc, len);
  now->bytes += len;
  now->batches++;
  now->last_seq = seq;
  now->unsafe_experiment |= tc_batch_is_unsafe(payload, len);
  tc_clock_ticks_take(&now->ticks, segment->go_version, payload, len);
  TB_TRY(add_bytes(segment, payload, len, crc, diag));
  if (len > 0)
    segment->queue[segment->nqueue++] = (struct iovec){ (void *)(uintptr_t)payload, len };
  return TB_OK;
}

tb_rc tc_segment_flush(struct tc_segment *segment, struct tb_diag *diag) {
  struct iovec *iov = segment->queue;
  unsigned left = segment->nqueue;

  if (left > 0) TB_TRY(tc_descriptors_use(segment, diag));
  /* If the disk fills up in the middle, only unwritten bytes stay queued. */
  while (left > 0) {
    ssize_t done = pwritev(segment->fd, iov, (int)left, (off_t)segment->written);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      tb_rc rc = fail_file(segment, diag);
      memmove(segment->queue, iov, left * sizeof *iov);
      segment->nqueue = left;
      return rc;
    }
    segment->written += (uint64_t)done;
    for (; left > 0 && (size_t)done >= iov->iov_len; iov++, left--) done -= (ssize_t)iov->iov_len;
    if (left > 0) {
      iov->iov_base = (char *)iov->iov_base + done;
      iov->iov_len -= (size_t)done;
    }
  }
  segment->nqueue = 0;
  return TB_OK;
}

void tc_segment_to_disk(struct tc_segment *segment, bool all) {
  uint64_t from = segment->on_its_way, upto = segment->written;

  if (!all) upto -= upto % DISK_BYTES;
  if (upto <= from || segment->fd < 0) return;
  (void)sync_file_range(segment->fd, (off_t)from, (off_t)(upto - from), SYNC_FILE_RANGE_WRITE);
  segment->on_its_way = upto;
}

/* Copies the file to `to` and checks the checksum. */
static tb_rc copy_all(const struct tc_segment *segment, int to, struct tb_diag *diag) {
  unsigned char *buf = malloc(COPY_BYTES);
  uint32_t crc = 0;
  tb_rc rc = buf == NULL ? tb_fail(diag, TB_NOMEM, "segment: no memory") : TB_OK;

  for (uint64_t at = 0; rc == TB_OK && at < segment->written;) {
    size_t n = segment->written - at < COPY_BYTES ? (size_t)(segment->written - at) : COPY_BYTES;
    if (tc_read_all(segment->fd, buf, n, at) != 0 || tc_write_all(to, buf, n, at) != 0)
      rc = fail_file(segment, diag);
    else
      crc = tb_crc32c(crc, buf, n);
    at += n;
  }
  free(buf);
  if (rc != TB_OK || crc == segment->crc) return rc;
  return tb_fail(diag, TB_IO,
                 "open/%s: its sync failed, and what was written cannot be read back; the next "
                 "start makes it again from the log",
                 segment->name);
}

/* Writes a copy under another name and renames it: a checkpoint may rely on the existing file. The next start removes
 * leftovers. */
static tb_rc renew(struct tc_segment *segment, struct tb_diag *diag) {
  char temp[TC_FILE_NAME_BYTES + 8];

  snprintf(temp, sizeof temp, "%s.part", segment->name);
  unlinkat(segment->open_fd, temp, 0);
  int fd = tc_file_create(segment->open_fd, temp, O_RDWR);
  if (fd < 0) return fail_file(segment, diag);
  tb_rc rc = copy_all(segment, fd, diag);
  if (rc == TB_OK && fdatasync(fd) != 0) rc = fail_file(segment, diag);
  if (rc == TB_OK && renameat(segment->open_fd, temp, segment->open_fd, segment->name) != 0)
    rc = fail_file(segment, diag);
  if (rc != TB_OK) {
    close(fd);
    unlinkat(segment->open_fd, temp, 0);
    return rc;
  }
  close(segment->fd);
  segment->fd = fd;
  segment->unsure = false;
  segment->synced = segment->written;
  return TB_OK;
}

tb_rc tc_segment_sync(struct tc_segment *segment, struct tb_diag *diag) {
  assert(segment->nqueue == 0 && segment->written == segment->bytes && segment->owed.bytes == 0);
  TB_TRY(tc_descriptors_use(segment, diag));
  if (segment->unsure) return renew(segment, diag);
  if (fdatasync(segment->fd) == 0) {
    segment->synced = segment->written;
    return TB_OK;
  }
  segment->unsure = true;
  return fail_file(segment, diag);
}

tb_rc tc_segment_end(struct tc_segment *segment, const struct tc_segment_claim *claim,
                     struct tb_diag *diag) {
  struct tc_segment_gen *now = &segment->now;

  assert(segment->in_gen);
  if (claim->gen != now->gen)
    return tb_fail(diag, TB_BROKEN, "generation %" PRIu64 " is open, the end of %" PRIu64 " came",
                   now->gen, claim->gen);
  if (claim->batches != now->batches || claim->bytes != now->bytes)
    return tb_fail(diag, TB_BROKEN,
                   "generation %" PRIu64 " has %" PRIu64 " batches of %" PRIu64
                   " bytes, its end says %" PRIu64 " of %" PRIu64,
                   now->gen, now->batches, now->bytes, claim->batches, claim->bytes);
  if (claim->crc != now->crc_of_crcs)
    return tb_fail(diag, TB_BROKEN, "generation %" PRIu64 ": checksum is not what its end says",
                   now->gen);
  if (TB_GROW(segment->gens, segment->gens_cap, segment->ngens) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "segment: no memory");
  now->last_seq = claim->seq;
  now->end_wall_ns = claim->end_wall_ns;
  tc_hasher_end(segment->hasher, now->hash);
  now->has_hash = tc_hasher_kind(segment->hasher) == TC_HASH_XXH3;
  segment->gens[segment->ngens++] = *now;
  segment->in_gen = false;
  return TB_OK;
}

/* With XXH3-128 the caller moves the hashes; with SHA-256 the copied bytes are hashed again, after the new header. */
tb_rc tc__segment_copy(const struct tc_segment *from, uint64_t at, uint64_t upto,
                       struct tc_segment *to, struct tb_diag *diag) {
  bool hashed = tc_hasher_kind(from->hasher) == TC_HASH_XXH3;
  unsigned char *buf = malloc(COPY_BYTES);
  tb_rc rc =
      buf == NULL ? tb_fail(diag, TB_NOMEM, "segment: no memory") : tc_segment_flush(to, diag);

  if (!hashed) tc_hasher_begin(to->hasher);
  while (rc == TB_OK && at < upto) {
    size_t n = upto - at < COPY_BYTES ? (size_t)(upto - at) : COPY_BYTES;
    if (tc_read_all(from->fd, buf, n, at) != 0)
      rc = fail_read(from, at, diag);
    else if (tc_write_all(to->fd, buf, n, to->written) != 0)
      rc = fail_file(to, diag);
    else if (hashed)
      count_bytes(to, n, tb_crc32c(0, buf, n));
    else
      rc = add_bytes(to, buf, n, tb_crc32c(0, buf, n), diag);
    at += n;
    to->written += n;
  }
  free(buf);
  return rc;
}

/* Splits the hash at the border. */
static void part_hashes(struct tc_segment *segment, struct tc_segment *rest) {
  if (tc_hasher_kind(segment->hasher) == TC_HASH_XXH3) {
    tc_hasher_move_open(rest->hasher, segment->hasher);
    return;
  }
  struct tc_hasher *spent = segment->hasher;
  segment->hasher = segment->border;
  segment->border = spent;
}

tb_rc tc_segment_cut(struct tc_segment *segment, const char *stream_hex, struct tb_diag *diag,
                     struct tc_segment **out_rest) {
  struct tc_segment *rest;

  assert(segment->in_gen && segment->ngens > 0 && segment->nqueue == 0 && segment->owed.bytes == 0);
  *out_rest = NULL;
  TB_TRY(tc_descriptors_use(segment, diag));
  tb_rc rc = tc_segment_new(segment->open_fd, stream_hex, segment->now.gen, segment->header,
                            segment->header_len, tc_hasher_kind(segment->hasher), diag, out_rest);
  if (rc != TB_OK) return rc;
  rest = *out_rest;
  rc = tc__segment_copy(segment, segment->now.offset, segment->written, rest, diag);
  if (rc == TB_OK && ftruncate(segment->fd, (off_t)segment->now.offset) != 0)
    rc = fail_file(segment, diag);
  if (rc != TB_OK) {
    *out_rest = tc_segment_discard(rest);
    return rc;
  }
  rest->now = segment->now;
  rest->now.offset = rest->header_len;
  rest->in_gen = true;
  rest->first_wall_ns = segment->now.first_wall_ns;
  rest->last_wall_ns = segment->last_wall_ns;
  rest->opened_mono_ns = segment->opened_mono_ns;
  segment->in_gen = false;
  segment->bytes = segment->written = segment->now.offset;
  if (segment->on_its_way > segment->written) segment->on_its_way = segment->written;
  if (segment->synced > segment->written) segment->synced = segment->written;
  segment->crc = segment->border_crc;
  part_hashes(segment, rest);
  if (segment->descriptors != NULL) tc_descriptors_add(segment->descriptors, rest);
  return TB_OK;
}

tb_rc tc_segment_hash(const struct tc_segment *segment, struct tc_content_hash *out) {
  assert(segment->owed.bytes == 0);
  return tc_hasher_result(segment->hasher, out);
}
