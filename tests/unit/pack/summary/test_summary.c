/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of reports that are made by hand: which are told, in which order, and their words. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "pack/summary/private.h"
#include "pack/summary/summary.h"

enum { COLUMNS = 12, ROWS = 4, MS = 1000000 };

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Distribution Distribution;

static struct tb_mem mem;
static struct tb_arena arena;
static StreamReport *reports[16];
static struct tp_summary_finding findings[4];
static struct tp_summary_of of;

static void setup(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, 2 << 20);
  tb_arena_init(&arena, &mem, 4096);
  of = (struct tp_summary_of){
    .report = reports, .finding = findings, .service = "", .source = "t.trace", .window = ""
  };
}

static void teardown(void) {
  tb_arena_fini(&arena);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(summary, .init = setup, .fini = teardown);

static void *take(size_t bytes) {
  void *out;

  cr_assert_eq(tb_arena_alloc(&arena, bytes, &out), TB_OK);
  memset(out, 0, bytes);
  return out;
}

static char *word(const char *text) {
  return (char *)(uintptr_t)text;
}

/* ---- values ---- */

static Value *number(int64_t n) {
  Value *v = take(sizeof *v);

  tracecollect__v1__value__init(v);
  v->is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
  v->number = n;
  return v;
}

static Value *share(double s) {
  Value *v = number(0);

  v->is_case = TRACECOLLECT__V1__VALUE__IS_SHARE;
  v->share = s;
  return v;
}

static Value *text(const char *t) {
  Value *v = number(0);

  v->is_case = TRACECOLLECT__V1__VALUE__IS_TEXT;
  v->text = word(t);
  return v;
}

/* Lengths in ms. */
static Value *lengths(uint64_t count, double p50, double p99, double max, double total) {
  Value *v = number(0);

  v->is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
  v->distribution = take(sizeof *v->distribution);
  tracecollect__v1__distribution__init(v->distribution);
  v->distribution->count = count;
  v->distribution->p50_ns = (uint64_t)(p50 * MS);
  v->distribution->p99_ns = (uint64_t)(p99 * MS);
  v->distribution->max_ns = (uint64_t)(max * MS);
  v->distribution->total_ns = (uint64_t)(total * MS);
  return v;
}

/* Frames from the innermost, "main.reserve:27", until NULL. */
static Value *stack(Report *r, ...) {
  Value *v = number(0);
  va_list args;
  const char *at;

  Tracecollect__V1__Stack *s = take(sizeof *s);
  tracecollect__v1__stack__init(s);
  s->frames = take(8 * sizeof *s->frames);
  va_start(args, r);
  while ((at = va_arg(args, const char *)) != NULL) {
    Tracecollect__V1__Frame *frame = take(sizeof *frame);
    tracecollect__v1__frame__init(frame);
    size_t n = strcspn(at, ":");
    frame->function = take(n + 1);
    memcpy(frame->function, at, n);
    frame->line = at[n] == ':' ? strtoull(at + n + 1, NULL, 10) : 0;
    frame->file = word("");
    s->frames[s->n_frames++] = (uint32_t)r->n_frames;
    r->frames[r->n_frames++] = frame;
  }
  va_end(args);
  v->is_case = TRACECOLLECT__V1__VALUE__IS_STACK;
  v->stack = (uint32_t)r->n_stacks;
  r->stacks[r->n_stacks++] = s;
  return v;
}

/* ---- reports ---- */

static Report *add_report(const char *kind) {
  StreamReport *s = take(sizeof *s);
  Report *r = take(sizeof *r);

  tracecollect__v1__stream_report__init(s);
  tracecollect__v1__report__init(r);
  r->schema = take(sizeof *r->schema);
  tracecollect__v1__report_schema__init(r->schema);
  r->figures = take(COLUMNS * sizeof *r->figures);
  r->schema->figures = take(COLUMNS * sizeof *r->schema->figures);
  r->tables = take(COLUMNS * sizeof *r->tables);
  r->schema->tables = take(COLUMNS * sizeof *r->schema->tables);
  r->stacks = take(32 * sizeof *r->stacks);
  r->frames = take(128 * sizeof *r->frames);
  s->kind = word(kind);
  s->report = r;
  s->until_ns = INT64_C(10000) * MS;
  s->first_gen = 1;
  s->last_gen = 10;
  s->events = 1000;
  reports[of.reports++] = s;
  return r;
}

static Tracecollect__V1__FieldSchema *field(const char *name) {
  Tracecollect__V1__FieldSchema *f = take(sizeof *f);

  tracecollect__v1__field_schema__init(f);
  f->name = word(name);
  return f;
}

static void add_figure(Report *r, const char *name, Value *value) {
  r->figures[r->n_figures++] = value;
  r->schema->figures[r->schema->n_figures++] = field(name);
}

/* Columns until NULL. */
static Tracecollect__V1__Table *add_table(Report *r, const char *name, ...) {
  Tracecollect__V1__Table *table = take(sizeof *table);
  Tracecollect__V1__TableSchema *schema = take(sizeof *schema);
  const char *column;
  va_list args;

  tracecollect__v1__table__init(table);
  tracecollect__v1__table_schema__init(schema);
  schema->name = word(name);
  schema->columns = take(COLUMNS * sizeof *schema->columns);
  table->rows = take(ROWS * sizeof *table->rows);
  va_start(args, name);
  while ((column = va_arg(args, const char *)) != NULL)
    schema->columns[schema->n_columns++] = field(column);
  va_end(args);
  r->tables[r->n_tables++] = table;
  r->schema->tables[r->schema->n_tables++] = schema;
  return table;
}

/* Values until NULL. */
static void add_row(Tracecollect__V1__Table *table, ...) {
  Tracecollect__V1__Row *row = take(sizeof *row);
  va_list args;
  Value *v;

  tracecollect__v1__row__init(row);
  row->values = take(COLUMNS * sizeof *row->values);
  va_start(args, table);
  while ((v = va_arg(args, Value *)) != NULL) row->values[row->n_values++] = v;
  va_end(args);
  table->rows[table->n_rows++] = row;
}

static void add_task(const char *type, Value *latency, int64_t chan_ns) {
  static Tracecollect__V1__Table *table;

  if (of.reports == 0 || strcmp(reports[of.reports - 1]->kind, "tasks") != 0)
    table =
        add_table(add_report("tasks"), "by_type", "type", "latency", "chan_ns", "sleep_ns", NULL);
  add_row(table, text(type), latency, number(chan_ns), number(1), NULL);
}

static void add_stops(double max_ms) {
  Report *r = add_report("stw");
  Tracecollect__V1__Table *table = add_table(r, "by_reason", "reason", "id", "stopped", NULL);

  add_figure(r, "stopped", lengths(4, 1, 1, 900, 1000));
  add_figure(r, "wall_share", share(0.01));
  add_row(table, text("start trace"), text("/stw/trace/start"), lengths(1, 900, 900, 900, 900),
          NULL);
  add_row(table, text("GC mark termination"), text("/stw/gc/mark"),
          lengths(3, 1, 1, max_ms, max_ms), NULL);
}

static const Tracecollect__V1__SummaryReply *sum_up(void) {
  Tracecollect__V1__SummaryReply *reply;
  struct tp_summary summary;

  tp_summary_init(&summary, &arena);
  cr_assert_eq(tp_summary_add(&summary, &of), TB_OK);
  cr_assert_eq(tp_summary_take(&summary, &reply), TB_OK);
  cr_assert_leq(reply->n_sentences, TP_SUMMARY_SENTENCES);
  return reply;
}

static const Tracecollect__V1__Sentence *only(const Tracecollect__V1__SummaryReply *reply) {
  cr_assert_eq(reply->n_sentences, 1);
  return reply->sentences[0];
}

/* ---- tests ---- */

Test(summary, of_nothing_says_that_there_is_nothing) {
  const Tracecollect__V1__Sentence *s = only(sum_up());

  cr_assert_str_eq(s->kind, "nothing");
  cr_assert_str_eq(s->text, "Nothing to look at: no events.");
}

Test(summary, says_what_was_looked_at) {
  add_report("procs");
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->streams, 1);
  cr_assert_eq(reply->generations, 10);
  cr_assert_eq(reply->events, 1000);
  cr_assert_eq(reply->time_ns, UINT64_C(10000) * MS);
  cr_assert_not_null(strstr(only(reply)->text, "Nothing stands out"));
}

Test(summary, a_task_that_is_well_is_a_figure_behind_the_statement_that_all_is) {
  add_task("checkout", lengths(100, 2, 3, 4, 250), 0);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->kind, "nothing");
  cr_assert_str_eq(reply->sentences[1]->text,
                   "Task checkout: p99 3.00 ms, median 2.00 ms, the slowest of 100 took 4.00 ms, "
                   "mostly (100 %) sleeping");
}

Test(summary, a_task_that_is_much_slower_than_others_leads_to_why) {
  add_task("GET /cart", lengths(100, 2, 3, 400, 650), 600 * MS);
  add_task("checkout", lengths(100, 2, 3, 4, 250), 0);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->kind, "task");
  cr_assert_str_eq(s->text,
                   "Task GET /cart: p99 3.00 ms, median 2.00 ms, the slowest of 100 took 400 ms, "
                   "mostly (100 %) waiting for channels");
  cr_assert_str_eq(s->more, "tracectl why t.trace --slow 'GET /cart'");
  cr_assert_geq(s->weight, TP_SUMMARY_WORTH);
}

Test(summary, a_task_stands_before_a_pause_and_a_finding_before_both) {
  findings[0] = (struct tp_summary_finding){ .kind = "convoy",
                                             .words = "convoy of 5 goroutines: they wait",
                                             .place = "main.reserve:27",
                                             .cause = "",
                                             .id = "00000000000000ff",
                                             .is_open = true };
  of.findings = 1;
  add_stops(50);
  add_task("checkout", lengths(100, 2, 3, 400, 650), 600 * MS);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 3);
  cr_assert_str_eq(reply->sentences[0]->text, "Contention: convoy of 5 goroutines: they wait");
  cr_assert_str_eq(reply->sentences[0]->more, "tracectl findings 00000000000000ff");
  cr_assert(reply->sentences[0]->open);
  cr_assert_str_eq(reply->sentences[1]->kind, "task");
  cr_assert_str_eq(reply->sentences[2]->text, "Stop-the-world pauses: the longest 50.0 ms (GC mark "
                                              "termination), 4 pauses, 1.0 % of the time");
}

Test(summary, pauses_that_tracing_makes_are_left_out) {
  add_stops(2);
  cr_assert_str_eq(sum_up()->sentences[0]->kind, "nothing");
}

Test(summary, a_slow_task_is_told_once_as_a_finding_and_a_figure) {
  findings[0] =
      (struct tp_summary_finding){ .kind = "slow_task",
                                   .words = "task 7 (checkout) took 9.0 ms; why: tracectl why",
                                   .place = "",
                                   .cause = "checkout",
                                   .id = "00000000000000ff",
                                   .is_open = true };
  of.findings = 1;
  add_task("checkout", lengths(100, 8, 9, 9, 800), 0);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->kind, "task");
  cr_assert(s->open);
  of.reports = 0; /* no figure: its own words, without the command */
  s = only(sum_up());
  cr_assert_str_eq(s->text, "Task 7 (checkout) took 9.0 ms");
}

Test(summary, waits_at_one_place_are_added_up_and_the_runtime_is_left_out) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *pairs =
      add_table(r, "by_pair", "stack", "waker_stack", "reason", "waits", NULL);

  add_row(pairs, stack(r, "runtime.chanrecv1:9", "runtime.(*wakeableSleep).sleep:1", NULL),
          stack(r, "runtime.x:1", NULL), text("chan receive"), lengths(1, 9000, 9000, 9000, 9000),
          NULL);
  add_row(pairs, stack(r, "sync.(*Mutex).Lock:9", "main.reserve:27", "main.fast:1", NULL),
          stack(r, "main.slow:36", NULL), text("sync"), lengths(3, 5, 9, 30, 200), NULL);
  add_row(pairs, stack(r, "sync.(*Mutex).Lock:9", "main.reserve:27", "main.slow:1", NULL),
          stack(r, "main.fast:20", NULL), text("sync"), lengths(2, 5, 9, 20, 100), NULL);
  add_row(pairs, stack(r, "sync.(*WaitGroup).Wait:9", "main.main:5", NULL),
          stack(r, "main.done:1", NULL), text("sync"), lengths(1, 9000, 9000, 9000, 9000), NULL);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(
      s->text,
      "Waits for a lock at main.reserve:27: 5 waits of 300 ms together, the longest 30.0 ms; "
      "released at main.slow:36");
  cr_assert_str_eq(s->place, "main.reserve:27");
  cr_assert_str_eq(s->more, "tracectl report contention t.trace --table by_pair");
}

Test(summary, a_lock_with_a_name_is_told_by_it_and_by_what_held_it_most) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *pairs =
      add_table(r, "by_pair", "stack", "waker_stack", "reason", "waits", "object", NULL);
  Tracecollect__V1__Table *holders =
      add_table(r, "by_holder", "object", "holder", "reason", "stack", "waits", NULL);
  Value *call = stack(r, "pthread_mutex_lock", NULL);

  add_row(pairs, call, stack(r, "pthread_mutex_unlock", NULL), text("sync"),
          lengths(317, 20, 25, 25.4, 6270), text("accounts_lock"), NULL);
  add_row(holders, text("accounts_lock"), text("reader"), text("sync"), call,
          lengths(100, 20, 25, 25.4, 2500), NULL);
  add_row(holders, text("accounts_lock"), text("writer"), text("sync"), call,
          lengths(117, 20, 25, 25.2, 2000), NULL);
  add_row(holders, text("accounts_lock"), text("writer"), text("sync"),
          stack(r, "pthread_mutex_lock", "read_all:12", NULL), lengths(100, 20, 25, 25.3, 1770),
          NULL);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->text, "Waits for lock accounts_lock: 317 waits of 6.27 s together, the "
                            "longest 25.4 ms; held most by writer");
  cr_assert_str_eq(s->more, "tracectl report contention t.trace --table by_holder");
  cr_assert_str_eq(s->place, "");
}

Test(summary, a_lock_with_a_name_has_a_place_if_the_stack_shows_the_program) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *holders =
      add_table(r, "by_holder", "object", "holder", "reason", "stack", "waits", NULL);

  add_row(holders, text("accounts_lock"), text(""), text("sync"),
          stack(r, "pthread_mutex_lock", "read_all:12", NULL), lengths(1, 25, 25, 25, 25), NULL);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->text, "A wait for lock accounts_lock at read_all:12 took 25.0 ms");
  cr_assert_str_eq(s->place, "read_all:12");
}

Test(summary, a_call_of_the_c_library_is_no_place_of_the_program) {
  Report *r = add_report("syscall"), *c = add_report("contention");
  Tracecollect__V1__Table *stacks = add_table(r, "by_stack", "stack", "calls", "idle", NULL);
  Tracecollect__V1__Table *pairs =
      add_table(c, "by_pair", "stack", "waker_stack", "reason", "waits", NULL);

  add_row(stacks, stack(r, "write", NULL), lengths(3, 1, 380, 380, 390), number(0), NULL);
  add_row(pairs, stack(c, "pthread_mutex_lock", NULL), stack(c, "pthread_mutex_unlock", NULL),
          text("sync"), lengths(2, 20, 25, 25, 45), NULL);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->text,
                   "System calls in write: the longest took 380 ms, 3 calls together 390 ms");
  cr_assert_str_eq(reply->sentences[1]->text, "Waits for a lock in pthread_mutex_lock: 2 waits of "
                                              "45.0 ms together, the longest 25.0 ms");
}

Test(summary, whose_code_a_function_is) {
  static const char *const foreign[] = { "",
                                         "runtime.main",
                                         "runtime/pprof.Do",
                                         "internal/poll.(*FD).Read",
                                         "syscall.read",
                                         "tracecollect.invalid/agent.Start",
                                         "libtraceagent.so+0x1f" };
  static const char *const own[] = { "main.main", "net/http.(*Server).Serve", "transfer", "write",
                                     "pthread_mutex_lock" };

  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    cr_assert(tp_is_foreign(foreign[i]), "%s", foreign[i]);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    cr_assert_not(tp_is_foreign(own[i]), "%s", own[i]);
}

static void add_busy(int64_t none_ms, int64_t one_ms) {
  Report *r = add_report("procs"), *g = add_report("goroutines");
  Tracecollect__V1__Table *busy = add_table(r, "by_busy", "busy", "time_ns", NULL);
  Tracecollect__V1__Table *entries =
      add_table(g, "by_entry", "entry", "execution_ns", "syscall_ns", NULL);

  add_row(busy, number(0), number(none_ms * MS), NULL);
  add_row(busy, number(1), number(one_ms * MS), NULL);
  add_row(entries, text("runtime.gcBgMarkWorker"), number(90 * MS), number(0), NULL);
  add_row(entries, text("main.serve"), number(20 * MS), number(30 * MS), NULL);
  add_row(entries, text("main.main"), number(40 * MS), number(0), NULL);
}

Test(summary, of_a_program_that_does_little_it_says_how_little) {
  add_busy(9800, 200);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->kind, "nothing");
  cr_assert_str_eq(reply->sentences[1]->kind, "busy");
  cr_assert_str_eq(
      reply->sentences[1]->text,
      "The program was idle for 98 % of the time; of its goroutines those of main.serve "
      "ran most");
  cr_assert_str_eq(reply->sentences[1]->more, "tracectl report procs t.trace --table by_busy");
  of.reports = 0;
  add_busy(2000, 8000);
  cr_assert_str_eq(
      sum_up()->sentences[1]->text,
      "The program was busy for 80 % of the time; of its goroutines those of main.serve ran most");
  add_stops(50);
  cr_assert_str_eq(only(sum_up())->kind, "stop");
}

Test(summary, of_a_c_program_it_says_it_in_its_words) {
  add_busy(9800, 200);
  for (size_t i = 0; i < of.reports; i++) tp_report_set_program(reports[i], TO_PROGRAM_C);
  cr_assert_str_eq(
      sum_up()->sentences[1]->text,
      "The program was idle for 98 % of the time; of its threads those of main.serve ran most");
}

Test(summary, waits_to_run_that_are_short_make_no_sentence) {
  Report *r = add_report("sched");

  add_figure(r, "latency", lengths(100, 0.01, 0.9, 20, 40));
  cr_assert_str_eq(only(sum_up())->kind, "nothing");
  of.reports = 0;
  r = add_report("sched");
  add_figure(r, "latency", lengths(100, 0.01, 1, 20, 40));
  cr_assert_str_eq(sum_up()->sentences[1]->text,
                   "Goroutines that could run waited for a P: p99 1.00 ms, the longest 20.0 ms");
}

/* Half of the senders wait since before the trace: they have another row. */
static void add_queues(Report *r, const char *reason, int64_t senders) {
  Tracecollect__V1__Table *queues =
      add_table(r, "queues", "stack", "reason", "longest_queue", "waiting", NULL);

  for (unsigned i = 0; i < 2; i++)
    add_row(queues, stack(r, "runtime.chansend1:9", "main.suggest:58", NULL), text(reason),
            number(senders / 2), number(senders / 2), NULL);
}

static void expect_pile(const char *reason, int64_t senders, const char *ended_at, bool is_told) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *pairs =
      add_table(r, "by_pair", "stack", "waker_stack", "reason", "waits", NULL);

  add_queues(r, reason, senders);
  add_row(pairs, stack(r, ended_at, NULL), stack(r, "main.x:1", NULL), text(reason),
          lengths(1, 1, 1, 1, 0), NULL);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->kind, is_told ? "pile" : "nothing");
  if (is_told)
    cr_assert_str_eq(s->text, "124 goroutines wait at main.suggest:58 (channel send): no wait that "
                              "began there in this time has ended");
  of.reports = 0;
}

Test(summary, senders_that_pile_up_at_a_place_where_no_wait_ends_are_told) {
  expect_pile("channel send", 124, "main.other:3", true);
  expect_pile("channel send", 48, "main.other:3", false);
  expect_pile("channel send", 124, "main.suggest:58", false);
  expect_pile("channel receive", 124, "main.other:3", false);
}

/* A wait among the other rows may have been there. */
Test(summary, a_pile_is_told_if_the_waits_of_unknown_places_are_few) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *pairs =
      add_table(r, "by_pair", "stack", "waker_stack", "reason", "waits", NULL);

  add_queues(r, "channel send", 124);
  add_row(pairs, stack(r, NULL), stack(r, NULL), text(""), lengths(12, 1, 1, 1, 0), NULL);
  pairs->rows[0]->other = true;
  cr_assert_str_eq(
      only(sum_up())->text,
      "124 goroutines wait at main.suggest:58 (channel send): hardly a wait that began "
      "there in this time has ended");
  pairs->rows[0]->values[3] = lengths(13, 1, 1, 1, 0);
  cr_assert_str_eq(only(sum_up())->kind, "nothing");
}

static void find(const char *kind, const char *words) {
  findings[0] = (struct tp_summary_finding){ .kind = kind,
                                             .words = words,
                                             .place = "main.reserve:27",
                                             .cause = "",
                                             .id = "",
                                             .is_open = false };
  of.findings = 1;
}

Test(summary, a_place_is_named_once_by_what_weighs_most_but_a_convoy_is_followed_by_its_lock) {
  Report *r = add_report("contention");
  Tracecollect__V1__Table *pairs =
      add_table(r, "by_pair", "stack", "waker_stack", "reason", "waits", NULL);

  add_row(pairs, stack(r, "sync.(*Mutex).Lock:9", "main.reserve:29", NULL),
          stack(r, "main.slow:36", NULL), text("sync"), lengths(3, 5, 9, 300, 2000), NULL);
  find("stall", "a system call holds up 2 goroutines");
  cr_assert_str_eq(only(sum_up())->text, "A system call holds up 2 goroutines (over)");
  find("convoy", "convoy of 5 goroutines");
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->kind, "convoy");
  cr_assert_str_eq(reply->sentences[1]->kind, "lock");
}

Test(summary, a_slow_task_names_a_system_call_that_took_as_long) {
  Report *r = add_report("syscall");
  Tracecollect__V1__Table *stacks = add_table(r, "by_stack", "stack", "calls", "idle", NULL);

  add_row(stacks, stack(r, "syscall.read:1", "main.accept:3", NULL),
          lengths(9, 900, 900, 900, 9000), number(1), NULL);
  add_row(stacks, stack(r, "syscall.fsync:1", "os.(*File).Sync:2", "main.flush:12", NULL),
          lengths(3, 1, 380, 380, 390), number(0), NULL);
  add_task("checkout", lengths(100, 2, 3, 400, 650), 600 * MS);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_not_null(strstr(reply->sentences[0]->text, "took 380 ms"), "%s",
                     reply->sentences[0]->text);
  cr_assert_str_eq(reply->sentences[1]->kind, "call");
}

Test(summary,
     one_of_a_kind_has_no_quantiles_and_a_call_that_takes_all_of_the_time_may_be_a_reader) {
  Report *r = add_report("syscall");
  Tracecollect__V1__Table *stacks = add_table(r, "by_stack", "stack", "calls", "idle", NULL);

  add_row(stacks, stack(r, "syscall.read:1", "main.readPipe:3", NULL),
          lengths(1, 9900, 9900, 9900, 9900), number(0), NULL);
  add_task("whole run", lengths(1, 9000, 9000, 9000, 9000), 0);
  const Tracecollect__V1__SummaryReply *reply = sum_up();
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->text, "A system call at main.readPipe:3 took 9.90 s");
  cr_assert_lt(reply->sentences[0]->weight, 200);
  cr_assert_str_eq(reply->sentences[1]->text,
                   "Task whole run: the only one took 9.00 s, mostly (100 %) sleeping");
}

Test(summary, goroutines_that_pile_up_are_told_before_they_are_a_leak) {
  Report *r = add_report("goroutines");
  Tracecollect__V1__Table *sites =
      add_table(r, "by_site", "creation_stack", "alive", "created", "life", NULL);

  add_row(sites, stack(r, "net/http.(*Server).Serve:1", "main.main:5", NULL), number(900),
          number(9000), lengths(8100, 1, 1, 1, 1), NULL);
  add_row(sites, stack(r, "main.leak:20", NULL), number(640), number(640), lengths(0, 0, 0, 0, 0),
          NULL);
  const Tracecollect__V1__Sentence *s = only(sum_up());
  cr_assert_str_eq(s->text, "Goroutines pile up: 640 that were created at main.leak:20 are alive; "
                            "of 640 made in this time 0 ended");
}

Test(summary, of_several_services_the_worst_is_first) {
  static const char *const names[] = { "good", "bad" };
  Tracecollect__V1__SummaryReply *reply;
  struct tp_summary summary;

  tp_summary_init(&summary, &arena);
  for (size_t i = 0; i < 2; i++) {
    of.reports = 0;
    of.service = names[i];
    add_task("checkout", lengths(100, 2, 3, i == 0 ? 50 : 400, 650), 0);
    cr_assert_eq(tp_summary_add(&summary, &of), TB_OK);
  }
  cr_assert_eq(tp_summary_take(&summary, &reply), TB_OK);
  cr_assert_eq(reply->n_sentences, 2);
  cr_assert_str_eq(reply->sentences[0]->service, "bad");
  cr_assert_eq(reply->streams, 2);
  cr_assert_eq(reply->events, 2000);
}

Test(summary, a_word_of_a_command_is_quoted_if_a_shell_would_change_it) {
  static const struct {
    const char *word, *quoted;
  } cases[] = { { "t.trace", "t.trace" },
                { "my trace", "'my trace'" },
                { "it's", "'it'\\''s'" },
                { "", "''" },
                { "$HOME", "'$HOME'" } };
  const char *out;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cr_assert_eq(tp_summary_quote(&arena, cases[i].word, &out), TB_OK);
    cr_assert_str_eq(out, cases[i].quoted);
  }
}

Test(summary, numbers_have_three_digits_and_a_unit) {
  char out[TP__WORDS];

  cr_assert_str_eq(tp__ns_words(0, out), "0 ns");
  cr_assert_str_eq(tp__ns_words(999, out), "999 ns");
  cr_assert_str_eq(tp__ns_words(1500, out), "1.50 us");
  cr_assert_str_eq(tp__ns_words(UINT64_C(75) * 1000 * MS, out), "75.0 s");
  cr_assert_str_eq(tp__ns_words(UINT64_C(310) * 1000 * MS, out), "5 min");
  cr_assert_str_eq(tp__count_words(1234567, out), "1,234,567");
  cr_assert_str_eq(tp__bytes_words(3 << 20, out), "3.00 MiB");
  cr_assert_str_eq(tp__share_words(0.004, out), "0.4 %");
}

Test(summary, memory_that_is_short_is_an_error_at_each_step) {
  struct tp_summary summary;
  struct tb_arena small;
  struct tb_mem little;
  Tracecollect__V1__SummaryReply *reply;
  bool is_done = false;

  add_task("GET /cart", lengths(100, 2, 3, 400, 650), 600 * MS);
  for (size_t most = 0; !is_done; most += 64) {
    tb_mem_init(&little, tb_mem_libc, NULL, most);
    tb_arena_init(&small, &little, 64);
    tp_summary_init(&summary, &small);
    tb_rc rc = tp_summary_add(&summary, &of);
    if (rc == TB_OK) rc = tp_summary_take(&summary, &reply);
    cr_assert(rc == TB_OK || rc == TB_NOMEM || rc == TB_BUDGET);
    is_done = rc == TB_OK;
    tb_arena_fini(&small);
    cr_assert_eq(little.bytes, 0);
  }
}
