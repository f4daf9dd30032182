/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus as one file: inputs one after the other, each preceded by its length (u32, little endian).
 *
 * Errors    printed on stderr; the call returns false.
 */
#ifndef TT_PACK_H
#define TT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_input {
  const uint8_t *data;
  size_t len;
};

struct tt_pack {
  uint8_t *bytes;
  struct tt_input *input;
  size_t n;
};

bool tt_pack_load(const char *path, struct tt_pack *out);
void tt_pack_free(struct tt_pack *pack);

#endif
