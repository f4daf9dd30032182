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
  SEAM_BYTES = 64 << 10, /* a last generation up to this size is checked at the start */
};

/* ---- at a start */

static bool has_size(const struct tc_segment *segment, uint64_t bytes) {
  struct stat st;

  return fstat(segment->fd, &st) == 0 && (uint64_t)st.st_size >= bytes;
}

/* Checks the last generation, because new bytes are written right after it. */
static bool has_seam(const struct tc_segment *segment, const struct tc_segment_gen *last) {
  if (last->bytes > SEAM_BYTES) return true;
  unsigned char *bytes = malloc(last->bytes + 1);
  bool good = bytes != NULL &&
              tc_read_all(segment->fd, bytes, (size_t)last->bytes, last->offset) == 0 &&
              tb_crc32c(0, bytes, (size_t)last->bytes) == last->crc;

  free(bytes);
  return good;
}

/* Computes the hash from the header and the generations' hashes, which only XXH3-128 allows. */
static bool take_hashes(struct tc_segment *segment, const struct tc_segment_part *part) {
  if (tc_hasher_kind(segment->hasher) != TC_HASH_XXH3 || part->header_len > sizeof segment->header)
    return false;
  for (size_t i = 0; i < part->ngens; i++)
    if (!part->gens[i].has_hash) return false;
  if (tc_read_all(segment->fd, segment->header, part->header_len, 0) != 0 ||
      tc_hasher_add(segment->hasher, segment->header, part->header_len) != TB_OK)
    return false;
  for (size_t i = 0; i < part->ngens; i++) tc_hasher_take(segment->hasher, part->gens[i].hash);
  return true;
}

bool tc__segment_trust(struct tc_segment *segment, const struct tc_segment_part *part) {
  if (part->ngens == 0 || part->now != NULL || part->bytes <= part->header_len ||
      !has_size(segment, part->bytes) || !has_seam(segment, &part->gens[part->ngens - 1]) ||
      !take_hashes(segment, part))
    return false;
  segment->owed =
      (struct tc_segment_owed){ .bytes = part->bytes, .ngens = part->ngens, .crc = part->crc };
  segment->bytes = part->bytes;
  segment->crc = part->crc;
  return true;
}

/* ---- later */

static tb_rc fail_crc(const struct tc_segment *segment, struct tb_diag *diag) {
  return tb_fail(diag, TB_CORRUPT, "open/%s: checksum is wrong", segment->name);
}

static tb_rc read_step(struct tc_segment *segment, struct tb_diag *diag) {
  struct tc_segment_owed *owed = &segment->owed;
  uint64_t left = owed->bytes - owed->read;
  size_t n = left < STEP_BYTES ? (size_t)left : STEP_BYTES;
  unsigned char *buf = malloc(STEP_BYTES);
  tb_rc rc = TB_OK;

  if (buf == NULL) return tb_fail(diag, TB_NOMEM, "segment: no memory");
  if (tc_read_all(segment->fd, buf, n, owed->read) != 0)
    rc = tb_fail(diag, tc_read_rc(errno), "open/%s: from offset %" PRIu64 " on: %s", segment->name,
                 owed->read, strerror(errno));
  if (rc == TB_OK) {
    owed->read += n;
    owed->read_crc = tb_crc32c(owed->read_crc, buf, n);
  }
  free(buf);
  return rc;
}

tb_rc tc_segment_prove(struct tc_segment *segment, struct tb_diag *diag) {
  struct tc_segment_owed *owed = &segment->owed;

  if (owed->bytes == 0) return TB_OK;
  TB_TRY(tc_segment_flush(segment, diag));
  TB_TRY(tc_descriptors_use(segment, diag));
  if (owed->read < owed->bytes) TB_TRY(read_step(segment, diag));
  if (owed->read < owed->bytes) return TB_AGAIN;
  if (owed->read_crc != owed->crc) return fail_crc(segment, diag); /* and so do later calls */
  *owed = (struct tc_segment_owed){ 0 };
  return TB_OK;
}

/* ---- a file that failed the check */

static tb_rc copy_rest(struct tc_segment *segment, struct tc_segment *rest, struct tb_diag *diag) {
  uint64_t from = segment->owed.bytes;
  size_t ngens = segment->ngens - segment->owed.ngens;

  if (segment->in_gen && ngens > 0) {
    TB_TRY(tc__segment_copy(segment, from, segment->now.offset, rest, diag));
    rest->border_crc = rest->crc;
    from = segment->now.offset;
  }
  TB_TRY(tc__segment_copy(segment, from, segment->written, rest, diag));
  rest->gens = calloc(ngens + 1, sizeof *rest->gens);
  return rest->gens != NULL ? TB_OK : tb_fail(diag, TB_NOMEM, "segment: no memory");
}

/* Moves the generations, with the reasons of their verdicts, to rest. */
static void hand_over(struct tc_segment *segment, struct tc_segment *rest) {
  uint64_t moved = segment->owed.bytes - rest->header_len;
  size_t first = segment->owed.ngens;

  rest->ngens = segment->ngens - first;
  rest->gens_cap = rest->ngens + 1;
  for (size_t i = 0; i < rest->ngens; i++) {
    rest->gens[i] = segment->gens[first + i];
    rest->gens[i].offset -= moved;
    tc_hasher_take(rest->hasher, rest->gens[i].hash);
  }
  segment->ngens = first;
  rest->in_gen = segment->in_gen;
  if (segment->in_gen) {
    rest->now = segment->now;
    rest->now.offset -= moved;
    tc_hasher_move_open(rest->hasher, segment->hasher);
  }
  segment->in_gen = false;
  rest->first_wall_ns = rest->ngens > 0 ? rest->gens[0].first_wall_ns : rest->now.first_wall_ns;
  rest->last_wall_ns = segment->last_wall_ns;
  rest->opened_mono_ns = segment->opened_mono_ns;
}

tb_rc tc_segment_part_off(struct tc_segment *segment, const char *stream_hex, const void *header,
                          size_t header_len, struct tb_diag *diag, struct tc_segment **out_rest) {
  struct tc_segment_owed *owed = &segment->owed;
  tb_rc rc = TB_OK;

  assert(owed->bytes > 0 && segment->nqueue == 0);
  *out_rest = NULL;
  TB_TRY(tc_descriptors_use(segment, diag));
  bool any = segment->ngens > owed->ngens || segment->in_gen;
  if (any) {
    uint64_t gen = segment->ngens > owed->ngens ? segment->gens[owed->ngens].gen : segment->now.gen;
    TB_TRY(tc_segment_new(segment->open_fd, stream_hex, gen, header, header_len, TC_HASH_XXH3, diag,
                          out_rest));
    rc = copy_rest(segment, *out_rest, diag);
  }
  if (rc == TB_OK && ftruncate(segment->fd, (off_t)owed->bytes) != 0)
    rc = tb_fail(diag, tc_errno_rc(errno), "open/%s: %s", segment->name, strerror(errno));
  if (rc != TB_OK) {
    if (any) *out_rest = tc_segment_discard(*out_rest);
    return rc;
  }
  if (any) hand_over(segment, *out_rest);
  if (any && segment->descriptors != NULL) tc_descriptors_add(segment->descriptors, *out_rest);
  segment->bytes = segment->written = owed->bytes;
  return TB_OK;
}
