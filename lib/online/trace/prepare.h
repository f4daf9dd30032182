/* SPDX-License-Identifier: Apache-2.0 */
/* A trace read one generation ahead of its order, by who has a second core.
 *
 * A reader cuts bytes into batches, reads a generation's tables and then orders its events. The first two need
 * not wait for the order of the generation before:
 *
 *   on one thread                                     on another
 *   rc = to_prepare_begin(prepare, p);
 *   while (rc == TB_OK)
 *     rc = to_prepare_feed(prepare, bytes, n, &used);
 *   hand p over ------------------------------------> rc = to_reader_adopt(reader, p);
 *                                                     while (rc == TB_AGAIN) rc = to_reader_run(reader, 4096);
 *   the next into another p <------------------------ give p back
 *
 * Events, verdict, place and words of a fault are those of a reader that is fed.
 *
 * Memory    what is prepared lives in the mem of its own struct to_prepared, which follows it from thread to
 *           thread; the rest in that of the struct to_prepare. Two generations are in memory where one was.
 * Threads   none of its own; use each object from one thread at a time. The caller that hands it over makes sure that
 *           what was done before is seen after (a mutex does). Errors a fault is prepared as a generation is, and
 *           reported by the reader that adopts it.
 */
#ifndef TO_TRACE_PREPARE_H
#define TO_TRACE_PREPARE_H

#include "online/trace/reader.h"

struct to_prepare;  /* cuts and reads */
struct to_prepared; /* a generation, or how the trace ends */

/* Of the limits generation_bytes_max counts. flags: TO_READER_BYTES_STAY, TO_READER_FRAMES. */
TB_MUST tb_rc to_prepare_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                             struct to_prepare **out);
void to_prepare_free(struct to_prepare *prepare); /* accepts NULL */

TB_MUST tb_rc to_prepared_new(struct tb_mem *mem, struct to_prepared **out);
void to_prepared_free(struct to_prepared *prepared); /* accepts NULL */

/* Empties p and begins the next generation in it. All of these: TB_OK: more bytes are wanted. TB_AGAIN: p is
 * to be handed over, another is to begin. */
TB_MUST tb_rc to_prepare_begin(struct to_prepare *prepare, struct to_prepared *p);
TB_MUST tb_rc to_prepare_feed(struct to_prepare *prepare, const void *bytes, size_t n,
                              size_t *out_used);
/* No more bytes will come. */
TB_MUST tb_rc to_prepare_finish(struct to_prepare *prepare);
/* Where the bytes come from failed with rc: the trace ends with that. */
void to_prepare_fail(struct to_prepare *prepare, tb_rc rc);

/* It is the trace's end or fault: no other comes after it. */
bool to_prepared_is_last(const struct to_prepared *prepared);
/* Bytes of the trace taken when it was complete. */
uint64_t to_prepared_upto(const struct to_prepared *prepared);

#endif
