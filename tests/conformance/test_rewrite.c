/* SPDX-License-Identifier: Apache-2.0 */
/* Read, write, read: every batch of a Go runtime, parsed and written again by our writer, has the same bytes; and a
 * trace as text, read back and written again, is the same text. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/patience.h"
#include "support/stored.h"
#include "support/trace_text.h"
#include "wire/raw.h"
#include "wire/split.h"
#include "wire/write.h"

/* With strict_string_checks each number that is parsed costs a pass over the whole text. */
enum { TEXT_TRACE_BYTES_MAX = TT_LESS(4 << 20, 48 << 10) };

static void rewrite_table_entry(struct tw_write *w, const struct tw_raw *event, const char *path) {
  const unsigned char *pos = event->args;
  uint64_t args[8] = { 0 };
  tb_rc rc = TB_OK;

  for (uint64_t i = 0; i < event->nargs; i++) args[i] = tw_raw_number(&pos);
  switch (event->type) {
  case TW_EV_STRING: rc = tw_write_string(w, args[0], event->data, event->data_len); break;
  case TW_EV_STACK: {
    static struct tw_frame frames[TW_STACK_FRAMES_MAX];
    cr_assert_leq(event->frames, TW_STACK_FRAMES_MAX, "%s", path);
    for (uint64_t i = 0; i < event->frames; i++) pos = tw_frame_read(pos, &frames[i]);
    rc = tw_write_stack(w, args[0], frames, (unsigned)event->frames);
    break;
  }
  case TW_EV_CPU_SAMPLE:
    rc =
        tw_write_cpu_sample(w, &(struct tw_cpu_sample){ args[0], (int64_t)args[1], (int64_t)args[2],
                                                        (int64_t)args[3], args[4] });
    break;
  case TW_EV_STRINGS:
  case TW_EV_STACKS:
  case TW_EV_CPU_SAMPLES: break; /* the writer adds it itself */
  default: rc = tw_write_event(w, event->type, w->time + args[0], args + 1);
  }
  cr_assert_eq(rc, TB_OK, "%s: event type %u: %s", path, event->type, tb_rc_name(rc));
}

static void rewrite_sync(struct tw_write *w, const struct tw_batch *batch, const char *path) {
  struct tw_section section;
  struct tb_diag diag = { 0 };
  struct tw_clocks clocks = { .time = w->time };
  struct tw_sync sync;

  tw_section_open(&section, batch, w->version, &diag);
  while (tw_sync_next(&section, w->version, &sync) == TB_OK) {
    if (sync.type == TW_EV_FREQUENCY)
      clocks.frequency = sync.args[0];
    else
      clocks = (struct tw_clocks){ clocks.frequency, w->time + sync.args[0], sync.args[1],
                                   sync.args[2], sync.args[3] };
  }
  cr_assert_eq(diag.rc, TB_OK, "%s: %s", path, diag.text);
  cr_assert_eq(tw_write_sync(w, &clocks), TB_OK, "%s", path);
}

static size_t rewrite(const struct tw_batch *batch, unsigned version, unsigned char *room,
                      const char *path) {
  struct tw_write w;

  tw_write_open(&w, room, TW_WRITE_ROOM, version, batch);
  if (batch->experiment != 0) {
    cr_assert_eq(tw_write_bytes(&w, batch->data, batch->len), TB_OK, "%s", path);
  } else if (tw_batch_kind(batch, version) == TW_BATCH_SYNC) {
    rewrite_sync(&w, batch, path);
  } else {
    for (size_t at = 0, used; at < batch->len; at += used) {
      struct tw_raw event;
      struct tb_diag diag = { 0 };
      cr_assert_eq(
          tw_raw_read(batch->data + at, batch->len - at, TW_EV_LIMIT, &diag, &event, &used), TB_OK,
          "%s: %s", path, diag.text);
      rewrite_table_entry(&w, &event, path);
    }
  }
  return tw_write_close(&w);
}

static void rewrite_trace(const struct tt_stored *trace) {
  static unsigned char room[TW_WRITE_ROOM];
  struct tb_mem mem;
  struct tw_split split;
  struct tw_item item;
  size_t at = 0, used, batches = 0;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tw_split_init(&split, &mem);
  for (; tw_split_feed(&split, trace->bytes + at, trace->len - at, &used, &item) == TB_OK;
       at += used) {
    if (item.kind != TW_ITEM_BATCH) continue;
    size_t n = rewrite(&item.batch, split.version, room, trace->path);
    cr_assert_eq(n, item.len, "%s: batch at %zu: %zu bytes, was %zu", trace->path,
                 (size_t)item.offset, n, item.len);
    cr_assert_eq(memcmp(room, item.bytes, n), 0, "%s: batch at %zu", trace->path,
                 (size_t)item.offset);
    batches++;
  }
  cr_assert_gt(batches, 0, "%s", trace->path);
  tw_split_fini(&split);
}

static void text_round_trip(const struct tt_stored *trace) {
  struct tb_mem mem;
  struct tb_buf text, bytes, again;
  struct tb_diag diag = { 0 };

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&text, &mem);
  tb_buf_init(&bytes, &mem);
  tb_buf_init(&again, &mem);
  cr_assert_eq(tt_text_write(trace->bytes, trace->len, &text, &diag), TB_OK, "%s: %s", trace->path,
               diag.text);
  tb_buf_byte(&text, '\0');
  cr_assert_eq(tt_text_to_bytes((const char *)text.data, &mem, &bytes, &diag), TB_OK, "%s: %s",
               trace->path, diag.text);
  cr_assert_eq(tt_text_write(bytes.data, bytes.len, &again, &diag), TB_OK, "%s: %s", trace->path,
               diag.text);
  cr_assert_eq(again.len, text.len - 1, "%s", trace->path);
  cr_assert_eq(memcmp(again.data, text.data, again.len), 0, "%s", trace->path);
  tb_buf_fini(&text);
  tb_buf_fini(&bytes);
  tb_buf_fini(&again);
  cr_assert_eq(mem.bytes, 0);
}

Test(rewrite, a_trace_of_ours_written_anew_has_the_same_bytes) {
  cr_assert_gt(tt_each_stored("tests/data", SIZE_MAX, rewrite_trace), 4);
}

Test(rewrite, a_trace_of_ours_as_text_reads_back_as_the_same_text) {
  cr_assert_gt(tt_each_stored("tests/data", TEXT_TRACE_BYTES_MAX, text_round_trip), 4);
}

Test(rewrite, the_corpus_written_anew_has_the_same_bytes) {
  size_t looked = tt_each_stored("../shared/traces/corpus", SIZE_MAX, rewrite_trace);

  if (looked > 0 || getenv("CI") != NULL) cr_assert_gt(looked, 20, "no corpus beside the checkout");
}
