/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/window/histogram.h"
#include "pack/report.h"
#include "pack/report_json.h"
#include "pack/report_read.h"
#include "proto/json.h"
#include "unit/pack/toy_report.h"

static struct tb_mem mem;

static const char *json_of(struct tb_buf *out, const Tracecollect__V1__StreamReport *report) {
  tb_buf_clear(out);
  tp_report_json(out, report);
  tb_buf_byte(out, '\0');
  cr_assert_eq(out->rc, TB_OK);
  return (const char *)out->data;
}

static void expect_piece(const char *text, const char *piece) {
  cr_assert_not_null(strstr(text, piece), "no %s in %s", piece, text);
}

static void open_buf(struct tb_buf *buf) {
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(buf, &mem);
}

Test(report_json, a_report_of_an_unknown_kind_is_written_by_its_schema) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tb_buf buf;

  open_buf(&buf);
  const char *text = json_of(&buf, report);
  expect_piece(text, "\"service\":\"shop\",\"instance\":\"a:1\",\"kind\":\"orders\"");
  expect_piece(
      text, ",\"epochs\":1,\"ended_wall_ns\":0,\"instances\":0,\"time_ns\":0,\"thinned_events\":0,"
            "\"streams\":[],\"analysed_share\":1,\"options\":{"
            "\"late_after_ns\":10000000},"
            "\"figures\":{\"served\":{\"count\":13,\"total_ns\":3000160,\"min_ns\":"
            "5,\"max_ns\":2000000,\"p50_ns\":10,");
  expect_piece(text,
               "\"p999_ns\":2000000,\"error_share\":0.0055,\"lower_bounds\":2},\"queued\":1,");
  expect_piece(text, "\"queued\":1,\"heap_bytes\":3145728,\"idle_share\":0.125,\"paused\":true,"
                     "\"seen_ns\":-5,\"owner\":\"a\\nb\",\"lost\":null}");
  expect_piece(text, "{\"goroutine\":17,\"age_ns\":1234567,\"late\":true,\"stack\":[]}");
  expect_piece(text, "\"rows_total\":{\"by_stack\":7,\"by_type\":2,\"queued_now\":1},\"notes\":["
                     "\"Prices\\u001B lack \\\"tax\\\".\",\"Open the shop.\"]}");
  cr_assert_null(strstr(text, "\"report\""), "the message itself is not written");
  tt_toy_report_free();
  tb_buf_fini(&buf);
}

Test(report_json, a_c_program_is_named_and_notes_are_in_its_words) {
  static char note[] = "2 goroutines wait for a P.", *notes[] = { note };
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tb_buf buf;

  open_buf(&buf);
  report->report->notes = notes;
  report->report->n_notes = 1;
  const char *text = json_of(&buf, report);
  expect_piece(text, "\"notes\":[\"2 goroutines wait for a P.\"]");
  cr_assert_null(strstr(text, "\"program\""));
  tp_report_set_program(report, TO_PROGRAM_C);
  text = json_of(&buf, report);
  expect_piece(text, ",\"program\":\"C\"");
  expect_piece(text, "\"notes\":[\"2 threads wait to run.\"]");
  report->report->n_notes = 0;
  tb_buf_fini(&buf);
  tt_toy_report_free();
}

Test(report_json, a_row_is_an_object_by_column) {
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tb_buf buf;

  open_buf(&buf);
  const char *text = json_of(&buf, report);
  expect_piece(
      text, "\"by_stack\":[{\"stack\":[{\"function\":\"runtime.write\",\"file\":\"/go/write.go\","
            "\"line\":8,\"pc\":64},{\"function\":\"shop.(*Till).serve\",\"file\":"
            "\"/shop/till.go\",\"line\":21,\"pc\":128}],\"served\":{\"count\":3,"
            "\"total_ns\":3000000,\"min_ns\":100000,\"max_ns\":2000000,\"p50_ns\":null,"
            "\"p90_ns\":null,\"p99_ns\":null,\"p999_ns\":null,\"error_share\":null,"
            "\"lower_bounds\":0}");
  expect_piece(text, "{\"stack\":null,\"served\":{\"count\":9,");
  expect_piece(text, "\"retries\":5,\"other\":true}]");
  expect_piece(text,
               "\"p999_ns\":9,\"error_share\":0.0055,\"lower_bounds\":0},\"wait_share\":null}]");
  tt_toy_report_free();
  tb_buf_fini(&buf);
}

/* tanh(ln 2 / 2^(scale + 1)), rounded up. */
Test(report_json, an_error_is_not_lower_than_it_is) {
  static const char *const error[] = { "0.1716", "0.0865", "0.0433", "0.0217", "0.0109", "0.0055" };
  Tracecollect__V1__StreamReport *report = tt_toy_report();
  struct tb_buf buf;

  open_buf(&buf);
  for (int scale = TO_SCALE_MIN; scale <= TO_SCALE_MAX; scale++) {
    Tracecollect__V1__Distribution *d = report->report->figures[0]->distribution;
    char piece[64];
    d->scale = scale;
    d->offset = 0;
    d->n_buckets = 1;
    snprintf(piece, sizeof(piece), "\"p999_ns\":2000000,\"error_share\":%s,",
             error[scale - TO_SCALE_MIN]);
    expect_piece(json_of(&buf, report), piece);
  }
  tt_toy_report_free();
  tb_buf_fini(&buf);
}

Test(report_json, a_report_without_a_schema_keeps_its_other_fields) {
  Tracecollect__V1__StreamReport report = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  struct tb_buf buf, plain;

  open_buf(&buf);
  tb_buf_init(&plain, &mem);
  tp_json_message(&plain, &report.base);
  tb_buf_byte(&plain, '\0');
  cr_assert_str_eq(json_of(&buf, &report), (const char *)plain.data);
  tb_buf_fini(&plain);
  tb_buf_fini(&buf);
}

Test(report_json, a_schema_names_types_and_tables) {
  struct tb_buf buf;

  open_buf(&buf);
  tp_schema_json(&buf, tt_toy_schema());
  tb_buf_byte(&buf, '\0');
  const char *text = (const char *)buf.data;
  expect_piece(text,
               "{\"name\":\"orders\",\"about\":\"Time that orders take.\",\"options\":[{\"name\":"
               "\"late_after_ns\",\"type\":\"ns\",");
  expect_piece(text,
               "{\"name\":\"queued_now\",\"about\":\"Queued now\",\"order\":\"oldest first\","
               "\"keys\":1,\"list\":true,\"columns\":[{\"name\":\"goroutine\",\"type\":\"id\",");
  tb_buf_fini(&buf);
}

Test(report_json, every_kind_of_analysis_has_a_schema_with_a_sentence_for_each_figure) {
  struct tb_arena arena;
  struct tb_buf buf;

  open_buf(&buf);
  tb_arena_init(&arena, &mem, 4096);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    Tracecollect__V1__ReportSchema *schema;
    cr_assert_eq(tp_take_schema(&arena, (enum to_analysis_kind)k, &schema), TB_OK);
    for (size_t i = 0; i < schema->n_figures; i++)
      cr_assert_neq(schema->figures[i]->about[0], '\0', "%s.%s", schema->name,
                    schema->figures[i]->name);
    tb_buf_clear(&buf);
    tp_schema_json(&buf, schema);
    tb_buf_byte(&buf, '\0');
    cr_assert_null(strstr((const char *)buf.data, "\"unknown\""));
  }
  tb_arena_fini(&arena);
  tb_buf_fini(&buf);
}
