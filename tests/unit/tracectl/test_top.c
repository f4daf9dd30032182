/* SPDX-License-Identifier: Apache-2.0 */
/* The model that `tracectl top` makes from a collector's answers, and its layout. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/top/page.h"

enum { SECOND = 1000000000 };
#define AS_OF_NS                                                                                   \
  (UINT64_C(1767225600) * SECOND + 3723 * UINT64_C(1000000000)) /* 01:02:03 of a day */

typedef Tracecollect__V1__StreamStatus stream_status;

/* An answer with n streams, named s00/one, s01/one and so on. The last one has no connection. */
struct answer {
  Tracecollect__V1__StatusReply reply;
  stream_status stream[100], *streams[100];
  unsigned char id[100][16];
  char name[100][24];
};

static char one[] = "one", live[] = "live", waiting[] = "waiting", ok[] = "ok", version[] = "1.0";

static void answer(struct answer *a, size_t n, uint64_t bytes, uint64_t events) {
  tracecollect__v1__status_reply__init(&a->reply);
  a->reply.version = version;
  a->reply.health = ok;
  a->reply.streams = a->streams;
  a->reply.n_streams = n;
  for (size_t i = 0; i < n; i++) {
    stream_status *s = a->streams[i] = &a->stream[i];
    tracecollect__v1__stream_status__init(s);
    memset(a->id[i], (int)i + 1, 16);
    snprintf(a->name[i], sizeof a->name[i], "s%02zu", i);
    s->stream = (ProtobufCBinaryData){ 16, a->id[i] };
    s->service = a->name[i];
    s->instance = one;
    s->state = n > 1 && i == n - 1 ? waiting : live;
    s->bytes = bytes;
    s->events = events;
  }
}

static struct tk_top_model *model_of(size_t streams) {
  static const struct tk_selector all;
  struct tk_top_model *m = calloc(1, sizeof *m);
  struct answer a;

  answer(&a, streams, 0, 0);
  tk_top_take_status(m, &a.reply, &all, SECOND);
  return m;
}

static struct tk_page *page_of(const struct tk_top_model *m, unsigned columns, unsigned rows) {
  static const struct tk_page_about about = { .window = "10s" };
  struct tk_page *page = calloc(1, sizeof *page);

  page->columns = columns;
  page->rows = rows;
  tk_page_fill(page, m, &about);
  return page;
}

static unsigned lines_with(const struct tk_page *page, const char *text) {
  unsigned n = 0;

  for (unsigned i = 0; i < page->n; i++) n += strstr(page->line[i].text, text) != NULL;
  return n;
}

Test(top, rates_are_over_the_last_five_seconds) {
  struct tk_top_model *m = model_of(1);
  static const struct tk_selector all;
  struct answer a;

  for (unsigned second = 2; second <= 20; second++) {
    answer(&a, 1, second < 15 ? 0 : (second - 15) * 1000, second * 10);
    tk_top_take_status(m, &a.reply, &all, (uint64_t)second * SECOND);
  }
  cr_assert_float_eq(m->rates.bytes_s, 1000, 1);
  cr_assert_float_eq(m->rates.events_s, 10, 0.1);
  free(m);
}

Test(top, a_count_that_goes_back_begins_anew) {
  struct tk_top_model *m = model_of(1);
  static const struct tk_selector all;
  struct answer a;

  answer(&a, 1, 5000, 50);
  tk_top_take_status(m, &a.reply, &all, 2ull * SECOND);
  answer(&a, 1, 10, 1);
  tk_top_take_status(m, &a.reply, &all, 3ull * SECOND);
  cr_assert_float_eq(m->rates.bytes_s, 0, 0.001);
  free(m);
}

Test(top, streams_that_are_gone_or_not_wanted_are_not_there) {
  struct tk_top_model *m = model_of(3);
  const struct tk_selector selector = { .service = "s01" };
  struct answer a;

  cr_assert_eq(m->streams, 3);
  cr_assert_eq(m->live, 2);
  cr_assert_eq(m->waiting, 1);
  answer(&a, 3, 0, 0);
  tk_top_take_status(m, &a.reply, &selector, 2ull * SECOND);
  cr_assert_eq(m->streams, 1);
  cr_assert_str_eq(m->stream[0].who, "s01/one");
  cr_assert_eq(m->waiting, 0);
  free(m);
}

/* The columns that top reads in the table of calls that are blocked now. */
static Tracecollect__V1__ReportSchema *calls_schema(void) {
  static char goroutine[] = "goroutine", age[] = "age_ns", stack[] = "stack",
              table[] = "blocked_now";
  static Tracecollect__V1__FieldSchema column[3], *columns[3];
  static Tracecollect__V1__TableSchema now, *tables[1] = { &now };
  static Tracecollect__V1__ReportSchema schema;
  char *const names[3] = { goroutine, age, stack };

  for (int c = 0; c < 3; c++) {
    tracecollect__v1__field_schema__init(&column[c]);
    column[c].name = names[c];
    columns[c] = &column[c];
  }
  tracecollect__v1__table_schema__init(&now);
  now.name = table;
  now.columns = columns;
  now.n_columns = 3;
  tracecollect__v1__report_schema__init(&schema);
  schema.tables = tables;
  schema.n_tables = 1;
  return &schema;
}

/* The only stack of the reports: a frame of the runtime, then one of the program. */
static void fill_stack(Tracecollect__V1__Report *r) {
  static char inner[] = "syscall.Syscall", outer[] = "example.com/shop/db.(*conn).read",
              file[] = "a/conn.go";
  static Tracecollect__V1__Frame frame[2], *frames[2] = { &frame[0], &frame[1] };
  static Tracecollect__V1__Stack stack, *stacks[1] = { &stack };
  static uint32_t places[] = { 0, 1 };

  for (int i = 0; i < 2; i++) {
    tracecollect__v1__frame__init(&frame[i]);
    frame[i].function = i == 0 ? inner : outer;
    frame[i].file = file;
    frame[i].line = 7;
  }
  tracecollect__v1__stack__init(&stack);
  stack.frames = places;
  stack.n_frames = 2;
  r->frames = frames;
  r->n_frames = 2;
  r->stacks = stacks;
  r->n_stacks = 1;
}

/* Adds a report of a stream with n calls, which are blocked for 1 ms, 2 ms and so on. */
static void report_calls_of(struct tk_top_model *m, size_t stream, size_t n) {
  static char kind[] = "syscall";
  static Tracecollect__V1__Value value[200][3], *values[200][3];
  static Tracecollect__V1__Row row[200], *rows[200];
  Tracecollect__V1__StreamReport message = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  Tracecollect__V1__Report report = TRACECOLLECT__V1__REPORT__INIT;
  Tracecollect__V1__Table table = TRACECOLLECT__V1__TABLE__INIT, *tables[1] = { &table };

  for (size_t i = 0; i < n; i++) {
    for (int c = 0; c < 3; c++) {
      tracecollect__v1__value__init(&value[i][c]);
      value[i][c].is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
      values[i][c] = &value[i][c];
    }
    value[i][1].number = (int64_t)(i + 1) * 1000000;
    value[i][2].is_case = TRACECOLLECT__V1__VALUE__IS_STACK;
    tracecollect__v1__row__init(&row[i]);
    row[i].values = values[i];
    row[i].n_values = 3;
    rows[i] = &row[i];
  }
  table.rows = rows;
  table.n_rows = table.rows_total = n;
  report.schema = calls_schema();
  report.tables = tables;
  report.n_tables = 1;
  fill_stack(&report);
  message.kind = kind;
  message.stream = (ProtobufCBinaryData){ 16, m->stream[stream].id };
  message.until_wall_ns = AS_OF_NS;
  message.report = &report;
  tk_top_take_report(m, &message);
}

static void report_calls(struct tk_top_model *m, size_t n) {
  tk_top_clear_reports(m);
  report_calls_of(m, 0, n);
}

Test(top, blocked_calls_stand_oldest_first_where_the_program_made_them) {
  struct tk_top_model *m = model_of(2);

  report_calls(m, 200);
  cr_assert_eq(m->calls, TK_TOP_CALLS);
  cr_assert_eq(m->calls_total, 200);
  cr_assert_eq(m->stream[0].blocked_now, 200);
  cr_assert_eq(m->call[0].age_ns, 200 * 1000000ull);
  for (size_t i = 1; i < m->calls; i++) cr_assert_leq(m->call[i].age_ns, m->call[i - 1].age_ns);
  cr_assert_str_eq(m->call[0].where, "db.(*conn).read  conn.go:7");
  tk_top_clear_reports(m);
  cr_assert_eq(m->calls + m->calls_total, 0);
  free(m);
}

/* Two streams. The first one's last data is `seconds` older than the time of the collector's answer. */
static struct tk_top_model *model_aged(unsigned seconds, uint64_t wall_ns) {
  static const struct tk_selector all;
  struct tk_top_model *m = model_of(2);
  struct answer a;

  answer(&a, 2, 0, 0);
  a.reply.wall_ns = wall_ns;
  a.stream[0].last_wall_ns = AS_OF_NS - (uint64_t)seconds * SECOND; /* 0: nothing was archived */
  a.stream[1].last_wall_ns = AS_OF_NS - SECOND;
  tk_top_take_status(m, &a.reply, &all, 2 * SECOND);
  tk_top_clear_reports(m);
  report_calls_of(m, 0, 3);
  report_calls_of(m, 1, 2);
  return m;
}

Test(top, calls_of_a_stream_that_came_long_ago_are_not_blocked_now) {
  struct tk_top_model *m = model_aged(16, AS_OF_NS);

  cr_assert_eq(m->calls_total, 2);
  cr_assert(m->stream[0].blocked_now == 0 && m->stream[1].blocked_now == 2);
  cr_assert_eq(m->calls, 5);
  for (size_t i = 0; i < m->calls; i++) {
    cr_assert_str_eq(m->call[i].who, i < 2 ? "s01/one" : "s00/one", "those of now come first");
    cr_assert_eq(m->call[i].as_of_wall_ns, i < 2 ? 0 : AS_OF_NS);
  }
  struct tk_page *page = page_of(m, 100, 40);
  cr_assert_eq(lines_with(page, "BLOCKED NOW: 2"), 1);
  cr_assert_eq(lines_with(page, "as of 01:02:03  db.(*conn).read"), 3);
  for (unsigned i = 0; i < page->n; i++)
    if (strstr(page->line[i].text, "as of 0") != NULL)
      cr_assert_eq(page->line[i].look, TK_LOOK_DIM);
  free(page);
  free(m);
}

Test(top, calls_of_a_stream_are_of_now_up_to_15_seconds_or_where_no_clock_is_known) {
  struct tk_top_model *m = model_aged(15, AS_OF_NS);

  cr_assert(m->calls_total == 5 && m->call[0].as_of_wall_ns == 0);
  free(m);
  m = model_aged(1000, 0);
  cr_assert(m->calls_total == 5 && m->call[0].as_of_wall_ns == 0, "no clock is known");
  free(m);
}

Test(top, calls_of_a_stream_of_which_nothing_is_archived_yet_are_of_now) {
  struct tk_top_model *m = model_aged((unsigned)(AS_OF_NS / SECOND), AS_OF_NS);

  cr_assert(m->calls_total == 5 && m->call[0].as_of_wall_ns == 0);
  free(m);
}

Test(top, the_newest_alert_stands_first) {
  struct tk_top_model *m = model_of(1);
  char text[16];

  for (int i = 0; i < 100; i++) {
    snprintf(text, sizeof text, "alert %d", i);
    tk_top_take_alert(m, 0, text);
  }
  cr_assert_eq(m->alerts, TK_TOP_ALERTS);
  cr_assert_eq(m->alerts_total, 100);
  cr_assert_str_eq(m->alert[0].text, "alert 99");
  cr_assert_str_eq(m->alert[TK_TOP_ALERTS - 1].text, "alert 68");
  free(m);
}

Test(top, a_small_screen_shows_something_of_everything) {
  struct tk_top_model *m = model_of(100);
  report_calls(m, 50);
  struct tk_page *page = page_of(m, 80, 24);

  cr_assert_eq(page->n, 24);
  for (unsigned i = 0; i < page->n; i++)
    cr_assert_leq(strlen(page->line[i].text), 80, "%s", page->line[i].text);
  cr_assert_geq(lines_with(page, "/one"), 10);
  cr_assert_geq(lines_with(page, "db.(*conn).read"), 4);
  cr_assert_eq(lines_with(page, "STOP THE WORLD, last 10s"), 1);
  cr_assert_eq(lines_with(page, "ALERTS: 0"), 1);
  cr_assert_eq(lines_with(page, "q quit"), 1);
  free(page);
  free(m);
}

Test(top, a_large_screen_shows_all_of_it) {
  struct tk_top_model *m = model_of(30);
  struct tk_page *page = page_of(m, 200, 50);

  cr_assert_eq(page->n, 50);
  cr_assert_eq(lines_with(page, "/one"), 30);
  cr_assert_eq(lines_with(page, "CALL P99"), 1);
  free(page);
  free(m);
}

Test(top, a_stream_with_broken_generations_stands_out) {
  struct tk_top_model *m = model_of(2);
  static const struct tk_selector all;
  struct answer a;

  answer(&a, 2, 0, 0);
  a.stream[0].broken = 777;
  tk_top_take_status(m, &a.reply, &all, 2 * SECOND);
  for (unsigned columns = 80; columns <= 120; columns += 40) {
    struct tk_page *page = page_of(m, columns, 50);
    for (unsigned i = 0; i < page->n; i++) {
      if (strstr(page->line[i].text, "s00/one") == NULL) continue;
      cr_assert_eq(page->line[i].look, TK_LOOK_BAD);
      cr_assert_eq(strstr(page->line[i].text, "777") != NULL, columns == 120, "%s",
                   page->line[i].text);
    }
    cr_assert_eq(lines_with(page, "s00/one"), 1);
    cr_assert_eq(lines_with(page, "BROKEN"), columns == 120);
    free(page);
  }
  free(m);
}

Test(top, scrolling_ends_with_the_last_stream) {
  struct tk_top_model *m = model_of(100);
  static const struct tk_page_about about = { .window = "10s" };
  struct tk_page *page = page_of(m, 80, 24);

  cr_assert_eq(lines_with(page, "s00/one"), 1);
  page->scroll = 5000;
  tk_page_fill(page, m, &about);
  cr_assert_lt(page->scroll, 100);
  cr_assert_eq(lines_with(page, "s00/one"), 0);
  cr_assert_eq(lines_with(page, "s99/one"), 1, "the one without connection is the last");
  free(page);
  free(m);
}

Test(top, a_screen_too_small_says_so) {
  struct tk_top_model *m = model_of(3);

  for (unsigned rows = 1; rows < 30; rows++) {
    struct tk_page *page = page_of(m, rows < 5 ? 200 : 30, rows);
    cr_assert_eq(lines_with(page, "too small"), 1);
    cr_assert_eq(page->n, 1);
    free(page);
  }
  free(m);
}

Test(top, a_report_takes_the_place_of_calls_and_stops) {
  struct tk_top_model *m = model_of(3);

  report_calls(m, 50);
  tk_top_show_report(m, "sched", strdup("sched  s00/one\nwindow 10s\n\nBy cause: 2\n"));
  cr_assert_eq(m->report_lines, 4);
  for (unsigned rows = 24; rows <= 50; rows += 26) {
    struct tk_page *page = page_of(m, 80, rows);
    cr_assert_eq(page->n, rows);
    cr_assert_eq(lines_with(page, "REPORT sched, last 10s"), 1);
    cr_assert_eq(lines_with(page, "By cause: 2"), 1);
    cr_assert_eq(lines_with(page, "s00/one"), 2);
    cr_assert_eq(lines_with(page, "BLOCKED NOW"), 0);
    cr_assert_eq(lines_with(page, "STOP THE WORLD"), 0);
    cr_assert_eq(lines_with(page, "ALERTS: 0"), 1);
    free(page);
  }
  tk_top_show_report(m, NULL, NULL);
  struct tk_page *page = page_of(m, 80, 24);
  cr_assert_eq(lines_with(page, "BLOCKED NOW: 50"), 1);
  free(page);
  free(m);
}
