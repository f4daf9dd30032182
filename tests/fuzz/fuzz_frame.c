/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the bytes as they are, and with a valid checksum, since chance does not find one. An accepted frame can be
 * written again, byte for byte. */
#include <string.h>

#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "proto/frame.h"

enum { CRC_AT = 24 };

static void write_again(const uint8_t *data, const struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES], summed[TP_HEADER_BYTES];

  tp_frame_head(frame, head);
  tp_frame_head_summed(frame, summed);
  FUZZ_CHECK(memcmp(head, data, sizeof head) == 0 && memcmp(summed, data, sizeof summed) == 0);
}

static bool take(const uint8_t *data, size_t size) {
  size_t used = 0, need = 0;
  struct tp_frame frame;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tp_frame_take(data, size, &diag, &frame, &used, &need);
  switch (rc) {
  case TB_OK:
    FUZZ_CHECK(used == TP_HEADER_BYTES + frame.len && used <= size);
    FUZZ_CHECK(frame.payload == data + TP_HEADER_BYTES);
    FUZZ_CHECK(tp_kind_name(frame.kind) != NULL);
    write_again(data, &frame);
    return true;
  case TB_AGAIN:
    FUZZ_CHECK(need > size && need <= TP_HEADER_BYTES + TP_FRAME_BYTES_MAX);
    return false;
  default: FUZZ_CHECK(rc == TB_PROTOCOL && diag.text[0] != '\0'); return false;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t len;

  take(data, size);
  if (size < TP_HEADER_BYTES) return 0;
  uint8_t *sealed = malloc(size);
  if (sealed == NULL) return 0;
  memcpy(sealed, data, size);
  /* A valid length, too. */
  len = (uint32_t)(size - TP_HEADER_BYTES);
  for (int i = 0; i < 4; i++) sealed[i] = (uint8_t)(len >> 8 * i);
  uint32_t crc = tb_crc32c(tb_crc32c(0, sealed + TP_HEADER_BYTES, len), sealed, CRC_AT);
  for (int i = 0; i < 4; i++) sealed[CRC_AT + i] = (uint8_t)(crc >> 8 * i);
  take(sealed, size);
  free(sealed);
  return 0;
}
