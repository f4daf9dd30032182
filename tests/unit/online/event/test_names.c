/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/event/names.h"

static struct to_name *hold(struct to_names *names, const char *text) {
  struct to_name *name = NULL;

  cr_assert_eq(to__name_hold(names, (struct to_string){ text, strlen(text) }, &name), TB_OK);
  cr_assert(to__name_is(name, (struct to_string){ text, strlen(text) }));
  return name;
}

Test(names, holders_share_a_text_and_a_released_one_comes_back) {
  struct to_names names;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to__names_init(&names, &mem);
  struct to_name *first = hold(&names, "checkout"), *other = hold(&names, "search");
  cr_assert_eq(hold(&names, "checkout"), first);
  to__name_release(&names, first);
  to__name_release(&names, first);
  to__name_release(&names, other);
  cr_assert_eq(names.n_unheld, 2);
  size_t bytes = mem.bytes;
  cr_assert_eq(hold(&names, "checkout"), first, "no new text");
  cr_assert_eq(hold(&names, "search"), other);
  cr_assert_eq(mem.bytes, bytes);
  cr_assert_eq(names.n_unheld, 0);
  to__name_release(&names, first);
  to__name_release(&names, other);
  to__names_fini(&names);
  cr_assert_eq(mem.bytes, 0);
}

/* Each name is different: few of those without a holder are kept. */
Test(names, many_names_without_a_holder_take_little_memory) {
  struct to_names names;
  struct tb_mem mem;
  char text[32];
  size_t most = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to__names_init(&names, &mem);
  struct to_name *held = hold(&names, "held");
  for (int i = 0; i < 100000; i++) {
    (void)snprintf(text, sizeof text, "name %d", i);
    to__name_release(&names, hold(&names, text));
    if (i == 1000) most = mem.bytes;
  }
  cr_assert_leq(mem.bytes, most + 1024);
  cr_assert_eq(names.n_unheld, TO_NAMES_UNHELD);
  cr_assert_eq(hold(&names, "held"), held);
  to__name_release(&names, held);
  to__name_release(&names, held);
  to__names_fini(&names);
  cr_assert_eq(mem.bytes, 0);
}
