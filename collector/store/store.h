/* SPDX-License-Identifier: Apache-2.0 */
/* The store branch: records in, acks out, segments on disk.
 *
 *   loops ──submit──> commit thread (log, fdatasync) ──> sealer's thread (.part > .trace, meta, catalog)
 *     ^─────────────── tc_reply ────────┴──────────────────────┘
 *
 * The commit thread owns the stream table: each stream's connection and last durable seq. The sealer's thread owns the
 * files of archive/ and open/ and the catalog. Neither knows sockets, TLS or ordering.
 *
 * Memory    the store owns a submitted message; record payloads are freed with the record's free function after the
 *           sealer has written them.
 * Threads   tc_store_submit(): one calling thread per `sender`. The sink gets replies on the commit thread (from =
 *           TC_FROM_COMMIT) or the sealer's (TC_FROM_SEGMENT).
 * Errors    open: TB_IO, TB_NOMEM, TB_CORRUPT, TB_UNSUPPORTED (the log is newer than this program; nothing was changed)
 *           with the path in diag. Later failures arrive as TC_REPLY_FAILED.
 */
#ifndef TC_STORE_STORE_H
#define TC_STORE_STORE_H

#include "base/result.h"
#include "collector/keep/keeps.h"
#include "collector/model/messages.h"
#include "collector/model/shortage.h"
#include "config/table.h"

struct tc_store;

/* Recovers the state folder (also after kill -9), then starts the threads. loops: number of loops; senders are 0..loops-1
 * for the loops and `loops` for the query room. */
TB_MUST tb_rc tc_store_open(const struct tc_config *config, unsigned loops,
                            struct tc_store_sink sink, struct tb_diag *diag, struct tc_store **out);
/* Commits what was submitted, publishes whole generations, stops the threads. */
void tc_store_close(struct tc_store *store);
/* Closes with a deadline (CLOCK_MONOTONIC; 0: none): the next start archives from the log what is left. */
void tc_store_close_by(struct tc_store *store, uint64_t deadline_mono_ns);

/* Takes ownership of msg. Returns false if the queue is full: the caller tries again after the next reply or 1 ms. */
bool tc_store_submit(struct tc_store *store, unsigned sender, struct tc_submit *msg);

int tc_store_dirfd(const struct tc_store *store);              /* the state folder */
struct tc_keeps *tc_store_keeps(const struct tc_store *store); /* any thread */
/* Whether the catalog is incomplete, because it failed and is not rebuilt yet. */
bool tc_store_catalog_is_stale(const struct tc_store *store);
/* Waits until the catalog shows the whole generations of open runs, for at most a second. Any thread. */
void tc_store_show_runs(struct tc_store *store);
/* Requests a rebuild, after a reader found the catalog damaged. Any thread. */
void tc_store_rebuild_catalog(struct tc_store *store);

/* Opens the file of a STORED reply for reading. (Publishing may have renamed the file since the reply.) Returns -1 with
 * errno set; ENOENT: deleted by retention. Any thread. */
int tc_store_open_file(const struct tc_store *store, const struct tc_reply *stored);

/* Counters for /metrics and status; safe from any thread (relaxed atomics). */
struct tc_store_stats {
  uint64_t commits, commit_ns_total, commit_ns_max, log_bytes, records, record_bytes;
  uint64_t segments_sealed, segment_bytes, generations_broken, recovered_records, recoveries;
  uint64_t archive_bytes, archive_segments, expired_segments, disk_free_bytes, disk_free_inodes;
  uint64_t quarantine_bytes, quarantine_files, quarantine_expired;
  uint64_t kept_stretches;
  uint64_t retention_slices, retention_ns_total, retention_ns_max;
  uint64_t streams, streams_live;
  uint64_t commit_turns, sealer_turns; /* turns of each thread, at least one a second */
  uint64_t files_missing;  /* number of files found to be removed under the running daemon */
  bool retention_at_floor; /* the disk is short, and retention.floor protects all that is left */
  bool failed;
  enum tc_shortage log_waits, archive_waits;
  const char *health;  /* "ok", or the failure; static text */
  const char *finding; /* health; if that is "ok", a state that needs an operator; static text */
};
void tc_store_stats(const struct tc_store *store, struct tc_store_stats *out);
/* Returns the shortage that the log or the archive waits for now. Any thread. */
enum tc_shortage tc_store_shortage(const struct tc_store *store, bool of_log);

#endif
