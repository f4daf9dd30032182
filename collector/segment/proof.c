/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/proof.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/segment/private.h"

enum {
  STEP_BYTES = 256 << 10,
  SEAM_BYTES = 64 << 10, /* a last generation of at most that is read at once */
};

/* ---- at a start */

static bool has_size(const struct tc_segment *segment, uint64_t bytes) {
  struct stat st;

  return fstat(segment->fd, &st) == 0 && (uint64_t)st.st_size >= bytes;
}

/* What comes next is written right behind the last generation. */
static bool has_seam(const struct tc_segment *segment, const struct tc_segment_gen *last) {
  if (last->bytes > SEAM_BYTES) return true;
  unsigned char *bytes = malloc(last->bytes + 1);
  bool good = bytes != NULL &&
              tc_read_all(segment->fd, bytes, (size_t)last->bytes, last->offset) == 0 &&
              tb_crc32c(0, bytes, (size_t)last->bytes) == last->crc;

  free(bytes);
  return good;
}

bool tc__segment_trust(struct tc_segment *segment, const struct tc_segment_part *part) {
  if (part->ngens == 0 || part->now != NULL || part->bytes <= part->header_len ||
      !has_size(segment, part->bytes) || !has_seam(segment, &part->gens[part->ngens - 1]))
    return false;
  segment->owed =
      (struct tc_segment_owed){ .bytes = part->bytes, .ngens = part->ngens, .crc = part->crc };
  segment->bytes = part->bytes;
  segment->crc = part->crc;
  return true;
}

/* ---- later */

static bool has_border(const struct tc_segment *segment) {
  return segment->in_gen && segment->ngens > 0;
}

/* The SHA-256 stops at each of them. */
static uint64_t next_stop(const struct tc_segment *segment) {
  const struct tc_segment_owed *owed = &segment->owed;

  if (owed->read < owed->bytes) return owed->bytes;
  if (has_border(segment) && owed->read < segment->now.offset) return segment->now.offset;
  return segment->written;
}

/* What this run wrote itself is in the log still: the next start makes it again. */
static tb_rc fail_read(const struct tc_segment *segment, struct tb_diag *diag) {
  uint64_t at = segment->owed.read;
  bool is_owed = at < segment->owed.bytes;

  return tb_fail(diag, is_owed || errno != EIO ? tc_read_rc(errno) : TB_IO,
                 "open/%s: from offset %" PRIu64 " on: %s", segment->name, at, strerror(errno));
}

static tb_rc read_on(struct tc_segment *segment, unsigned char *buf, size_t n,
                     struct tb_diag *diag) {
  struct tc_segment_owed *owed = &segment->owed;

  if (tc_read_all(segment->fd, buf, n, owed->read) != 0) return fail_read(segment, diag);
  if (!tc__segment_hash(segment, buf, n)) return tb_fail(diag, TB_NOMEM, "segment: SHA-256 failed");
  owed->read += n;
  owed->read_crc = tb_crc32c(owed->read_crc, buf, n);
  if (owed->read != owed->bytes || owed->read_crc == owed->crc) return TB_OK;
  return tb_fail(diag, TB_CORRUPT, "open/%s: checksum is wrong", segment->name);
}

static tb_rc read_step(struct tc_segment *segment, struct tb_diag *diag) {
  uint64_t left = STEP_BYTES;
  unsigned char *buf = malloc(STEP_BYTES);
  tb_rc rc = buf == NULL ? tb_fail(diag, TB_NOMEM, "segment: no memory") : TB_OK;

  while (rc == TB_OK && left > 0 && segment->owed.read < segment->written) {
    uint64_t n = next_stop(segment) - segment->owed.read;
    if (n > left) n = left;
    left -= n;
    rc = read_on(segment, buf, (size_t)n, diag);
    if (rc == TB_OK && has_border(segment) && segment->owed.read == segment->now.offset &&
        !tc__segment_mark_border(segment))
      rc = tb_fail(diag, TB_NOMEM, "segment: no memory for SHA-256");
  }
  free(buf);
  return rc;
}

tb_rc tc_segment_prove(struct tc_segment *segment, struct tb_diag *diag) {
  struct tc_segment_owed *owed = &segment->owed;

  if (owed->bytes == 0) return TB_OK;
  TB_TRY(tc_segment_flush(segment, diag));
  /* A step that found it wrong says so again; one that ended at the border may have had no memory to mark it. */
  if (owed->read == owed->bytes && owed->read_crc != owed->crc)
    return tb_fail(diag, TB_CORRUPT, "open/%s: checksum is wrong", segment->name);
  if (has_border(segment) && owed->read == segment->now.offset && !tc__segment_mark_border(segment))
    return tb_fail(diag, TB_NOMEM, "segment: no memory for SHA-256");
  TB_TRY(read_step(segment, diag));
  if (owed->read < segment->written) return TB_AGAIN;
  if (owed->read_crc != segment->crc)
    return tb_fail(diag, TB_IO,
                   "open/%s: what was written behind offset %" PRIu64
                   " cannot be read back; the next start makes it again from the log",
                   segment->name, owed->bytes);
  *owed = (struct tc_segment_owed){ 0 };
  return TB_OK;
}

/* ---- where it is not what it was */

static tb_rc copy_behind(struct tc_segment *segment, struct tc_segment *rest,
                         struct tb_diag *diag) {
  uint64_t from = segment->owed.bytes;
  size_t ngens = segment->ngens - segment->owed.ngens;

  if (segment->in_gen && ngens > 0) {
    TB_TRY(tc__segment_copy(segment, from, segment->now.offset, rest, diag));
    if (!tc__segment_mark_border(rest))
      return tb_fail(diag, TB_NOMEM, "segment: no memory for SHA-256");
    rest->border_crc = rest->crc;
    from = segment->now.offset;
  }
  TB_TRY(tc__segment_copy(segment, from, segment->written, rest, diag));
  rest->gens = calloc(ngens + 1, sizeof *rest->gens);
  return rest->gens != NULL ? TB_OK : tb_fail(diag, TB_NOMEM, "segment: no memory");
}

/* Its generations, with their verdicts' words, become the other's. */
static void hand_over(struct tc_segment *segment, struct tc_segment *rest) {
  uint64_t moved = segment->owed.bytes - rest->header_len;
  size_t first = segment->owed.ngens;

  rest->ngens = segment->ngens - first;
  rest->gens_cap = rest->ngens + 1;
  for (size_t i = 0; i < rest->ngens; i++) {
    rest->gens[i] = segment->gens[first + i];
    rest->gens[i].offset -= moved;
  }
  segment->ngens = first;
  rest->in_gen = segment->in_gen;
  if (segment->in_gen) {
    rest->now = segment->now;
    rest->now.offset -= moved;
  }
  segment->in_gen = false;
  rest->first_wall_ns = rest->ngens > 0 ? rest->gens[0].first_wall_ns : rest->now.first_wall_ns;
  rest->last_wall_ns = segment->last_wall_ns;
  rest->opened_mono_ns = segment->opened_mono_ns;
}

tb_rc tc_segment_part_off(struct tc_segment *segment, const char *stream_hex, const void *header,
                          size_t header_len, struct tb_diag *diag, struct tc_segment **out_rest) {
  struct tc_segment_owed *owed = &segment->owed;
  struct tc_segment *rest = NULL;
  tb_rc rc = TB_OK;

  assert(owed->bytes > 0 && segment->nqueue == 0);
  *out_rest = NULL;
  bool any = segment->ngens > owed->ngens || segment->in_gen;
  if (any) {
    uint64_t gen = segment->ngens > owed->ngens ? segment->gens[owed->ngens].gen : segment->now.gen;
    TB_TRY(tc_segment_new(segment->open_fd, stream_hex, gen, header, header_len, diag, &rest));
    rc = copy_behind(segment, rest, diag);
  }
  if (rc == TB_OK && ftruncate(segment->fd, (off_t)owed->bytes) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "open/%s: %s", segment->name, strerror(errno));
  if (rc != TB_OK) {
    if (rest != NULL) unlinkat(rest->open_fd, rest->name, 0);
    tc_segment_free(rest);
    return rc;
  }
  if (any) hand_over(segment, rest);
  segment->bytes = segment->written = owed->bytes;
  *out_rest = rest;
  return TB_OK;
}
