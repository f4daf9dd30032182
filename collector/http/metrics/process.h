/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the collector's process (process_*, lib/config/metrics_process.def) and tracecollect_build_info, as Prometheus
 * text.
 *
 * Sources   getrusage(2), /proc/self/stat, /proc/self/fd. A figure that cannot be read is left out.
 * Threads   any; reads a folder of /proc, so call it on a worker.
 * Errors    TB_NOMEM.
 */
#ifndef TC_HTTP_METRICS_PROCESS_H
#define TC_HTTP_METRICS_PROCESS_H

#include "base/buf.h"

TB_MUST tb_rc tc_metrics_process(struct tb_buf *out, const char *version);

#endif
