/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the event of lttng_loop.c in the form of LTTng-UST, which includes this header more than
 * once. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tracecollect_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_point.h"

#if !defined(TB_LTTNG_POINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TB_LTTNG_POINT_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(tracecollect_bench, two_numbers,
                           LTTNG_UST_TP_ARGS(uint64_t, a, uint32_t, b),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, a, a)
                                                   lttng_ust_field_integer(uint32_t, b, b)))

#endif

#include <lttng/tracepoint-event.h>
