/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of reports: whose code a location is. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/pprof.pb-c.h"
#include "tools/tracectl/report/pprof.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__StreamReport report;
typedef Tracecollect__Pprof__Profile profile;

struct tb_mem tk_mem;

enum { ROWS = 4, PC = 0x4000 };

/* One stream whose stacks have one frame each. */
struct stream {
  Tracecollect__V1__Frame frame[ROWS], *frames[ROWS][1];
  Tracecollect__V1__Sum sum;
  Tracecollect__V1__SyscallStack row[ROWS], *rows[ROWS];
  Tracecollect__V1__SyscallReport syscall;
  report report;
};

static void begin(struct stream *s) {
  tracecollect__v1__stream_report__init(&s->report);
  tracecollect__v1__syscall_report__init(&s->syscall);
  tracecollect__v1__sum__init(&s->sum);
  s->sum.count = 1;
  s->report.syscall = &s->syscall;
  s->syscall.stacks = s->rows;
}

static char *text(const char *literal) {
  return (char *)(uintptr_t)literal; /* only read */
}

static void add(struct stream *s, uint64_t pc, const char *function, uint64_t line) {
  size_t i = s->syscall.n_stacks++;

  tracecollect__v1__frame__init(&s->frame[i]);
  s->frame[i].pc = pc;
  s->frame[i].function = text(function);
  s->frame[i].file = text("main.go");
  s->frame[i].line = line;
  s->frames[i][0] = &s->frame[i];
  tracecollect__v1__syscall_stack__init(&s->row[i]);
  s->row[i].calls = &s->sum;
  s->row[i].stack = s->frames[i];
  s->row[i].n_stack = 1;
  s->rows[i] = &s->row[i];
}

static profile *written(report *const *reports, size_t n) {
  static unsigned char bytes[1 << 16];
  char path[] = "/tmp/test_pprof.XXXXXX";
  struct tb_diag diag;

  int fd = mkstemp(path);
  cr_assert_geq(fd, 0);
  close(fd);
  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_pprof_write(path, reports, n, &diag), TB_OK, "%s", diag.text);
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

static const char *function_of(const profile *p, size_t sample) {
  const Tracecollect__Pprof__Location *l = p->location[p->sample[sample]->location_id[0] - 1];

  return p->string_table[p->function[l->line[0]->function_id - 1]->name];
}

Test(pprof, two_programs_with_other_code_at_one_counter_keep_their_names) {
  static struct stream one, two, three;
  report *const reports[] = { &one.report, &two.report, &three.report };

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
  report *const reports[] = { &one.report };

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
