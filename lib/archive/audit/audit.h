/* SPDX-License-Identifier: Apache-2.0 */
/* Proves an archive: every meta's checksum and, with keys, its signature, every trace against its meta (size, CRC32C,
 * content hash, those of each generation), each stream's chain of content hashes, the catalog's rows against the metas both
 * ways, its sums against the records of ledgers where nobody writes it, and of every stream that nothing of it is unaccounted for, in batches and in bytes: what the agent of
 * a closed one produced is archived, expired or reported as lost; what the agent of a living one had produced at its
 * last heartbeat is there, open in the collector or still in the agent. `tracectl verify` and the jobs
 * of a running daemon both come here.
 *
 * While a daemon writes the folder, a segment that is being published is left for the next time, and the whole
 * generations of the runs it writes are looked at as well.
 *
 * Memory    about 250 bytes a segment.
 * Threads   safe beside a running daemon, but with rebuild (refused then).
 * Errors    TB_IO, TB_NOMEM; TB_REFUSED: rebuild while a daemon has the folder. A fault of the archive is no error:
 *           it goes to the sink.
 */
#ifndef TC_ARCHIVE_AUDIT_H
#define TC_ARCHIVE_AUDIT_H

#include "archive/catalog/catalog.h"

struct tc_audit_sink {
  void *self;
  void (*problem)(void *self, const char *text);                           /* "PATH: reason" */
  void (*progress)(void *self, uint64_t done_bytes, uint64_t total_bytes); /* NULL: none */
  bool (*stop)(void *self); /* NULL: never; true: give up */
  const struct tc_keys
      *keys; /* each meta must be signed by one of them; NULL: signatures do not count */
};

struct tc_audited_accounting {
  uint64_t streams;
  struct tc_sum produced, archived, taken, lost; /* taken: by retention */
  struct tc_sum open, spooled; /* of living streams: in the collector, in the agent */
};

struct tc_audited {
  uint64_t segments, bytes, problems;
  uint64_t expired;                     /* of the segments: only their meta is left */
  uint64_t signed_metas;                /* by one of the keys */
  uint64_t fresh;                       /* left out: being published */
  uint64_t open_runs, open_generations; /* looked at, too: whole, in files that are still written */
  struct tc_audited_accounting
      closed;            /* streams that reported at their end how much they had produced */
  uint64_t live_streams; /* connected, or waited for */
  struct tc_audited_accounting
      live; /* of these, streams that have accounting: see struct tc_stream_cut */
};

/* state_fd: the folder that holds archive/ and catalog.sqlite. A catalog that is missing is a problem
 * only if needs_catalog. */
TB_MUST tb_rc tc_audit(int state_fd, bool needs_catalog, const struct tc_audit_sink *sink,
                       struct tb_diag *diag, struct tc_audited *out);

/* Rebuilds the catalog from the metas. */
TB_MUST tb_rc tc_audit_rebuild(int state_fd, const struct tc_audit_sink *sink, struct tb_diag *diag,
                               uint64_t *out_segments);

#endif
