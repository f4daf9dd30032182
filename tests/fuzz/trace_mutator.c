/* SPDX-License-Identifier: Apache-2.0 */
/* Mutator of the targets whose input is a whole trace. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "oracle/mutate.h"

/* Random bytes seldom get past the first batch: half of the mutants keep the structure of
 * batches. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  static unsigned char mutant[TT_MUTANT_BYTES_MAX];
  struct tt_rng rng = { seed };

  if (seed % 2 == 0 || size < 32 || size > TT_MUTANT_BYTES_MAX / 2)
    return LLVMFuzzerMutate(data, size, max_size);
  struct tt_seed whole = { "input", data, size };
  size_t len = tt_mutate(&rng, &whole, 1, mutant);
  if (len > max_size) len = max_size;
  memcpy(data, mutant, len);
  return len;
}
