/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "online/view.h"
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
