/* SPDX-License-Identifier: Apache-2.0 */
/* A pending file: a run from its first byte until it is published, or a note that a stream has ended or lost something.
 *
 *             sealed            prepared              renamed
 *   IS_OPEN ─────────> WAITS ──────────────> HAS_META ──────────> HAS_NAMES ──> gone
 *
 * Records go into it while it IS_OPEN. Then it stands in the queue. Its meta is written under a temporary name once it
 * HAS_META: from then on the meta says what is in it, and what comes later is put into the published one. It is in the
 * archive once both HAS_NAMES. A note has no bytes and stays where it WAITS.
 */
#ifndef TC_SEALER_BASE_FILE_H
#define TC_SEALER_BASE_FILE_H

#include "archive/catalog/write.h"
#include "collector/model/messages.h"
#include "collector/segment/losses.h"
#include "collector/segment/writer.h"

struct tc__stream;

/* In a list of those that wait for a meta. */
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

enum tc__end { /* of a stream */
               TC__GOES_ON,
               TC__CLEAN,
               TC__EXEC, /* clean, as its program ran another */
               TC__UNCLEAN
};
const char *tc__end_name(enum tc__end end); /* as metas have it; NULL: it goes on */

static inline bool tc__is_whole(enum tc__end end) {
  return end == TC__CLEAN || end == TC__EXEC;
}

struct tc__file {
  struct tc__file *next; /* in the queue */
  struct tc__stream *stream;
  enum tc__file_state state;
  struct tc_segment *segment; /* NULL: a note */
  struct tc__losses losses;   /* reported before it */
  struct {
    size_t gens;                 /* the catalog shows this many of its generations */
    bool verdicts;               /* and with the verdicts they have */
    struct tc_open_kept kept;    /* of these, those it will not be given again */
    struct tc_open_kept to_keep; /* once the transaction is over */
    uint64_t pass;               /* the last one that looked at it */
  } shown;
  uint64_t border_lsn; /* what comes behind its generations lies behind it in the log; 0: unknown */
  uint64_t noted_lsn;  /* as that was when a checkpoint of them was last written; 0: none was */
  bool checkpointed;   /* the log relies on it */
  bool is_dirty;       /* some of it is still to be given to the disk */
  bool new_run;        /* a hole, or nothing, lies before its first generation */
  bool broken;         /* one of its generations is: no more shall come to it */
  bool offered;        /* understand has its last generation */
  enum tc__end end;    /* of the stream, with it */
  uint64_t produced_batches, produced_bytes; /* with an end */
  uint64_t settle_seq, abandoned_gen;        /* the stream's once it is published */
  char day[TC_DAY_BYTES];
  int dir_fd;       /* its folder in the archive; -1: not open */
  bool meta_unsure; /* a sync of its meta failed: it is written again */
  struct tc_content_hash hash;
  tc_meta *meta;            /* as written */
  struct tc__verdict *late; /* came since */
};

void tc__archive_path(const char *day, const char *stream_hex, uint64_t first_gen, char out[192]);

struct tc__file *tc__file_new(struct tc__stream *stream); /* NULL: no memory */
void tc__file_free(struct tc__file *file);
void tc__file_becomes(struct tc__file *file, enum tc__file_state state);
const char *tc__file_check(const struct tc__file *file); /* NULL, or what is wrong */
/* False: a start took it up, and it is not read back yet (seal/proof.h). */
bool tc__is_proven(const struct tc__file *file);

/* Files to publish, in order. */
struct tc__file_queue {
  struct tc__file *first, **tail;
  size_t n;
  uint64_t bytes; /* that came since it was empty */
};

void tc__queue_init(struct tc__file_queue *queue);
void tc__queue_fini(struct tc__file_queue *queue);
/* The file WAITS from here on. */
void tc__queue_put(struct tc__file_queue *queue, struct tc__file *file);
/* The first one leaves, and is the caller's. */
struct tc__file *tc__queue_take(struct tc__file_queue *queue);

/* Open files with bytes that are still to be given to the disk. */
struct tc__dirty_files {
  struct tc__file **items;
  size_t n, cap;
};

TB_MUST tb_rc tc__dirty_add(struct tc__dirty_files *dirty, struct tc__file *file);
void tc__dirty_remove(struct tc__dirty_files *dirty, struct tc__file *file);
/* to_disk: the kernel is to begin to write it, too. What was not reached stays. */
TB_MUST tb_rc tc__dirty_flush(struct tc__dirty_files *dirty, bool to_disk, struct tb_diag *diag);

#endif
