/* SPDX-License-Identifier: Apache-2.0 */
/* F1 to F4, F11, F13 to F16, J10: experiments that a program emits, read as the collector reads
 * them, and without them as Go's tools do. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "online/trace/substreams.h"
#include "tests/support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "tools/tracectl/fetch/strip.h"
#include "traceexperiment.h"

static const char spec[] = "experiment Cache\n"
                           "event Hit key_string bytes_value\n"
                           "event Evict ctx=M lru_value lru_seq\n"
                           "event Dump ctx=any why_string blob\n"
                           "event Tick\n";
enum { HIT, EVICT, DUMP, TICK, EVENTS };
static ta_experiment cache;
static ta_event event[EVENTS];
static struct emitted emitted;

/* Collects what the reader reports of the trace. */
struct reported {
  struct tb_mem mem;
  struct to_substreams *streams;
  unsigned count[EVENTS], strangers, others;
  uint64_t last_of_lru; /* the last number in the generation */
  unsigned blobs, tables;
  char text[64];
};

static void take_blob(struct reported *reported, const struct to_event *ev) {
  struct to_bytes bytes;
  struct tb_diag diag;

  if (ev->args[1] == 0) return;
  tb_diag_clear(&diag);
  cr_assert_eq(to_blob_read(reported->streams, ev->args[1], &diag, &bytes), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < bytes.len; i++) cr_assert_eq(bytes.data[i], i % 251);
  reported->blobs++;
}

static void take(struct reported *reported, const struct to_generation *gen,
                 const struct to_event *ev) {
  struct to_string text;

  if (ev->type == TW_EV_SYNC && gen != NULL) {
    cr_assert_eq(to_substreams_generation(reported->streams, gen), TB_OK);
    reported->last_of_lru = 0;
    const struct to_substream *types = to_substreams_find(reported->streams, cache, "types");
    reported->tables += types == NULL ? 0 : (unsigned)types->bytes;
  }
  if (ev->type < event[HIT] || ev->type > event[TICK]) {
    if (ev->type < TW_OWN_EVENT_FIRST)
      reported->others++;
    else
      reported->strangers++;
    return;
  }
  reported->count[ev->type - event[HIT]]++;
  cr_assert_str_eq(to_generation_experiment(gen, ev->type), "Cache");
  if (ev->type == event[HIT]) {
    cr_assert(to_generation_string(gen, ev->args[0], &text));
    snprintf(reported->text, sizeof reported->text, "%.*s %d", (int)text.len, text.data,
             (int)ev->args[1]);
  }
  if (ev->type == event[EVICT]) cr_assert_eq(ev->args[1], ++reported->last_of_lru);
  if (ev->type == event[DUMP]) take_blob(reported, ev);
}

static tb_rc take_all(void *self, const struct to_generation *gen, const struct to_event *ev,
                      size_t n) {
  for (; n > 0; ev++, n--) take(self, gen, ev);
  return TB_OK;
}

static struct reported read_trace(const void *bytes, size_t n) {
  struct reported reported = { .count = { 0 } };
  struct to_event_sink sink = { &reported, take_all };
  struct to_reader *reader;
  struct tb_diag diag;
  char text[300];

  tb_mem_init(&reported.mem, tb_mem_libc, NULL, 256 << 20);
  tb_diag_clear(&diag);
  cr_assert_eq(to_substreams_new(&reported.mem, (struct to_fault_sink){ 0 }, &reported.streams),
               TB_OK);
  cr_assert_eq(to_reader_new(&reported.mem, &(struct to_limits){ 0 }, 0, sink, &diag, &reader),
               TB_OK);
  tb_rc rc = to_reader_read(reader, bytes, n);
  tb_diag_format(&diag, text, sizeof text);
  cr_assert_eq(rc, TB_OK, "%s", text);
  to_reader_free(reader);
  to_substreams_free(reported.streams);
  cr_assert_eq(reported.mem.bytes, 0);
  return reported;
}

/* Returns the same trace as `fetch` writes it. */
static size_t stripped(const unsigned char *bytes, size_t n, unsigned char *out) {
  struct tk_strip *s = calloc(1, sizeof *s);
  const unsigned char *piece;
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t used, len = TW_HEADER_BYTES;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tw_split_init(&split, &mem);
  memcpy(out, bytes, TW_HEADER_BYTES);
  for (; tw_split_feed(&split, bytes, n, &used, &item) == TB_OK; bytes += used, n -= used) {
    if (item.kind == TW_ITEM_HEADER) {
      tk_strip_begin(s, split.version);
      continue;
    }
    piece = item.bytes;
    size_t left = item.kind == TW_ITEM_BATCH ? tk_strip_batch(s, &item, &piece) : item.len;
    memcpy(out + len, piece, left);
    len += left;
  }
  tw_split_fini(&split);
  free(s);
  return len;
}

static void begin(unsigned version) {
  cr_assert_eq(ta_experiment_register(spec, &cache, event, EVENTS), 0, "%s",
               ta_strerror(TA_E_CONFIG));
  cr_assert_eq(emit_begin_version(&emitted, version), 0);
}

/* Reads the trace twice. The second time nothing of an experiment may be left, and everything
 * else must still be there. */
static struct reported end(void) {
  struct ta_emit_status status = { .size = sizeof status };

  ta_emit_status(&status);
  cr_assert_eq(status.misused, 0);
  cr_assert_eq(emit_end(&emitted), 0);
  cr_assert_eq(emitted.traces, 1);
  size_t n = emitted.trace[0].n;
  unsigned char *safe = malloc(n);
  struct reported reported = read_trace(emitted.trace[0].bytes, n);
  struct reported rest = read_trace(safe, stripped(emitted.trace[0].bytes, n, safe));
  for (unsigned i = 0; i < EVENTS; i++) cr_assert_eq(rest.count[i], 0);
  cr_assert_eq(rest.others, reported.others);
  cr_assert_eq(rest.tables + rest.blobs + rest.strangers, 0);
  free(safe);
  emit_free(&emitted);
  return reported;
}

Test(emit_experiments, are_told_in_every_generation_that_has_them) {
  begin(26);
  ta_name key = ta_name_of("basket");
  for (uint64_t i = 0; i < 3; i++) {
    ta_experiment_emit(event[HIT], key, 40 + i, 0, 0);
    ta_experiment_emit(event[TICK], 0, 0, 0, 0);
    emit_end_generation();
  }
  struct reported reported = end();
  cr_assert_eq(reported.count[HIT], 3);
  cr_assert_eq(reported.count[TICK], 3);
  cr_assert_str_eq(reported.text, "basket 42");
}

Test(emit_experiments, may_be_registered_while_a_session_is_on) {
  ta_event late[1];

  begin(23);
  ta_experiment_emit(event[TICK], 0, 0, 0, 0);
  cr_assert_eq(ta_experiment_register("experiment Late\nevent Late\n", NULL, late, 1), 0);
  ta_experiment_emit(late[0], 0, 0, 0, 0);
  emit_end_generation();
  ta_experiment_emit(late[0], 0, 0, 0, 0);
  struct reported reported = end();
  cr_assert_eq(reported.count[TICK], 1);
  cr_assert_eq(reported.strangers, 2);
}

Test(emit_experiments, may_be_registered_in_a_hold) {
  ta_event late[1];

  begin(26);
  TA_ATOMIC(cr_assert_eq(ta_experiment_register("experiment Held\nevent Held\n", NULL, late, 1), 0),
            ta_experiment_emit(late[0], 0, 0, 0, 0));
  struct reported reported = end();
  cr_assert_eq(reported.strangers, 1);
}

Test(emit_experiments, stand_where_their_context_lets_them) {
  begin(25);
  ta_region_begin(ta_name_of("r"), 0);
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_sequence order = { { 0 } };
  ta_experiment_emit(event[EVICT], 1, TA_SEQUENCE(&order), 0, 0);
  ta_wait_end();
  ta_syscall_begin();
  ta_experiment_emit(event[EVICT], 1, TA_SEQUENCE(&order), 0, 0);
  ta_syscall_end();
  cr_assert_eq(end().count[EVICT], 2);
}

/* The lock's holder evicts and emits the event under the same lock: the numbers are in the order
 * of the list's changes. */
static pthread_mutex_t lru_lock = PTHREAD_MUTEX_INITIALIZER;
static ta_sequence lru_order;
enum { EVICTIONS = 2000, EVICTORS = 4 };

static void *evict(void *arg) {
  (void)arg;
  for (int i = 0; i < EVICTIONS; i++) {
    pthread_mutex_lock(&lru_lock);
    ta_experiment_emit(event[EVICT], 7, TA_SEQUENCE(&lru_order), 0, 0);
    pthread_mutex_unlock(&lru_lock);
    if (i % 64 == 0) TA_ATOMIC((void)0, ta_experiment_emit(event[TICK], 0, 0, 0, 0));
  }
  return NULL;
}

Test(emit_experiments, of_many_threads_follow_their_numbers_over_generations) {
  pthread_t thread[EVICTORS];

  begin(26);
  for (int i = 0; i < EVICTORS; i++) pthread_create(&thread[i], NULL, evict, NULL);
  for (int i = 0; i < 10; i++) emit_end_generation();
  for (int i = 0; i < EVICTORS; i++) pthread_join(thread[i], NULL);
  struct reported reported = end();
  cr_assert_eq(reported.count[EVICT], EVICTORS * EVICTIONS);
  cr_assert_eq(reported.count[TICK], EVICTORS * (EVICTIONS / 64 + 1));
}

Test(emit_experiments, carry_blobs_of_any_size) {
  static const size_t sizes[] = { 0, 1, 1000, 200000 };
  unsigned char *bytes = malloc(200000);

  for (size_t i = 0; i < 200000; i++) bytes[i] = (unsigned char)(i % 251);
  begin(26);
  for (int gen = 0; gen < 2; gen++) {
    for (size_t i = 0; i < 4; i++)
      ta_emit_blob(event[DUMP], ta_name_of("dumps"), bytes, sizes[i], ta_name_of("asked"), 0, 0, 0);
    emit_end_generation();
  }
  struct reported reported = end();
  cr_assert_eq(reported.count[DUMP], 8);
  cr_assert_eq(reported.blobs, 8);
  free(bytes);
}

/* J11: the cost of a snapshot of 2,000 pages as that many events and as one blob, in time of
 * this thread and in bytes. Of several tries the cheapest counts, because a busy machine only
 * adds. */
enum { PAGES = 2000, PAGE_BYTES = 16 };

static uint64_t thread_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void as_events(const unsigned char *bytes) {
  ta_name page = ta_name_of("page");

  for (size_t i = 0; i < PAGES; i++) {
    uint64_t half[2];
    memcpy(half, bytes + i * PAGE_BYTES, sizeof half);
    ta_experiment_emit(event[HIT], page, half[0], 0, 0);
    ta_experiment_emit(event[HIT], page, half[1], 0, 0);
  }
}

static void as_blob(const unsigned char *bytes) {
  ta_emit_blob(event[DUMP], ta_name_of("pages"), bytes, PAGES * PAGE_BYTES, ta_name_of("asked"), 0,
               0, 0);
}

struct cost {
  uint64_t ns;
  size_t bytes;
};

static struct cost cost_of(void (*write_all)(const unsigned char *), const unsigned char *bytes) {
  struct cost cost = { UINT64_MAX, 0 };

  for (int try = 0; try < 5; try++) {
    begin(26);
    ta_experiment_emit(event[TICK], 0, 0, 0, 0);
    uint64_t since = thread_ns();
    write_all(bytes);
    uint64_t ns = thread_ns() - since;
    if (ns < cost.ns) cost.ns = ns;
    cr_assert_eq(emit_end(&emitted), 0);
    cr_assert_eq(emitted.traces, 1);
    cost.bytes = emitted.trace[0].n;
    emit_free(&emitted);
  }
  return cost;
}

Test(emit_experiments, a_blob_costs_less_than_the_events_it_replaces) {
  static unsigned char bytes[PAGES * PAGE_BYTES];

  memset(bytes, 0x5a, sizeof bytes);
  struct cost events = cost_of(as_events, bytes), blob = cost_of(as_blob, bytes);
  cr_assert_lt(blob.ns, events.ns, "%lu ns, %lu ns", (unsigned long)blob.ns,
               (unsigned long)events.ns);
  cr_assert_lt(blob.bytes, events.bytes, "%zu bytes, %zu bytes", blob.bytes, events.bytes);
}

/* F15: a generation whose end is requested in the middle of a hold ends after the hold. */
static void *ask_for_ends(void *arg) {
  (void)arg;
  ta_emit_sync(-1);
  return NULL;
}

Test(emit_experiments, hold_the_generation_for_what_belongs_together) {
  static const char bytes[50000] = { 1 };
  pthread_t other;

  begin(26);
  ta_hold_begin();
  pthread_create(&other, NULL, ask_for_ends, NULL);
  for (int i = 0; i < 3; i++) ta_experiment_write(cache, ta_name_of("types"), bytes, sizeof bytes);
  ta_hold_begin();
  ta_experiment_write(cache, 0, "bare", 4);
  ta_hold_end();
  ta_experiment_emit(event[TICK], 0, 0, 0, 0);
  ta_hold_end();
  pthread_join(other, NULL);
  struct reported reported = end();
  cr_assert_eq(reported.tables, 3 * sizeof bytes);
  cr_assert_eq(reported.count[TICK], 1);
}

static uint64_t misused(void) {
  struct ta_emit_status status = { .size = sizeof status };

  ta_emit_status(&status);
  return status.misused;
}

/* F1: what the guide promises of logs and experiments. A log needs no declaration. An experiment
 * takes less room if there is much to record, and can be emitted while no goroutine runs. */
enum { READINGS = 2000 };

static void log_readings(const unsigned char *bytes) {
  char text[64];

  (void)bytes;
  for (int i = 0; i < READINGS; i++) {
    snprintf(text, sizeof text, "page %d", i);
    ta_log(0, ta_name_of("read"), text);
  }
}

static void emit_readings(const unsigned char *bytes) {
  (void)bytes;
  for (uint64_t i = 0; i < READINGS; i++)
    ta_experiment_emit(event[HIT], ta_name_of("read"), i, 0, 0);
}

Test(emit_experiments, take_less_room_than_logs) {
  size_t logs = cost_of(log_readings, NULL).bytes, own = cost_of(emit_readings, NULL).bytes;

  cr_assert_gt(own, 2 * READINGS, "an event is an event");
  cr_assert_lt(own, logs / 2, "%zu bytes, of logs %zu", own, logs);
}

Test(emit_experiments, stand_where_a_log_cannot) {
  ta_sequence order = { { 0 } };

  begin(26);
  ta_log(0, ta_name_of("read"), "no declaration");
  cr_assert_eq(misused(), 0);
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_log(0, ta_name_of("read"), "no goroutine runs");
  ta_experiment_emit(event[EVICT], 1, TA_SEQUENCE(&order), 0, 0);
  ta_wait_end();
  cr_assert_eq(misused(), 1, "the log was left out, and nothing else");
  cr_assert_eq(emit_end(&emitted), 0);
  struct reported reported = read_trace(emitted.trace[0].bytes, emitted.trace[0].n);
  cr_assert_eq(reported.count[EVICT], 1);
  emit_free(&emitted);
}

Test(emit_experiments, that_make_no_sense_are_left_out_and_counted) {
  begin(26);
  ta_experiment_emit(event[TICK], 0, 0, 0, 0);
  ta_wait_begin(TA_WAIT_POLL);
  ta_experiment_emit(event[TICK], 0, 0, 0, 0); /* misuse: the event needs a running goroutine */
  cr_assert_eq(misused(), 1);
  ta_wait_end();
  ta_hold_begin();
  ta_heap_alloc(1); /* misuse: not an event of an experiment */
  cr_assert_eq(misused(), 2);
  ta_hold_end();
  ta_hold_end();
  ta_experiment_write(200, 0, "x", 1);
  cr_assert_eq(misused(), 3);
  ta_experiment_write(cache, ta_name_of("no name"), "x", 1);
  cr_assert_eq(misused(), 4);
  ta_emit_blob(event[TICK], ta_name_of("b"), "x", 1, 0, 0, 0, 0);
  cr_assert_eq(misused(), 5);
  ta_experiment_emit(0, 0, 0, 0, 0);
  ta_experiment_emit(255, 0, 0, 0, 0);
  cr_assert_eq(misused(), 5, "no event is none");
  cr_assert_eq(emit_end(&emitted), 0);
  cr_assert_eq(read_trace(emitted.trace[0].bytes, emitted.trace[0].n).count[TICK], 1);
  emit_free(&emitted);
}

Test(emit_experiments, are_not_told_before_version_23) {
  begin(22);
  ta_region_begin(ta_name_of("r"), 0);
  ta_experiment_emit(event[TICK], 0, 0, 0, 0);
  ta_emit_blob(event[DUMP], ta_name_of("b"), "x", 1, 0, 0, 0, 0);
  ta_experiment_write(cache, 0, "x", 1);
  struct reported reported = end();
  cr_assert_eq(reported.count[TICK] + reported.count[DUMP], 0);
}

Test(emit_experiments, keep_their_numbers) {
  ta_event again[EVENTS], other[1];
  ta_experiment same;

  cr_assert_eq(ta_experiment_register(spec, &cache, event, EVENTS), 0);
  cr_assert_eq(ta_experiment_register("experiment Other\nevent Tick\n", NULL, other, 1), 0);
  cr_assert_eq(ta_experiment_register(spec, &same, again, EVENTS), 0);
  cr_assert_eq(same, cache);
  cr_assert_arr_eq(again, event, sizeof event);
  cr_assert_eq(other[0], event[TICK] + 1);
}

Test(emit_experiments, say_what_is_wrong_with_a_spec) {
  static const struct {
    const char *spec;
    unsigned n;
    const char *reason;
  } bad[] = {
    { "experiment A\nevent B a b c d e\n", 1, "line 2: event B has more than 4" },
    { "experiment A\nevent B\n", 2, "n is not the spec's number" },
    { "experiment A\nexperiment B\n", 0, "one line that begins with experiment" },
    { "experiment Cache\nevent Hit\n", 1, "registered with other events" },
    { "experiment Cache\nevent Hit key_string\nevent Evict\nevent Dump\nevent Tick\n", 4,
      "already declared with a different layout" },
  };
  ta_event events[EVENTS];

  cr_assert_eq(ta_experiment_register(spec, NULL, events, EVENTS), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_expect_eq(ta_experiment_register(bad[i].spec, NULL, events, bad[i].n), TA_E_CONFIG);
    cr_expect_neq(strstr(ta_strerror(TA_E_CONFIG), bad[i].reason), NULL, "%s",
                  ta_strerror(TA_E_CONFIG));
  }
}

/* Registration is refused at the second event, for lack of a sequence: nothing of the first
 * event remains. */
Test(emit_experiments, that_are_refused_leave_nothing_behind) {
  ta_event events[2], last;
  ta_experiment number, next;
  char text[64];

  for (int i = 0; i < TW_SEQUENCES_MAX; i++) {
    snprintf(text, sizeof text, "experiment S%d\nevent A x x_seq\n", i);
    cr_assert_eq(ta_experiment_register(text, &number, &last, 1), 0);
  }
  for (int i = 0; i < 2 * TW_EXPERIMENTS_MAX; i++) {
    cr_assert_eq(
        ta_experiment_register("experiment Late\nevent A a\nevent B x x_seq\n", NULL, events, 2),
        TA_E_CONFIG);
    cr_assert_neq(strstr(ta_strerror(TA_E_CONFIG), "sequences"), NULL);
  }
  cr_assert_eq(ta_experiment_register("experiment Late\nevent B b\n", &next, events, 1), 0, "%s",
               ta_strerror(TA_E_CONFIG));
  cr_assert_eq(next, number + 1);
  cr_assert_eq(events[0], last + 1);
  cr_assert_eq(emit_begin_version(&emitted, 26), 0);
  ta_experiment_emit(events[0], 0, 0, 0, 0);
  cr_assert_eq(emit_end(&emitted), 0);
  read_trace(emitted.trace[0].bytes, emitted.trace[0].n);
  emit_free(&emitted);
}

Test(emit_experiments, run_out_of_numbers_in_words) {
  ta_event events[8];
  char text[64];
  int error = 0;

  for (int i = 0; i < 40 && error == 0; i++) {
    snprintf(text, sizeof text, "experiment E%d\nevent A\n", i);
    error = ta_experiment_register(text, NULL, events, 1);
  }
  cr_assert_eq(error, TA_E_CONFIG);
  cr_assert_neq(strstr(ta_strerror(TA_E_CONFIG), "taken"), NULL);
  cr_assert_eq(emit_begin_version(&emitted, 26), 0);
  ta_experiment_emit(events[0], 0, 0, 0, 0);
  cr_assert_eq(emit_end(&emitted), 0);
  read_trace(emitted.trace[0].bytes, emitted.trace[0].n);
  emit_free(&emitted);
}

/* J13: the interface has a version of its own, which the library checks. */
Test(emit_experiments, a_program_of_another_version_registers_nothing) {
  static const unsigned others[] = { 0, TA_EXPERIMENTS_ABI + 1, UINT32_MAX };
  ta_event events[EVENTS] = { 0 };
  ta_experiment number = 0;
  char both[100];

  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    cr_assert_eq(ta_experiment_register_abi(others[i], spec, &number, events, EVENTS), TA_E_CONFIG);
    snprintf(both, sizeof both, "version %u of traceexperiment.h, and this library has version %d",
             others[i], TA_EXPERIMENTS_ABI);
    cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), both), "%s", ta_strerror(TA_E_CONFIG));
    cr_assert(number == 0 && events[HIT] == 0);
    ta_experiment_emit(events[HIT], 1, 1, 0, 0);
  }
  cr_assert_eq(ta_experiment_register(spec, &number, events, EVENTS), TA_OK);
  cr_assert_neq(events[HIT], 0);
}

/* The call is also a function, for programs that were compiled before the interface had
 * versions. */
Test(emit_experiments, a_program_of_the_first_version_still_registers) {
  int (*then)(const char *, ta_experiment *, ta_event *, unsigned) = ta_experiment_register;
  ta_event events[EVENTS] = { 0 };

  cr_assert_eq(then(spec, NULL, events, EVENTS), TA_OK);
  cr_assert_neq(events[HIT], 0);
}
