/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's contents: runs of records, oldest first, and the places (cursors) that walk them.
 *
 * A run is a generation, or one single record (HEADER, LOSS, CLOSE). A generation's frames are stored contiguously in
 * a chain of pages, as they will be sent; a single record is stored in its run's own slot, so it never lacks memory.
 * Places are between two frames; only TA_SENT may be inside one.
 *
 * Memory    one mapping made at init, and the pages.
 * Threads   one at a time.
 * Errors    TB_NOMEM from init.
 */
#ifndef TA_SPOOL_RUNS_H
#define TA_SPOOL_RUNS_H

#include "agent/host/pages.h"
#include "proto/frame.h"

enum { TA_SLOT_BYTES = 160 }; /* the largest LOSS or CLOSE with its frame header */

enum ta_run_kind { TA_RUN_FREE, TA_RUN_HEADER, TA_RUN_GENERATION, TA_RUN_LOSS, TA_RUN_CLOSE };

struct ta_count {
  uint64_t batches, bytes; /* BATCH records and their payloads */
};

static inline void ta_count_add(struct ta_count *sum, struct ta_count n) {
  sum->batches += n.batches;
  sum->bytes += n.bytes;
}

static inline void ta_count_sub(struct ta_count *sum, struct ta_count n) {
  sum->batches -= n.batches;
  sum->bytes -= n.bytes;
}

struct ta_run {
  enum ta_run_kind kind;
  bool open;     /* more may come */
  bool lost;     /* an abandoned generation: its sent records do not count as kept */
  bool unsaved;  /* changed since it was last written to the disk */
  bool held;     /* by the recorder, agent/spool/recorder.h */
  uint32_t next; /* run, or TA_NONE */
  uint32_t first_page, last_page;
  uint64_t gen, last_gen;
  uint64_t bytes, sealed_bytes; /* of frames */
  uint64_t order;               /* place of its first record among all records put */
  uint64_t acked_records, sealed_records;
  uint64_t held_records;          /* put while the run was held: not in `all` yet */
  uint64_t id, covers;            /* on disk: its file, and the last file that it replaces */
  uint64_t kept_covers;           /* replaced files up to this one are deleted */
  uint64_t kept_bytes, kept_from; /* bytes on disk, and the offset of the first */
  struct ta_count all, sealed, acked;
  uint32_t crc;    /* over the batches' checksums */
  uint32_t reason; /* of the loss */
  uint64_t first_wall_ns, last_wall_ns;
  uint64_t ended_mono_ns; /* recorder only */
  unsigned char slot[TA_SLOT_BYTES];
};

/* off may equal TA_PAGE_BYTES: step to the next page before use. */
struct ta_place {
  uint32_t run, page, off;
  uint64_t at; /* bytes into the run */
};

/* TA_KEPT is independent of the others: the position at which copying one run to disk continues. */
enum { TA_ACKED, TA_SENT, TA_GRANTED, TA_SEALED, TA_KEPT, TA_PLACES };

struct ta_runs {
  struct ta_pages pages;
  struct ta_run *run;
  size_t mapped_bytes;
  uint32_t max, free, hint;
  uint32_t last;    /* the newest, or TA_NONE */
  uint64_t last_id; /* last one assigned to a run */
  uint32_t unsaved; /* number of unsaved runs */
  struct ta_place place[TA_PLACES];
};

TB_MUST tb_rc ta_runs_init(struct ta_runs *r, uint64_t bytes);
void ta_runs_fini(struct ta_runs *r); /* accepts zeroed memory */

/* Appends a run without pages; requires a free run. */
struct ta_run *ta_runs_append(struct ta_runs *r, enum ta_run_kind kind, uint64_t gen,
                              uint64_t order);
/* Inserts a run before the one that contains TA_ACKED, and moves TA_ACKED there. */
struct ta_run *ta_runs_prepend(struct ta_runs *r, enum ta_run_kind kind, uint64_t gen,
                               uint64_t order);
/* Marks a run as changed since it was written to disk. */
static inline void ta_run_touch(struct ta_runs *r, struct ta_run *run) {
  r->unsaved += !run->unsaved;
  run->unsaved = true;
}

static inline void ta_run_untouch(struct ta_runs *r, struct ta_run *run) {
  r->unsaved -= run->unsaved;
  run->unsaved = false;
}

/* Frees a run and its pages; it must not be in the list any more. */
void ta_runs_release(struct ta_runs *r, uint32_t run);
struct ta_run *ta_runs_writing(struct ta_runs *r); /* the last one if it is open, or NULL */

/* Frames without a number have an internal header in the place of the final one. */
void ta_run_unsealed_head(unsigned char out[TP_HEADER_BYTES], const struct tp_frame *frame);
void ta_run_slot(struct ta_run *run, enum tp_kind kind, const void *payload, size_t n);
void ta_run_read_unsealed(const unsigned char head[TP_HEADER_BYTES], struct tp_frame *out);

/* pages_wanted returns the number of pages that a generation needs for more bytes; extend takes them and returns the
 * page for the first of these bytes. */
uint64_t ta_run_pages_wanted(const struct ta_run *run, size_t bytes);
uint32_t ta_runs_extend(struct ta_runs *r, struct ta_run *run, size_t bytes);

/* Moves p from the end of a complete run to the next run, if there is one: once, or as often as possible. The second is
 * not for TA_ACKED, since runs that it leaves must be freed. */
bool ta_runs_settle_once(struct ta_runs *r, struct ta_place *p);
void ta_runs_settle(struct ta_runs *r, struct ta_place *p);
/* The bytes at p up to the end of its page or slot. */
unsigned char *ta_runs_bytes(struct ta_runs *r, struct ta_place *p, size_t *out_n);
void ta_runs_step(struct ta_runs *r, struct ta_place *p, size_t n);
/* Copy the header of the frame at p out of its pages, and into them. */
void ta_runs_load_head(struct ta_runs *r, struct ta_place p, unsigned char out[TP_HEADER_BYTES]);
void ta_runs_store_head(struct ta_runs *r, struct ta_place p,
                        const unsigned char head[TP_HEADER_BYTES]);

static inline bool ta_place_equal(const struct ta_place *a, const struct ta_place *b) {
  return a->run == b->run && a->at == b->at;
}

#endif
