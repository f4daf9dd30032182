/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog: a SQLite index over the .meta files. It can be deleted and rebuilt from them.
 *
 * The sealer writes it; readers (query sessions, tracectl verify) open it read-only, each with a connection of its own
 * (WAL mode). Rows correspond to SegmentInfo and StreamStatus of proto/archive.proto.
 *
 * Threads   one thread per struct tc_catalog.
 * Errors    TB_IO with SQLite's message in diag; TB_CORRUPT: the catalog must be rebuilt.
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
/* Since the catalog was opened, a page was damaged or could not be read. */
bool tc_catalog_is_rotten(const struct tc_catalog *catalog);
/* Is the open file still the one named catalog.sqlite? A rebuild replaces the file; a running collector rebuilds after a
 * failed write. */
bool tc_catalog_is_current(const struct tc_catalog *catalog);

struct tc_segment_row {
  uint64_t id;
  unsigned char stream[16];
  char service[65], instance[65];
  char path[192];
  uint64_t first_gen, last_gen, bytes, batches, events;
  uint64_t first_wall_ns, last_wall_ns;       /* traced (lib/archive/generation_time.h) */
  uint64_t first_arrival_ns, last_arrival_ns; /* received, on the collector's clock */
  bool wall_estimated;
  unsigned go_version;
  unsigned verdict; /* enum VerdictCode */
  char reason[256];
  bool expired, unsafe_experiment;
  bool open; /* the run is still written: the file at path may grow, and there is no hash yet */
  struct tc_content_hash hash;
};

struct tc_sum {
  uint64_t batches, bytes;
};

static inline void tc_sum_add(struct tc_sum *sum, struct tc_sum more) {
  sum->batches += more.batches;
  sum->bytes += more.bytes;
}

/* A live stream's accounting at the last heartbeat whose records have all been received. Records up to settled_seq are in
 * metas; `open` is what the collector held of records settled_seq + 1 to seq. */
struct tc_stream_cut {
  uint64_t seq, settled_seq; /* seq 0: no accounting yet */
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
  uint64_t newest_wall_ns; /* end of the newest generation, as traced; 0: none */
  uint64_t produced_batches, produced_bytes, spool_bytes;
  uint32_t last_loss; /* LossReason that the agent reported last */
  struct tc_stream_cut cut;
};

/* Zeroed fields do not restrict. Wall times are the trace's own; a segment matches if any part of it is in the requested
 * span, both ends included. */
struct tc_select {
  uint64_t segment;
  const char *service, *instance;
  const unsigned char *stream; /* 16 bytes */
  uint64_t since_wall_ns, until_wall_ns;
  uint64_t
      last_ns; /* only segments in the last so many ns before the end of the stream's newest generation */
  uint64_t since_arrival_ns, until_arrival_ns;
  uint64_t first_gen, last_gen;
  bool only_open; /* only runs that are still written */
  /* A walk continues after this row, even if the row was removed meanwhile. If place.stream is NULL, it continues after
   * the segment with the id `after`. No row is returned twice or skipped, whatever is added or removed meanwhile. */
  struct {
    const unsigned char *stream; /* 16 bytes */
    uint64_t first_gen;
    uint64_t first_wall_ns; /* for tc_catalog_newest() */
  } place;
  uint64_t after; /* segment id */
  unsigned limit;
};

typedef tb_rc tc_segment_row_fn(void *self, const struct tc_segment_row *row);
typedef tb_rc tc_stream_row_fn(void *self, const struct tc_stream_row *row);

/* Walks segments in order of stream, then generation. A code other than TB_OK from each ends the walk. TB_NOTFOUND: there
 * is no segment `after`. */
TB_MUST tb_rc tc_catalog_segments(struct tc_catalog *catalog, const struct tc_select *select,
                                  tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* Walks segments by start time, newest first. */
TB_MUST tb_rc tc_catalog_newest(struct tc_catalog *catalog, const struct tc_select *select,
                                tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* Returns the meta that an open run would have now; the caller frees it. TB_NOTFOUND: the run is not open any more. */
TB_MUST tb_rc tc_catalog_open_meta(struct tc_catalog *catalog, uint64_t segment,
                                   struct tb_diag *diag, tc_meta **out);
TB_MUST tb_rc tc_catalog_streams(struct tc_catalog *catalog, const struct tc_select *select,
                                 tc_stream_row_fn *each, void *self, struct tb_diag *diag);

#endif
