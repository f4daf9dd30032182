/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/limits.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
  COUNT_MIN = 64, /* descriptors, threads */
  SHARE = 4,      /* the memory limit must be at least this many times the spool */
  BESIDE_BYTES = 32 << 20,
};

static uint64_t soft_limit(__rlimit_resource_t which) {
  struct rlimit limit;

  return getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                          : limit.rlim_cur;
}

static tb_rc check(struct tb_diag *diag, const char *name, uint64_t limit, uint64_t least) {
  if (limit >= least) return TB_OK;
  return tb_fail(diag, TB_BUDGET, "%s is %" PRIu64 ", and below %" PRIu64 " the program needs it",
                 name, limit, least);
}

/* RLIMIT_NPROC does not apply to root. */
tb_rc ta_limits_check(uint64_t spool_bytes, struct tb_diag *diag) {
  uint64_t bytes =
      spool_bytes > UINT64_MAX / (2 * SHARE) ? UINT64_MAX : SHARE * spool_bytes + BESIDE_BYTES;

  TB_TRY(check(diag, "RLIMIT_NOFILE", soft_limit(RLIMIT_NOFILE), COUNT_MIN));
  if (geteuid() != 0) TB_TRY(check(diag, "RLIMIT_NPROC", soft_limit(RLIMIT_NPROC), COUNT_MIN));
  TB_TRY(check(diag, "RLIMIT_AS", soft_limit(RLIMIT_AS), bytes));
  return check(diag, "RLIMIT_DATA", soft_limit(RLIMIT_DATA), bytes);
}
