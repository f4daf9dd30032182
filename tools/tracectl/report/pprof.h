/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of reports as a profile for `go tool pprof`: gzip over proto/pprof.proto.
 *
 * The profile that `go tool trace -pprof=syscall` writes of the same events: one sample for each stack, with the
 * number of calls that ended ("contentions") and their time in nanoseconds ("delay"). Stacks that a
 * live report did not list are one sample named "(other stacks)". No report gives a profile without
 * samples, which is a valid one.
 *
 * Errors    TB_IO with the reason in diag; TB_NOMEM.
 */
#ifndef TK_REPORT_PPROF_H
#define TK_REPORT_PPROF_H

#include "base/result.h"
#include "proto/report.pb-c.h"

/* path "-" is stdout; a file is replaced. */
TB_MUST tb_rc tk_pprof_write(const char *path, Tracecollect__V1__StreamReport *const *reports,
                             size_t n, struct tb_diag *diag);

#endif
