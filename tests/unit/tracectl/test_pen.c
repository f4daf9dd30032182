/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "tools/tracectl/term/out.h"

static char line[64 + TK_PEN_SLACK];

static void expect(const char *end, const char *wanted) {
  cr_assert_eq((size_t)(end - line), strlen(wanted), "%.*s, not %s", (int)(end - line), line,
               wanted);
  cr_assert_eq(memcmp(line, wanted, strlen(wanted)), 0, "%.*s, not %s", (int)(end - line), line,
               wanted);
}

static void number(uint64_t value) {
  char wanted[32];

  snprintf(wanted, sizeof wanted, "%" PRIu64, value);
  expect(tk_pen_u64(line, value), wanted);
  snprintf(wanted, sizeof wanted, "%" PRId64, (int64_t)value);
  expect(tk_pen_i64(line, (int64_t)value), wanted);
  snprintf(wanted, sizeof wanted, "%" PRIx64, value);
  expect(tk_pen_hex(line, value), wanted);
}

Test(pen, numbers_around_each_power_of_ten_and_two) {
  uint64_t ten = 1;

  for (int i = 0; i < 20; i++, ten *= 10)
    for (uint64_t near = 0; near < 3; near++) number(ten - 1 + near);
  for (int bit = 0; bit < 64; bit++)
    for (uint64_t near = 0; near < 3; near++) number((UINT64_C(1) << bit) - 1 + near);
  number(UINT64_MAX);
}

Test(pen, every_number_of_four_digits_in_each_half) {
  for (uint64_t n = 0; n < 10000; n++) {
    number(n);
    number(n * 10000 + 9999 - n);
    number(n * UINT64_C(1000000000000) + n);
  }
}

Test(pen, a_word_is_its_three_parts) {
  struct tk_word word = tk_word(" ", "StateTransition", " Time=");

  expect(tk_pen_word(line, &word), " StateTransition Time=");
}

Test(pen, a_word_that_is_too_long_is_cut_off) {
  struct tk_word word = tk_word("0123456789", "0123456789", "0123456789too long");

  expect(tk_pen_word(line, &word), "012345678901234567890123456789");
}
