/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/order_text.h"
#include "wire/split.h"

static const char two_generations[] =
    "Trace Go1.26\n"
    "EventBatch gen=1 m=0 time=1\n"
    "ProcStatus dt=1 p=0 pstatus=1\n"
    "ExperimentalBatch exp=1 gen=1 m=0 time=5 data=\"any\\x00bytes\"\n"
    "EventBatch gen=2 m=0 time=10\n"
    "ProcStatus dt=1 p=0 pstatus=1\n";

struct parts {
  struct tb_mem mem;
  struct tb_buf trace, joined;
  unsigned headers, batches, marks, raws;
};

static void setup(struct parts *parts) {
  *parts = (struct parts){ 0 };
  tb_mem_init(&parts->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&parts->trace, &parts->mem);
  tb_buf_init(&parts->joined, &parts->mem);
  tt_trace_bytes(two_generations, &parts->mem, &parts->trace);
}

static void teardown(struct parts *parts) {
  tb_buf_fini(&parts->trace);
  tb_buf_fini(&parts->joined);
  cr_assert_eq(parts->mem.bytes, 0);
}

static void take(struct parts *parts, const struct tw_item *item) {
  cr_assert_eq(item->offset, parts->joined.len, "items lie end to end");
  tb_buf_add(&parts->joined, item->bytes, item->len);
  parts->headers += item->kind == TW_ITEM_HEADER;
  parts->batches += item->kind == TW_ITEM_BATCH;
  parts->marks += item->kind == TW_ITEM_END_MARK;
  parts->raws += item->kind == TW_ITEM_RAW;
}

/* Feeds the trace in chunks. Returns the fault. */
static struct tb_diag split_in_chunks(struct parts *parts, size_t chunk) {
  struct tw_split split;
  struct tw_item item;

  parts->headers = parts->batches = parts->marks = parts->raws = 0;
  tb_buf_clear(&parts->joined);
  tw_split_init(&split, &parts->mem);
  for (size_t pos = 0; pos < parts->trace.len;) {
    size_t used, n = parts->trace.len - pos < chunk ? parts->trace.len - pos : chunk;
    tb_rc rc = tw_split_feed(&split, parts->trace.data + pos, n, &used, &item);
    pos += used;
    if (rc == TB_OK)
      take(parts, &item);
    else
      cr_assert(rc == TB_AGAIN && used == n);
  }
  while (tw_split_finish(&split, &item) == TB_OK) take(parts, &item);
  cr_assert_eq(parts->joined.len, parts->trace.len);
  for (size_t i = 0; i < parts->trace.len; i++)
    cr_assert_eq(parts->joined.data[i], parts->trace.data[i], "byte %zu is not the same", i);
  struct tb_diag fault = split.fault;
  tw_split_fini(&split);
  return fault;
}

Test(split, any_chunking_gives_the_same_units) {
  struct parts parts;

  setup(&parts);
  for (size_t chunk = 1; chunk <= parts.trace.len; chunk++) {
    cr_assert_eq(split_in_chunks(&parts, chunk).rc, TB_OK);
    cr_assert(parts.headers == 1 && parts.batches == 9 && parts.marks == 2 && parts.raws == 0,
              "chunks of %zu: %u headers, %u batches, %u marks", chunk, parts.headers,
              parts.batches, parts.marks);
  }
  teardown(&parts);
}

Test(split, after_a_fault_all_bytes_are_handed_on_raw) {
  struct parts parts;

  setup(&parts);
  size_t second = TW_HEADER_BYTES;
  parts.trace.data[second] = 99; /* not the begin of a batch */
  for (size_t chunk = 1; chunk <= parts.trace.len; chunk++) {
    struct tb_diag fault = split_in_chunks(&parts, chunk);
    cr_assert_eq(fault.rc, TB_BROKEN);
    cr_assert_eq(fault.offset, second);
    cr_assert_not_null(strstr(fault.text, "event type 99"));
    cr_assert(parts.headers == 1 && parts.batches == 0 && parts.raws > 0);
  }
  teardown(&parts);
}

Test(split, a_cut_off_end_is_handed_on_and_named) {
  struct parts parts;

  setup(&parts);
  size_t whole = parts.trace.len;
  for (size_t len = 0; len < whole; len++) {
    parts.trace.len = len;
    struct tb_diag fault = split_in_chunks(&parts, 7);
    cr_assert_eq(fault.rc, parts.raws > 0 ? TB_BROKEN : TB_OK);
    cr_assert_leq(parts.raws, 1);
  }
  parts.trace.len = whole;
  teardown(&parts);
}

Test(split, a_strange_header_is_handed_on_raw_with_its_version) {
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t used;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  cr_assert_eq(tw_split_feed(&split, "go 1.31 trace\0\0\0\1\1\1", 19, &used, &item), TB_OK);
  cr_assert_eq(item.kind, TW_ITEM_RAW);
  cr_assert_eq(item.len, 19);
  cr_assert_eq(split.version, 31);
  cr_assert_eq(split.fault.rc, TB_UNSUPPORTED);
  tw_split_fini(&split);
}

Test(split, without_memory_nothing_is_taken) {
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t used;

  tb_mem_init(&mem, tb_mem_libc, NULL, 100);
  tw_split_init(&split, &mem);
  cr_assert_eq(tw_split_feed(&split, "go 1", 4, &used, &item), TB_BUDGET);
  cr_assert_eq(used, 0);
  mem.bytes_max = SIZE_MAX;
  cr_assert_eq(tw_split_feed(&split, "go 1", 4, &used, &item), TB_AGAIN);
  cr_assert_eq(used, 4);
  cr_assert_eq(tw_split_feed(&split, ".26 trace\0\0\0", 12, &used, &item), TB_OK);
  cr_assert_eq(item.kind, TW_ITEM_HEADER);
  tw_split_fini(&split);
  cr_assert_eq(mem.bytes, 0);
}

static void *no_more(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  return new_bytes > old_bytes ? NULL : tb_mem_libc(self, block, old_bytes, new_bytes);
}

Test(split, what_was_reserved_is_not_asked_for_again) {
  struct parts parts;
  struct tw_split split;
  struct tw_item item;
  struct tb_mem mem;
  size_t used;

  setup(&parts);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  cr_assert_eq(tw_split_reserve(&split), TB_OK);
  mem.resize = no_more;
  for (size_t pos = 0; pos < parts.trace.len; pos += used) {
    tb_rc rc = tw_split_feed(&split, parts.trace.data + pos, 1, &used, &item);
    cr_assert(rc == TB_OK || rc == TB_AGAIN);
    if (rc == TB_OK) take(&parts, &item);
  }
  cr_assert_eq(parts.joined.len, parts.trace.len);
  tw_split_fini(&split);
  cr_assert_eq(mem.bytes, 0);
  teardown(&parts);
}
