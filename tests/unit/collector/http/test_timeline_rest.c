/* SPDX-License-Identifier: Apache-2.0 */
/* A sanitizer's allocator keeps memory that is freed: with one this test proves nothing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/timeline/timeline.h"

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
enum { BLOCKS = 20000, BLOCK_BYTES = 4000 };

static size_t resident_bytes(void) {
  unsigned long pages;
  FILE *file = fopen("/proc/self/statm", "r");

  cr_assert_eq(fscanf(file, "%*u %lu", &pages), 1);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The heap is as after a timeline has been drawn: all blocks are freed except the last one. */
Test(timeline, what_it_gives_back_is_the_systems_again) {
  static char *block[BLOCKS];
  struct tc_timeline *t = tc_timeline_new(1 << 20);
  size_t before = resident_bytes();

  for (size_t i = 0; i < BLOCKS; i++) block[i] = memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
  for (size_t i = 0; i + 1 < BLOCKS; i++) free(block[i]);
  cr_assert_gt(resident_bytes(), before + BLOCKS / 2 * BLOCK_BYTES);
  tc_timeline_rest(t);
  cr_assert_lt(resident_bytes(), before + BLOCKS / 10 * BLOCK_BYTES);
  free(block[BLOCKS - 1]);
  tc_timeline_free(t);
}
#endif
