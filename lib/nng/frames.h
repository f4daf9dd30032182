/* SPDX-License-Identifier: Apache-2.0 */
/* Where one direction of an nng connection stands: a greeting, then messages of 8 bytes of length and that many bytes
 * (the SP protocols' mapping to TCP). */
#ifndef TC_NNG_FRAMES_H
#define TC_NNG_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tc_nng_frames {
  unsigned greeting_bytes, head_bytes;
  uint64_t head, left;
};

void tc_nng_frames_pass(struct tc_nng_frames *frames, const uint8_t *bytes, size_t n);
bool tc_nng_frames_is_inside(
    const struct tc_nng_frames *frames); /* a message has begun and not ended */

#endif
