/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the feed_*.c files. */
#ifndef TC_ANALYSIS_FEED_PRIVATE_H
#define TC_ANALYSIS_FEED_PRIVATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "collector/analysis/feed_encoder.h"
#include "collector/trigger/pace.h"
#include "proto/feed.pb-c.h"

/* Messages of one topic that are packed but not yet published. */
struct tc__feed_draft {
  struct tb_buf bytes;
  uint32_t count;
  uint64_t from_wall_ns, until_wall_ns;
  int64_t second; /* of the stream's clock, for which `taken` counts */
  uint64_t taken;
};

struct tc__alert_gate {
  bool opened_once;
  to_ns opened;
  uint64_t suppressed;
  struct tc_pace firings; /* pace of the built-in rule */
};

enum { TC__STACKS_KEPT = 32 };

struct tc__packed_stack {
  bool known;
  uint64_t key, gen; /* gen 0: the stack belongs to the analyses */
  struct tb_buf bytes;
};

/* Last report of a kind and window that subscribers received. */
struct tc__published_report {
  uint64_t mono_ns; /* 0: none */
  uint32_t crc;
};

struct tc_feed_encoder {
  struct tc_feed_encoder_env env;
  struct tc_feed_origin origin;
  char hex[2 * TC_STREAM_BYTES + 1];
  struct tb_mem mem;
  struct tb_arena arena;        /* for the message being packed */
  struct to_analyses *analyses; /* NULL: none at present */
  unsigned event_kinds, windows;
  uint64_t event_types;     /* bits of enum tw_event below 64, for the kinds published */
  bool wanted;              /* there was a subscriber when this slice began */
  bool drafted;             /* there may be events not yet published */
  uint64_t flushed_mono_ns; /* last flush, as seen by tc_feed_encoder_pause() */
  uint64_t gen, from_wall_ns, until_wall_ns; /* of the generation being ordered */
  struct tc__feed_draft events[TC_FEED_EVENT_KINDS];
  struct tc__packed_stack stacks[TC__STACKS_KEPT];
  struct tc__alert_gate syscall_gate, stw_gate, task_gate;
  bool published_any;
  struct tc__published_report published[TO_WINDOWS][TO_ANALYSIS_KINDS];
};

/* Writes the tag and length of a length-delimited field, at most TC__FIELD_BYTES_MAX bytes. */
enum { TC__FIELD_BYTES_MAX = 16 };
size_t tc__put_field(unsigned char *out, unsigned number, size_t len);

/* Publishes one message with one list. Times of 0 are unknown. */
void tc__source_publish(struct tc_feed_encoder *source, enum tc_feed_slot slot, uint64_t gen,
                        uint64_t from_wall_ns, uint64_t until_wall_ns,
                        const Tracecollect__V1__FeedMessage *message);
/* Writes the line "tracectl fetch ..." for these generations. TB_NOMEM. */
TB_MUST tb_rc tc__source_fetch_line(struct tc_feed_encoder *source, uint64_t first_gen,
                                    uint64_t last_gen, char **out);

/* feed_events.c */
uint64_t tc__event_types(unsigned kinds);
void tc__publish_event(struct tc_feed_encoder *source, const struct to_generation *gen,
                       const struct to_event *ev);
void tc__span_event(struct tc_feed_encoder *source, const struct to_watched *span);
void tc__flush_events(struct tc_feed_encoder *source);

/* feed_stacks.c: the buffer stays valid until the next call. */
TB_MUST tb_rc tc__pack_stack(struct tc_feed_encoder *source, const struct to_callstack *stack,
                             const struct tb_buf **out);
TB_MUST tb_rc tc__pack_stack_of(struct tc_feed_encoder *source, const struct to_generation *gen,
                                uint64_t id, const struct tb_buf **out);
void tc__forget_stacks(struct tc_feed_encoder *source); /* call before the analyses are freed */

/* feed_alerts.c */
void tc__span_alert(struct tc_feed_encoder *source, const struct to_watched *span);
void tc__task_alert(struct tc_feed_encoder *source, const struct to_watched_task *task);
/* Publishes the alert with its stack, which may be NULL. text: a line for people that does not name the stream. why: what explains
 * it (collector/findings/part.h), or "". until: end of the alert, or now, on the trace clock. An alert that cannot be allocated is counted as missed. */
enum { TC__ALERT_BYTES = 1400 };
void tc__publish_alert(struct tc_feed_encoder *source, Tracecollect__V1__Alert *alert,
                       const struct to_callstack *stack, to_ns until, const char *text,
                       const char *why);

#endif
