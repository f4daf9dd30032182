/* SPDX-License-Identifier: Apache-2.0 */
/* A trace read by asking for its next event, where the asker would rather loop than be called.
 *
 *   while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) look_at(gen, ev);   -- TB_END: whole and done
 *
 * It is the reader (online/trace/reader.h), turned round: the same events, the same limits, the same faults.
 *
 * Memory    from mem: the reader's own and 72 KiB. An event and its generation are lent until the next
 *           call; several events of one generation may be kept as copies until the generation changes.
 * Threads   use each object from one thread at a time.
 * Errors    as the reader's, after every event before the fault; and whatever the source answers.
 */
#ifndef TO_TRACE_PULL_H
#define TO_TRACE_PULL_H

#include "online/event/generation.h"
#include "online/trace/reader.h"

/* Where the bytes come from: a file, a socket, an archive. */
struct to_pull_source {
  void *self;
  /* TB_OK: n > 0 more bytes, lent until the next call (for good with TO_READER_BYTES_STAY). TB_END: no more.
   * Not TB_AGAIN: a source without bytes waits. */
  tb_rc (*more)(void *self, const void **out_bytes, size_t *out_n);
};

struct to_pull;

TB_MUST tb_rc to_pull_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                          struct to_pull_source source, struct tb_diag *diag, struct to_pull **out);
void to_pull_free(struct to_pull *pull); /* accepts NULL */

/* As to_reader_handle(), before the first event. */
TB_MUST tb_rc to_pull_handle(struct to_pull *pull, const struct to_handler *handler);

/* Before the first event: from here on those of other goroutines, and of none, are passed over. */
void to_pull_only(struct to_pull *pull, int64_t goroutine);

/* *out_gen is NULL only with the last Sync, and with the Sync before an error. */
TB_MUST tb_rc to_pull_next(struct to_pull *pull, const struct to_event **out_ev,
                           const struct to_generation **out_gen);
unsigned to_pull_version(const struct to_pull *pull); /* 0 until the header is read */
const struct tb_diag *to_pull_misannotated(const struct to_pull *pull); /* as to_reader_misannotated() */

/* A trace in memory, or a part of one: first its header, then the bytes of one generation or of several
 * that follow each other (as an index has them). begin = header and end = the trace's size: all of it. */
struct to_part {
  const unsigned char *trace;
  size_t header, begin, end;
  unsigned given; /* 0 to begin with */
};
struct to_pull_source to_part_source(struct to_part *part); /* part stays as long as the pull */

#endif
