/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes what the analysis finds in one stream as notes of the feed.
 *
 *   begin ──> { events, watch's spans } ──> end ──> reports          archived, lost: whenever the store reports it
 *
 * Does next to nothing without a subscriber, except that alerts are counted.
 *
 * Memory    48 KiB of packed events of each kind, the last packed stacks, and the message being built.
 * Threads   the stream's loop.
 * Errors    none: a message that cannot be allocated or queued shows as a gap in its topic's sequence.
 */
#ifndef TC_ANALYSIS_FEED_ENCODER_H
#define TC_ANALYSIS_FEED_ENCODER_H

#include "collector/feed/publisher.h"
#include "collector/findings/findings.h"
#include "collector/model/messages.h"
#include "online/analysis/analysis.h"
#include "trigger/watch.h"

/* A span that took longer than a threshold of alert.*. All is lent. */
struct tc_exceeded {
  const char *kind, *cause;         /* the finding that it becomes */
  const struct to_callstack *stack; /* NULL: not kept */
  to_ns begin, end;
  bool is_known; /* it was reported before, while it was open */
};

/* Texts of its finding, which the caller writes. */
struct tc_exceeded_text {
  char words[TC_FINDING_WORDS_BYTES], why[TC_WHY_BYTES];
};

struct tc_feed_encoder_env {
  struct tc_feed *feed;
  unsigned port;
  const struct tc_config *config;
  struct tc_metrics *metrics;
  /* Called when a threshold of alert.* was passed and its built-in rule fires. May be NULL. */
  void (*passed)(void *self, const char *rule, const char *words, uint64_t gen, to_ns at);
  /* Called for each span that exceeds a threshold. Returns where to describe it, or NULL. May be NULL. */
  struct tc_exceeded_text *(*exceeded)(void *self, const struct tc_exceeded *span);
  void *self;
};

struct tc_feed_encoder;

/* said: any message of the store about the stream; its names are copied. */
TB_MUST tb_rc tc_feed_encoder_new(const struct tc_feed_encoder_env *env,
                                  const struct tc_reply *said, struct tc_feed_encoder **out);
void tc_feed_encoder_free(struct tc_feed_encoder *source); /* NULL is fine */

/* Publishes the spans and events of these analyses from now on. Call it again whenever they are made anew. */
void tc_feed_encoder_watch(struct tc_feed_encoder *source, struct to_analyses *analyses);
/* Call when the analyses are freed. */
void tc_feed_encoder_unwatch(struct tc_feed_encoder *source);

/* Ordering of this stored generation is about to begin. */
void tc_feed_encoder_begin(struct tc_feed_encoder *source, const struct tc_reply *stored,
                           bool new_epoch);
/* Messages from now on carry go_version: the trace has the format of Go 1.N. */
void tc_feed_encoder_version(struct tc_feed_encoder *source, unsigned go_version);
/* Call after each slice of events, once the analyses and their watch have processed it. */
void tc_feed_encoder_slice(struct tc_feed_encoder *source);
/* Call when the loop turns to other work. Publishes events that have waited for feed.bundle_wait, and checks for a
 * subscriber. */
void tc_feed_encoder_pause(struct tc_feed_encoder *source, uint64_t mono_ns);
/* Sends alerts for calls that have been open too long. */
void tc_feed_encoder_overdue(struct tc_feed_encoder *source);
/* Writes what explains it (collector/findings/part.h). now: the end of its generation. */
void tc_finding_why(const struct to_finding *finding, to_ns now, char out[TC_WHY_BYTES]);
/* Sends an alert for a finding of a generation whose last event was at now. id: the kept finding's; 0: none. Returns false if nobody
 * subscribes. */
bool tc_feed_encoder_finding(struct tc_feed_encoder *source, const struct to_finding *finding,
                             uint64_t id, to_ns now);
/* Sends an alert for a rule that fired after the generation of this verdict. */
void tc_feed_encoder_fired(struct tc_feed_encoder *source, const struct tr_fired *fired,
                           const struct tc_verdict *verdict);
void tc_feed_encoder_end(struct tc_feed_encoder *source, const struct tc_verdict *verdict);

/* Returns a bit for each window whose reports are to be published now; 0 without a subscriber. */
unsigned tc_feed_encoder_report_windows(struct tc_feed_encoder *source);
/* bytes: from tp_report_pack() of the same kind and window. A report equal to the last one is published again only after 10
 * s. */
void tc_feed_encoder_report(struct tc_feed_encoder *source, enum to_analysis_kind kind,
                            enum to_window window, uint64_t broken_generations, const void *bytes,
                            size_t len, uint64_t mono_ns);

/* reply: TC_REPLY_ARCHIVED or TC_REPLY_LOST. */
void tc_feed_encoder_reported(struct tc_feed_encoder *source, const struct tc_reply *reply);

#endif
