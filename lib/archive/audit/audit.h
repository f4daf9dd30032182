/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an archive, for `tracectl verify` and for the jobs of a running daemon:
 *
 *     meta        checksum; with keys, signature
 *     trace       size, CRC32C and content hash against the meta, for the file and for each generation
 *     stream      chain of content hashes; accounting in batches and bytes: all that the agent produced is archived,
 *                 expired or reported as lost, or (live stream, at the last heartbeat) open in the collector or in the agent
 *     catalog     rows against metas, both ways; unless a daemon writes the catalog, sums against the ledgers
 *
 * While a daemon uses the folder, a segment that is being published is skipped; the complete generations of open runs
 * are checked, too.
 *
 * Memory    about 250 bytes a segment.
 * Threads   safe beside a running daemon, except tc_audit_rebuild().
 * Errors    TB_IO, TB_NOMEM; TB_REFUSED: rebuild while a daemon has the folder. A fault of the archive is not an
 *           error: it is reported to the sink.
 */
#ifndef TC_ARCHIVE_AUDIT_H
#define TC_ARCHIVE_AUDIT_H

#include "archive/catalog/catalog.h"

struct tc_audit_sink {
  void *self;
  void (*problem)(void *self, const char *text);                           /* "PATH: reason" */
  void (*progress)(void *self, uint64_t done_bytes, uint64_t total_bytes); /* NULL: none */
  bool (*stop)(void *self); /* returns true to stop the audit; NULL: never */
  /* Each meta must be signed by one of these keys; NULL: signatures are not checked. */
  const struct tc_keys *keys;
};

struct tc_audited_accounting {
  uint64_t streams;
  struct tc_sum produced, archived, taken, lost; /* taken: removed by retention */
  struct tc_sum open, spooled; /* live streams only: in the collector, in the agent */
};

struct tc_audited {
  uint64_t segments, bytes, problems;
  uint64_t expired;      /* segments of which only the meta is left */
  uint64_t signed_metas; /* metas signed by one of the keys */
  uint64_t fresh;        /* segments skipped because they are being published */
  uint64_t open_runs,
      open_generations; /* generations: complete ones in files that are still written */
  struct tc_audited_accounting closed; /* streams whose agent reported the total at the end */
  uint64_t live_streams;               /* connected, or expected to reconnect */
  struct tc_audited_accounting live;   /* live streams that have a struct tc_stream_cut */
};

/* state_fd: the folder of archive/ and catalog.sqlite. A missing catalog is a problem only if needs_catalog. */
TB_MUST tb_rc tc_audit(int state_fd, bool needs_catalog, const struct tc_audit_sink *sink,
                       struct tb_diag *diag, struct tc_audited *out);

/* Rebuilds the catalog from the metas. */
TB_MUST tb_rc tc_audit_rebuild(int state_fd, const struct tc_audit_sink *sink, struct tb_diag *diag,
                               uint64_t *out_segments);

#endif
