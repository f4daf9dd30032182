/* SPDX-License-Identifier: Apache-2.0 */
/* Times as users write them: RFC 3339 (2026-03-01T12:00:00Z, with or without fraction and zone; without a zone: local
 * time), a date alone (local midnight), @UNIX (with or without fraction), now, and -5m (that long before now). Spans:
 * 10ms, 30s, 5m, 24h, 7d, 1h30m; a unit is required.
 *
 * Time      wall clock, nanoseconds since 1970.
 * Errors    TB_BROKEN with the reason in diag.
 */
#ifndef TC_CONFIG_TIMES_H
#define TC_CONFIG_TIMES_H

#include "base/result.h"

TB_MUST tb_rc tc_time_parse(const char *text, uint64_t now_wall_ns, struct tb_diag *diag,
                            uint64_t *out_wall_ns);
TB_MUST tb_rc tc_span_parse(const char *text, struct tb_diag *diag, uint64_t *out_ns);

/* "2026-03-01T12:00:00.123Z"; "-" for 0. */
enum { TC_TIME_BYTES = 40 };
void tc_time_format(uint64_t wall_ns, char out[TC_TIME_BYTES]);

#endif
