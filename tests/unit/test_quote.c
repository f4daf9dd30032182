/* SPDX-License-Identifier: Apache-2.0 */
/* Expected texts are what Go 1.26's strconv.Quote answers. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "tools/tracectl/quote.h"

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
  QUOTES("\xef\xbf\xbd", "\"\xef\xbf\xbd\"");    /* U+FFFD itself is a character */
  QUOTES("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
}

Test(quote, json_replaces_what_is_no_utf8) {
  tk_out_init(&out, -1);
  tk_out_json_string(&out, "a\xff\n\"\\", 5);
  out.data[out.len] = '\0';
  cr_assert_str_eq((const char *)out.data, "\"a\xef\xbf\xbd\\u000a\\\"\\\\\"");
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
