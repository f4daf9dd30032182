/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/out.h"

#include <errno.h>
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
  if (n > sizeof out->data) {
    write_all(out, bytes, n);
    return;
  }
  memcpy(out->data, bytes, n);
  out->len = n;
}

/* Two digits a step. */
static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

char *tk_decimal(char *end, uint64_t value) {
  while (value >= 100) {
    end -= 2;
    memcpy(end, pairs + value % 100 * 2, 2);
    value /= 100;
  }
  if (value >= 10) {
    end -= 2;
    memcpy(end, pairs + value * 2, 2);
  } else {
    *--end = (char)('0' + value);
  }
  return end;
}

char *tk_hexadecimal(char *end, uint64_t value) {
  do {
    *--end = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  return end;
}

void tk_out_u64(struct tk_out *out, uint64_t value) {
  char text[20];
  char *end = text + sizeof text, *begin = tk_decimal(end, value);

  tk_out_bytes(out, begin, (size_t)(end - begin));
}

void tk_out_i64(struct tk_out *out, int64_t value) {
  if (value < 0) {
    tk_out_byte(out, '-');
    tk_out_u64(out, -(uint64_t)value);
  } else {
    tk_out_u64(out, (uint64_t)value);
  }
}

void tk_out_hex(struct tk_out *out, uint64_t value) {
  char text[16];
  char *end = text + sizeof text, *begin = tk_hexadecimal(end, value);

  tk_out_bytes(out, begin, (size_t)(end - begin));
}
