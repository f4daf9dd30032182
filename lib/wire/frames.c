/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frames.h"

#include "base/cpu.h"
#include "base/result.h"
#include "wire/block.h"

/* A string id of one byte is compared with the largest id so far directly, an id of two bytes by its second byte. */
enum { ONE_BYTE_END = 1 << 7, TWO_BYTES_END = 1 << 14 };

/* A bit for the second and the third of each four numbers. */
static const uint64_t middle_two = UINT64_C(0x6666666666666666);

/* Moves the pattern down by the n numbers of the previous block. */
static inline uint64_t rotate_down(uint64_t pattern, unsigned n) {
  return pattern >> n % 64 | pattern << -n % 64;
}

/* The state carried from one block to the next. */
struct walk {
  uint64_t
      middle; /* the second and third of each four numbers, counted from the last block's end */
  uint64_t odd, half;       /* number of numbers up to each byte, modulo 4: low and high bit */
  uint64_t open, two, four; /* bytes that do not end a number; two, four of them in a row */
};

/* Moves bits up by n positions, and fills in the top bits of the previous word. */
static inline uint64_t shift_in(uint64_t bits, uint64_t before, unsigned n) {
  return bits << n | before >> (64 - n);
}

/* Returns all ones if the top bit is set, else 0. */
static inline uint64_t spread_top(uint64_t bits) {
  return (uint64_t)((int64_t)bits >> 63);
}

/* Returns false if a number has more than eight bytes. */
static inline bool all_short(struct walk *walk, uint64_t open) {
  uint64_t two = open & shift_in(open, walk->open, 1);
  uint64_t four = two & shift_in(two, walk->two, 2);
  uint64_t eight = four & shift_in(four, walk->four, 4);

  walk->two = two;
  walk->four = four;
  return eight == 0;
}

/* Returns the bytes at which function and file ids end: the second and third of each four numbers. */
static inline uint64_t string_ends(struct walk *walk, uint64_t ends, const bool deposits) {
  if (deposits) return tw_deposit(walk->middle, ends);
  walk->odd = tw_odd_up(ends) ^ spread_top(walk->odd);
  walk->half = tw_odd_up(ends & ~walk->odd) ^ spread_top(walk->half);
  return ends & walk->half;
}

static void raise(uint64_t *max, const unsigned char *block, uint64_t ends, uint64_t of_two_bytes) {
  for (; ends != 0; ends &= ends - 1) {
    unsigned at = (unsigned)__builtin_ctzll(ends);
    uint64_t id = block[at];
    if (of_two_bytes >> at & 1) id = id << 7 | (block[(int)at - 1] & 0x7f);
    if (id > *max) *max = id;
  }
}

static inline unsigned limit_of(uint64_t max) {
  if (max < ONE_BYTE_END) return (unsigned)max + 1;
  return max < TWO_BYTES_END ? (unsigned)max >> 7 : 128;
}

static inline __attribute__((always_inline)) const unsigned char *
find_end(const unsigned char *pos, const unsigned char *end, unsigned nframes,
         uint64_t *string_id_max, const bool deposits) {
  struct walk walk = { .middle = middle_two };
  uint64_t max = *string_id_max;
  struct tw_limit limit = tw_limit(limit_of(max));

  for (unsigned left = 4 * nframes; left > 0; pos += TW_BLOCK_BYTES) {
    if (TB_UNLIKELY(end - pos < TW_BLOCK_BYTES)) return NULL;
    struct tw_block block = tw_block(pos, limit);
    uint64_t counts = deposits ? 0 : tw_count_up(block.ends), ours = UINT64_MAX;
    unsigned count = deposits ? tw_count(block.ends) : (unsigned)(counts >> 56);
    unsigned last = TW_BLOCK_BYTES - 1;

    if (count >= left) {
      count = left;
      last = deposits ? (unsigned)__builtin_ctzll(tw_deposit(UINT64_C(1) << (left - 1), block.ends))
                      : tw_nth_bit(block.ends, counts, left);
      ours >>= TW_BLOCK_BYTES - 1 - last;
    }
    left -= count;

    uint64_t ends = block.ends & ours, open = ~block.ends & ours;
    uint64_t after_one = shift_in(open, walk.open, 1), after_two = shift_in(open, walk.open, 2);
    uint64_t strings = string_ends(&walk, ends, deposits);
    if (TB_UNLIKELY(!all_short(&walk, open) || (strings & after_one & after_two) != 0)) return NULL;
    uint64_t two_bytes = strings & after_one;
    uint64_t larger =
        max < ONE_BYTE_END ? (strings & block.large) | two_bytes : two_bytes & block.large;
    if (TB_UNLIKELY(larger != 0)) {
      raise(string_id_max, pos, larger, two_bytes);
      max = *string_id_max;
      limit = tw_limit(limit_of(max));
    }
    if (left == 0) return pos + last + 1;
    walk.open = open;
    if (deposits) walk.middle = rotate_down(walk.middle, count);
  }
  return pos; /* no frames */
}

const unsigned char *tw__frames_end(const unsigned char *pos, const unsigned char *end,
                                    unsigned nframes, uint64_t *string_id_max) {
  if (tb_cpu_deposits()) return find_end(pos, end, nframes, string_id_max, true);
  return find_end(pos, end, nframes, string_id_max, false);
}

const unsigned char *tw__frames_end_anywhere(const unsigned char *pos, const unsigned char *end,
                                             unsigned nframes, uint64_t *string_id_max) {
  return find_end(pos, end, nframes, string_id_max, false);
}
