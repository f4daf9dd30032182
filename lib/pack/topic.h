/* SPDX-License-Identifier: Apache-2.0 */
/* Names of topics: SERVICE/INSTANCE/KIND[/DETAIL]. A slot is the KIND[/DETAIL] of a topic. Bytes of a name other than
 * [A-Za-z0-9._:-] are written as %XX, so that a slash always separates levels. */
#ifndef TC_FEED_TOPIC_H
#define TC_FEED_TOPIC_H

#include "online/analysis/analysis.h"
#include "proto/names.h"

enum tc_feed_event_kind {
#define TC_FEED_EVENT(ID, name, about) TC_FEED_EVENT_##ID,
#include "pack/feed_events.def"
#undef TC_FEED_EVENT
  TC_FEED_EVENT_KINDS
};

enum tc_feed_slot {
  TC_FEED_GENERATION,
  TC_FEED_ALERT,
  TC_FEED_EVENTS,                                         /* plus enum tc_feed_event_kind */
  TC_FEED_REPORTS = TC_FEED_EVENTS + TC_FEED_EVENT_KINDS, /* plus enum to_analysis_kind */
  TC_FEED_SLOTS = TC_FEED_REPORTS + TO_ANALYSIS_KINDS,
};

enum { TC_FEED_TOPIC_BYTES = 2 * 3 * TC_NAME_MAX + 64 };

const char *tc_feed_slot_name(enum tc_feed_slot slot); /* such as "report/syscall" */

/* Returns the length without NUL. */
size_t tc_feed_topic(char out[TC_FEED_TOPIC_BYTES], const char *service, const char *instance,
                     enum tc_feed_slot slot);

/* Parse comma-separated lists into bits: feed.events by enum tc_feed_event_kind, feed.windows by enum to_window,
 * alert.findings by enum to_finding_kind. TB_BROKEN: an unknown name, which is in diag. */
TB_MUST tb_rc tc_feed_event_list(const char *list, struct tb_diag *diag, unsigned *out_bits);
TB_MUST tb_rc tc_feed_window_list(const char *list, struct tb_diag *diag, unsigned *out_bits);
TB_MUST tb_rc tc_feed_finding_list(const char *list, struct tb_diag *diag, unsigned *out_bits);

#endif
