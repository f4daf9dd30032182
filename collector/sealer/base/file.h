/* SPDX-License-Identifier: Apache-2.0 */
/* A pending file: a run until it is published, or a note that a stream has ended or lost records.
 *
 *             sealed            prepared              renamed
 *   IS_OPEN ─────────> WAITS ──────────────> HAS_META ──────────> HAS_NAMES ──> gone
 *
 * Records are appended while the file IS_OPEN; then it is queued. Once it HAS_META the meta is written under a temporary
 * name and is final: later verdicts are put into the published meta. Once it HAS_NAMES file and meta are in the archive.
 * A note has no bytes and never leaves the state WAITS. */
#ifndef TC_SEALER_BASE_FILE_H
#define TC_SEALER_BASE_FILE_H

#include "archive/catalog/write.h"
#include "collector/model/messages.h"
#include "collector/segment/losses.h"
#include "collector/segment/writer.h"

struct tc__stream;

/* A list of verdicts that are not in a meta yet. */
struct tc__verdict {
  struct tc__verdict *next;
  struct tc_verdict *verdict;
};
void tc__verdicts_free(struct tc__verdict *verdicts);

enum tc__file_state {
  TC__FILE_IS_OPEN,
  TC__FILE_WAITS,
  TC__FILE_HAS_META,
  TC__FILE_HAS_NAMES,
  TC__FILE_STATES
};

enum tc__end { /* how a stream ended */
               TC__GOES_ON,
               TC__CLEAN,
               TC__EXEC, /* clean: the process replaced its program with exec() */
               TC__UNCLEAN
};
const char *tc__end_name(enum tc__end end); /* the name in metas; NULL: the stream goes on */

static inline bool tc__is_whole(enum tc__end end) {
  return end == TC__CLEAN || end == TC__EXEC;
}

struct tc__file {
  struct tc__file *next; /* in the queue */
  struct tc__stream *stream;
  enum tc__file_state state;
  struct tc_segment *segment;    /* NULL: a note */
  struct tc__losses losses;      /* reported before the first generation */
  struct {                       /* state of the open run's rows in the catalog (seal/show.h) */
    size_t gens;                 /* number of generations that have a row */
    bool verdicts;               /* the rows have the latest verdicts */
    struct tc_open_kept kept;    /* rows that are final and not written again */
    struct tc_open_kept to_keep; /* the next value of `kept`, after the commit */
    uint64_t pass;               /* the last pass that looked at this file */
  } shown;
  uint64_t border_lsn; /* records after the whole generations have a higher LSN; 0: unknown */
  uint64_t noted_lsn;  /* border_lsn at the last checkpoint of the generations; 0: none yet */
  bool checkpointed;   /* the log relies on the file */
  bool is_dirty;       /* has bytes that are not written to the disk yet */
  bool new_run;        /* a hole, or nothing, is before the first generation */
  bool broken;         /* one of the generations is broken: append no more */
  bool offered;        /* the last generation was sent to analysis */
  enum tc__end end;    /* of the stream, if the file is the last */
  uint64_t produced_batches, produced_bytes; /* set with an end */
  uint64_t settle_seq, abandoned_gen;        /* the stream's values after this file is published */
  char day[TC_DAY_BYTES];
  int dir_fd;       /* the stream's folder in the archive; -1: not open */
  bool meta_unsure; /* a sync of the meta failed: write it again */
  struct tc_content_hash hash;
  tc_meta *meta;            /* as written */
  struct tc__verdict *late; /* verdicts that arrived after the meta was written */
};

void tc__archive_path(const char *day, const char *stream_hex, uint64_t first_gen, char out[192]);

struct tc__file *tc__file_new(struct tc__stream *stream); /* NULL if memory cannot be allocated */
void tc__file_free(struct tc__file *file);
void tc__file_becomes(struct tc__file *file, enum tc__file_state state);
const char *tc__file_check(const struct tc__file *file); /* NULL, or the broken invariant */
/* Returns false if a start resumed the file and its bytes are not verified yet (seal/proof.h). */
bool tc__is_proven(const struct tc__file *file);

/* Files to publish, in order. */
struct tc__file_queue {
  struct tc__file *first, **tail;
  size_t n;
  uint64_t bytes; /* queued since the queue was last empty */
};

void tc__queue_init(struct tc__file_queue *queue);
void tc__queue_fini(struct tc__file_queue *queue);
void tc__queue_put(struct tc__file_queue *queue, struct tc__file *file); /* the file now WAITS */
/* Removes the first file; the caller owns it. */
struct tc__file *tc__queue_take(struct tc__file_queue *queue);

/* Open files with bytes that are not written to the disk yet. */
struct tc__dirty_files {
  struct tc__file **items;
  size_t n, cap;
};

TB_MUST tb_rc tc__dirty_add(struct tc__dirty_files *dirty, struct tc__file *file);
void tc__dirty_remove(struct tc__dirty_files *dirty, struct tc__file *file);
/* Writes buffered bytes to the files. to_disk: also asks the kernel to start writing them out.
 * After an error the rest stays dirty. */
TB_MUST tb_rc tc__dirty_flush(struct tc__dirty_files *dirty, bool to_disk, struct tb_diag *diag);

#endif
