/* SPDX-License-Identifier: Apache-2.0 */
/* Where a verb's trace bytes come from: a file (mapped), "-" or a pipe (read), either packed with zstd
 * (known by its magic number, unpacked on the way).
 *
 * Threads   tk_input_next() may be called by another thread than stays(), release(), offset() and size(), at the
 *           same time; all else from one thread at a time.
 * Errors    reported on stderr as "tracectl VERB: PATH: reason"; the call answers false or -1.
 */
#ifndef TK_TRACE_FILE_INPUT_H
#define TK_TRACE_FILE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_input;

bool tk_input_open(const char *verb, const char *path, struct tk_input **out);
void tk_input_close(struct tk_input *in);

/* 1: the next bytes, lent until the next call (until close if tk_input_stays()); 0: end; -1: failed. */
int tk_input_next(struct tk_input *in, const unsigned char **bytes, size_t *n);
/* From now on the reason why next() fails is not reported, but kept for complain(), which reports it. */
void tk_input_hush(struct tk_input *in);
void tk_input_complain(const struct tk_input *in);
/* Bytes of tk_input_next() stay in place and readable until close. */
bool tk_input_stays(const struct tk_input *in);
/* Says that the first upto bytes that next() gave are not needed soon: a mapping lets go of them. */
void tk_input_release(struct tk_input *in, uint64_t upto);

/* Before the first next(): from now on only the first header bytes are given, and those from begin up to
 * end; the rest of a mapped file is never touched. Offsets are those of the unpacked trace. */
struct tk_trace_range {
  uint64_t header, begin, end;
};
void tk_input_part(struct tk_input *in, const struct tk_trace_range *part);
/* Where a byte stands in the trace, counted in bytes that next() gave. */
uint64_t tk_input_offset(const struct tk_input *in, uint64_t given);

uint64_t tk_input_size(const struct tk_input *in); /* of the file as stored; 0: not known */
uint64_t
tk_input_position(const struct tk_input *in); /* how much of that is taken; a mapping: all */

#endif
