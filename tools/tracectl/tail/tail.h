/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of `tracectl tail`.
 *
 *   feed (SUB) ────> tail_feed ──────────────┐
 *   findings ──────> tail_findings ──────────┤
 *   lease (REQ) ──┬> tail_lease ─> tail_event ├─> lines
 *   archive ──────┴> tail_replay ─────┘      │
 *
 * Feed and lease are each followed on a thread of its own; both write lines, one at a time.
 *
 * Threads   tk_lines_*(): any. Others: the thread of its part.
 * Errors    TB_END: enough lines, or the reader of the output is gone: the part ends. Others: as the client's.
 */
#ifndef TK_TAIL_TAIL_H
#define TK_TAIL_TAIL_H

#include <pthread.h>

#include "online/analysis/filter.h"
#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/term/out.h"

/* --- the request (request.c) --- */

enum { TK_TAIL_KINDS_MAX = 64 };

struct tk_tail_ask {
  struct tk_client_args client;
  struct tk_selector selector;      /* service, instance, stream; since */
  const char *topic;                /* "": all */
  char service[256], instance[256]; /* from the topic */
  bool service_is_prefix, instance_is_prefix;
  const char *kinds[TK_TAIL_KINDS_MAX]; /* of events, for the lease; empty: all */
  size_t n_kinds;
  uint64_t goroutine, duration_ns;
  bool feed, lease;                  /* connections that are needed */
  bool reports, generations, alerts; /* from the feed */
  bool events;                       /* from the feed, not the lease */
  bool json;
};

/* Adds --kind K. Returns false if there is no such kind. */
bool tk_tail_kind(struct tk_tail_ask *ask, const char *kind);
/* Call once after all options: decides what is needed. TB_BROKEN: usage. */
TB_MUST tb_rc tk_tail_resolve(struct tk_tail_ask *ask, struct tb_diag *diag);
void tk_tail_filter(const struct tk_tail_ask *ask, struct to_filter *out);
bool tk_tail_wants(const struct tk_tail_ask *ask, const char *service, const char *instance,
                   const unsigned char *stream);

/* --- lines (lines.c) --- */

struct tk_lines {
  pthread_mutex_t lock;
  struct tk_out out;
  uint64_t limit, count; /* limit 0: none */
  uint64_t lost;
  bool missing; /* an unknown number is missing */
  bool json, bold;
  uint64_t second; /* of second_text, cached for lines of the same second */
  char second_text[32];
};

void tk_lines_init(struct tk_lines *lines, bool json, uint64_t limit);
/* Write a line between begin and end. TB_END: it was the last, or cannot be written. */
struct tk_out *tk_lines_begin(struct tk_lines *lines);
TB_MUST tb_rc tk_lines_end(struct tk_lines *lines);
/* Call before waiting: flushes what was written. */
void tk_lines_flush(struct tk_lines *lines);
void tk_lines_lost(struct tk_lines *lines, uint64_t n, const char *of);
/* Prints a text on stderr; missing: the output is incomplete. */
void tk_lines_note(struct tk_lines *lines, bool missing, const char *fmt, ...) TB_PRINTF(3, 4);
/* "2026-03-01T12:00:00.123456Z"; between begin and end. */
void tk_lines_wall(struct tk_lines *lines, uint64_t wall_ns);
void tk_lines_bold(struct tk_lines *lines, const char *text);

/* --- streams and how far they have been shown (cursor.c) --- */

struct tk_cursor {
  struct tk_cursor *next;
  unsigned char stream[16];
  uint64_t base;     /* generations up to here precede the start */
  uint64_t gen;      /* newest generation shown in part; 0: none */
  uint64_t position; /* of the first event in it that was not shown */
};

struct tk_cursors {
  struct tk_cursor *first;
};

/* Returns NULL if memory cannot be allocated. */
struct tk_cursor *tk_cursor_of(struct tk_cursors *cursors, const unsigned char *stream);
void tk_cursors_fini(struct tk_cursors *cursors);
static inline bool tk_cursor_is_new(const struct tk_cursor *c, uint64_t gen, uint64_t position) {
  return gen > c->gen || (gen == c->gen && position >= c->position);
}
/* Call when all of the generation was shown. */
static inline void tk_cursor_done(struct tk_cursor *c, uint64_t gen) {
  if (gen < c->gen || gen <= c->base) return;
  c->gen = gen;
  c->position = UINT64_MAX;
}

/* --- events (event.c) --- */

struct tk_tail {
  const struct tk_tail_ask *ask;
  struct tk_lines *lines;
  struct tk_cursors cursors;
};

/* Shows the bundle's new events. TB_NOMEM, TB_END. */
TB_MUST tb_rc tk_tail_bundle(struct tk_tail *tail, const Tracecollect__V1__EventBundle *bundle);

/* --- the archive (replay.c) --- */

/* Shows archived events, traced since since_wall_ns and arrived since since_arrival_ns (0: any), that were not
 * shown before. */
TB_MUST tb_rc tk_tail_replay(struct tk_tail *tail, struct tk_client *client, uint64_t since_wall_ns,
                             uint64_t since_arrival_ns, struct tb_diag *diag);
/* Sets the cursors' bases to the present end of every stream's archive. */
TB_MUST tb_rc tk_tail_baseline(struct tk_tail *tail, struct tk_client *client,
                               struct tb_diag *diag);

/* --- findings (findings.c) --- */

/* Shows the findings since ask->selector.since_wall_ns as alerts, in the order in which they began. */
TB_MUST tb_rc tk_tail_findings(const struct tk_tail_ask *ask, struct tk_lines *lines,
                               struct tb_diag *diag);

/* --- parts: each runs until TB_END or a permanent error --- */

TB_MUST tb_rc tk_tail_lease(const struct tk_tail_ask *ask, struct tk_lines *lines,
                            struct tb_diag *diag);
TB_MUST tb_rc tk_tail_feed(const struct tk_tail_ask *ask, struct tk_lines *lines,
                           struct tb_diag *diag);

#endif
