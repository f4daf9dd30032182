/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a, for short texts. If a peer chooses the texts, start with a secret (tb_seed()). */
#ifndef TB_BASE_HASH_H
#define TB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TB_HASH_START UINT64_C(0xcbf29ce484222325)

/* hash: TB_HASH_START, a secret, or the hash of the preceding bytes. */
static inline uint64_t tb_hash(uint64_t hash, const void *bytes, size_t n) {
  const unsigned char *byte = bytes;

  for (size_t i = 0; i < n; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
  return hash;
}

#endif
