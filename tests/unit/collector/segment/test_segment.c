/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <endian.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "collector/segment/proof.h"
#include "support/caller.h"

static char dir[] = "/tmp/tc-segment-XXXXXX";
static int fd;
static struct tc_segment *segment;
static struct tb_diag diag;
static const char hex[] = "00112233445566778899aabbccddeeff";

static void open_as(enum tc_hash_kind kind) {
  cr_assert_not_null(mkdtemp(dir));
  fd = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_segment_new(fd, hex, 5, "go 1.26 trace\0\0\0", 16, kind, &diag, &segment), TB_OK,
               "%s", diag.text);
}

static void open_segment(void) {
  open_as(TC_HASH_XXH3);
}

static void open_sha256(void) {
  open_as(TC_HASH_SHA256);
}

static void remove_segment(void) {
  char command[64];

  tc_segment_free(segment);
  close(fd);
  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

TestSuite(segment, .init = open_segment, .fini = remove_segment);
TestSuite(segment_sha256, .init = open_sha256, .fini = remove_segment);

static struct tc_segment_claim claim;

static void append(uint64_t gen, const char *text) {
  uint32_t len = (uint32_t)strlen(text), crc = tb_crc32c(0, text, len), le = htole32(crc);

  cr_assert_eq(tc_segment_append(segment, gen, ++claim.seq, text, len, crc, &diag), TB_OK,
               "line %d: %s", tt_caller, diag.text);
  claim.gen = gen;
  claim.batches++;
  claim.bytes += len;
  claim.crc = tb_crc32c(claim.crc, &le, 4);
}
#define append(...) TT_CALL(append(__VA_ARGS__))

static tb_rc end(void) {
  tb_rc rc;

  claim.seq++;
  rc = tc_segment_end(segment, &claim, &diag);
  claim = (struct tc_segment_claim){ .seq = claim.seq };
  return rc;
}

/* Hashes the file's bytes as read from the file; XXH3-128 covers only whole generations. */
static struct tc_content_hash hash_again(const struct tc_segment *s, const unsigned char *bytes,
                                         size_t n) {
  enum tc_hash_kind kind = tc_hasher_kind(s->hasher);
  unsigned char hash[TC_GENERATION_HASH_BYTES];
  struct tc_content_hash got;
  struct tc_hasher *hasher;

  cr_assert_eq(tc_hasher_new(kind, &hasher), TB_OK);
  cr_assert_eq(tc_hasher_add(hasher, bytes, kind == TC_HASH_SHA256 ? n : 16), TB_OK);
  for (size_t i = 0; kind == TC_HASH_XXH3 && i < s->ngens; i++) {
    tc_hasher_begin(hasher);
    cr_assert_eq(tc_hasher_add(hasher, bytes + s->gens[i].offset, s->gens[i].bytes), TB_OK);
    tc_hasher_end(hasher, hash);
    cr_assert(s->gens[i].has_hash);
    cr_assert_arr_eq(s->gens[i].hash, hash, sizeof hash);
  }
  cr_assert_eq(tc_hasher_result(hasher, &got), TB_OK);
  tc_hasher_free(hasher);
  return got;
}

/* Expects the content of the file to match its checksums and `text`. */
static void expect(struct tc_segment *s, const char *text) {
  unsigned char got[4096];
  struct tc_content_hash hash, want;
  size_t n = 16 + strlen(text);

  cr_assert_eq(tc_segment_flush(s, &diag), TB_OK, "line %d: %s", tt_caller, diag.text);
  cr_assert_eq(pread(s->fd, got, sizeof got, 0), (ssize_t)n, TT_CALLER);
  cr_assert_eq(memcmp(got + 16, text, n - 16), 0, TT_CALLER);
  cr_assert_eq(s->bytes, n, TT_CALLER);
  cr_assert_eq(s->crc, tb_crc32c(0, got, n), TT_CALLER);
  cr_assert_eq(tc_segment_hash(s, &hash), TB_OK, TT_CALLER);
  want = hash_again(s, got, n);
  cr_assert(tc_hash_equal(&hash, &want), TT_CALLER);
}
#define expect(...) TT_CALL(expect(__VA_ARGS__))

Test(segment, holds_the_header_and_the_batches_as_they_came) {
  append(5, "one");
  append(5, "two");
  cr_assert_eq(end(), TB_OK, "%s", diag.text);
  expect(segment, "onetwo");
  cr_assert_eq(segment->gens[0].offset, 16);
  cr_assert_eq(segment->gens[0].bytes, 6);
  cr_assert_eq(segment->gens[0].crc, tb_crc32c(0, "onetwo", 6));
}

Test(segment, more_batches_than_one_call_writes) {
  char text[10 * 300 + 1] = "", one[300][11];

  for (int i = 0; i < 300; i++) {
    snprintf(one[i], sizeof one[i], "batch %04d", i);
    append(5, one[i]);
    strcat(text, one[i]);
  }
  cr_assert_eq(end(), TB_OK);
  expect(segment, text);
}

Test(segment, an_end_that_says_something_else_is_told_apart) {
  static const struct {
    int batches, bytes;
    uint32_t crc;
    uint64_t gen;
    const char *words;
  } wrong[] = {
    { 1, 0, 0, 0, "has 1 batches of 3 bytes, its end says 2 of 3" },
    { 0, 1, 0, 0, "its end says 1 of 4" },
    { 0, 0, 1, 0, "checksum is not what its end says" },
    { 0, 0, 0, 1, "generation 5 is open, the end of 6 came" },
  };

  append(5, "abc");
  struct tc_segment_claim right = claim;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    claim = right;
    claim.batches += wrong[i].batches;
    claim.bytes += wrong[i].bytes;
    claim.crc ^= wrong[i].crc;
    claim.gen += wrong[i].gen;
    tb_diag_clear(&diag);
    cr_assert_eq(end(), TB_BROKEN);
    cr_assert_not_null(strstr(diag.text, wrong[i].words), "%s", diag.text);
  }
  claim = right;
  cr_assert_eq(end(), TB_OK);
}

static void cut_in_the_third(void) {
  struct tc_segment *rest;

  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  append(6, "six");
  cr_assert_eq(end(), TB_OK);
  append(7, "sev");
  cr_assert_eq(tc_segment_flush(segment, &diag), TB_OK);
  cr_assert_eq(tc_segment_cut(segment, hex, &diag, &rest), TB_OK, "%s", diag.text);
  expect(segment, "fivesix");
  expect(rest, "sev");
  struct tc_segment *whole = segment;
  segment = rest;
  append(7, "en");
  cr_assert_eq(end(), TB_OK, "%s", diag.text);
  expect(rest, "seven");
  cr_assert_eq(rest->gens[0].offset, 16);
  cr_assert_eq(rest->first_gen, 7);
  tc_segment_free(whole);
}

Test(segment, a_cut_leaves_two_files_that_each_match_their_sums) {
  cut_in_the_third();
}

Test(segment_sha256, a_cut_leaves_two_files_that_each_match_their_sums) {
  unsigned char want[32];
  struct tc_content_hash hash;

  cut_in_the_third();
  cr_assert_eq(tc_segment_hash(segment, &hash), TB_OK);
  EVP_Digest("go 1.26 trace\0\0\0seven", 21, want, NULL, EVP_sha256(), NULL);
  cr_assert_arr_eq(hash.bytes, want, 32);
  cr_assert_not(segment->gens[0].has_hash, "as it was before there were others");
}

/* Resumes the segment's file, with another kind of hash or the same. */
static struct tc_segment *take_up(enum tc_hash_kind kind) {
  struct tc_segment_gen *gens = calloc(segment->ngens + 1, sizeof *gens);
  struct tc_segment *again;

  cr_assert_eq(tc_segment_flush(segment, &diag), TB_OK);
  for (size_t i = 0; i < segment->ngens; i++) gens[i] = segment->gens[i];
  struct tc_segment_part part = { .first_gen = 5,
                                  .bytes = segment->bytes,
                                  .header_len = 16,
                                  .crc = segment->crc,
                                  .now = segment->in_gen ? &segment->now : NULL,
                                  .gens = gens,
                                  .ngens = segment->ngens };
  cr_assert_eq(tc_segment_resume(fd, hex, &part, kind, &diag, &again), TB_OK, "%s", diag.text);
  tc_segment_free(segment);
  segment = again;
  return again;
}

Test(segment, a_file_that_is_taken_up_hashes_on) {
  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  expect(take_up(TC_HASH_XXH3), "five");
  append(6, "six");
  cr_assert_eq(end(), TB_OK);
  expect(segment, "fivesix");
  expect(take_up(TC_HASH_SHA256), "fivesix");
  append(7, "seven");
  cr_assert_eq(end(), TB_OK);
  expect(segment, "fivesixseven");
  expect(take_up(TC_HASH_XXH3), "fivesixseven"); /* the last one gets the hash that it lacks */
}

Test(segment, an_open_generation_that_is_taken_up_hashes_on) {
  append(5, "fi");
  struct tc_segment *again = take_up(TC_HASH_XXH3);
  append(5, "ve");
  cr_assert_eq(end(), TB_OK, "%s", diag.text);
  expect(again, "five");
}

Test(segment, a_known_hash_is_taken_and_not_made_again) {
  struct tc_content_hash hash, want;
  struct tc_hasher *hasher;

  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  memset(segment->gens[0].hash, 7, sizeof segment->gens[0].hash);
  cr_assert_eq(tc_segment_hash(take_up(TC_HASH_XXH3), &hash), TB_OK);
  cr_assert_eq(tc_hasher_new(TC_HASH_XXH3, &hasher), TB_OK);
  cr_assert_eq(tc_hasher_add(hasher, "go 1.26 trace\0\0\0", 16), TB_OK);
  tc_hasher_take(hasher, segment->gens[0].hash);
  cr_assert_eq(tc_hasher_result(hasher, &want), TB_OK);
  cr_assert(tc_hash_equal(&hash, &want));
  tc_hasher_free(hasher);
}

/* The next start resumes what a checkpoint notes of generations 5 and 6, "five" and "six". */
static void take_up_vouched(void) {
  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  append(6, "six");
  cr_assert_eq(end(), TB_OK);
  cr_assert_eq(tc_segment_flush(segment, &diag), TB_OK);
  struct tc_segment_part part = { .first_gen = 5,
                                  .bytes = segment->bytes,
                                  .header_len = 16,
                                  .crc = segment->crc,
                                  .gens = calloc(2, sizeof *part.gens),
                                  .ngens = 2,
                                  .is_vouched_for = true };
  memcpy(part.gens, segment->gens, 2 * sizeof *part.gens);
  tc_segment_free(segment);
  segment = NULL;
  cr_assert_eq(tc_segment_resume(fd, hex, &part, TC_HASH_XXH3, &diag, &segment), TB_OK, "%s",
               diag.text);
}

static void damage(off_t offset) {
  cr_assert_eq(pwrite(segment->fd, "?", 1, offset), 1);
}

Test(segment, what_was_vouched_for_is_read_back_with_what_came_behind_it) {
  struct tc_segment *rest;

  take_up_vouched();
  cr_assert(!tc_segment_is_proven(segment));
  append(7, "seven");
  cr_assert_eq(end(), TB_OK);
  append(8, "ei");
  cr_assert_eq(tc_segment_prove(segment, &diag), TB_OK, "%s", diag.text);
  cr_assert(tc_segment_is_proven(segment));
  append(8, "ght");
  expect(segment, "fivesixseveneight");
  cr_assert_eq(tc_segment_cut(segment, hex, &diag, &rest), TB_OK, "%s", diag.text);
  expect(segment, "fivesixseven");
  expect(rest, "eight");
  tc_segment_free(rest);
}

Test(segment, what_came_behind_damaged_bytes_gets_a_segment_of_its_own) {
  struct tc_segment *rest;

  take_up_vouched();
  damage(17); /* in "five" */
  append(7, "seven");
  cr_assert_eq(end(), TB_OK);
  append(8, "eig");
  for (int again = 0; again < 2; again++) {
    tb_diag_clear(&diag);
    cr_assert_eq(tc_segment_prove(segment, &diag), TB_CORRUPT);
    cr_assert_str_eq(diag.text, "open/00112233445566778899aabbccddeeff-0000000000000005.part: "
                                "checksum is wrong");
  }
  cr_assert_eq(tc_segment_part_off(segment, hex, "go 1.26 trace\0\0\0", 16, &diag, &rest), TB_OK,
               "%s", diag.text);
  cr_assert_eq(lseek(segment->fd, 0, SEEK_END), 16 + 7, "as it was noted");
  tc_segment_free(segment);
  segment = rest;
  cr_assert_eq(rest->first_gen, 7);
  cr_assert_eq(rest->ngens, 1);
  cr_assert_eq(rest->gens[0].gen, 7);
  cr_assert_eq(rest->gens[0].offset, 16);
  append(8, "ht");
  expect(rest, "seveneight");
  cr_assert_eq(tc_segment_cut(rest, hex, &diag, &rest), TB_OK, "%s", diag.text);
  expect(segment, "seven");
  expect(rest, "eight");
  tc_segment_free(rest);
}

Test(segment, nothing_came_behind_damaged_bytes) {
  struct tc_segment *rest;

  take_up_vouched();
  damage(18);
  cr_assert_eq(tc_segment_prove(segment, &diag), TB_CORRUPT);
  cr_assert_eq(tc_segment_part_off(segment, hex, "", 0, &diag, &rest), TB_OK, "%s", diag.text);
  cr_assert_null(rest);
}

/* If the file ends too soon or its last generation has changed, all of it is read at once. */
Test(segment, a_seam_that_does_not_fit_is_seen_when_it_is_taken_up) {
  struct tc_segment_part part = {
    .first_gen = 5, .header_len = 16, .ngens = 1, .is_vouched_for = true
  };

  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  cr_assert_eq(tc_segment_flush(segment, &diag), TB_OK);
  part.bytes = segment->bytes;
  part.crc = segment->crc;
  part.gens = segment->gens;
  damage(19);
  struct tc_segment *again;
  cr_assert_eq(tc_segment_resume(fd, hex, &part, TC_HASH_XXH3, &diag, &again), TB_CORRUPT);
  cr_assert_not_null(strstr(diag.text, "checksum is wrong"), "%s", diag.text);
  tb_diag_clear(&diag);
  cr_assert_eq(ftruncate(segment->fd, 19), 0);
  cr_assert_eq(tc_segment_resume(fd, hex, &part, TC_HASH_XXH3, &diag, &again), TB_CORRUPT);
  cr_assert_not_null(strstr(diag.text, "has 19 bytes of 20"), "%s", diag.text);
}

Test(segment, experiments_that_go_tools_cannot_read_are_seen) {
  cr_assert(tc_batch_is_unsafe((const unsigned char *)"\x31\x02", 2));
  cr_assert(tc_batch_is_unsafe((const unsigned char *)"\x31\x00", 2));
  cr_assert_not(tc_batch_is_unsafe((const unsigned char *)"\x31\x01", 2));
  cr_assert_not(tc_batch_is_unsafe((const unsigned char *)"\x01\x02", 2));
  cr_assert_not(tc_batch_is_unsafe((const unsigned char *)"\x31", 1));
}

Test(segment, the_header_tells_the_version) {
  cr_assert_eq(tc_go_version((const unsigned char *)"go 1.26 trace\0\0\0", 16), 26);
  cr_assert_eq(tc_go_version((const unsigned char *)"go 1.22 trace\0\0\0", 16), 22);
  cr_assert_eq(tc_go_version((const unsigned char *)"go 1.24 trace\0\0\0", 16), 0);
  cr_assert_eq(tc_go_version((const unsigned char *)"go 1.26 trace", 13), 0);
}

/* ---- descriptors */

static struct tc_descriptors descriptors;

static void share_descriptors(size_t max) {
  tc_descriptors_init(&descriptors, max);
  tc_descriptors_add(&descriptors, segment);
}

static struct tc_segment *another(uint64_t gen) {
  struct tc_segment *made;

  cr_assert_eq(tc_segment_new(fd, hex, gen, "go 1.26 trace\0\0\0", 16, TC_HASH_XXH3, &diag, &made),
               TB_OK, "%s", diag.text);
  tc_descriptors_add(&descriptors, made);
  cr_assert_eq(tc_segment_flush(made, &diag), TB_OK);
  return made;
}

static void flush(void) {
  cr_assert_eq(tc_segment_flush(segment, &diag), TB_OK, "%s", diag.text);
}

Test(segment, of_many_only_the_ones_used_last_have_a_descriptor) {
  struct tc_segment *others[3];

  share_descriptors(2);
  append(5, "one");
  for (uint64_t i = 0; i < 3; i++) others[i] = another(6 + i);
  cr_assert_geq(segment->fd, 0, "it has bytes to write");
  cr_assert_eq(descriptors.n, 2);
  flush();
  cr_assert_eq(tc_descriptors_use(others[0], &diag), TB_OK);
  cr_assert_eq(tc_descriptors_use(others[1], &diag), TB_OK);
  cr_assert_eq(segment->fd, -1);
  cr_assert_eq(descriptors.n, 2);
  append(5, "two");
  flush();
  cr_assert_geq(segment->fd, 0);
  cr_assert_eq(others[0]->fd, -1, "unused for the longest time");
  cr_assert_eq(end(), TB_OK);
  expect(segment, "onetwo");
  for (uint64_t i = 0; i < 3; i++) tc_segment_free(others[i]);
  cr_assert_eq(descriptors.n, 1);
}

Test(segment, what_was_closed_without_a_sync_is_proven_by_the_next_one) {
  share_descriptors(1);
  append(5, "one");
  flush();
  cr_assert_eq(tc_segment_sync(segment, &diag), TB_OK);
  struct tc_segment *other = another(6);
  cr_assert_eq(segment->fd, -1);
  cr_assert_not(segment->unsure, "the disk has it");
  append(5, "two");
  flush();
  cr_assert_eq(tc_descriptors_use(other, &diag), TB_OK);
  cr_assert(segment->unsure);
  int damaged = openat(fd, segment->name, O_WRONLY);
  cr_assert_eq(pwrite(damaged, "x", 1, 17), 1);
  cr_assert_eq(tc_segment_sync(segment, &diag), TB_IO);
  cr_assert_eq(pwrite(damaged, "n", 1, 17), 1);
  close(damaged);
  cr_assert_eq(tc_segment_sync(segment, &diag), TB_OK, "%s", diag.text);
  cr_assert_not(segment->unsure);
  cr_assert_eq(end(), TB_OK);
  expect(segment, "onetwo");
  tc_segment_free(other);
}

Test(segment, one_that_rests_is_cut_and_both_parts_are_counted) {
  struct tc_segment *rest, *other;

  share_descriptors(1);
  append(5, "five");
  cr_assert_eq(end(), TB_OK);
  append(6, "six");
  flush();
  other = another(9);
  cr_assert_eq(segment->fd, -1);
  cr_assert_eq(tc_segment_cut(segment, hex, &diag, &rest), TB_OK, "%s", diag.text);
  cr_assert_eq(descriptors.n, 1);
  cr_assert_eq(tc_descriptors_use(segment, &diag), TB_OK);
  expect(segment, "five");
  cr_assert_eq(tc_descriptors_use(rest, &diag), TB_OK);
  expect(rest, "six");
  tc_segment_free(rest);
  tc_segment_free(other);
}

Test(segment, a_file_that_was_closed_is_removed_with_its_segment) {
  share_descriptors(1);
  append(5, "five");
  flush();
  struct tc_segment *other = another(6);
  cr_assert_eq(segment->fd, -1);
  cr_assert_eq(faccessat(fd, segment->name, F_OK, 0), 0);
  cr_assert_null(tc_segment_discard(segment));
  segment = other;
  char name[TC_FILE_NAME_BYTES];
  tc_segment_name(hex, 5, name);
  cr_assert_neq(faccessat(fd, name, F_OK, 0), 0);
  cr_assert_eq(descriptors.n, 1);
}
