/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output for verbs that print millions of lines: one large buffer, numbers formatted in place.
 *
 * Sketch: a parsed event is about 200 bytes of text, most of it stack frames that are copied from a
 * cache; at 10 GB/s memcpy that is 20 ns, so the rest of a line must not cost more: room is made once
 * for all of it, words are copied whole (1 ns each), numbers written eight digits at a time (6 an event,
 * 3 to 6 ns each, a third of all; printf would take 80). A next step would keep the leading digits of the
 * time, which are those of the line before.
 *
 * Errors    the first failed write sticks: later puts do nothing. A broken pipe counts as one, silent.
 */
#ifndef TK_TERM_OUT_H
#define TK_TERM_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tools/tracectl/term/pen.h"

enum { TK_OUT_BYTES = 256 << 10 };

struct tk_out {
  int fd;
  int error; /* errno of the first failed write; 0: none */
  size_t len;
  unsigned char data[TK_OUT_BYTES + TK_PEN_SLACK];
};

void tk_out_init(struct tk_out *out, int fd);
void tk_out_flush(struct tk_out *out);
/* For more than fits: writes through the buffer, or past it. */
void tk_out_bytes_slow(struct tk_out *out, const void *bytes, size_t n);

static inline void tk_out_bytes(struct tk_out *out, const void *bytes, size_t n) {
  if (n > TK_OUT_BYTES - out->len) {
    tk_out_bytes_slow(out, bytes, n);
    return;
  }
  if (n > 0) memcpy(out->data + out->len, bytes, n); /* an empty text may be NULL */
  out->len += n;
}

static inline void tk_out_text(struct tk_out *out, const char *text) {
  tk_out_bytes(out, text, strlen(text));
}

static inline void tk_out_byte(struct tk_out *out, char byte) {
  tk_out_bytes(out, &byte, 1);
}

/* Returns room for n bytes in one piece (tools/tracectl/term/pen.h); tk_out_upto() ends the write. n is at
 * most TK_OUT_BYTES. */
static inline char *tk_out_room(struct tk_out *out, size_t n) {
  if (n > TK_OUT_BYTES - out->len) tk_out_flush(out);
  return (char *)out->data + out->len;
}

static inline void tk_out_upto(struct tk_out *out, const char *at) {
  out->len = (size_t)(at - (char *)out->data);
}

void tk_out_u64(struct tk_out *out, uint64_t value);
void tk_out_i64(struct tk_out *out, int64_t value);
void tk_out_hex(struct tk_out *out, uint64_t value);

#endif
