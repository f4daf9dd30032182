/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/frames.h"

enum { GREETING_BYTES = 8, HEAD_BYTES = 8 };

void tc_nng_frames_pass(struct tc_nng_frames *f, const uint8_t *bytes, size_t n) {
  while (n > 0) {
    size_t step = 1;

    if (f->greeting_bytes < GREETING_BYTES) {
      f->greeting_bytes++;
    } else if (f->left > 0) {
      step = n < f->left ? n : (size_t)f->left;
      f->left -= step;
    } else {
      f->head = f->head << 8 | *bytes;
      if (++f->head_bytes == HEAD_BYTES) {
        f->left = f->head;
        f->head = f->head_bytes = 0;
      }
    }
    bytes += step;
    n -= step;
  }
}

bool tc_nng_frames_is_inside(const struct tc_nng_frames *f) {
  return f->head_bytes > 0 || f->left > 0;
}
