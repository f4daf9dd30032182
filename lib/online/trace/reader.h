/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and orders a trace: bytes > batches > generation > ordered events.
 *
 *   tb_rc rc = to_reader_read(r, bytes, n);             -- a trace in memory; its events went to the sink
 *
 * For a trace in pieces call to_reader_push() with each, then to_reader_end(). A thread with other work reads in
 * slices:
 *
 *   while (n > 0) {
 *     size_t used;
 *     tb_rc rc = to_reader_feed(r, bytes, n, &used);    -- OK: all taken; AGAIN: a generation is ready
 *     bytes += used, n -= used;
 *     while (rc == TB_AGAIN) rc = to_reader_run(r, 4096); -- OK: ordered, feed goes on
 *     if (rc != TB_OK) break;                           -- broken: see diag
 *   }
 *   rc = to_reader_finish(r); while (rc == TB_AGAIN) rc = to_reader_run(r, 4096);
 *
 * Same events, same order and same verdict as Go's reader, in traces of header 1.22, 1.23, 1.25 and
 * 1.26.
 *
 * Memory    everything from mem, bounded by one generation; batch bytes are copied unless
 *           TO_READER_BYTES_STAY promises that they stay unchanged until the reader is freed (a mapping).
 * Threads   none of its own; use each object from one thread at a time.
 * Time      of events: nanoseconds on the trace's own clock, strictly rising.
 * Errors    TB_BROKEN, TB_UNSUPPORTED (header), TB_BUDGET, TB_FUEL, TB_NOMEM, the sink's. Later calls return the
 *           same error. Every event before the fault has been delivered; diag contains generation, thread,
 *           byte offset and reason.
 */
#ifndef TO_TRACE_READER_H
#define TO_TRACE_READER_H

#include "base/mem.h"
#include "online/event/event.h"
#include "online/order/limits.h"

enum to_reader_flags {
  TO_READER_BYTES_STAY = 1, /* bytes stay until the reader is freed: no copy */
  TO_READER_FRAMES = 2,     /* the sink reads stacks: make their table before, in slices */
  TO_READER_PLAIN =
      4, /* only instructions that every processor has: same results, slower; for tests */
  /* After a generation's last event run() returns TB_AGAIN once more; until the next call the generation stays
   * valid, for callers that kept its events. */
  TO_READER_HOLD = 8,
  /* Tolerates wrong annotations of the program: regions that end in an order that Go's reader refuses, a task that begins
   * twice. The reader stores the fault for to_reader_misannotated(), drops that goroutine's regions and continues.
   * The trace is broken all the same: a caller that reports whether it is whole must check. */
  TO_READER_PAST_ANNOTATIONS = 16,
};

struct to_reader;

TB_MUST tb_rc to_reader_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                            struct to_event_sink sink, struct tb_diag *diag,
                            struct to_reader **out);
void to_reader_free(struct to_reader *reader);

/* Adds your own rule for events of an experiment (online/order/handler.h), which is copied; call before the first byte.
 * Returns TB_BUDGET if there are too many. */
struct to_handler;
TB_MUST tb_rc to_reader_handle(struct to_reader *reader, const struct to_handler *handler);

/* Returns TB_OK if all n bytes are read; TB_AGAIN if a generation is complete after *out_used bytes: run() it. */
TB_MUST tb_rc to_reader_feed(struct to_reader *reader, const void *bytes, size_t n,
                             size_t *out_used);
/* Works as feed(), but returns TB_OK after the batch with which *out_used reaches `enough`: for a caller that has all n
 * bytes but little time. If it cut the bytes itself, the batch at each border would be copied even if its bytes stay. */
TB_MUST tb_rc to_reader_feed_some(struct to_reader *reader, const void *bytes, size_t n,
                                  size_t enough, size_t *out_used);
/* Call after the last byte. TB_AGAIN: run() the last generation. TB_OK: the trace is whole and done. */
TB_MUST tb_rc to_reader_finish(struct to_reader *reader);
/* Replaces both: adopts a generation read elsewhere (online/trace/prepare.h), which stays lent until run() returns
 * anything but TB_AGAIN. TB_AGAIN: run() it. TB_OK: the trace is whole and done. */
struct to_prepared;
TB_MUST tb_rc to_reader_adopt(struct to_reader *reader, struct to_prepared *prepared);
/* Orders and delivers about events_max events. TB_AGAIN: more left. TB_OK: feed() again, or done. */
TB_MUST tb_rc to_reader_run(struct to_reader *reader, unsigned events_max);

/* feed() and run(), until all n bytes are taken and every generation they complete is delivered. */
TB_MUST tb_rc to_reader_push(struct to_reader *reader, const void *bytes, size_t n);
/* finish() and run(). TB_OK: the trace is whole. */
TB_MUST tb_rc to_reader_end(struct to_reader *reader);
/* push() and end(): bytes are the whole trace, or what is left of it. */
TB_MUST tb_rc to_reader_read(struct to_reader *reader, const void *bytes, size_t n);

/* For a live stream with one generation a file, as the collector's segments: the ordering state continues from file to
 * file. begin() expects the next file from its header on, of the same version. After a gap call epoch() first, which
 * restarts ordering as for a new trace; begin() does so by itself after an error, which it clears, and in the middle of
 * a generation. Neither delivers a final Sync. */
TB_MUST tb_rc to_reader_begin(struct to_reader *reader);
void to_reader_epoch(struct to_reader *reader);

/* Shares the memory that is needed only while a generation is read with other readers of the thread: to_reader_rest() gives it to the
 * pool (online/event/tables.h), the next begin() takes it from there. Call share() before the first begin(), rest() when a file has been
 * read or has failed; only begin(), epoch() or free() may follow. Without a pool rest() does nothing. The pool outlives the reader. */
struct to_generation_pool;
void to_reader_share(struct to_reader *reader, struct to_generation_pool *pool);
void to_reader_rest(struct to_reader *reader);

/* Calls ends after the last event of each whole generation, whose tables are still valid. A result other than TB_OK
 * stops the reader. NULL: no more calls. */
void to_reader_on_end(struct to_reader *reader, void *self,
                      tb_rc (*ends)(void *self, const struct to_generation *gen));

unsigned to_reader_version(const struct to_reader *reader); /* 0 until the header is read */
uint64_t to_reader_events(const struct to_reader *reader);  /* delivered, Sync included */
/* Counts timed events and CPU samples as the program wrote them: no Syncs, and an event that becomes several counts
 * once. The number does not depend on how the trace is cut into generations. */
uint64_t to_reader_written(const struct to_reader *reader);
/* Counts ends of regions that began before the trace; their events are delivered like others. */
uint64_t to_reader_lone_region_ends(const struct to_reader *reader);
/* Returns the first fault tolerated by TO_READER_PAST_ANNOTATIONS since begin(), or NULL. */
const struct tb_diag *to_reader_misannotated(const struct to_reader *reader);
uint64_t to_reader_generations(const struct to_reader *reader); /* wholly ordered */

#endif
