/* SPDX-License-Identifier: Apache-2.0 */
#include "base/seed.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

/* Mixes a count with the second random word of AT_RANDOM; the first one is the stack protector's. */
static uint64_t from_process(void) {
  static atomic_uint_fast64_t count;
  const unsigned char *bytes = (const unsigned char *)(uintptr_t)getauxval(AT_RANDOM);
  uint64_t word = 0;

  if (bytes != NULL) memcpy(&word, bytes + sizeof word, sizeof word);
  word += UINT64_C(0x9E3779B97F4A7C15) * (atomic_fetch_add(&count, 1) + 1);
  word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
  return word ^ (word >> 31);
}

uint64_t tb_seed(void) {
  int saved = errno;
  uint64_t seed;

  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) seed = from_process();
  errno = saved;
  return seed;
}
