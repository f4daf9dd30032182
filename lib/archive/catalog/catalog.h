/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: a SQLite index over the .meta files, deletable, rebuilt from them.
 *
 * The segment thread writes it; readers (query sessions, tracectl verify) open it read-only, each with
 * a connection of its own (WAL mode). Rows are what proto/archive.proto's SegmentInfo and StreamStatus say.
 *
 * Threads   one thread per struct tc_catalog.
 * Errors    TB_IO with SQLite's words in diag; TB_CORRUPT: rebuild it.
 */
#ifndef TC_ARCHIVE_CATALOG_H
#define TC_ARCHIVE_CATALOG_H

#include "archive/meta.h"
#include "archive/state_dir.h"
#include "base/result.h"

struct tc_catalog;

TB_MUST tb_rc tc_catalog_open(int state_fd, bool writable, struct tb_diag *diag,
                              struct tc_catalog **out);
void tc_catalog_close(struct tc_catalog *catalog);
/* A page of it was wrong, or could not be read, since it was opened. */
bool tc_catalog_is_rotten(const struct tc_catalog *catalog);
/* A reader's: whether the file it has open is still the one of that name. Another takes its place when the catalog is
 * rebuilt, which a running collector does after a write that failed. */
bool tc_catalog_is_current(const struct tc_catalog *catalog);

struct tc_segment_row {
  uint64_t id;
  unsigned char stream[16];
  char service[65], instance[65];
  char path[192];
  uint64_t first_gen, last_gen, bytes, batches, events;
  uint64_t first_wall_ns, last_wall_ns; /* when it was traced (lib/archive/generation_time.h) */
  uint64_t first_arrival_ns, last_arrival_ns; /* when it came, on the collector's clock */
  bool wall_estimated;
  unsigned go_version;
  unsigned verdict; /* enum VerdictCode */
  char reason[256];
  bool expired, unsafe_experiment;
  bool
      open; /* its run is still written: the file at path has these bytes, more may follow; no hash yet */
  struct tc_content_hash hash;
};

struct tc_sum {
  uint64_t batches, bytes;
};

static inline void tc_sum_add(struct tc_sum *sum, struct tc_sum more) {
  sum->batches += more.batches;
  sum->bytes += more.bytes;
}

/* A living stream's accounting at the last heartbeat whose records have all come: records 1 to seq report what the
 * metas have of those up to settled_seq, and `open`, which the collector had beyond. */
struct tc_stream_cut {
  uint64_t seq, settled_seq; /* seq 0: none yet */
  struct tc_sum produced, reported, open;
};

struct tc_stream_row {
  unsigned char stream[16];
  char service[65], instance[65], identity[129], peer[64];
  char state[16]; /* "live", "waiting", "closed", "exec", "unclean" */
  unsigned go_version;
  uint64_t acked_seq, batches, bytes, generations, broken, events;
  uint64_t lost_batches, lost_bytes, lost_generations;
  uint64_t first_arrival_ns, last_arrival_ns;
  uint64_t newest_wall_ns; /* when the newest generation ended, as traced; 0: none */
  uint64_t produced_batches, produced_bytes, spool_bytes;
  uint32_t last_loss; /* LossReason, as the agent last said */
  struct tc_stream_cut cut;
};

/* Zeroed fields do not restrict. Times are the trace's own; a segment counts if any part of it lies in the asked
 * span, both ends included. */
struct tc_select {
  uint64_t segment;
  const char *service, *instance;
  const unsigned char *stream; /* 16 bytes */
  uint64_t since_wall_ns, until_wall_ns;
  uint64_t
      last_ns; /* what reaches into the span of this length that ends with the stream's newest generation */
  uint64_t since_arrival_ns, until_arrival_ns;
  uint64_t first_gen, last_gen;
  bool only_open; /* runs that are still written */
  /* A walk goes on behind this row: where it lay, which counts when it has gone since, too; or, with no stream in it, the
   * id of one. Either way none is given twice or left out, whatever comes and goes meanwhile. */
  struct {
    const unsigned char *stream; /* 16 bytes */
    uint64_t first_gen;
    uint64_t first_wall_ns; /* for the newest first */
  } place;
  uint64_t after; /* segment id */
  unsigned limit;
};

typedef tb_rc tc_segment_row_fn(void *self, const struct tc_segment_row *row);
typedef tb_rc tc_stream_row_fn(void *self, const struct tc_stream_row *row);

/* In order of stream, then generation. A code other than TB_OK from each ends the walk. TB_NOTFOUND: there is no segment
 * `after`. */
TB_MUST tb_rc tc_catalog_segments(struct tc_catalog *catalog, const struct tc_select *select,
                                  tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* By the time each began, the newest first. */
TB_MUST tb_rc tc_catalog_newest(struct tc_catalog *catalog, const struct tc_select *select,
                                tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* The meta that the run of an open row would have now; the caller frees it. TB_NOTFOUND: it is not open any more. */
TB_MUST tb_rc tc_catalog_open_meta(struct tc_catalog *catalog, uint64_t segment,
                                   struct tb_diag *diag, tc_meta **out);
TB_MUST tb_rc tc_catalog_streams(struct tc_catalog *catalog, const struct tc_select *select,
                                 tc_stream_row_fn *each, void *self, struct tb_diag *diag);

#endif
