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
