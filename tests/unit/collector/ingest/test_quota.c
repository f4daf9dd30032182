/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "collector/ingest/quota.h"
#include "collector/ingest/record_pool.h"

Test(quota, connections_of_one_name_are_counted_and_given_back) {
  struct tc_quotas *quotas;
  struct tc_quota *a, *b, *other, *ignored;

  cr_assert_eq(tc_quotas_new(&quotas), TB_OK);
  cr_assert_eq(tc_quotas_enter(quotas, "tracecollect:agent/a", 2, &a), TB_OK);
  cr_assert_eq(tc_quotas_enter(quotas, "tracecollect:agent/a", 2, &b), TB_OK);
  cr_expect_eq(a, b);
  cr_expect_eq(tc_quotas_enter(quotas, "tracecollect:agent/a", 2, &ignored), TB_BUDGET);
  cr_expect_eq(tc_quotas_enter(quotas, "tracecollect:agent/b", 2, &other), TB_OK);
  cr_expect_neq(other, a);
  tc_quotas_leave(quotas, a);
  cr_expect_eq(tc_quotas_enter(quotas, "tracecollect:agent/a", 2, &a), TB_OK);
  tc_quotas_leave(quotas, a);
  tc_quotas_leave(quotas, b);
  tc_quotas_leave(quotas, other);
  tc_quotas_free(quotas);
}

Test(quota, one_that_has_gone_is_kept_as_long_as_its_records_are) {
  struct tc_quotas *quotas;
  struct tc_quota *first, *second;

  cr_assert_eq(tc_quotas_new(&quotas), TB_OK);
  cr_assert_eq(tc_quotas_enter(quotas, "a", 1, &first), TB_OK);
  struct tc_record *record = tc_record_new(1000, first);
  cr_expect_eq(atomic_load(&first->record_bytes), sizeof *record + 1000);
  tc_quotas_leave(quotas, first);
  cr_assert_eq(tc_quotas_enter(quotas, "a", 1, &second), TB_OK);
  cr_expect_eq(first, second, "its bytes still count");
  tc_record_free(record);
  cr_expect_eq(atomic_load(&first->record_bytes), 0);
  tc_quotas_leave(quotas, second);
  tc_quotas_free(quotas);
}

static void *come_and_go(void *arg) {
  struct tc_quotas *quotas = arg;
  struct tc_quota *quota;
  char name[16];

  for (unsigned i = 0; i < 5000; i++) {
    snprintf(name, sizeof name, "name-%u", i % 7);
    cr_assert_eq(tc_quotas_enter(quotas, name, 1000, &quota), TB_OK);
    struct tc_record *record = tc_record_new(40, quota);
    tc_quotas_leave(quotas, quota);
    tc_record_free(record);
  }
  return NULL;
}

Test(quota, loops_come_and_go_at_once) {
  struct tc_quotas *quotas;
  pthread_t threads[3];

  cr_assert_eq(tc_quotas_new(&quotas), TB_OK);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, come_and_go, quotas);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  cr_expect_eq(tc_records_held_bytes(), 0);
  tc_quotas_free(quotas);
}

Test(quota, coming_back_does_not_reset_a_rate) {
  struct tc_quotas *quotas;
  struct tc_quota *first, *other, *again;

  cr_assert_eq(tc_quotas_new(&quotas), TB_OK);
  cr_assert_eq(tc_quotas_enter(quotas, "a", 1, &first), TB_OK);
  /* At a time one hour later the stream counts as idle. No machine runs this test so slowly. */
  uint64_t later = tc_mono_ns() + UINT64_C(3600000000000);
  while (tc_rate_limit_take(&first->pace, 1, later)) {
  }
  tc_quotas_leave(quotas, first);
  for (unsigned i = 0; i < 5000; i++) { /* names in every bucket, so that idle ones are dropped */
    char name[16];
    snprintf(name, sizeof name, "other-%u", i);
    cr_assert_eq(tc_quotas_enter(quotas, name, 1, &other), TB_OK);
    tc_quotas_leave(quotas, other);
  }
  cr_assert_eq(tc_quotas_enter(quotas, "a", 1, &again), TB_OK);
  cr_expect_not(tc_rate_limit_is_idle(&again->pace, tc_mono_ns()));
  tc_quotas_leave(quotas, again);
  tc_quotas_free(quotas);
}

Test(quota, a_pace_lets_a_burst_through_and_then_its_rate) {
  struct tc_rate_limit pace = { 0 };
  uint64_t now = UINT64_C(1000000000000);
  unsigned taken = 0;

  while (tc_rate_limit_take(&pace, 10, now)) taken++;
  cr_expect_eq(taken, 10);
  cr_expect_not(tc_rate_limit_take(&pace, 10, now + 99999999));
  cr_expect(tc_rate_limit_take(&pace, 10, now + 100000000));
  cr_expect_not(tc_rate_limit_take(&pace, 10, now + 100000000));
  tc_rate_limit_return(&pace, 10);
  cr_expect(tc_rate_limit_take(&pace, 10, now + 100000000));
  cr_expect_not(tc_rate_limit_is_idle(&pace, now + 1099999999));
  cr_expect(tc_rate_limit_is_idle(&pace, now + 1100000000));
  cr_expect(tc_rate_limit_take(&pace, 0, now), "no limit");
}

Test(quota, tenants_with_jobs_are_counted_once_each) {
  struct tc_quota a = { 0 }, b = { 0 };
  uint64_t before = tc_jobs_done();

  tc_job_begun(&a);
  tc_job_begun(&a);
  tc_job_begun(&b);
  cr_expect_eq(tc_quotas_with_jobs(), 2);
  tc_job_done(&a);
  cr_expect_eq(tc_quotas_with_jobs(), 2);
  tc_job_done(&a);
  tc_job_done(&b);
  cr_expect_eq(tc_quotas_with_jobs(), 0);
  cr_expect_eq(tc_jobs_done(), before + 3);
}

Test(quota, jobs_are_paced_by_the_last_quarter_of_a_second) {
  const uint64_t quarter = 250000000, begin = 10 * quarter;
  struct tc_quota a = { 0 };

  cr_expect_eq(tc_jobs_paced(begin), 0);
  for (int i = 0; i < 100; i++) {
    tc_job_begun(&a);
    tc_job_done(&a);
  }
  cr_expect_eq(tc_jobs_paced(begin + quarter - 1), 0, "it has not ended");
  cr_expect_eq(tc_jobs_paced(begin + quarter), 100);
  cr_expect_eq(tc_jobs_paced(begin + 2 * quarter - 1), 100);
  cr_expect_eq(tc_jobs_paced(begin + 2 * quarter), 0);
  for (int i = 0; i < 100; i++) {
    tc_job_begun(&a);
    tc_job_done(&a);
  }
  cr_expect_eq(tc_jobs_paced(begin + 6 * quarter), 25, "of a second a quarter");
  cr_expect_eq(tc_jobs_paced(begin), 25, "a clock that another thread read before");
}
