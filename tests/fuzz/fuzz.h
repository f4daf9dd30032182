/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target is one function that accepts any bytes, and aborts if a promise is broken.
 *
 * The same target runs under clang's libFuzzer (preset fuzz), and under every compiler with
 * fuzz_main.c, which replays a corpus and can mutate by itself.
 *
 * A target may define LLVMFuzzerCustomMutator() if its input has a structure; the function calls LLVMFuzzerMutate() for
 * the rest.
 */
#ifndef TT_FUZZ_H
#define TT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#define FUZZ_CHECK(promise)                                                                        \
  do {                                                                                             \
    if (!(promise)) {                                                                              \
      fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #promise);                \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

#endif
