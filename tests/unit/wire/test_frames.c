/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "wire/block.h"
#include "wire/frames.h"
#include "wire/sections.h"

enum { ROUNDS = 20000, ROOM = TW_STACK_FRAMES_MAX * 4 * TW_VARINT_BYTES_MAX + 2 * TW_BLOCK_BYTES };

static uint64_t state;

static uint64_t random_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * UINT64_C(0x2545F4914F6CDD1D);
}

static uint64_t random_up_to_bits(unsigned bits_max) {
  unsigned bits = (unsigned)(random_number() % (bits_max + 1));

  return bits == 0 ? 0 : random_number() >> (64 - bits);
}

Test(frames, blocks_by_words_and_by_vectors_are_the_same) {
  unsigned char bytes[TW_BLOCK_BYTES];

  state = 1;
  for (int round = 0; round < ROUNDS; round++) {
    unsigned limit = (unsigned)(random_number() % 129);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)random_up_to_bits(8);
    struct tw_block block = tw_block(bytes, tw_limit(limit)),
                    by_words = tw_block_by_words(bytes, limit);
    cr_assert_eq(block.ends, by_words.ends);
    cr_assert_eq(block.large & block.ends, by_words.large & by_words.ends, "limit %u", limit);
    for (unsigned i = 0; i < TW_BLOCK_BYTES; i++) {
      cr_assert_eq(block.ends >> i & 1, bytes[i] < 0x80);
      if (bytes[i] < 0x80) cr_assert_eq(block.large >> i & 1, bytes[i] >= limit);
    }
  }
}

Test(frames, the_nth_bit_is_found) {
  state = 2;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t bits = random_up_to_bits(64) | random_up_to_bits(64), counts = tw_count_up(bits);
    unsigned n = 0;
    for (unsigned i = 0; i < 64; i++) {
      if (bits >> i & 1) cr_assert_eq(tw_nth_bit(bits, counts, ++n), i);
      cr_assert_eq(tw_odd_up(bits) >> i & 1, n & 1);
    }
    cr_assert_eq(counts >> 56, n);
  }
}

/* Writes frames, as Go does, or as no writer does. Returns their end and the largest string id. */
static unsigned char *write_frames(unsigned char *out, unsigned n, unsigned id_bits,
                                   uint64_t *max) {
  for (unsigned i = 0; i < 4 * n; i++) {
    bool is_string = i % 4 == 1 || i % 4 == 2;
    unsigned bits = is_string ? id_bits : id_bits < 4 ? 5 : i % 4 == 0 ? 47 : 14;
    uint64_t value = random_up_to_bits(random_number() % 500 == 0 ? 64 : bits);
    if (is_string && value > *max) *max = value;
    out += tw_varint_write(out, value);
    if (random_number() % 200 == 0) { /* padded with an empty group */
      out[-1] |= 0x80;
      *out++ = 0;
    }
  }
  return out;
}

Test(frames, their_end_and_their_largest_string_are_those_of_reading_them) {
  static unsigned char bytes[ROOM];
  unsigned found = 0;

  state = 3;
  for (int round = 0; round < ROUNDS; round++) {
    unsigned n = (unsigned)(random_number() % (TW_STACK_FRAMES_MAX + 1));
    uint64_t before = random_up_to_bits(16), max = before, got = before;
    unsigned char *end = write_frames(bytes, n, (unsigned)(random_number() % 16), &max);
    memset(end, (int)(random_number() & 0xff), TW_BLOCK_BYTES); /* the bytes after the frames */
    const unsigned char *at = tw__frames_end(bytes, end + TW_BLOCK_BYTES, n, &got);
    uint64_t got_anywhere = before;
    cr_assert_eq(tw__frames_end_anywhere(bytes, end + TW_BLOCK_BYTES, n, &got_anywhere), at);
    cr_assert_eq(got_anywhere, got);
    cr_assert_leq(got, max);
    if (at == NULL) continue;
    found++;
    cr_assert_eq(at - bytes, end - bytes);
    cr_assert_eq(got, max);
  }
  cr_assert_gt(found, ROUNDS / 10);
}

Test(frames, what_cannot_be_read_is_left_to_who_reads_one_by_one) {
  unsigned char bytes[4 * TW_BLOCK_BYTES];
  uint64_t max = 0;

  /* A number of nine bytes, at every place, also across two blocks. */
  for (size_t at = 0; at < 120; at++) {
    memset(bytes, 1, sizeof bytes);
    memset(bytes + at, 0x81, 8);
    cr_assert_null(tw__frames_end(bytes, bytes + sizeof bytes, 32, &max), "at %zu", at);
  }
  memset(bytes, 1, sizeof bytes);
  cr_assert_eq(tw__frames_end(bytes, bytes + 64, 16, &max), bytes + 64);
  cr_assert_null(tw__frames_end(bytes, bytes + 63, 15, &max), "less than a block");
  cr_assert_null(tw__frames_end(bytes, bytes + 127, 17, &max));
  cr_assert_eq(tw__frames_end(bytes, bytes, 0, &max), bytes);
}

/* Reads a batch with one stack, as a section. */
static tb_rc read_stack(unsigned nframes, const unsigned char *frames, size_t n,
                        struct tw_section *section, struct tb_diag *diag) {
  static unsigned char data[ROOM];
  struct tw_stack stack;
  size_t len = 0;

  data[len++] = TW_EV_STACKS;
  data[len++] = TW_EV_STACK;
  data[len++] = 7;
  len += tw_varint_write(data + len, nframes);
  memcpy(data + len, frames, n);
  tb_diag_clear(diag);
  tw_section_open(section, &(struct tw_batch){ .data = data, .len = len + n }, 26, diag);
  return tw_stack_next(section, &stack);
}

Test(frames, a_stack_at_the_very_end_of_its_batch_is_read_and_a_shorter_one_is_cut_off) {
  unsigned char frames[ROOM];
  struct tw_section section;
  struct tb_diag diag;

  state = 4;
  for (int round = 0; round < 200; round++) {
    uint64_t max = 0;
    unsigned n = 1 + (unsigned)(random_number() % TW_STACK_FRAMES_MAX);
    size_t len = (size_t)(write_frames(frames, n, 12, &max) - frames);
    cr_assert_eq(read_stack(n, frames, len, &section, &diag), TB_OK, "%s", diag.text);
    cr_assert_eq(section.pos, section.end);
    cr_assert_eq(section.string_id_max, max);
    cr_assert_eq(read_stack(n, frames, len - 1, &section, &diag), TB_BROKEN);
  }
}

/* The frames are in a block of exactly their size, so ASAN finds a read after their end. */
Test(frames, their_program_counters_alone_are_those_of_reading_them) {
  static unsigned char bytes[ROOM];

  state = 4;
  for (int round = 0; round < ROUNDS; round++) {
    unsigned n = (unsigned)(random_number() % 9);
    unsigned char *end = bytes;
    for (unsigned i = 0; i < 4 * n; i++) {
      end += tw_varint_write(end, random_up_to_bits(random_number() % 4 == 0 ? 64 : 14));
      if (random_number() % 20 == 0 && end[-1] != 1) { /* padded: the last one of ten bytes is 1 */
        end[-1] |= 0x80;
        *end++ = 0;
      }
    }
    size_t len = (size_t)(end - bytes);
    unsigned char *copy = malloc(len + (len == 0));
    const unsigned char *pos = copy;
    uint64_t pcs[8];
    memcpy(copy, bytes, len);
    unsigned first = round % 2 == 0 ? n : (unsigned)(random_number() % (n + 1));
    tw_frame_pcs(copy, n, first, pcs);
    for (unsigned i = 0; i < first; i++) {
      struct tw_frame frame;
      pos = tw_frame_read(pos, &frame);
      cr_assert_eq(pcs[i], frame.pc, "frame %u of the first %u of %u", i, first, n);
    }
    free(copy);
  }
}
