/* SPDX-License-Identifier: Apache-2.0 */
/* A stream in the sealer: the run that is written, the losses, how far it is settled.
 *
 *           a file is opened            a batch                a file is opened
 *   IDLE ─────────────────────> BETWEEN ──────> INSIDE    ABANDONED ──────────────> BETWEEN
 *     <──────────────────────────┘ closed <──────┘ end        │ ^
 *     <──────────────────────────────────────────┘ its file   │ │ a generation is given up
 *     <───────────────────────────────────────────────────────┘ │ (IDLE too)
 *                                              the given-up generation ends
 *
 * A run is open while the stream is BETWEEN two generations or INSIDE one. While a stream is ABANDONED, each further batch of
 * the given-up generation is lost. If batches of another generation arrive first, they get a file, and the stream is
 * ABANDONED again after that file is closed. stream.c has the table of steps; records.c and runs.c call them.
 *
 * Threads   the sealer's (the starting thread's before it runs). */
#ifndef TC_SEALER_BASE_STREAM_H
#define TC_SEALER_BASE_STREAM_H

#include "base/map.h"
#include "collector/model/reply_queue.h"
#include "collector/sealer/base/env.h"
#include "collector/sealer/base/file.h"
#include "collector/sealer/base/work.h"

/* A published segment with generations that have no verdict yet. */
struct tc__recent {
  struct tc__recent *next, **at; /* in the stream's list */
  struct tc__stream *stream;
  char day[TC_DAY_BYTES];
  uint64_t first_gen;
  size_t ngens;
  size_t pending;                                /* number of missing verdicts */
  struct tc__verdict *verdicts, **verdicts_tail; /* not yet written to the meta */
  struct tc__recent *to_amend_next;              /* in the sealer's queue if it has verdicts */
};

enum tc__stream_state {
  TC__STREAM_NONE, /* an impossible step in the table */
  TC__IDLE,
  TC__BETWEEN,
  TC__INSIDE,
  TC__ABANDONED,
  TC__STREAM_STATES
};

struct tc__stream {
  struct tc__stream *next, **at; /* in the list of all streams */
  uint32_t ref;
  unsigned home; /* loop that analyses the stream; `loop` has its connection */
  unsigned char id[TC_STREAM_BYTES];
  char hex[TC_STREAM_HEX_BYTES];
  char identity[TC_IDENTITY_MAX + 1], service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  unsigned char header[64];
  uint32_t header_len;
  unsigned go_version;

  /* files */
  enum tc__stream_state state;
  struct tc__file *open;         /* while BETWEEN or INSIDE */
  struct tc__file *queued;       /* the stream's last file in the queue */
  uint64_t queued_gen_max;       /* the highest first generation of its queued files */
  char synced_day[TC_DAY_BYTES]; /* the day whose folder is synced to the disk */

  /* records */
  uint64_t last_seq;
  uint64_t last_gen;      /* of the run that is written */
  uint64_t abandoned_gen; /* given up by the sealer, and its end has not arrived yet; 0: none */
  bool run_broken;        /* a hole is before the next generation */
  bool begun;             /* a generation was written or offered since the collector's start */
  bool resumed;           /* its run was resumed at the start, and nothing was offered since */
  bool damaged;           /* recovery found a gap in the records; a loss is yet to be recorded */
  enum tc__end end;
  struct tc_settled settled; /* as last reported to the log */

  /* losses */
  struct tc__losses losses; /* not yet in a file */
  struct {
    struct tc__losses losses; /* written to a meta before this start, but not settled in the log */
    bool is_known;
    uint64_t batches; /* batches of abandoned_gen that `losses` counts already */
    uint64_t end_seq; /* `losses` counts all batches before this record, too */
  } reported;
  struct {                  /* the meta that holds the losses while the stream has no segment */
    char day[TC_DAY_BYTES]; /* empty: there is none */
    uint64_t gen;
    bool is_known; /* metas of earlier starts were searched */
  } note;

  /* verdicts */
  struct tc__recent *recents;
  struct tb_map recent_of_gen; /* generation to its struct tc__recent */

  /* its agent */
  uint64_t conn;
  unsigned loop;
  char peer[64];
  struct tc_reply_queue_slot released;
  struct tc_counters counters;
  struct tc_counters counted; /* the oldest that still misses records; reported_seq 0: none */
  struct tc_stream_cut cut;
  bool live_dirty;
  struct tc__stream *live_next;
};

/* Returns NULL, or the broken invariant. Called after each record. */
const char *tc__stream_check(const struct tc__stream *stream);

/* Steps. The stream now owns the file, which may be INSIDE a generation. */
void tc__stream_opens(struct tc__stream *stream, struct tc__file *file);
/* A batch was appended to the open file; it may be the first of a generation. */
void tc__stream_appended(struct tc__stream *stream);
void tc__stream_ends(struct tc__stream *stream); /* the generation is complete */
/* Detaches the open file; the caller owns it. */
struct tc__file *tc__stream_leaves(struct tc__stream *stream);
/* Further batches of gen are lost. gen 0: the generation that was given up has ended. */
void tc__stream_gives_up(struct tc__stream *stream, uint64_t gen);

/* Expects verdicts for n generations from first_gen on. Returns NULL if memory cannot be allocated. */
struct tc__recent *tc__recent_add(struct tc__stream *stream, const char *day, uint64_t first_gen,
                                  size_t n);
void tc__recent_drop(struct tc__stream *stream, struct tc__recent *recent);

struct tc__streams {
  const struct tc__env *env;
  struct tc__stream *first; /* in no order */
  struct tb_map by_ref;
  struct tb_mem mem;
  struct { /* streams whose row in the catalog is out of date */
    struct tc__stream *first, **tail;
  } live;
};

void tc__streams_init(struct tc__streams *streams, const struct tc__env *env);
void tc__streams_fini(struct tc__streams *streams);
TB_MUST tb_rc tc__streams_add(struct tc__streams *streams, const struct tc_stream_intro *intro,
                              struct tb_diag *diag);
/* Frees the stream if nothing of it is open, queued or without a verdict; otherwise keeps it until the next start. */
void tc__streams_forget(struct tc__streams *streams, struct tc__stream *stream);
struct tc__stream *tc__find_stream(const struct tc__streams *streams,
                                   uint32_t ref); /* NULL: unknown */
/* Marks the stream's row as changed; tc__flush_live() writes it. */
void tc__mark_live(struct tc__streams *streams, struct tc__stream *stream);

#endif
