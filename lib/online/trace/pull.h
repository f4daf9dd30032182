/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a trace event by event, for callers that prefer a loop to a callback.
 *
 *   while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) look_at(gen, ev);   -- TB_END: whole and done
 *
 * Events, limits and faults are the reader's (online/trace/reader.h).
 *
 * Memory    from mem: the reader's and 72 KiB. An event and its generation are lent until the next
 *           call; copies of events stay valid until the generation changes.
 * Threads   use each object from one thread at a time.
 * Errors    the reader's, after every event before the fault; the source's.
 */
#ifndef TO_TRACE_PULL_H
#define TO_TRACE_PULL_H

#include "online/event/generation.h"
#include "online/trace/reader.h"

/* The source of the bytes: a file, a socket, an archive. */
struct to_pull_source {
  void *self;
  /* Returns TB_OK and n > 0 bytes, lent until the next call (for good with TO_READER_BYTES_STAY), or TB_END. Never
   * TB_AGAIN: a source without bytes must wait. */
  tb_rc (*more)(void *self, const void **out_bytes, size_t *out_n);
};

struct to_pull;

TB_MUST tb_rc to_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                          struct to_pull_source source, struct tb_diag *diag, struct to_pull **out);
void to_pull_free(struct to_pull *pull); /* accepts NULL */

/* Works as to_reader_handle(); call before the first event. */
TB_MUST tb_rc to_pull_handle(struct to_pull *pull, const struct to_handler *handler);

/* Skips events of other goroutines, and of none; call before the first event. */
void to_pull_only(struct to_pull *pull, int64_t goroutine);

/* *out_gen is NULL only with the last Sync, and with the Sync before an error. */
TB_MUST tb_rc to_pull_next(struct to_pull *pull, const struct to_event **out_ev,
                           const struct to_generation **out_gen);
unsigned to_pull_version(const struct to_pull *pull); /* 0 until the header is read */
const struct tb_diag *
to_pull_misannotated(const struct to_pull *pull); /* as to_reader_misannotated() */

/* A trace in memory, or a part of one: its header, then the bytes of consecutive generations (see the
 * index). For the whole trace begin = header and end = the trace's size. */
struct to_part {
  const unsigned char *trace;
  size_t header, begin, end;
  unsigned given; /* 0 at first */
};
struct to_pull_source to_part_source(struct to_part *part); /* part must outlive the pull */

#endif
