/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a trace one generation ahead of its ordering, on a second core.
 *
 * A reader cuts bytes into batches, reads a generation's tables and then orders its events. The first two steps need
 * not wait until the previous generation is ordered:
 *
 *   on one thread                                     on another
 *   rc = to_prepare_begin(prepare, p);
 *   while (rc == TB_OK)
 *     rc = to_prepare_feed(prepare, bytes, n, &used);
 *   pass p -----------------------------------------> rc = to_reader_adopt(reader, p);
 *                                                     while (rc == TB_AGAIN) rc = to_reader_run(reader, 4096);
 *   use another p for the next <--------------------- return p
 *
 * Events, verdict and faults are the same as with a reader that is fed directly.
 *
 * Memory    a prepared generation is in the mem of its struct to_prepared, which moves from thread to thread with
 *           it; the rest in the mem of struct to_prepare. Two generations are in memory instead of one.
 * Threads   none of its own; use each object from one thread at a time. Passing an object to another thread needs a
 *           memory barrier (a mutex is one).
 * Errors    a fault is passed on like a generation, and reported by the reader that adopts it.
 */
#ifndef TO_TRACE_PREPARE_H
#define TO_TRACE_PREPARE_H

#include "online/trace/reader.h"

struct to_prepare;  /* cuts bytes and reads tables */
struct to_prepared; /* a generation, or the end of the trace */

/* limits: only generation_bytes_max is used. flags: TO_READER_BYTES_STAY, TO_READER_FRAMES. */
TB_MUST tb_rc to_prepare_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                             struct to_prepare **out);
void to_prepare_free(struct to_prepare *prepare); /* accepts NULL */

TB_MUST tb_rc to_prepared_new(struct tb_mem *mem, struct to_prepared **out);
void to_prepared_free(struct to_prepared *prepared); /* accepts NULL */

/* Empties p and begins the next generation in it. All three return TB_OK if more bytes are needed, TB_AGAIN if p is
 * to be passed to the reader and another p begun. */
TB_MUST tb_rc to_prepare_begin(struct to_prepare *prepare, struct to_prepared *p);
TB_MUST tb_rc to_prepare_feed(struct to_prepare *prepare, const void *bytes, size_t n,
                              size_t *out_used);
/* Call after the last byte. */
TB_MUST tb_rc to_prepare_finish(struct to_prepare *prepare);
/* Ends the trace with rc, because the source of the bytes failed. */
void to_prepare_fail(struct to_prepare *prepare, tb_rc rc);

/* Returns true for the trace's end or fault, after which nothing follows. */
bool to_prepared_is_last(const struct to_prepared *prepared);
/* Returns the bytes of the trace read up to its end. */
uint64_t to_prepared_upto(const struct to_prepared *prepared);

#endif
