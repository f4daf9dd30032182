/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "proto/archive.pb-c.h"
#include "proto/json.h"

static void expect_text(const char *text, const char *want) {
  struct tb_mem mem;
  struct tb_buf out;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&out, &mem);
  tp_json_text(&out, text);
  tb_buf_byte(&out, '\0');
  cr_assert_eq(out.rc, TB_OK);
  cr_expect_str_eq((char *)out.data, want);
  tb_buf_fini(&out);
}

Test(json, text_is_escaped_and_always_utf8) {
  expect_text("", "\"\"");
  expect_text(NULL, "\"\"");
  expect_text("a\"b\\c\n\t\x01\x7f/", "\"a\\\"b\\\\c\\n\\t\\u0001\\u007F/\"");
  expect_text("\xc2\x9b"
              "2J\xc2\xa1",
              "\"\\u009B2J\xc2\xa1\"");
  expect_text("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80",
              "\"na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80\"");
  /* one invalid byte: no character beyond ASCII is kept */
  expect_text("\xc3\xa9 but \xff", "\"?? but ?\"");
  expect_text("\xc0\xaf", "\"??\"");           /* overlong */
  expect_text("\xed\xa0\x80", "\"???\"");      /* a surrogate */
  expect_text("\xf4\x90\x80\x80", "\"????\""); /* past U+10FFFF */
  expect_text("\xe2\x82", "\"??\"");           /* cut */
}

Test(json, a_message_shows_zeros_and_leaves_out_what_is_absent) {
  Tracecollect__V1__ListReply reply = TRACECOLLECT__V1__LIST_REPLY__INIT;
  Tracecollect__V1__StreamReport report = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  Tracecollect__V1__Report tables = TRACECOLLECT__V1__REPORT__INIT;
  Tracecollect__V1__Value share = TRACECOLLECT__V1__VALUE__INIT, *figures[] = { &share };
  unsigned char id[] = { 0x00, 0xab };
  struct tb_mem mem;
  struct tb_buf out;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&out, &mem);
  tp_json_message(&out, &reply.base);
  tb_buf_byte(&out, '\0');
  cr_expect_str_eq(
      (char *)out.data,
      "{\"segments\":[],\"more\":false,\"streams\":[],\"newest_first\":false,\"next\":\"\"}");

  tb_buf_clear(&out);
  report.stream = (ProtobufCBinaryData){ sizeof id, id };
  report.events = UINT64_MAX;
  report.from_ns = INT64_MIN;
  tp_json_message(&out, &report.base);
  tb_buf_byte(&out, '\0');
  const char *text = (const char *)out.data;
  cr_expect_not_null(strstr(text, "{\"stream\":\"00ab\",\"service\":\"\""), "%s", text);
  cr_expect_not_null(strstr(text, "\"from_ns\":-9223372036854775808,"), "%s", text);
  cr_expect_not_null(strstr(text, "\"events\":18446744073709551615,"), "%s", text);
  cr_expect_null(strstr(text, "\"report\""), "%s", text);

  tb_buf_clear(&out);
  share.is_case = TRACECOLLECT__V1__VALUE__IS_SHARE;
  share.share = 0.25;
  tables.figures = figures;
  tables.n_figures = 1;
  report.report = &tables;
  tp_json_message(&out, &report.base);
  tb_buf_byte(&out, '\0');
  cr_expect_not_null(
      strstr((char *)out.data, ",\"report\":{\"options\":[],\"figures\":[{\"share\":0.25}],"), "%s",
      (char *)out.data);
  tb_buf_fini(&out);
}
