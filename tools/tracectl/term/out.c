/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/out.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void tk_out_init(struct tk_out *out, int fd) {
  out->fd = fd;
  out->error = 0;
  out->len = 0;
}

static void write_all(struct tk_out *out, const unsigned char *bytes, size_t n) {
  while (n > 0 && out->error == 0) {
    ssize_t put = write(out->fd, bytes, n);
    if (put < 0) {
      if (errno != EINTR) out->error = errno;
      continue;
    }
    bytes += put;
    n -= (size_t)put;
  }
}

void tk_out_flush(struct tk_out *out) {
  write_all(out, out->data, out->len);
  out->len = 0;
}

void tk_out_bytes_slow(struct tk_out *out, const void *bytes, size_t n) {
  tk_out_flush(out);
  if (n > TK_OUT_BYTES) {
    write_all(out, bytes, n);
    return;
  }
  memcpy(out->data, bytes, n);
  out->len = n;
}

struct tk_word tk_word(const char *before, const char *text, const char *behind) {
  struct tk_word word;
  int n = snprintf(word.text, sizeof word.text, "%s%s%s", before, text, behind);

  word.len = (uint8_t)(n < (int)sizeof word.text ? n : (int)sizeof word.text - 1);
  return word;
}

void tk_out_u64(struct tk_out *out, uint64_t value) {
  tk_out_upto(out, tk_pen_u64(tk_out_room(out, TK_PEN_DECIMAL_MAX), value));
}

void tk_out_i64(struct tk_out *out, int64_t value) {
  tk_out_upto(out, tk_pen_i64(tk_out_room(out, TK_PEN_DECIMAL_MAX), value));
}

void tk_out_hex(struct tk_out *out, uint64_t value) {
  tk_out_upto(out, tk_pen_hex(tk_out_room(out, TK_PEN_DECIMAL_MAX), value));
}
