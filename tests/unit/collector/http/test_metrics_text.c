/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/logger.h"
#include "collector/http/metrics/text.h"
#include "proto/report.pb-c.h"
#include "unit/pack/toy_report.h"

static struct tb_mem mem;

static char *scrape(struct tc_metrics *const *loops, size_t n, struct tc_reports *reports) {
  static struct tb_buf out;
  struct tc_store_stats store = { .commits = 7,
                                  .commit_ns_total = 1500000000,
                                  .log_waits = TC_SHORT_INODES };

  tb_buf_fini(&out); /* of the earlier scrape */
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&out, &mem);
  cr_assert_eq(tc_metrics_text(&out, loops, n, &store, reports), TB_OK);
  tb_buf_byte(&out, '\0');
  return (char *)out.data;
}

static void expect_line(const char *text, const char *line) {
  char want[300];

  snprintf(want, sizeof want, "\n%s\n", line);
  cr_assert_not_null(strstr(text, want), "no line \"%s\" in:\n%s", line, text);
}

Test(metrics, loops_are_summed_and_peaks_are_the_highest) {
  struct tc_metrics a = { .records_received_total = 3, .analysis_slice_max_seconds = 5000000 };
  struct tc_metrics b = { .records_received_total = 4, .analysis_slice_max_seconds = 2000000 };
  struct tc_metrics *loops[] = { &a, &b };
  char *text = scrape(loops, 2, NULL);

  expect_line(text, "tracecollect_records_received_total 7");
  expect_line(text, "tracecollect_analysis_slice_max_seconds 0.005000000");
  expect_line(text, "tracecollect_commits_total 7");
  expect_line(text, "tracecollect_commit_seconds_total 1.500000000");
  expect_line(text, "# TYPE tracecollect_commits_total counter");
  expect_line(text, "# TYPE tracecollect_connections gauge");
  expect_line(text, "tracecollect_store_waits{part=\"log\",reason=\"inodes\"} 1");
  expect_line(text, "tracecollect_store_waits{part=\"log\",reason=\"space\"} 0");
  expect_line(text, "tracecollect_store_waits{part=\"archive\",reason=\"inodes\"} 0");
}

/* Every row of config/metrics.def is shown once, with its sentence, and has a name that fits Prometheus's rules. */
Test(metrics, every_row_of_the_table_is_shown) {
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  char *text = scrape(loops, 1, NULL);
  const struct {
    const char *type, *name, *help;
  } rows[] = {
#define TC_METRIC(type, field, help)             { #type, #field, help },
#define TC_STORE_METRIC(type, name, field, help) { #type, #name, help },
#define TC_WAIT_METRIC(type, name, help)         { #type, #name, help },
#include "config/metrics.def"
#undef TC_WAIT_METRIC
#undef TC_METRIC
#undef TC_STORE_METRIC
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    bool counts = strstr(rows[i].type, "COUNTER") != NULL;
    size_t len = strlen(rows[i].name);
    char line[400];

    snprintf(line, sizeof line, "# HELP tracecollect_%s %s\n# TYPE tracecollect_%s %s\n",
             rows[i].name, rows[i].help, rows[i].name, counts ? "counter" : "gauge");
    char *at = strstr(text, line);
    cr_assert_not_null(at, "%s", line);
    cr_assert_null(strstr(at + 1, line), "twice: %s", line);
    cr_assert_eq(counts, len > 6 && strcmp(rows[i].name + len - 6, "_total") == 0, "%s",
                 rows[i].name);
  }
}

static void publish(struct tc_reports *reports, unsigned id, const char *service,
                    const char *instance, const char *kind,
                    const Tracecollect__V1__StreamReport *m) {
  unsigned char stream[16] = { 0 }, bytes[4000];

  memcpy(stream, &id, sizeof id);
  cr_assert_leq(tracecollect__v1__stream_report__get_packed_size(m), sizeof bytes);
  struct tc_report report = { .stream = stream,
                              .service = service,
                              .instance = instance,
                              .kind = kind,
                              .window = "all",
                              .bytes = bytes,
                              .len = tracecollect__v1__stream_report__pack(m, bytes) };
  cr_assert_eq(tc_reports_publish(reports, &report), TB_OK);
}

static char *lend(const char *text) {
  return (char *)(uintptr_t)text;
}

/* A report with one table: a column that is a label, one that is a metric, and one row. */
static void publish_stw(struct tc_reports *reports, unsigned id, const char *service,
                        const char *instance, const char *reason_id, uint64_t count) {
  Tracecollect__V1__FieldSchema label = TRACECOLLECT__V1__FIELD_SCHEMA__INIT;
  Tracecollect__V1__FieldSchema metric = TRACECOLLECT__V1__FIELD_SCHEMA__INIT;
  Tracecollect__V1__FieldSchema *columns[] = { &label, &metric };
  Tracecollect__V1__TableSchema table_schema = TRACECOLLECT__V1__TABLE_SCHEMA__INIT;
  Tracecollect__V1__TableSchema *table_schemas[] = { &table_schema };
  Tracecollect__V1__ReportSchema schema = TRACECOLLECT__V1__REPORT_SCHEMA__INIT;
  Tracecollect__V1__Distribution stopped = TRACECOLLECT__V1__DISTRIBUTION__INIT;
  Tracecollect__V1__Value name = TRACECOLLECT__V1__VALUE__INIT, sum = name;
  Tracecollect__V1__Value *values[] = { &name, &sum };
  Tracecollect__V1__Row row = TRACECOLLECT__V1__ROW__INIT, *rows[] = { &row };
  Tracecollect__V1__Table table = TRACECOLLECT__V1__TABLE__INIT, *tables[] = { &table };
  Tracecollect__V1__Report report = TRACECOLLECT__V1__REPORT__INIT;
  Tracecollect__V1__StreamReport m = TRACECOLLECT__V1__STREAM_REPORT__INIT;

  label.name = lend("id");
  label.type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT;
  label.label = lend("reason");
  metric.name = lend("stopped");
  metric.type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  metric.metric = lend("trace_stw_seconds");
  metric.about = lend("Time the world was stopped, by reason.");
  table_schema.name = lend("by_reason");
  table_schema.n_columns = 2;
  table_schema.columns = columns;
  schema.n_tables = 1;
  schema.tables = table_schemas;
  stopped.count = count;
  stopped.total_ns = 2000000;
  stopped.p50_ns = 1000;
  stopped.no_quantiles = count == 0;
  name.is_case = TRACECOLLECT__V1__VALUE__IS_TEXT;
  name.text = lend(reason_id);
  sum.is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
  sum.distribution = &stopped;
  row.n_values = 2;
  row.values = values;
  table.n_rows = 1;
  table.rows = rows;
  report.schema = &schema;
  report.n_tables = 1;
  report.tables = tables;
  m.report = &report;
  publish(reports, id, service, instance, "stw", &m);
}

static void publish_events(struct tc_reports *reports, unsigned id, const char *kind,
                           uint64_t thinned) {
  Tracecollect__V1__StreamReport m = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  Tracecollect__V1__ReportSchema schema = TRACECOLLECT__V1__REPORT_SCHEMA__INIT;
  Tracecollect__V1__Report report = TRACECOLLECT__V1__REPORT__INIT;

  report.schema = &schema;
  m.report = &report;
  m.events = 1000;
  m.thinned_events = thinned;
  publish(reports, id, "shop", id == 1 ? "host:1" : "host:2", kind, &m);
}

Test(metrics, a_thinned_stream_has_its_share_as_two_counters) {
  struct tc_metrics a = { .analysed_share = 250000000 }, b = { .analysed_share = 400000000 };
  struct tc_metrics *loops[] = { &a, &b };
  struct tc_reports *reports;
  char *text;

  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  publish_events(reports, 1, "sched", 250);
  publish_events(reports, 1, "contention", 250);
  publish_events(reports, 2, "sched", 0);
  text = scrape(loops, 2, reports);
  expect_line(text, "tracecollect_analysed_share 0.600000000");
  expect_line(text, "# TYPE trace_events_thinned_total counter");
  expect_line(text, "trace_events_thinned_total{service=\"shop\",instance=\"host:1\"} 250");
  expect_line(text, "trace_events_total{service=\"shop\",instance=\"host:1\"} 1000");
  cr_expect_null(strstr(text, "host:2"), "nothing of it was thinned");
  tc_reports_free(reports);
}

Test(metrics, traced_programs_show_their_newest_stream) {
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  struct tc_reports *reports;
  char *text;

  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  publish_stw(reports, 1, "shop", "host:1", "/stw/gc/mark-termination", 50);
  publish_stw(reports, 2, "shop", "host:1", "/stw/gc/mark-termination",
              3); /* the program was restarted */
  publish_stw(reports, 3, "evil\"} 1\n", "host:1", "/stw/other", 1);
  text = scrape(loops, 1, reports);
  expect_line(text, "# TYPE trace_stw_seconds summary");
  expect_line(text, "trace_stw_seconds_count{service=\"shop\",instance=\"host:1\","
                    "reason=\"gc.mark-termination\"} 3");
  expect_line(text, "trace_stw_seconds{service=\"shop\",instance=\"host:1\","
                    "reason=\"gc.mark-termination\",quantile=\"0.5\"} 0.000001000");
  expect_line(text, "trace_stw_seconds_sum{service=\"other\",instance=\"host:1\","
                    "reason=\"other\"} 0.002000000");
  cr_assert_null(strstr(text, "evil"));
  tc_reports_free(reports);
}

static unsigned count(const char *text, const char *what) {
  unsigned n = 0;

  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

Test(metrics, peers_cannot_make_more_series_than_the_limit) {
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  struct tc_reports *reports;
  char service[32], *text;

  cr_assert_eq(tc_reports_new(16 << 20, &reports), TB_OK);
  for (unsigned i = 0; i < TC_PEER_SERIES_MAX; i++) {
    snprintf(service, sizeof service, "s%u", i);
    publish_stw(reports, i, service, "host:1", "/stw/x", 1);
    if (i != 199 && i != 200) continue;
    text = scrape(loops, 1, reports);
    cr_expect_eq(count(text, "quantile="), i == 199 ? 600 : 0, "quantiles are the first to go");
    cr_expect_eq(count(text, "\ntrace_stw_seconds_count{"), i + 1);
    expect_line(text, "tracecollect_peer_series_left_out 0");
  }
  text = scrape(loops, 1, reports);
  cr_assert_eq(count(text, "\ntrace_"), TC_PEER_SERIES_MAX);
  expect_line(text, "tracecollect_peer_series_left_out 500");
  tc_reports_free(reports);
}

Test(metrics, of_too_many_instances_their_service_is_shown) {
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  struct tc_reports *reports;
  char instance[32], *text;

  cr_assert_eq(tc_reports_new(16 << 20, &reports), TB_OK);
  for (unsigned i = 0; i < 600; i++) {
    snprintf(instance, sizeof instance, "h%u", i);
    publish_stw(reports, i, "shop", instance, "/stw/x", 2);
  }
  text = scrape(loops, 1, reports);
  expect_line(text,
              "trace_stw_seconds_count{service=\"shop\",instance=\"other\",reason=\"x\"} 1200");
  expect_line(
      text, "trace_stw_seconds_sum{service=\"shop\",instance=\"other\",reason=\"x\"} 1.200000000");
  expect_line(text, "tracecollect_peer_series_left_out 0");
  tc_reports_free(reports);
}

Test(metrics, a_row_without_quantiles_has_sum_and_count) {
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  struct tc_reports *reports;

  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  publish_stw(reports, 1, "shop", "one", "/stw/x", 0);
  char *text = scrape(loops, 1, reports);
  expect_line(text, "trace_stw_seconds_count{service=\"shop\",instance=\"one\",reason=\"x\"} 0");
  cr_assert_null(strstr(text, "quantile="));
  tc_reports_free(reports);
}

/* Figures and columns of a kind that the collector does not know. */
Test(metrics, the_schema_names_the_families) {
  Tracecollect__V1__StreamReport *m = tt_toy_report();
  Tracecollect__V1__ReportSchema *schema = m->report->schema;
  struct {
    Tracecollect__V1__FieldSchema *field;
    const char *metric;
  } metrics[] = {
    { schema->figures[0], "trace_order_seconds" },
    { schema->figures[2], "trace_heap_bytes" },
    { schema->figures[3], "trace_idle_ratio" },
    { schema->figures[7], "trace_lost_total" }, /* a value that is not known */
    { schema->tables[1]->columns[1], "trace_type_seconds" },
  };
  struct tc_metrics a = { .connections = 0 };
  struct tc_metrics *loops[] = { &a };
  struct tc_reports *reports;

  for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
    metrics[i].field->metric = (char *)(uintptr_t)metrics[i].metric;
  static char label[] = "type";
  schema->tables[1]->columns[0]->label = label;
  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  publish(reports, 1, "shop", "one", "orders", m);
  char *text = scrape(loops, 1, reports);
  expect_line(text, "# HELP trace_order_seconds Orders that were served.");
  expect_line(text, "trace_order_seconds_count{service=\"shop\",instance=\"one\"} 13");
  expect_line(text, "# TYPE trace_heap_bytes gauge");
  expect_line(text, "trace_heap_bytes{service=\"shop\",instance=\"one\"} 3145728");
  expect_line(text, "trace_idle_ratio{service=\"shop\",instance=\"one\"} 0.125000000");
  expect_line(text, "trace_type_seconds_count{service=\"shop\",instance=\"one\",type=\"small\"} 1");
  expect_line(text, "trace_type_seconds_count{service=\"shop\",instance=\"one\",type=\"other\"} 2");
  cr_assert_null(strstr(text, "trace_lost_total{"));
  expect_line(text, "tracecollect_peer_series_left_out 0");
  tc_reports_free(reports);
  tt_toy_report_free();
}

Test(journal, what_a_peer_says_is_escaped_and_cut) {
  char out[TC_ESCAPE_MAX + 1], big[1000];

  cr_assert_str_eq(tc_escape(out, "a b\n\"\\\x7f\xff", 8), "a b\\x0a\\x22\\x5c\\x7f\\xff");
  memset(big, '\n', sizeof big);
  cr_assert_eq(strlen(tc_escape(out, big, sizeof big)), TC_ESCAPE_MAX);
}
