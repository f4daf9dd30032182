/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/window/bits.h"

enum { NUMBERS = 20000 };

static uint64_t number[NUMBERS];
static unsigned char bytes[NUMBERS * 16];

/* Numbers of every length, with all bits random, and their neighbours of round ones. */
static void make_numbers(void) {
  srand(1);
  for (size_t i = 0; i < NUMBERS; i++) {
    uint64_t bits = (uint64_t)rand() << 62 ^ (uint64_t)rand() << 31 ^ (uint64_t)rand();
    unsigned length = (unsigned)rand() % 64;
    uint64_t round = UINT64_C(1) << length;
    number[i] = rand() % 4 == 0 ? round - (rand() % 2 == 0) : round | (bits & (round - 1));
  }
  number[0] = UINT64_MAX;
  number[1] = 0;
}

Test(bits, numbers_and_gammas_of_all_lengths_come_back) {
  struct to_bits_out out = { bytes, 0 };
  struct to_bits in = { bytes, 0 };

  make_numbers();
  for (size_t i = 0; i < NUMBERS; i++) {
    to_bits_put_number(&out, number[i]);
    if (number[i] > 0) to_bits_put_gamma(&out, number[i]);
    to_bits_put(&out, number[i] & 31, 5);
  }
  for (size_t i = 0; i < NUMBERS; i++) {
    cr_assert_eq(to_bits_number(&in), number[i]);
    if (number[i] > 0) cr_assert_eq(to_bits_gamma(&in), number[i]);
    cr_assert_eq(to_bits_get(&in, 5), number[i] & 31);
  }
  cr_assert_eq(in.at, out.at);
}

Test(bits, a_pair_is_two_gammas) {
  struct to_bits_out pairs = { bytes, 0 }, singly = { bytes + sizeof bytes / 2, 0 };
  struct to_bits in = { bytes, 0 };
  uint64_t a, b;

  make_numbers();
  for (size_t i = 0; i + 1 < NUMBERS / 4; i += 2) {
    uint64_t low = number[i] >> rand() % 64 | 1, high = number[i + 1] >> rand() % 64 | 1;
    number[i] = low;
    number[i + 1] = high;
    to_bits_put_gamma_pair(&pairs, low, high);
    to_bits_put_gamma(&singly, low);
    to_bits_put_gamma(&singly, high);
  }
  cr_assert_eq(pairs.at, singly.at);
  cr_assert_arr_eq(pairs.bytes, singly.bytes, pairs.at / 8);
  for (size_t i = 0; i + 1 < NUMBERS / 4; i += 2) {
    to_bits_gamma_pair(&in, &a, &b);
    cr_assert_eq(a, number[i]);
    cr_assert_eq(b, number[i + 1]);
  }
  cr_assert_eq(in.at, pairs.at);
}

Test(bits, copied_bits_are_the_same_at_any_place) {
  static unsigned char copy[sizeof bytes];
  struct to_bits_out out = { bytes, 0 };

  make_numbers();
  for (size_t i = 0; i < 100; i++) to_bits_put_number(&out, number[i]);
  for (unsigned shift = 0; shift < 8; shift++)
    for (size_t n = 0; n <= out.at; n += n < 200 ? 1 : 61) {
      struct to_bits_out to = { copy, 0 };
      to_bits_put(&to, 0, shift);
      to_bits_copy(&to, (struct to_bits){ bytes, 0 }, n);
      cr_assert_eq(to.at, shift + n);
      struct to_bits first = { bytes, 0 }, second = { copy, shift };
      for (size_t i = 0; i < n; i++) cr_assert_eq(to_bits_get(&first, 1), to_bits_get(&second, 1));
    }
}

/* Words are moved down in the bytes in which they were written. */
Test(bits, bits_are_copied_over_later_ones_of_the_same_bytes) {
  struct to_bits_out words = { bytes + 128, 0 }, out = { bytes, 0 };
  struct to_bits in = { bytes, 77 };

  make_numbers();
  for (size_t i = 2; i < 1000; i++) to_bits_put_gamma(&words, number[i] | 1);
  out.at = 77;
  to_bits_copy(&out, (struct to_bits){ words.bytes, 0 }, words.at);
  for (size_t i = 2; i < 1000; i++) cr_assert_eq(to_bits_gamma(&in), number[i] | 1);
}
