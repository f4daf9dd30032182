/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "collector/ingest/quota.h"
#include "collector/ingest/record_pool.h"

Test(tenant, connections_of_one_name_are_counted_and_given_back) {
  struct tc_tenants *tenants;
  struct tc_tenant *a, *b, *other, *ignored;

  cr_assert_eq(tc_tenants_new(&tenants), TB_OK);
  cr_assert_eq(tc_tenants_enter(tenants, "tracecollect:agent/a", 2, &a), TB_OK);
  cr_assert_eq(tc_tenants_enter(tenants, "tracecollect:agent/a", 2, &b), TB_OK);
  cr_expect_eq(a, b);
  cr_expect_eq(tc_tenants_enter(tenants, "tracecollect:agent/a", 2, &ignored), TB_BUDGET);
  cr_expect_eq(tc_tenants_enter(tenants, "tracecollect:agent/b", 2, &other), TB_OK);
  cr_expect_neq(other, a);
  tc_tenants_leave(tenants, a);
  cr_expect_eq(tc_tenants_enter(tenants, "tracecollect:agent/a", 2, &a), TB_OK);
  tc_tenants_leave(tenants, a);
  tc_tenants_leave(tenants, b);
  tc_tenants_leave(tenants, other);
  tc_tenants_free(tenants);
}

Test(tenant, one_that_has_gone_is_kept_as_long_as_its_records_are) {
  struct tc_tenants *tenants;
  struct tc_tenant *first, *second;

  cr_assert_eq(tc_tenants_new(&tenants), TB_OK);
  cr_assert_eq(tc_tenants_enter(tenants, "a", 1, &first), TB_OK);
  struct tc_record *record = tc_record_new(1000, first);
  cr_expect_eq(atomic_load(&first->record_bytes), sizeof *record + 1000);
  tc_tenants_leave(tenants, first);
  cr_assert_eq(tc_tenants_enter(tenants, "a", 1, &second), TB_OK);
  cr_expect_eq(first, second, "its bytes still count");
  tc_record_free(record);
  cr_expect_eq(atomic_load(&first->record_bytes), 0);
  tc_tenants_leave(tenants, second);
  tc_tenants_free(tenants);
}

static void *come_and_go(void *arg) {
  struct tc_tenants *tenants = arg;
  struct tc_tenant *tenant;
  char name[16];

  for (unsigned i = 0; i < 5000; i++) {
    snprintf(name, sizeof name, "name-%u", i % 7);
    cr_assert_eq(tc_tenants_enter(tenants, name, 1000, &tenant), TB_OK);
    struct tc_record *record = tc_record_new(40, tenant);
    tc_tenants_leave(tenants, tenant);
    tc_record_free(record);
  }
  return NULL;
}

Test(tenant, loops_come_and_go_at_once) {
  struct tc_tenants *tenants;
  pthread_t threads[3];

  cr_assert_eq(tc_tenants_new(&tenants), TB_OK);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, come_and_go, tenants);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  cr_expect_eq(tc_records_held_bytes(), 0);
  tc_tenants_free(tenants);
}

Test(tenant, coming_back_does_not_reset_a_rate) {
  struct tc_tenants *tenants;
  struct tc_tenant *first, *other, *again;

  cr_assert_eq(tc_tenants_new(&tenants), TB_OK);
  cr_assert_eq(tc_tenants_enter(tenants, "a", 1, &first), TB_OK);
  while (tc_pace_take(&first->pace, 1, tc_mono_ns())) {
  }
  tc_tenants_leave(tenants, first);
  for (unsigned i = 0; i < 5000; i++) { /* names in each bucket: idle ones are given up */
    char name[16];
    snprintf(name, sizeof name, "other-%u", i);
    cr_assert_eq(tc_tenants_enter(tenants, name, 1, &other), TB_OK);
    tc_tenants_leave(tenants, other);
  }
  cr_assert_eq(tc_tenants_enter(tenants, "a", 1, &again), TB_OK);
  cr_expect_not(tc_pace_is_idle(&again->pace, tc_mono_ns()));
  tc_tenants_leave(tenants, again);
  tc_tenants_free(tenants);
}

Test(tenant, a_pace_lets_a_burst_through_and_then_its_rate) {
  struct tc_pace pace = { 0 };
  uint64_t now = UINT64_C(1000000000000);
  unsigned taken = 0;

  while (tc_pace_take(&pace, 10, now)) taken++;
  cr_expect_eq(taken, 10);
  cr_expect_not(tc_pace_take(&pace, 10, now + 99999999));
  cr_expect(tc_pace_take(&pace, 10, now + 100000000));
  cr_expect_not(tc_pace_take(&pace, 10, now + 100000000));
  tc_pace_return(&pace, 10);
  cr_expect(tc_pace_take(&pace, 10, now + 100000000));
  cr_expect_not(tc_pace_is_idle(&pace, now + 1099999999));
  cr_expect(tc_pace_is_idle(&pace, now + 1100000000));
  cr_expect(tc_pace_take(&pace, 0, now), "no limit");
}

Test(tenant, tenants_with_jobs_are_counted_once_each) {
  struct tc_tenant a = { 0 }, b = { 0 };
  uint64_t before = tc_jobs_done();

  tc_job_begun(&a);
  tc_job_begun(&a);
  tc_job_begun(&b);
  cr_expect_eq(tc_tenants_with_jobs(), 2);
  tc_job_done(&a);
  cr_expect_eq(tc_tenants_with_jobs(), 2);
  tc_job_done(&a);
  tc_job_done(&b);
  cr_expect_eq(tc_tenants_with_jobs(), 0);
  cr_expect_eq(tc_jobs_done(), before + 3);
}
