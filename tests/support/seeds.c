/* SPDX-License-Identifier: Apache-2.0 */
#include "support/seeds.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "wire/split.h"

struct tt_pack tt_seeds_load(void) {
  const char *top = getenv("TC_SOURCE_DIR");
  struct tt_pack pack;
  char path[1200];

  snprintf(path, sizeof path, "%s/tests/oracle/seeds.pack", top == NULL ? "." : top);
  cr_assert(tt_pack_load(path, &pack));
  cr_assert_eq(pack.n, 20);
  return pack;
}

size_t tt_generations(const unsigned char *trace, size_t n, struct tt_place *out, size_t max) {
  size_t count = 0, used;
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  uint64_t gen = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  for (; tw_split_feed(&split, trace, n, &used, &item) == TB_OK; trace += used, n -= used) {
    if (item.kind == TW_ITEM_BATCH && item.batch.gen != gen) {
      cr_assert_lt(count, max);
      out[count++] = (struct tt_place){ item.offset, 0 };
      gen = item.batch.gen;
    }
    if (count > 0) out[count - 1].bytes = item.offset + item.len - out[count - 1].offset;
  }
  tw_split_fini(&split);
  return count;
}
