/* SPDX-License-Identifier: Apache-2.0 */
/* The store branch: records in, acks out, segments on disk.
 *
 *   loops ──submit──> commit thread (log, fdatasync) ──> segment thread (.part > .trace, meta, catalog)
 *     ^─────────────── tc_reply ────────┴──────────────────────┘
 *
 * The commit thread owns the stream table: the writer of each stream, which seq is durable. The segment
 * thread owns the files of archive/ and open/ and the catalog. Neither knows sockets, TLS or ordering.
 *
 * Memory    a submitted message belongs to the store until its reply; record payloads are freed with
 *           the record's free function after the sealer has written them.
 * Threads   tc_store_submit(): one calling thread per `sender`. Replies are given to the sink on the
 *           commit thread (from = TC_FROM_COMMIT) or the sealer (TC_FROM_SEGMENT).
 * Errors    open: TB_IO, TB_NOMEM, TB_CORRUPT, TB_UNSUPPORTED (a log newer than this program; nothing
 *           was touched) with the path in diag. Later failures arrive as TC_REPLY_FAILED.
 */
#ifndef TC_STORE_STORE_H
#define TC_STORE_STORE_H

#include "base/result.h"
#include "collector/keep/keeps.h"
#include "collector/model/messages.h"
#include "collector/model/shortage.h"
#include "config/table.h"

struct tc_store;

/* Recovers what the last run left (also after kill -9), then starts the threads. loops = number of
 * loops; senders are 0..loops-1 for them and loops for the query room. */
TB_MUST tb_rc tc_store_open(const struct tc_config *config, unsigned loops,
                            struct tc_store_sink sink, struct tb_diag *diag, struct tc_store **out);
/* Commits what was submitted, seals finished generations, stops the threads. */
void tc_store_close(struct tc_store *store);
/* The same until then (CLOCK_MONOTONIC; 0: no end): what is not archived by then is in the log, and the next
 * start's. */
void tc_store_close_by(struct tc_store *store, uint64_t deadline_mono_ns);

/* Owns msg when it answers true; false: queue full, try again after the next reply or 1 ms. */
bool tc_store_submit(struct tc_store *store, unsigned sender, struct tc_submit *msg);

int tc_store_dirfd(const struct tc_store *store);              /* the state folder */
struct tc_keeps *tc_store_keeps(const struct tc_store *store); /* what triggers keep; any thread */
/* Whether the catalog is to be rebuilt, or is being, because a write failed: it does not say what there is. */
bool tc_store_catalog_is_stale(const struct tc_store *store);
/* The catalog gets what is whole of the runs that are written. Waits for that, for a second at most. Any thread. */
void tc_store_show_runs(struct tc_store *store);
/* A reader found the catalog damaged: it is rebuilt. From any thread. */
void tc_store_rebuild_catalog(struct tc_store *store);

/* Opens the file of a STORED reply for reading. It may be published, and so change its name, between the
 * reply and this call. -1: errno; ENOENT: retention
 * took it. Any thread. */
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
  uint64_t commit_turns, segment_turns; /* each thread turns at least once a second */
  uint64_t files_missing;  /* removed under the running daemon, as far as it has looked */
  bool retention_at_floor; /* the disk is short, and nothing may be deleted for it (retention.floor) */
  bool failed;
  enum tc_shortage log_waits, archive_waits;
  const char *health;  /* "ok", or what is wrong; static text */
  const char *finding; /* the same, and what needs an operator before it goes wrong */
};
void tc_store_stats(const struct tc_store *store, struct tc_store_stats *out);
/* The shortage that log or archive wait for now. Any thread. */
enum tc_shortage tc_store_shortage(const struct tc_store *store, bool of_log);

#endif
