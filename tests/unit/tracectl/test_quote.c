/* SPDX-License-Identifier: Apache-2.0 */
/* The expected texts are what Go 1.26's strconv.Quote returns. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/quote.h"

static struct tk_out out;

static const char *quoted(const char *bytes, size_t n) {
  tk_out_init(&out, -1);
  tk_out_quoted(&out, bytes, n);
  out.data[out.len] = '\0';
  return (const char *)out.data;
}

#define QUOTES(input, expected) cr_assert_str_eq(quoted(input, sizeof(input) - 1), expected)

Test(quote, plain_text_stays) {
  QUOTES("", "\"\"");
  QUOTES("main.worker", "\"main.worker\"");
  QUOTES("caf\xc3\xa9 \xe4\xb8\x96", "\"caf\xc3\xa9 \xe4\xb8\x96\"");
}

Test(quote, control_characters_get_their_c_names_or_hex) {
  QUOTES("\a\b\f\n\r\t\v", "\"\\a\\b\\f\\n\\r\\t\\v\"");
  QUOTES("a\0b\x1f\x7f", "\"a\\x00b\\x1f\\x7f\"");
  QUOTES("say \"x\\y\"", "\"say \\\"x\\\\y\\\"\"");
}

Test(quote, what_is_no_utf8_is_shown_byte_by_byte) {
  QUOTES("\xff\xfe", "\"\\xff\\xfe\"");
  QUOTES("cut \xe4\xb8", "\"cut \\xe4\\xb8\"");
  QUOTES("\xc0\xaf", "\"\\xc0\\xaf\"");                   /* overlong */
  QUOTES("\xed\xa0\x80", "\"\\xed\\xa0\\x80\"");          /* surrogate */
  QUOTES("\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\""); /* above U+10FFFF */
}

Test(quote, what_unicode_does_not_print_gets_its_number) {
  QUOTES("\xc2\xad", "\"\\u00ad\"");             /* soft hyphen */
  QUOTES("\xc2\xa0", "\"\\u00a0\"");             /* no-break space */
  QUOTES("\xe2\x80\x8b", "\"\\u200b\"");         /* zero width space */
  QUOTES("\xf3\xa0\x80\x81", "\"\\U000e0001\""); /* language tag */
  QUOTES("\xef\xbf\xbd", "\"\xef\xbf\xbd\"");    /* U+FFFD itself is a valid character */
  QUOTES("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
}

Test(quote, json_replaces_what_is_no_utf8) {
  tk_out_init(&out, -1);
  tk_out_json_string(&out, "a\xff\n\"\\", 5);
  out.data[out.len] = '\0';
  cr_assert_str_eq((const char *)out.data, "\"a\xef\xbf\xbd\\u000a\\\"\\\\\"");
}

Test(quote, json_escapes_what_a_terminal_would_obey) {
  static const char text[] = "\xc2\x9b"
                             "2J\x7f\xe2\x80\xae\xf3\xa0\x80\x81\xc3\xa9";

  tk_out_init(&out, -1);
  tk_out_json_string(&out, text, sizeof text - 1);
  out.data[out.len] = '\0';
  cr_assert_str_eq((const char *)out.data, "\"\\u009b2J\\u007f\\u202e\\udb40\\udc01\xc3\xa9\"");
}

/* Expects this result from each function that shows text of unknown origin. */
static void shows(const char *text, const char *expected) {
  char copy[64], *file_text = NULL;
  size_t n = strlen(text), file_len;
  FILE *file;

  tk_out_init(&out, -1);
  tk_out_plain(&out, text, n);
  out.data[out.len] = '\0';
  cr_expect_str_eq((const char *)out.data, expected);
  memcpy(copy, text, n + 1);
  tk_plain_text(copy);
  cr_expect_str_eq(copy, expected);
  cr_assert_not_null(file = open_memstream(&file_text, &file_len));
  tk_put_plain(file, text);
  fclose(file);
  cr_expect_str_eq(file_text, expected);
  free(file_text);
}

Test(plain, what_a_terminal_would_obey_is_a_question_mark) {
  shows("", "");
  shows("main.worker caf\xc3\xa9 \xe4\xb8\x96", "main.worker caf\xc3\xa9 \xe4\xb8\x96");
  shows("\033[2J\r\n\t\x7f", "?[2J????");
  shows("\xc2\x9b"
        "2J \xc2\x90 \xc2\x9d",
        "?2J ? ?"); /* C1 in UTF-8: CSI, DCS, OSC */
  shows("\x9b"
        "2J",
        "?2J");                                  /* CSI as a byte */
  shows("\xc0\x9b \xe0\x82\x9b", "?? ???");      /* CSI in overlong UTF-8 */
  shows("a\xe2\x80\xae z\xe2\x81\xa6", "a? z?"); /* marks of direction */
  shows("\xe2\x80\xa8", "?");                    /* line separator */
  shows("cut \xe4\xb8", "cut ??");
}

Test(plain, every_control_character_is_replaced) {
  for (uint32_t rune = 1; rune < 0x100; rune++) {
    char text[3] = { (char)rune };
    bool control = rune < 0x20 || (rune >= 0x7f && rune < 0xa0);

    if (rune >= 0x80) {
      text[0] = (char)(0xc0 | rune >> 6);
      text[1] = (char)(0x80 | (rune & 0x3f));
    }
    if (control) shows(text, "?");
  }
}

Test(out, numbers_are_written_in_full) {
  tk_out_init(&out, -1);
  tk_out_u64(&out, UINT64_MAX);
  tk_out_byte(&out, ' ');
  tk_out_i64(&out, INT64_MIN);
  tk_out_byte(&out, ' ');
  tk_out_u64(&out, 0);
  tk_out_byte(&out, ' ');
  tk_out_hex(&out, 0xdeadbeef);
  out.data[out.len] = '\0';
  cr_assert_str_eq((const char *)out.data, "18446744073709551615 -9223372036854775808 0 deadbeef");
}

Test(out, more_than_the_buffer_holds_arrives_in_order) {
  static char chunk[1000], back[3 * TK_OUT_BYTES];
  int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

  cr_assert_geq(fd, 0);
  tk_out_init(&out, fd);
  for (int i = 0; i < 600; i++) {
    memset(chunk, 'a' + i % 26, sizeof chunk);
    tk_out_bytes(&out, chunk, sizeof chunk);
  }
  tk_out_flush(&out);
  cr_assert_eq(out.error, 0);
  cr_assert_eq(pread(fd, back, sizeof back, 0), 600 * 1000);
  for (int i = 0; i < 600 * 1000; i++) cr_assert_eq(back[i], 'a' + i / 1000 % 26);
  close(fd);
}
