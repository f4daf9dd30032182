/* SPDX-License-Identifier: Apache-2.0 */
/* I1, I2, I3, I22: what is known of a trace before it is read. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/trace/survey.h"
#include "support/order_text.h"
#include "support/seeds.h"
#include "support/stored.h"
#include "support/trace_text.h"
#include "wire/spec.h"

static tb_rc survey(const void *bytes, size_t n, size_t trace_bytes, struct tb_diag *diag,
                    struct to_survey *out) {
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(diag);
  tb_rc rc = to_survey(bytes, n, trace_bytes, &mem, diag, out);
  cr_assert_eq(mem.bytes, 0);
  return rc;
}

/* Counts the events that the reader delivers, without the events that the reader adds: Syncs,
 * and two for each coroutine switch. */
static uint64_t standing(const struct tt_run *run) {
  uint64_t n = 0, switches = 0;

  for (size_t i = 0; i < run->count; i++) {
    uint8_t type = run->events[i].type;
    n += type != TW_EV_SYNC;
    switches += type == TW_EV_GO_SWITCH || type == TW_EV_GO_SWITCH_DESTROY;
  }
  return n - 2 * switches;
}

Test(survey, counts_what_stands_in_whole_traces_of_each_version) {
  struct tt_pack seeds = tt_seeds_load();
  unsigned versions = 0;

  for (size_t i = 0; i < seeds.n; i++) {
    struct to_survey look;
    struct tb_diag diag;
    struct tt_run run = { 0 };
    size_t n = seeds.input[i].len;

    tt_order_bytes(&run, seeds.input[i].data, n);
    TT_OK(run);
    cr_assert_eq(survey(seeds.input[i].data, n, n, &diag, &look), TB_OK, "%s", diag.text);
    cr_assert(look.exact);
    /* The end of a C thread's goroutine may be two events. */
    cr_assert(look.events <= standing(&run) && look.events + 20 >= standing(&run),
              "seed %zu: %lu, %lu", i, (unsigned long)look.events, (unsigned long)standing(&run));
    cr_assert_eq(look.generations, run.generations);
    cr_assert(look.starts && look.start_ns <= run.events[0].time);
    cr_assert(look.has & TO_HAS_THREADS);
    cr_assert_eq((look.has & TO_HAS_CLOCK) != 0, look.version >= 25);
    cr_assert_eq((look.has & TO_HAS_END_MARKS) != 0, look.version >= 26);
    cr_assert_eq(look.start_wall_ns != 0, look.version >= 25);
    versions |= 1u << look.version;
    tt_run_fini(&run);
  }
  cr_assert_eq(versions, 1u << 22 | 1u << 23 | 1u << 25 | 1u << 26);
  tt_pack_free(&seeds);
}

Test(survey, says_what_an_analysis_may_hope_for) {
  struct tt_pack seeds = tt_seeds_load();
  struct to_survey look;
  struct tb_diag diag;
  enum { ALLOC_FREE = 13, LABELS = 15, CHAN = 0 }; /* places in the table of seeds.sh */

  cr_assert_eq(survey(seeds.input[ALLOC_FREE].data, seeds.input[ALLOC_FREE].len,
                      seeds.input[ALLOC_FREE].len, &diag, &look),
               TB_OK);
  cr_assert(look.has & TO_HAS_EXPERIMENTS);
  cr_assert_eq(
      survey(seeds.input[CHAN].data, seeds.input[CHAN].len, seeds.input[CHAN].len, &diag, &look),
      TB_OK);
  cr_assert_eq(look.has, TO_HAS_THREADS);
  tt_pack_free(&seeds);
}

/* The wall clock and the trace clock were read at the same moment. So the time from the trace's start to that moment is
 * subtracted. */
Test(survey, the_start_is_the_earliest_batch_on_both_clocks) {
  static const char text[] =
      "Trace Go1.25\n"
      "EventBatch gen=1 m=18446744073709551615 time=5000\n"
      "Sync\nFrequency freq=1000000000\nClockSnapshot dt=100 mono=7 sec=3 nsec=500\n"
      "EventBatch gen=1 m=1 time=4000\nProcStatus dt=1 p=1 pstatus=1\n"
      "EventBatch gen=1 m=0 time=3000\nProcStatus dt=1 p=0 pstatus=1\n"
      "EventBatch gen=1 m=0 time=3500\nCPUSamples\nCPUSample time=3600 m=0 p=0 g=0 stack=0\n"
      "EventBatch gen=2 m=0 time=1000\nProcStatus dt=1 p=0 pstatus=1\n";
  struct to_survey look;
  struct tb_diag diag;
  struct tb_buf bytes;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bytes, &mem);
  tb_diag_clear(&diag);
  cr_assert_eq(tt_text_to_bytes(text, &mem, &bytes, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(survey(bytes.data, bytes.len, bytes.len, &diag, &look), TB_OK, "%s", diag.text);
  cr_assert_eq(look.start_ns, 3000);
  cr_assert_eq(look.start_wall_ns, 3000000500u - (5100 - 3000));
  cr_assert(look.has & TO_HAS_SAMPLES);
  tb_buf_fini(&bytes);
}

static unsigned estimated;

static void estimate(const struct tt_stored *trace) {
  struct to_survey all, some;
  struct tb_diag diag;

  if (trace->len < 200000) return; /* so long that half of it holds several whole batches */
  cr_assert_eq(survey(trace->bytes, trace->len, trace->len, &diag, &all), TB_OK);
  cr_assert_eq(survey(trace->bytes, trace->len / 2, trace->len, &diag, &some), TB_OK);
  cr_assert(all.exact && !some.exact);
  cr_assert(some.events > all.events / 3 && some.events < all.events * 3, "%s: %lu of %lu",
            trace->path, (unsigned long)some.events, (unsigned long)all.events);
  estimated++;
}

Test(survey, a_part_gives_an_estimate_of_the_whole) {
  tt_each_stored("tests/data", SIZE_MAX, estimate);
  cr_assert_gt(estimated, 0);
}

Test(survey, what_is_no_trace_is_refused_and_a_fault_ends_the_look) {
  struct to_survey look;
  struct tb_diag diag;
  char broken[] = "go 1.26 trace\0\0\0\x63rest";

  cr_assert_eq(survey("", 0, 0, &diag, &look), TB_BROKEN);
  cr_assert_eq(survey("go 1.2", 6, 6, &diag, &look), TB_BROKEN);
  cr_assert_eq(survey("go 1.21 trace\0\0\0", 16, 16, &diag, &look), TB_UNSUPPORTED);
  cr_assert_not_null(strstr(diag.text, "1.21"), "%s", diag.text);
  cr_assert_eq(survey(broken, sizeof broken - 1, sizeof broken - 1, &diag, &look), TB_OK);
  cr_assert(look.version == 26 && look.events == 0 && !look.exact && !look.starts);
}

Test(survey, a_fault_needs_no_diag) {
  struct to_survey look;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_survey("", 0, 0, &mem, NULL, &look), TB_BROKEN);
  cr_assert_eq(to_survey("hello, this is no trace", 23, 23, &mem, NULL, &look), TB_BROKEN);
}
