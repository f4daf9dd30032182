/* SPDX-License-Identifier: Apache-2.0 */
/* A target that does nothing: measures the speed of mutator and sanitizer, for bench_fuzz.sh. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return data == NULL && size > 0;
}
