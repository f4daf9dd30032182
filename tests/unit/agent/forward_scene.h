/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of a forwarded stream: a scripted collector, its certificates, and a stream to it. The functions assert
 * what must hold in every test. */
#ifndef TT_UNIT_FORWARD_SCENE_H
#define TT_UNIT_FORWARD_SCENE_H

#include "tests/support/certs.h"
#include "tests/support/patience.h"
#include "tests/support/scripted_collector.h"
#include "tests/support/stream.h"
#include "traceagent.h"

struct scene {
  char dir[64]; /* folder of the certificates */
  struct tt_collector *collector;
  ta_forward *f;
};

struct scene scene_begin(struct tt_collector_rules rules, uint64_t spool_bytes);
void scene_end(struct scene *s); /* closes the stream; expects no breach */
ta_forward *dial(const struct scene *s, uint64_t spool_bytes);
void remove_certs(const char *dir);

struct tt_collector_seen seen_by(struct scene *s);
struct ta_forward_status status_of(ta_forward *f);
void write_all(ta_forward *f, const struct tt_stream *t, size_t chunk);
void expect_trace(struct scene *s, const struct tt_stream *t);

/* Polls the status until fits() accepts it; false after TT_PATIENCE_MS. */
bool until(ta_forward *f, bool (*fits)(const struct ta_forward_status *, const char *),
           const char *arg);
bool error_says(const struct ta_forward_status *status, const char *text);

/* For tt_collector_wait(). */
bool has_records(const struct tt_collector_seen *seen, uint64_t n);
bool has_connections(const struct tt_collector_seen *seen, uint64_t n);

#endif
