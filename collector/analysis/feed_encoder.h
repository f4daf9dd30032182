/* SPDX-License-Identifier: Apache-2.0 */
/* One stream's voice on the feed: what the understand branch sees of it becomes notes.
 *
 *   begin ──> { events, watch's spans } ──> end ──> reports          archived, lost: whenever the store says so
 *
 * Without a subscriber it does next to nothing; alerts are counted all the same.
 *
 * Memory    48 KiB of packed events of each kind, the last packed stacks, and what it takes to build one.
 * Threads   the stream's loop.
 * Errors    none: a message without memory or room is a gap in its topic's count.
 */
#ifndef TC_ANALYSIS_FEED_ENCODER_H
#define TC_ANALYSIS_FEED_ENCODER_H

#include "collector/feed/publisher.h"
#include "collector/model/messages.h"
#include "online/analysis/analysis.h"
#include "trigger/watch.h"

struct tc_feed_encoder_env {
  struct tc_feed *feed;
  unsigned port;
  const struct tc_config *config;
  struct tc_metrics *metrics;
  /* A threshold of alert.* was passed, and the rule of that key, which is built in, has fired. May be NULL. */
  void (*passed)(void *self, const char *rule, const char *words, uint64_t gen, to_ns at);
  void *self;
};

struct tc_feed_encoder;

/* said: any message of the store about the stream, for its names. */
TB_MUST tb_rc tc_feed_encoder_new(const struct tc_feed_encoder_env *env,
                                  const struct tc_reply *said, struct tc_feed_encoder **out);
void tc_feed_encoder_free(struct tc_feed_encoder *source); /* NULL is fine */

/* Of the analyses' spans and events from here on; whenever they are made again. */
void tc_feed_encoder_watch(struct tc_feed_encoder *source, struct to_analyses *analyses);
/* They are gone. */
void tc_feed_encoder_unwatch(struct tc_feed_encoder *source);

/* The generation of stored is about to be ordered. */
void tc_feed_encoder_begin(struct tc_feed_encoder *source, const struct tc_reply *stored,
                           bool new_epoch);
/* From here on messages say that the trace is in the format of Go 1.N. */
void tc_feed_encoder_version(struct tc_feed_encoder *source, unsigned go_version);
/* After each slice of events that the analyses, and so their watch, have seen. */
void tc_feed_encoder_slice(struct tc_feed_encoder *source);
/* The loop turns to something else; mono_ns: now. Events that have waited for feed.bundle_wait leave, and
 * it looks whether there is a subscriber. */
void tc_feed_encoder_pause(struct tc_feed_encoder *source, uint64_t mono_ns);
/* Alerts for calls that are open too long. */
void tc_feed_encoder_overdue(struct tc_feed_encoder *source);
/* Alerts for what the analyses find at the end of a whole generation, in which last_ns was the last event. */
void tc_feed_encoder_findings(struct tc_feed_encoder *source, to_ns last_ns);
/* An alert for a rule that has fired after the generation of that verdict. */
void tc_feed_encoder_fired(struct tc_feed_encoder *source, const struct tr_fired *fired,
                           const struct tc_verdict *verdict);
void tc_feed_encoder_end(struct tc_feed_encoder *source, const struct tc_verdict *verdict);

/* A bit for each window of which reports are to be published now; 0: there is no subscriber. */
unsigned tc_feed_encoder_report_windows(struct tc_feed_encoder *source);
/* After tp_report_pack() of the same kind and window, which gave the bytes. One that says the same as the last one is published
 * 10 s after that. */
void tc_feed_encoder_report(struct tc_feed_encoder *source, enum to_analysis_kind kind,
                            enum to_window window, uint64_t broken_generations, const void *bytes,
                            size_t len, uint64_t mono_ns);

/* TC_REPLY_ARCHIVED, TC_REPLY_LOST */
void tc_feed_encoder_reported(struct tc_feed_encoder *source, const struct tc_reply *reply);

#endif
