/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/event/reasons.h"
#include "online/event/view.h"
#include "wire/spec.h"

Test(view, every_timed_event_has_a_kind_and_every_transition_a_resource) {
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    struct to_event ev = { .type = (uint8_t)type };
    struct to_transition tr;

    if (spec->kind != TW_KIND_TIMED && spec->kind != TW_KIND_EXPERIMENT) continue;
    enum to_event_kind kind = to_event_kind(&ev);
    cr_assert_neq(kind, TO_KIND_BAD, "%s", spec->name);
    if (kind != TO_KIND_TRANSITION) continue;
    to_event_transition(&ev, &tr);
    bool proc = strncmp(spec->name, "Proc", 4) == 0;
    cr_assert_eq(tr.resource, proc ? TO_RESOURCE_PROC : TO_RESOURCE_GOROUTINE, "%s", spec->name);
  }
}

/* I4, H1 */
Test(view, what_the_event_table_says_of_ranges_the_view_says_too) {
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    uint8_t begin = tw_spec((uint8_t)type)->opens;
    struct to_event ev = { .type = (uint8_t)type };
    struct to_event_range range;

    if (begin == TW_EV_NONE) continue;
    cr_assert(to_event_range(&ev, &range), "%s", tw_spec((uint8_t)type)->name);
    cr_assert_eq(to_range_info(range.kind)->begin, begin);
    cr_assert_neq(range.phase, TO_KIND_RANGE_BEGIN);
    cr_assert(to_event_range(&(struct to_event){ .type = begin }, &range));
    cr_assert_eq(to_range_info(range.kind)->begin, begin);
    cr_assert_eq(range.phase, TO_KIND_RANGE_BEGIN);
  }
}

/* H1, I16 */
Test(view, a_system_call_is_a_state_and_a_range) {
  struct to_event begin = { .type = TW_EV_GO_SYSCALL_BEGIN, .m = 1, .p = 2, .g = 3 };
  struct to_event_range range;
  struct to_transition tr;

  to_event_transition(&begin, &tr);
  cr_assert(tr.id == 3 && tr.from == TO_GO_RUNNING && tr.to == TO_GO_SYSCALL);
  cr_assert(to_event_range(&begin, &range));
  cr_assert(range.kind == TO_RANGE_SYSCALL && range.id == 3);
  cr_assert_eq(range.phase, TO_KIND_RANGE_BEGIN);
  for (uint8_t type = TW_EV_GO_SYSCALL_END; type <= TW_EV_GO_SYSCALL_END_BLOCKED; type++) {
    struct to_event end = { .type = type, .m = 1, .p = 2, .g = 3 };
    to_event_transition(&end, &tr);
    cr_assert(tr.id == 3 && tr.from == TO_GO_SYSCALL);
    cr_assert(to_event_range(&end, &range));
    cr_assert(range.kind == TO_RANGE_SYSCALL && range.phase == TO_KIND_RANGE_END);
  }
}

Test(view, a_switch_is_told_as_its_three_steps) {
  struct to_transition tr;

  to_event_transition(&(struct to_event){ .type = TW_EV_GO_SWITCH, .g = 1, .args = { 7 } }, &tr);
  cr_assert(tr.id == 7 && tr.from == TO_GO_WAITING && tr.to == TO_GO_RUNNABLE);
  cr_assert_eq(tr.stack, TO_NO_STACK);
}

Test(view, a_status_says_what_was_known_before) {
  struct to_event ev = { .type = TW_EV_GO_STATUS,
                         .args = { 7, 3, (uint64_t)TO_GO_WAITING << 32 | TW_GO_SYSCALL } };
  struct to_transition tr;

  to_event_transition(&ev, &tr);
  cr_assert_str_eq(to_state_name(tr.resource, tr.from), "Waiting");
  cr_assert_str_eq(to_state_name(tr.resource, tr.to), "Syscall");
}

/* D5 */
Test(view, metrics_go_by_the_names_of_runtime_metrics) {
  static const struct {
    uint8_t type;
    const char *name;
  } metrics[] = { { TW_EV_PROCS_CHANGE, "/sched/gomaxprocs:threads" },
                  { TW_EV_HEAP_ALLOC, "/memory/classes/heap/objects:bytes" },
                  { TW_EV_HEAP_GOAL, "/gc/heap/goal:bytes" } };

  for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
    struct to_event ev = { .type = metrics[i].type };
    cr_assert_eq(to_event_kind(&ev), TO_KIND_METRIC);
    cr_assert_str_eq(to_metric_name(to_event_metric(&ev)), metrics[i].name);
  }
}

/* I4, I6, I7 */
Test(view, the_world_is_stopped_by_a_goroutine_and_garbage_collected_by_nobody) {
  const struct to_range_info *stop = to_range_info(TO_RANGE_STW),
                             *gc = to_range_info(TO_RANGE_GC_MARK);
  struct to_event ev = { .type = TW_EV_STW_BEGIN, .m = 1, .p = 2, .g = 3, .args = { 4, 5 } };
  struct to_event_range range;

  cr_assert(stop->scope == TO_RESOURCE_GOROUTINE && stop->effect == TO_RESOURCE_PROCESS);
  cr_assert_eq(gc->scope, TO_RESOURCE_NONE);
  cr_assert(to_event_range(&ev, &range));
  cr_assert(range.id == 3 && range.text == 4 && range.phase == TO_KIND_RANGE_BEGIN);
  ev.type = TW_EV_GC_BEGIN;
  cr_assert(to_event_range(&ev, &range));
  cr_assert_eq(range.id, 0);
}

/* H6, I15 */
Test(view, a_reason_is_found_by_the_words_of_the_trace_and_shown_in_plainer_ones) {
  enum to_reason network = to_reason_find((struct to_string){ "network", 7 });

  cr_assert_eq(network, TO_REASON_NETWORK);
  cr_assert_str_eq(to_reason_info(network)->display, "I/O wait");
  cr_assert_eq(to_reason_find((struct to_string){ "networks", 8 }), TO_REASON_OTHER);
  cr_assert_eq(to_reason_find((struct to_string){ "", 0 }), TO_REASON_OTHER);
  for (unsigned a = 1; a < TO_REASONS; a++)
    for (unsigned b = a + 1; b < TO_REASONS; b++)
      cr_assert_neq(strcmp(to_reason_info(a)->id, to_reason_info(b)->id), 0, "two are %s",
                    to_reason_info(a)->id);
}

Test(view, a_reason_that_no_table_has_keeps_its_words) {
  struct to_reasons reasons;
  struct tb_mem mem;
  char words[16];
  uint8_t number, again;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_reasons_init(&reasons, &mem);
  cr_assert_eq(to_reasons_number(&reasons, (struct to_string){ "sleep", 5 }, &number), TB_OK);
  cr_assert_eq(number, TO_REASON_SLEEP);
  cr_assert_eq(to_reasons_number(&reasons, (struct to_string){ "coroutine", 9 }, &number), TB_OK);
  cr_assert_eq(to_reasons_number(&reasons, (struct to_string){ "my chan", 7 }, &again), TB_OK);
  cr_assert_neq(number, again);
  cr_assert_str_eq(to_reasons_info(&reasons, number)->text, "coroutine");
  cr_assert_str_eq(to_reasons_info(&reasons, number)->id, "/other/coroutine");
  cr_assert_eq(to_reasons_info(&reasons, again)->wait_class, TO_WAIT_CHAN, "as Go's profiles");
  for (int i = 0; i < TO_REASONS_MAX; i++) {
    struct to_string text = { words, (size_t)snprintf(words, sizeof words, "own %d", i) };
    cr_assert_eq(to_reasons_number(&reasons, text, &again), TB_OK);
    cr_assert_lt(again, TO_REASONS_MAX);
  }
  cr_assert_eq(again, TO_REASON_OTHER, "too many are one");
  cr_assert_eq(to_reasons_number(&reasons, (struct to_string){ "coroutine", 9 }, &again), TB_OK);
  cr_assert_eq(again, number);
  to_reasons_fini(&reasons);
  cr_assert_eq(mem.bytes, 0);
}

/* I21, I15, I20: numbers and words that other programs store and compare. New ones are added at
 * the end. */
Test(view, states_and_canonical_ids_are_frozen) {
  static const char *const go[] = { "Undetermined", "NotExist", "Runnable",
                                    "Running",      "Waiting",  "Syscall" };
  static const char *const proc[] = { "Undetermined", "NotExist", "Running", "Idle" };
  static const char *const ranges[] = { "/stw",     "/gc/mark",    "/gc/sweep", "/gc/mark-assist",
                                        "/syscall", "/user/region" };
  static const char *const reasons[] = {
    "/unspecified",    "/forever",       "/io",        "/chan/select",
    "/sync/cond",      "/sync/lock",     "/chan/send", "/chan/receive",
    "/gc/mark-assist", "/gc/sweeper",    "/system",    "/sched/preempted",
    "/debug/call",     "/gc/end",        "/sleep",     "/gc/weak-to-strong",
    "/synctest",       "/sched/gosched", "/sync/join", "/sync/condition",
    "/io/poll",
  };

  for (unsigned i = 0; i < sizeof go / sizeof go[0]; i++)
    cr_assert_str_eq(to_state_name(TO_RESOURCE_GOROUTINE, (uint8_t)i), go[i]);
  for (unsigned i = 0; i < sizeof proc / sizeof proc[0]; i++)
    cr_assert_str_eq(to_state_name(TO_RESOURCE_PROC, (uint8_t)i), proc[i]);
  cr_assert_geq(TO_RANGES, sizeof ranges / sizeof ranges[0]);
  for (unsigned i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
    cr_assert_str_eq(to_range_info((enum to_range_kind)i)->id, ranges[i]);
  cr_assert_eq(TO_REASONS, 1 + sizeof reasons / sizeof reasons[0]);
  for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
    cr_assert_str_eq(to_reason_info((enum to_reason)(i + 1))->id, reasons[i]);
}

/* H6, I14: each reason and range says since which Go version it exists, and what it means. */
Test(view, every_reason_and_range_says_what_it_is_and_since_when) {
  for (unsigned i = TO_REASON_OTHER + 1; i < TO_REASONS; i++) {
    const struct to_reason_info *info = to_reason_info((enum to_reason)i);
    bool is_gos = i < TO_REASON_JOIN;
    cr_assert(is_gos ? info->since >= 22 && info->since < 40 : info->since == 0, "%s", info->text);
    cr_assert(info->text[0] != 0 && info->display[0] != 0 && info->about[0] != 0 &&
              info->id[0] == '/');
  }
  for (unsigned i = 0; i < TO_RANGES; i++) {
    const struct to_range_info *info = to_range_info((enum to_range_kind)i);
    cr_assert(info->name[0] != 0 && info->about[0] != 0 && info->id[0] == '/');
  }
  cr_assert_eq(to_range_info(TO_RANGE_STW)->effect, TO_RESOURCE_PROCESS, "I4, I6: all stand still");
  cr_assert_eq(to_range_info(TO_RANGE_STW)->scope, TO_RESOURCE_GOROUTINE,
               "for one that asked for it");
  cr_assert_eq(to_range_info(TO_RANGE_GC_MARK)->scope, TO_RESOURCE_NONE, "I7");
}
