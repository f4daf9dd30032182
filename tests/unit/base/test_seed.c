/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/seed.h"

static bool refused;

/* Replaces the C library's: a sandbox may refuse the call. */
ssize_t getrandom(void *out, size_t n, unsigned flags) {
  if (!refused) return syscall(SYS_getrandom, out, n, flags);
  errno = EPERM;
  return -1;
}

static void check(void) {
  enum { N = 64 };
  uint64_t seeds[N], ones = 0, zeros = 0;

  errno = EDOM;
  for (size_t i = 0; i < N; i++) {
    seeds[i] = tb_seed();
    ones |= seeds[i];
    zeros |= ~seeds[i];
    for (size_t j = 0; j < i; j++) cr_assert_neq(seeds[i], seeds[j]);
  }
  cr_assert_eq(ones & zeros, UINT64_MAX, "no bit is always the same");
  cr_assert_eq(errno, EDOM);
}

Test(seed, every_seed_is_another_one) {
  check();
}

Test(seed, a_sandbox_that_refuses_the_call_gets_seeds_too) {
  refused = true;
  check();
}
