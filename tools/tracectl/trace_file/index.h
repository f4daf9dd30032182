/* SPDX-License-Identifier: Apache-2.0 */
/* An index of a trace file's generations, for direct access.
 *
 * It is made from the file's batch headers, or read from a file: FILE.index (`tracectl index --write`), or the .meta of an
 * archived segment. Both have the form of lib/archive/meta.h; an index that does not match the file is ignored.
 *
 * Memory    tk_index_fini() frees the rows.
 * Time      wall clock, 0 if unknown: before Go 1.25 only a collector's meta has it.
 * Errors    scan: false, reported on stderr, if the file cannot be read. If the trace is invalid from some offset on, fault
 *           is set, and there are rows up to there.
 */
#ifndef TK_TRACE_FILE_INDEX_H
#define TK_TRACE_FILE_INDEX_H

#include <limits.h>

#include "base/result.h"

struct tk_index_row {
  uint64_t gen, offset, bytes, batches;
  uint64_t events; /* timed events and CPU samples; from a collector's meta: ordered events */
  uint64_t begin_wall_ns, end_wall_ns;
  bool estimated;    /* begin and end are estimates (lib/archive/generation_time.h) */
  uint64_t since_ns; /* since the trace's first batch */
  /* Goroutines with an event in it, packed (online/trace/active.h). NULL: unknown. */
  unsigned char *active;
  size_t active_len;
};

struct tk_index {
  struct tk_index_row *row;
  size_t n, room;
  unsigned version;
  uint64_t header_bytes;
  uint64_t bytes;        /* of the trace */
  bool of_meta;          /* read from a collector's meta */
  char source[PATH_MAX]; /* file of the index; "": made from the trace */
  struct tb_diag fault;
};

/* count: also counts events and goroutines, which reads every byte. */
bool tk_index_scan(const char *verb, const char *path, bool count, bool progress,
                   struct tk_index *out);
/* Returns false if there is no stored index. */
bool tk_index_load(const char *path, struct tk_index *out);
/* Writes FILE.index, by rename. TB_REFUSED: FILE is compressed, so an index would be useless. */
TB_MUST tb_rc tk_index_save(const char *path, const struct tk_index *index, struct tb_diag *diag);
void tk_index_fini(struct tk_index *index);

/* Returns true if every row has its goroutines. */
bool tk_index_knows_goroutines(const struct tk_index *index);
uint64_t tk_index_goroutines(const struct tk_index_row *row);
bool tk_index_has_goroutine(const struct tk_index_row *row, int64_t goroutine);
/* Uses a stored index if it has all that is needed, else scans. Returns false like the scan. */
bool tk_index_find(const char *verb, const char *path, bool goroutines, struct tk_index *out);

#endif
