/* SPDX-License-Identifier: Apache-2.0 */
/* A whole trace, pushed in and ordered: bytes > batches > generation > ordered events.
 *
 *   tb_rc rc = to_reader_read(r, bytes, n);             -- a trace in memory; its events went to the sink
 *
 * In pieces as they come: to_reader_push() each, then to_reader_end(). On a thread that has other work, too,
 * in slices:
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
 * Answers as Go's reader does: same events, same order, same verdict, in traces of header 1.22, 1.23,
 * 1.25 and 1.26. Bounded by one generation.
 *
 * Memory    everything from mem; batch bytes are copied unless TO_READER_BYTES_STAY says that what
 *           is fed stays in place and unchanged until the reader is freed (a mapping).
 * Threads   none of its own; use each object from one thread at a time.
 * Time      out: nanoseconds on the trace's own clock, strictly rising.
 * Errors    TB_BROKEN, TB_UNSUPPORTED (header), TB_BUDGET, TB_FUEL, TB_NOMEM, whatever the sink answers. After
 *           any of them the reader is finished: it answers the same again. Every event before the
 *           fault has been delivered; diag says generation, thread, byte offset and reason.
 */
#ifndef TO_TRACE_READER_H
#define TO_TRACE_READER_H

#include "base/mem.h"
#include "online/event/event.h"
#include "online/order/limits.h"

enum to_reader_flags {
  TO_READER_BYTES_STAY = 1, /* feed() lends for good: no copy */
  TO_READER_FRAMES = 2,     /* the sink will ask for stacks: make their table before, in slices */
  TO_READER_PLAIN =
      4, /* only instructions that every processor has: same answers, slower; for tests */
  /* After a generation's last event run() answers TB_AGAIN once more: between these two calls the generation
   * is still there, for who kept its events. */
  TO_READER_HOLD = 8,
  /* The program's own annotations may be wrong: regions that end in another order than Go's reader allows, a task that
   * begins twice. Such a fault is noted for to_reader_misannotated(), that goroutine's regions are dropped, and the reader goes on.
   * The trace is broken all the same: who says whether it is whole has to ask. */
  TO_READER_PAST_ANNOTATIONS = 16,
};

struct to_reader;

TB_MUST tb_rc to_reader_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                            struct to_event_sink sink, struct tb_diag *diag,
                            struct to_reader **out);
void to_reader_free(struct to_reader *reader);

/* Before the first byte: a rule of your own for events of an experiment (online/order/handler.h). The handler is
 * copied. TB_BUDGET: one handler too many. */
struct to_handler;
TB_MUST tb_rc to_reader_handle(struct to_reader *reader, const struct to_handler *handler);

/* TB_OK: all n bytes taken. TB_AGAIN: *out_used of them taken, a generation is complete: run() it. */
TB_MUST tb_rc to_reader_feed(struct to_reader *reader, const void *bytes, size_t n,
                             size_t *out_used);
/* The same for who has all n bytes and little time: TB_OK, *out_used of them taken, `enough` or a batch more, if there
 * are so many. In pieces that the caller cuts, the batch at each border is copied even if its bytes stay. */
TB_MUST tb_rc to_reader_feed_some(struct to_reader *reader, const void *bytes, size_t n,
                                  size_t enough, size_t *out_used);
/* No more bytes will come. TB_AGAIN: run() what is left. TB_OK: the trace is whole and done. */
TB_MUST tb_rc to_reader_finish(struct to_reader *reader);
/* Instead of both: takes what was gathered elsewhere (online/trace/prepare.h), which stays lent until run() answers
 * something else than TB_AGAIN. TB_AGAIN: run() it. TB_OK: the trace is whole and done. */
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

/* For a live stream whose generations come one by one (the collector reads each from its own segment
 * file): the ordering state goes on from one file to the next. begin() takes the next file's bytes
 * from its header on; the header must be the same version. After a hole use epoch() first: ordering starts
 * again, as in a fresh trace. Neither delivers a final Sync; both are answered TB_OK after an
 * error too, and clear it. After an error, or in the middle of a generation, begin() begins an epoch by itself. */
TB_MUST tb_rc to_reader_begin(struct to_reader *reader);
void to_reader_epoch(struct to_reader *reader);

/* Calls ends after the last event of each whole generation, whose tables are still there: for what is to be kept of
 * them. A code other than TB_OK stops the reader. NULL: no more calls. */
void to_reader_on_end(struct to_reader *reader, void *self,
                      tb_rc (*ends)(void *self, const struct to_generation *gen));

unsigned to_reader_version(const struct to_reader *reader); /* 0 until the header is read */
uint64_t to_reader_events(const struct to_reader *reader);  /* delivered, Sync included */
/* The same without Syncs, and with what one event of the trace became counted once: timed events and CPU samples as the
 * program wrote them. A trace has this number however it is cut into generations. */
uint64_t to_reader_written(const struct to_reader *reader);
/* Ends of regions whose begin is not in the trace: tracing began within them. They are delivered like others. */
uint64_t to_reader_lone_region_ends(const struct to_reader *reader);
/* With TO_READER_PAST_ANNOTATIONS: the first such fault since begin(); NULL: none. */
const struct tb_diag *to_reader_misannotated(const struct to_reader *reader);
uint64_t to_reader_generations(const struct to_reader *reader); /* wholly ordered */

#endif
