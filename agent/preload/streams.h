/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether a call on a stream of stdio reaches the kernel, from the stream's buffer as glibc's header declares it.
 *
 * The buffer is read without the stream's lock. If another thread uses the stream meanwhile, a call that the buffer served may
 * be traced, or a call that reached the kernel may not be.
 */
#ifndef TA_STREAMS_H
#define TA_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TA_STREAM_LOOK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

enum { TA_STREAM_UNBUFFERED = 0x2, TA_STREAM_BY_LINES = 0x200 }; /* bits of _flags */

static inline size_t ta_stream_unread(const FILE *f) {
  const char *at = TA_STREAM_LOOK(f->_IO_read_ptr), *end = TA_STREAM_LOOK(f->_IO_read_end);

  return at != NULL && at < end ? (size_t)(end - at) : 0;
}

/* For a read of n items of that size. */
static inline bool ta_stream_reads(const FILE *f, size_t size, size_t n) {
  size_t bytes;

  return __builtin_mul_overflow(size, n, &bytes) || ta_stream_unread(f) < bytes;
}

/* For a read up to a character, of less than n bytes. */
static inline bool ta_stream_reads_to(const FILE *f, int end, int n) {
  size_t unread = ta_stream_unread(f);

  if (n > 0 && unread >= (size_t)n - 1) return false;
  return unread == 0 || memchr(TA_STREAM_LOOK(f->_IO_read_ptr), end, unread) == NULL;
}

static inline bool ta_stream_writes(const FILE *f, size_t size, size_t n) {
  const char *at = TA_STREAM_LOOK(f->_IO_write_ptr), *end = TA_STREAM_LOOK(f->_IO_buf_end);
  size_t bytes, room = at != NULL && at < end ? (size_t)(end - at) : 0;

  if ((TA_STREAM_LOOK(f->_flags) & (TA_STREAM_UNBUFFERED | TA_STREAM_BY_LINES)) != 0) return true;
  return __builtin_mul_overflow(size, n, &bytes) || room < bytes;
}

static inline bool ta_stream_is_dirty(const FILE *f) {
  return f == NULL || TA_STREAM_LOOK(f->_IO_write_ptr) > TA_STREAM_LOOK(f->_IO_write_base);
}

#endif
