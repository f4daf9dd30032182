/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter: a stream splits into the same items however it is cut. Each input is cut in one way of its own. */
#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "wire/split.h"

/* FNV-1a over the content of the items, and a checksum of the raw bytes. */
struct sum {
  uint64_t hash, bytes, items;
  uint32_t raw;
};

static void add(struct sum *sum, uint64_t value) {
  sum->hash = (sum->hash ^ value) * UINT64_C(0x100000001b3);
}

/* Raw bytes arrive in pieces of any size: only their content counts, not the number of items. */
static void take_item(struct sum *sum, const struct tw_item *item) {
  FUZZ_CHECK(item->offset == sum->bytes);
  sum->bytes += item->len;
  if (item->kind == TW_ITEM_RAW) {
    sum->raw = tb_crc32c(sum->raw, item->bytes, item->len);
    return;
  }
  sum->items++;
  add(sum, item->kind);
  add(sum, item->len);
  if (item->kind != TW_ITEM_BATCH) return;
  add(sum, item->batch.gen);
  add(sum, (uint64_t)item->batch.thread);
  add(sum, item->batch.time);
  add(sum, item->batch.experiment);
}

static struct sum split_in(const uint8_t *data, size_t size, size_t piece) {
  struct sum sum = { .hash = UINT64_C(0xcbf29ce484222325) };
  static struct tw_split
      split; /* reused for all inputs, because it has 64 KiB; leftovers would show as a wrong sum */
  static struct tb_mem mem;
  struct tw_item item;
  tb_rc rc;

  if (split.mem == NULL) {
    tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
    tw_split_init(&split, &mem);
    FUZZ_CHECK(tw_split_reserve(&split) == TB_OK);
  }
  tw_split_reset(&split);
  size_t held = mem.bytes;
  for (size_t at = 0; at < size;) {
    size_t n = size - at < piece ? size - at : piece, used;
    rc = tw_split_feed(&split, data + at, n, &used, &item);
    FUZZ_CHECK(rc == TB_OK || rc == TB_AGAIN);
    FUZZ_CHECK(used <= n && (rc == TB_OK || used == n));
    if (rc == TB_OK) take_item(&sum, &item);
    at += used;
    /* Take all items of a piece before the next one is fed, as real callers do. */
    while (rc == TB_OK && used == n) {
      rc = tw_split_feed(&split, data + at, 0, &used, &item);
      if (rc == TB_OK) take_item(&sum, &item);
      n = used = 0;
    }
  }
  while ((rc = tw_split_finish(&split, &item)) == TB_OK) take_item(&sum, &item);
  FUZZ_CHECK(rc == TB_END && sum.bytes == size);
  add(&sum, sum.raw);
  add(&sum, split.version);
  add(&sum, split.fault.rc);
  FUZZ_CHECK(mem.bytes == held);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct sum whole = split_in(data, size, size);
  if (size < 2) return 0;
  /* The number of pieces is twice a power of four, so that short pieces are as frequent as long ones. */
  size_t pieces = (size_t)2 << tb_crc32c(0, data, size) % 4 * 2;
  struct sum cut = split_in(data, size, pieces < size ? size / pieces : 1);
  FUZZ_CHECK(cut.hash == whole.hash && cut.items == whole.items);
  return 0;
}
