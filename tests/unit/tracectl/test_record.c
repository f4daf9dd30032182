/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for programs: every value, and rows that are longer than the buffer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/record.h"

static const char *const names[] = { "n", "a \"b\"", "t" };

static char *written(enum tk_record_format format, const char *text, size_t len) {
  struct tk_record r;
  char *bytes;
  size_t size;
  FILE *out = open_memstream(&bytes, &size);

  cr_assert(tk_record_init(&r, format, out, names, 3));
  tk_record_head(&r, names);
  for (int row = 0; row < 2; row++) {
    tk_record_number(&r, row == 0 ? INT64_MIN : INT64_MAX);
    tk_record_none(&r);
    tk_record_text(&r, text, len);
    tk_record_end(&r);
  }
  tk_record_fini(&r);
  fclose(out);
  return bytes;
}

static void gives(enum tk_record_format format, const char *text, const char *expected) {
  char *bytes = written(format, text, strlen(text));

  cr_assert_str_eq(bytes, expected);
  free(bytes);
}

Test(record, csv) {
  gives(TK_RECORD_CSV, "x,\"y\"",
        "n,\"a "
        "\"\"b\"\"\",t\r\n-9223372036854775808,,\"x,\"\"y\"\"\"\r\n9223372036854775807,,\"x,"
        "\"\"y\"\"\"\r\n");
}

Test(record, json) {
  gives(TK_RECORD_JSON, "x",
        "{\"n\":-9223372036854775808,\"a \\\"b\\\"\":null,\"t\":\"x\"}\n"
        "{\"n\":9223372036854775807,\"a \\\"b\\\"\":null,\"t\":\"x\"}\n");
  gives(TK_RECORD_JSON, "\"\\\n\x7f\xc3\xa4",
        "{\"n\":-9223372036854775808,\"a \\\"b\\\"\":null,\"t\":\"\\\"\\\\\\n\x7f\\u00E4\"}\n"
        "{\"n\":9223372036854775807,\"a \\\"b\\\"\":null,\"t\":\"\\\"\\\\\\n\x7f\\u00E4\"}\n");
}

Test(record, a_text_that_is_not_utf_8_is_a_replacement_character) {
  char *bytes = written(TK_RECORD_JSON, "\xff", 1);

  cr_assert_not_null(strstr(bytes, "\"t\":\"\\uFFFD\"}"));
  free(bytes);
}

Test(record, any_length_around_the_size_of_the_buffer) {
  for (size_t n = 900; n < 1100; n++)
    for (int escaped = 0; escaped < 2; escaped++) {
      char *text = malloc(n);
      memset(text, 'x', n);
      if (escaped) text[n / 2] = '"';
      char *json = written(TK_RECORD_JSON, text, n), *csv = written(TK_RECORD_CSV, text, n);
      size_t own = strlen("{'n':-9223372036854775808,'a \\\"b\\\"':null,'t':''}\n") - 1 +
                   strlen("{'n':9223372036854775807,'a \\\"b\\\"':null,'t':''}\n") + 1;
      cr_assert_eq(strlen(json), own + 2 * n + 2 * (unsigned)escaped);
      cr_assert_eq(strlen(csv),
                   strlen("n,'a ''b''',t\r\n-9223372036854775808,,\r\n9223372036854775807,,\r\n") +
                       2 * n + 6 * (unsigned)escaped);
      free(json);
      free(csv);
      free(text);
    }
}

Test(record, reals_are_numbers_or_null) {
  struct tk_record r;
  char *bytes;
  size_t size;
  FILE *out = open_memstream(&bytes, &size);

  cr_assert(tk_record_init(&r, TK_RECORD_JSON, out, names, 3));
  tk_record_real(&r, 2);
  tk_record_real(&r, 1.0 / 0.0);
  tk_record_real(&r, -1e-300);
  tk_record_end(&r);
  tk_record_fini(&r);
  fclose(out);
  cr_assert_str_eq(bytes, "{\"n\":2.0,\"a \\\"b\\\"\":null,\"t\":-1e-300}\n");
  free(bytes);
}
