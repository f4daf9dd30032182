/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as the sealer knows it: the run that is written, what it has lost, how far it is settled.
 *
 *           a file is opened            a batch                a file is opened
 *   IDLE ─────────────────────> BETWEEN ──────> INSIDE    ABANDONED ──────────────> BETWEEN
 *     <──────────────────────────┘ sealed <──────┘ end        │ ^
 *     <──────────────────────────────────────────┘ its file   │ │ a generation is given up
 *     <───────────────────────────────────────────────────────┘ │ (IDLE too)
 *                                                    its end comes
 *
 * A run is open while the stream is BETWEEN two generations or INSIDE one. While it is ABANDONED, each batch that still comes
 * of the generation that was given up is lost; where batches of another one come first, a file is opened for those, and
 * the stream is ABANDONED again when that has left. stream.c has the table of steps, records.c and runs.c take them. */
#ifndef TC_SEALER_BASE_STREAM_H
#define TC_SEALER_BASE_STREAM_H

#include "base/map.h"
#include "collector/model/reply_queue.h"
#include "collector/sealer/base/env.h"
#include "collector/sealer/base/file.h"
#include "collector/sealer/base/work.h"

/* A published segment whose verdict is still to come. */
struct tc__recent {
  struct tc__recent *next, **at; /* in the stream's list */
  struct tc__stream *stream;
  char day[TC_DAY_BYTES];
  uint64_t first_gen;
  size_t ngens;
  size_t pending;                                /* verdicts to come */
  struct tc__verdict *verdicts, **verdicts_tail; /* to be written */
  struct tc__recent *to_amend_next;              /* in the sealer's queue, while it has such */
};

enum tc__stream_state {
  TC__STREAM_NONE, /* a step that there is not */
  TC__IDLE,
  TC__BETWEEN,
  TC__INSIDE,
  TC__ABANDONED,
  TC__STREAM_STATES
};

struct tc__stream {
  struct tc__stream *next, **at; /* in the row of all */
  uint32_t ref;
  unsigned home;
  unsigned char id[TC_STREAM_BYTES];
  char hex[TC_STREAM_HEX_BYTES];
  char identity[TC_IDENTITY_MAX + 1], service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  unsigned char header[64];
  uint32_t header_len;
  unsigned go_version;

  /* files */
  enum tc__stream_state state;
  struct tc__file *open;         /* while it is BETWEEN or INSIDE */
  struct tc__file *queued;       /* the last one in the queue */
  uint64_t queued_gen_max;       /* the highest first generation of those that wait */
  char synced_day[TC_DAY_BYTES]; /* its folder of this day is on the disk */

  /* records */
  uint64_t last_seq;
  uint64_t last_gen;      /* of the run that is written */
  uint64_t abandoned_gen; /* given up here, and not over */
  bool run_broken;        /* a hole lies before the next generation */
  bool begun;             /* a generation of it was written or offered since the start */
  bool resumed;           /* its run was taken up, and none of it was offered since */
  bool damaged;           /* recovery found a gap in its records: to be put down */
  enum tc__end end;
  struct tc_settled settled; /* as last reported to the log */

  /* losses */
  struct tc__losses losses; /* not yet in a file */
  struct {
    struct tc__losses losses; /* in a meta since the last run, and the log does not know it */
    bool is_known;
    uint64_t batches; /* of abandoned_gen: that `losses` has already */
    uint64_t end_seq; /* and all that come before this record */
  } reported;
  struct {                  /* the meta that has its losses while it has no segment */
    char day[TC_DAY_BYTES]; /* empty: there is none */
    uint64_t gen;
    bool is_known; /* what earlier runs left was found, or is not there */
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
  struct tc_counters counted; /* the oldest whose records have not all come; reported_seq 0: none */
  struct tc_stream_cut cut;
  bool live_dirty;
  struct tc__stream *live_next;
};

/* After each record. NULL, or what is wrong. */
const char *tc__stream_check(const struct tc__stream *stream);

/* Steps. The file is the stream's open one from here on; it may be INSIDE a generation. */
void tc__stream_opens(struct tc__stream *stream, struct tc__file *file);
/* A batch was given to the open file, which may have begun a generation with it. */
void tc__stream_appended(struct tc__stream *stream);
void tc__stream_ends(struct tc__stream *stream); /* the generation is whole */
/* The open file is open no more, and is the caller's. */
struct tc__file *tc__stream_leaves(struct tc__stream *stream);
/* What still comes of gen is lost; 0: nothing is any more. */
void tc__stream_gives_up(struct tc__stream *stream, uint64_t gen);

/* Verdicts of n generations from first_gen on are to come. NULL: no memory. */
struct tc__recent *tc__recent_add(struct tc__stream *stream, const char *day, uint64_t first_gen,
                                  size_t n);
void tc__recent_drop(struct tc__stream *stream, struct tc__recent *recent);

struct tc__streams {
  const struct tc__env *env;
  struct tc__stream *first; /* in no order */
  struct tb_map by_ref;
  struct tb_mem mem;
  struct { /* of which the catalog is to show another state */
    struct tc__stream *first, **tail;
  } live;
};

void tc__streams_init(struct tc__streams *streams, const struct tc__env *env);
void tc__streams_fini(struct tc__streams *streams);
TB_MUST tb_rc tc__streams_add(struct tc__streams *streams, const struct tc_stream_intro *intro,
                              struct tb_diag *diag);
/* If nothing of it waits; else it is kept until the next start. */
void tc__streams_forget(struct tc__streams *streams, struct tc__stream *stream);
struct tc__stream *tc__find_stream(const struct tc__streams *streams,
                                   uint32_t ref); /* NULL: unknown */
/* Its row of live streams has changed: written by tc__flush_live(). */
void tc__mark_live(struct tc__streams *streams, struct tc__stream *stream);

#endif
