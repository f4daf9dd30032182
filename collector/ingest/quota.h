/* SPDX-License-Identifier: Apache-2.0 */
/* The quotas of owners: what all connections of one owner use together, over all loops. One certificate, or whoever stole it,
 * must not use up everything.
 *
 * Memory    about 200 bytes for each owner with a connection or records in memory; idle entries are freed during later
 *           searches.
 * Threads   any. A quota is valid between enter and leave, and while it is charged with bytes.
 * Errors    TB_BUDGET: the owner has its maximum of connections. TB_NOMEM.
 */
#ifndef TC_INGEST_QUOTA_H
#define TC_INGEST_QUOTA_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/result.h"
#include "collector/base/rate_limit.h"

struct tc_quotas;

struct tc_quota {
  atomic_size_t record_bytes; /* of records in memory */
  atomic_size_t jobs;         /* ends of generations or streams, losses: a file each */
  struct tc_rate_limit pace;  /* of the jobs */
};

/* A job lasts from the allocation of its record until the archive has handled and freed it. */
void tc_job_begun(struct tc_quota *quota);
void tc_job_done(struct tc_quota *quota);
/* Return, for the whole process, the number of quotas that have a job, and of jobs done so far. */
size_t tc_quotas_with_jobs(void);
uint64_t tc_jobs_done(void);
/* Returns the number of jobs done per quarter of a second, measured over the last window of at least that length. */
uint64_t tc_jobs_paced(uint64_t now_ns);

TB_MUST tb_rc tc_quotas_new(struct tc_quotas **out);
void tc_quotas_free(struct tc_quotas *quotas); /* no quota may be in use; NULL is fine */

TB_MUST tb_rc tc_quotas_enter(struct tc_quotas *quotas, const char *identity,
                              uint64_t connections_max, struct tc_quota **out);
void tc_quotas_leave(struct tc_quotas *quotas, struct tc_quota *quota);

#endif
