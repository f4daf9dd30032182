/* SPDX-License-Identifier: Apache-2.0 */
/* Where each generation of a trace file begins, so that a reader can go straight to one.
 *
 * It is made by passing over the file's batch headers, or read from a file that holds it:
 * FILE.index (`tracectl index --write`), or the .meta beside an archived segment. Both have the form of
 * lib/archive/meta.h; one that does not fit the file is passed over.
 *
 * Memory    tk_index_fini() frees the rows.
 * Time      wall clock, 0 where it is not known: before Go 1.25 only a collector's meta knows it.
 * Errors    scan: false, reported on stderr, where the file cannot be read. A trace that is no batches from
 *           some offset on has fault set, and the rows before it.
 */
#ifndef TK_TRACE_FILE_INDEX_H
#define TK_TRACE_FILE_INDEX_H

#include <limits.h>

#include "base/result.h"

struct tk_index_row {
  uint64_t gen, offset, bytes, batches;
  uint64_t
      events; /* timed events and CPU samples as they stand; of a collector's meta: ordered events */
  uint64_t begin_wall_ns, end_wall_ns;
  bool estimated;    /* begin and end are: the trace does not say (lib/archive/generation_time.h) */
  uint64_t since_ns; /* since the trace's first batch */
  /* Goroutines that do something in it, packed (online/trace/active.h). NULL: not known. */
  unsigned char *active;
  size_t active_len;
};

struct tk_index {
  struct tk_index_row *row;
  size_t n, room;
  unsigned version;
  uint64_t header_bytes;
  uint64_t bytes;        /* of the trace */
  bool of_meta;          /* a collector's */
  char source[PATH_MAX]; /* the file it was read from; "": the trace itself */
  struct tb_diag fault;
};

/* count: events and goroutines, too, which reads every byte. */
bool tk_index_scan(const char *verb, const char *path, bool count, bool progress,
                   struct tk_index *out);
/* False: none is written down. */
bool tk_index_load(const char *path, struct tk_index *out);
/* As FILE.index, by rename. TB_REFUSED: FILE is packed, and an index would be of no use. */
TB_MUST tb_rc tk_index_save(const char *path, const struct tk_index *index, struct tb_diag *diag);
void tk_index_fini(struct tk_index *index);

/* Every row knows its goroutines. */
bool tk_index_knows_goroutines(const struct tk_index *index);
uint64_t tk_index_goroutines(const struct tk_index_row *row);
bool tk_index_has_goroutine(const struct tk_index_row *row, int64_t goroutine);
/* A written index if it has all that is needed, else the result of a scan. False: as the scan. */
bool tk_index_find(const char *verb, const char *path, bool goroutines, struct tk_index *out);

#endif
