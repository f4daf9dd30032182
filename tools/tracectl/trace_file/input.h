/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a verb's trace: a file (mapped), "-" or a pipe (read), a URL (read while it is loaded), optionally compressed with
 * zstd (recognised by its magic number).
 *
 * Threads   tk_input_next() may be called by another thread than stays(), release(), offset() and size(), at the same
 *           time; all others from one thread at a time.
 * Errors    reported on stderr as "tracectl VERB: PATH: reason"; the call returns false or -1.
 */
#ifndef TK_TRACE_FILE_INPUT_H
#define TK_TRACE_FILE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_input;

bool tk_input_open(const char *verb, const char *path, struct tk_input **out);
void tk_input_close(struct tk_input *in);

/* Returns 1: the next bytes, lent until the next call (until close if tk_input_stays()); 0: end; -1: failed. */
int tk_input_next(struct tk_input *in, const unsigned char **bytes, size_t *n);
/* From now on errors of next() are stored, and reported only by complain(). */
void tk_input_hush(struct tk_input *in);
void tk_input_complain(const struct tk_input *in);
/* After the last byte: why a URL ended too early; NULL: it did not. */
const char *tk_input_cut(const struct tk_input *in);
/* Returns true if bytes of tk_input_next() stay readable until close. */
bool tk_input_stays(const struct tk_input *in);
/* Releases a mapping's pages of the first upto bytes that next() returned. */
void tk_input_release(struct tk_input *in, uint64_t upto);

/* Call before the first next(), which then returns only the first header bytes, and those from begin to end; the
 * rest of a mapped file is not touched. Offsets are those of the uncompressed trace. */
struct tk_trace_range {
  uint64_t header, begin, end;
};
void tk_input_part(struct tk_input *in, const struct tk_trace_range *part);
/* Converts an offset in next()'s bytes to an offset in the trace. */
uint64_t tk_input_offset(const struct tk_input *in, uint64_t given);

uint64_t tk_input_size(const struct tk_input *in); /* as stored; 0: unknown */
/* How much of the stored size was read; a mapping: all. */
uint64_t tk_input_position(const struct tk_input *in);

#endif
