/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of reports: to which binary or library a location belongs. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/pprof.pb-c.h"
#include "tools/tracectl/profiles/pprof.h"
#include "tools/tracectl/term/tracectl.h"
#include "unit/pack/toy_report.h"

typedef Tracecollect__V1__StreamReport report;
typedef Tracecollect__Pprof__Profile profile;

struct tb_mem tk_mem;

enum { ROWS = 4, PC = 0x4000 };

/* A stream whose stacks have one frame each. */
struct stream {
  Tracecollect__V1__Frame frame[ROWS], *frames[ROWS];
  Tracecollect__V1__Stack stack[ROWS], *stacks[ROWS];
  uint32_t place[ROWS];
  Tracecollect__V1__Distribution spread;
  Tracecollect__V1__Value value[ROWS][2], *values[ROWS][2];
  Tracecollect__V1__Row row[ROWS], *rows[ROWS];
  Tracecollect__V1__Table table, *tables[1];
  Tracecollect__V1__Report report;
  report message;
};

static char *text(const char *literal) {
  return (char *)(uintptr_t)literal; /* only read */
}

/* Columns of all streams: stack and waits. */
static Tracecollect__V1__FieldSchema column[2], *columns[2];
static Tracecollect__V1__TableSchema table_schema, *table_schemas[1];
static Tracecollect__V1__ReportSchema schema;

static void make_schema(void) {
  for (int c = 0; c < 2; c++) {
    tracecollect__v1__field_schema__init(&column[c]);
    columns[c] = &column[c];
  }
  column[0].name = text("stack");
  column[0].type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK;
  column[1].name = text("waits");
  column[1].type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  tracecollect__v1__table_schema__init(&table_schema);
  table_schema.name = text("by_stack");
  table_schema.keys = 1;
  table_schema.n_columns = 2;
  table_schema.columns = columns;
  table_schemas[0] = &table_schema;
  tracecollect__v1__report_schema__init(&schema);
  schema.n_tables = 1;
  schema.tables = table_schemas;
}

static void begin(struct stream *s) {
  make_schema();
  tracecollect__v1__stream_report__init(&s->message);
  tracecollect__v1__report__init(&s->report);
  tracecollect__v1__table__init(&s->table);
  tracecollect__v1__distribution__init(&s->spread);
  s->spread.count = 1;
  s->spread.total_ns = 5;
  s->message.report = &s->report;
  s->report.schema = &schema;
  s->report.n_tables = 1;
  s->report.tables = s->tables;
  s->tables[0] = &s->table;
  s->table.rows = s->rows;
  s->report.stacks = s->stacks;
  s->report.frames = s->frames;
}

static void add(struct stream *s, uint64_t pc, const char *function, uint64_t line) {
  size_t i = s->table.n_rows++;

  tracecollect__v1__frame__init(&s->frame[i]);
  s->frame[i].pc = pc;
  s->frame[i].function = text(function);
  s->frame[i].file = text("main.go");
  s->frame[i].line = line;
  s->frames[i] = &s->frame[i];
  s->place[i] = (uint32_t)i;
  tracecollect__v1__stack__init(&s->stack[i]);
  s->stack[i].n_frames = 1;
  s->stack[i].frames = &s->place[i];
  s->stacks[i] = &s->stack[i];
  s->report.n_stacks = s->report.n_frames = i + 1;
  for (int c = 0; c < 2; c++) {
    tracecollect__v1__value__init(&s->value[i][c]);
    s->values[i][c] = &s->value[i][c];
  }
  s->value[i][0].is_case = TRACECOLLECT__V1__VALUE__IS_STACK;
  s->value[i][0].stack = (uint32_t)i;
  s->value[i][1].is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
  s->value[i][1].distribution = &s->spread;
  tracecollect__v1__row__init(&s->row[i]);
  s->row[i].n_values = 2;
  s->row[i].values = s->values[i];
  s->rows[i] = &s->row[i];
}

static void make_file(char *path) {
  int fd = mkstemp(path);

  cr_assert_geq(fd, 0);
  close(fd);
}

static profile *read_back(const char *path) {
  static unsigned char bytes[1 << 16];

  cr_assert_eq(tk_mem.bytes, 0);
  gzFile file = gzopen(path, "rb");
  int len = gzread(file, bytes, sizeof bytes);
  cr_assert_gt(len, 0);
  gzclose(file);
  unlink(path);
  profile *p = tracecollect__pprof__profile__unpack(NULL, (size_t)len, bytes);
  cr_assert_not_null(p);
  return p;
}

static profile *written_as(const struct tk_pprof_ask *ask, report *const *reports, size_t n) {
  char path[] = "/tmp/test_pprof.XXXXXX";
  struct tb_diag diag;

  make_file(path);
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_pprof_write(path, ask, reports, n, &diag), TB_OK, "%s", diag.text);
  return read_back(path);
}

static profile *written(report *const *reports, size_t n) {
  const struct tk_pprof_ask ask = { .table = &table_schema, .go_measure = "waits" };
  return written_as(&ask, reports, n);
}

static const char *function_of(const profile *p, size_t sample) {
  const Tracecollect__Pprof__Location *l = p->location[p->sample[sample]->location_id[0] - 1];

  return p->string_table[p->function[l->line[0]->function_id - 1]->name];
}

Test(pprof, two_programs_with_other_code_at_one_counter_keep_their_names) {
  static struct stream one, two, three;
  report *const reports[] = { &one.message, &two.message, &three.message };

  begin(&one), begin(&two), begin(&three);
  add(&one, PC, "one.serve", 10);
  add(&two, PC, "two.write", 20);
  add(&three, PC, "one.serve", 10);
  profile *p = written(reports, 3);
  cr_assert_eq(p->n_sample, 3);
  cr_expect_str_eq(function_of(p, 0), "one.serve");
  cr_expect_str_eq(function_of(p, 1), "two.write");
  cr_expect_str_eq(function_of(p, 2), "one.serve");
  cr_expect_eq(p->n_location, 2, "a program twice has one location");
  cr_expect_eq(p->location[0]->address, PC);
  cr_expect_eq(p->location[1]->address, PC);
  tracecollect__pprof__profile__free_unpacked(p, NULL);
}

Test(pprof, within_one_program_the_counter_decides) {
  static struct stream one;
  report *const reports[] = { &one.message };

  begin(&one);
  add(&one, PC, "one.serve", 10);
  add(&one, PC, "one.other", 11);
  add(&one, 0, "one.serve", 10);
  add(&one, 0, "one.other", 11);
  profile *p = written(reports, 1);
  cr_assert_eq(p->n_sample, 4);
  cr_expect_str_eq(function_of(p, 0), "one.serve");
  cr_expect_str_eq(function_of(p, 1), "one.serve");
  cr_expect_str_eq(function_of(p, 2), "one.serve");
  cr_expect_str_eq(function_of(p, 3), "one.other");
  cr_expect_eq(p->n_location, 3);
  tracecollect__pprof__profile__free_unpacked(p, NULL);
}

static const char *type_of(const profile *p, size_t i) {
  return p->string_table[p->sample_type[i]->type];
}

static const char *shown_type(const profile *p) {
  return p->string_table[p->default_sample_type];
}

Test(pprof, the_samples_of_go_have_its_names) {
  static struct stream one;
  report *const reports[] = { &one.message };

  begin(&one);
  add(&one, PC, "one.serve", 10);
  profile *p = written(reports, 1);
  cr_assert_eq(p->n_sample_type, 2);
  cr_expect_str_eq(type_of(p, 0), "contentions");
  cr_expect_str_eq(type_of(p, 1), "delay");
  cr_expect_eq(p->default_sample_type, 0, "as in Go's");
  cr_expect_eq(p->sample[0]->value[0], 1);
  cr_expect_eq(p->sample[0]->value[1], 5);
  tracecollect__pprof__profile__free_unpacked(p, NULL);
}

Test(pprof, the_measures_of_a_table_are_the_values_of_a_sample) {
  const Tracecollect__V1__ReportSchema *toy = tt_toy_schema();
  const struct tk_pprof_ask ask = { .table = toy->tables[0] };
  report *const reports[] = { tt_toy_report() };

  cr_assert_not_null(tk_pprof_stack(toy->tables[0]));
  cr_assert_null(tk_pprof_stack(toy->tables[2]), "its stack is no key");
  profile *p = written_as(&ask, reports, 1);
  static const char *const names[] = { "served_count", "served_total", "failed_count",
                                       "failed_total", "retries" };
  cr_assert_eq(p->n_sample_type, 5);
  for (size_t i = 0; i < 5; i++) cr_expect_str_eq(type_of(p, i), names[i]);
  cr_expect_str_eq(shown_type(p), "served_total", "the first distribution, not the last measure");
  cr_assert_eq(p->n_sample, 3);
  cr_expect_str_eq(function_of(p, 0), "runtime.write");
  cr_expect_eq(p->sample[0]->n_location_id, 2, "a frame that is not there is left out");
  static const int64_t values[] = { 3, 3000000, 2, 500, 4 };
  for (size_t i = 0; i < 5; i++) cr_expect_eq(p->sample[0]->value[i], values[i]);
  cr_assert_eq(p->sample[1]->n_location_id, 1);
  cr_expect_str_eq(function_of(p, 1), "(no stack)");
  cr_expect_str_eq(function_of(p, 2), "(other stacks)");
  tracecollect__pprof__profile__free_unpacked(p, NULL);
  tt_toy_report_free();
}

/* ---- sample by sample ---- */

enum { LONG = 300 };

static const struct to_frame serve = { .pc = PC,
                                       .function = { "one.serve", 9 },
                                       .file = { "", 0 } };
static const struct to_frame *const serve_frames[] = { &serve };
static const struct to_callstack at_serve = { .len = 1, .frames = serve_frames };

static profile *sampled(const char *const *above, const char *const *names) {
  const int64_t values[] = { 3, 500, 7 };
  char path[] = "/tmp/test_pprof.XXXXXX";
  struct tk_profile *made;
  struct tb_diag diag;

  make_file(path);
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_profile_new(&made), TB_OK);
  cr_assert_eq(tk_profile_sample(made, &at_serve, above, 1, values, 3), TB_OK);
  cr_assert_eq(tk_profile_sample(made, &at_serve, above + 1, 1, values, 3), TB_OK);
  cr_assert_eq(tk_profile_sample(made, NULL, above, 0, values, 3), TB_OK);
  cr_assert_eq(tk_profile_write(made, path, names, 3, &diag), TB_OK, "%s", diag.text);
  tk_profile_free(made);
  return read_back(path);
}

Test(pprof, names_stand_whole_on_top_of_their_stack) {
  char one[LONG + 1] = "", two[LONG + 1] = "";

  memset(one, 'a', LONG - 1), memset(two, 'a', LONG - 1);
  one[LONG - 1] = '1', two[LONG - 1] = '2';
  profile *p = sampled((const char *const[]){ one, two },
                       (const char *const[]){ "events", "waited_ns", NULL });
  cr_assert_eq(p->n_sample, 3);
  cr_expect_str_eq(function_of(p, 0), one);
  cr_expect_str_eq(function_of(p, 1), two);
  cr_expect_str_eq(function_of(p, 2), "(no stack)");
  cr_assert_eq(p->sample[0]->n_location_id, 2);
  cr_expect_eq(p->location[p->sample[0]->location_id[1] - 1]->address, PC);
  cr_assert_eq(p->n_sample_type, 2, "the third one is left out");
  cr_expect_str_eq(type_of(p, 1), "waited_ns");
  cr_expect_str_eq(shown_type(p), "waited_ns");
  cr_expect_str_eq(p->string_table[p->sample_type[1]->unit], "nanoseconds");
  cr_assert_eq(p->sample[0]->n_value, 2);
  cr_expect_eq(p->sample[0]->value[1], 500);
  tracecollect__pprof__profile__free_unpacked(p, NULL);
}

Test(pprof, samples_without_values_count_as_rows) {
  profile *p =
      sampled((const char *const[]){ "a", "b" }, (const char *const[]){ NULL, NULL, NULL });

  cr_assert_eq(p->n_sample_type, 1);
  cr_expect_str_eq(type_of(p, 0), "rows");
  cr_expect_str_eq(shown_type(p), "rows");
  for (size_t i = 0; i < p->n_sample; i++) cr_expect_eq(p->sample[i]->value[0], 1);
  tracecollect__pprof__profile__free_unpacked(p, NULL);
}
