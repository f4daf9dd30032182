/* SPDX-License-Identifier: Apache-2.0 */
/* The use of all connections of one identity together, over all loops: one certificate, or who stole it, must
 * not take everything.
 *
 * Memory    some 200 bytes an identity that has a connection or record bytes in memory; idle entries
 *           are given up as others are looked for.
 * Threads   any. A quota may be used by who is counted in it: between enter and leave, and while bytes
 *           are charged.
 * Errors    TB_BUDGET: the identity has all the connections it may have. TB_NOMEM.
 */
#ifndef TC_INGEST_QUOTA_H
#define TC_INGEST_QUOTA_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/result.h"
#include "collector/base/rate_limit.h"

struct tc_quotas;

struct tc_quota {
  atomic_size_t record_bytes; /* in memory, of records that name this quota */
  atomic_size_t
      jobs; /* of the archive: a generation, a loss or a stream's end is a file to write */
  struct tc_rate_limit pace; /* of its jobs */
};

/* From the job's record in memory until the archive has taken it up. */
void tc_job_begun(struct tc_quota *quota);
void tc_job_done(struct tc_quota *quota);
/* Of the whole process: quotas that have a job, and jobs that were done so far. */
size_t tc_quotas_with_jobs(void);
uint64_t tc_jobs_done(void);
/* How many were done in the quarter of a second that ended last, or in a longer pause before it, taken for a quarter of a second. */
uint64_t tc_jobs_paced(uint64_t now_ns);

TB_MUST tb_rc tc_quotas_new(struct tc_quotas **out);
void tc_quotas_free(struct tc_quotas *quotas); /* none is counted any more; NULL is fine */

TB_MUST tb_rc tc_quotas_enter(struct tc_quotas *quotas, const char *identity,
                              uint64_t connections_max, struct tc_quota **out);
void tc_quotas_leave(struct tc_quotas *quotas, struct tc_quota *quota);

#endif
