/* SPDX-License-Identifier: Apache-2.0 */
/* The store's counters: written by its two threads, read by any. */
#ifndef TC_MODEL_STORE_COUNTERS_H
#define TC_MODEL_STORE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

struct tc_stats {
  _Atomic uint64_t commits, commit_ns_total, commit_ns_max, log_bytes, records, record_bytes;
  _Atomic uint64_t segments_sealed, segment_bytes, generations_broken, recovered_records,
      recoveries;
  _Atomic uint64_t archive_bytes, archive_segments, expired_segments;
  _Atomic uint64_t disk_free_bytes, disk_free_inodes;
  _Atomic uint64_t quarantine_bytes, quarantine_files, quarantine_expired;
  _Atomic uint64_t retention_slices, retention_ns_total, retention_ns_max;
  _Atomic uint64_t streams, streams_live;
  _Atomic uint64_t commit_turns, sealer_turns; /* turns of the threads: a hung disk stops them */
  atomic_bool catalog_stale; /* the catalog failed and is incomplete until it is rebuilt */
  _Atomic uint64_t files_missing, log_files_missing; /* removed under the running daemon */
  atomic_bool retention_at_floor; /* the disk is short; the floor protects all the rest */
  atomic_bool failed, clock_jumped;
  atomic_uint log_waits, archive_waits; /* enum tc_shortage */
};

static inline void tc_count(_Atomic uint64_t *counter, uint64_t more) {
  atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static inline void tc_gauge(_Atomic uint64_t *gauge, uint64_t value) {
  atomic_store_explicit(gauge, value, memory_order_relaxed);
}

#endif
