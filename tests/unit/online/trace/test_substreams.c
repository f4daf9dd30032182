/* SPDX-License-Identifier: Apache-2.0 */
/* J9, J10, J13, F15, F16: named sub-streams and blobs in experimental batches. J6 to J8: they come once per generation, and are
 * freed with it. The words and places of faults are tested in test_substream_faults.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/trace/pull.h"
#include "online/trace/substreams.h"
#include "support/blob_trace.h"
#include "support/seeds.h"

static struct tt_blobs t;

/* The reader and its state for looking at a trace. */
struct look {
  struct tb_mem mem;
  struct tb_diag diag;
  struct to_part part;
  struct to_pull *pull;
  struct to_substreams *s;
  bool quiet; /* faults are expected */
};

static void hear_fault(void *self, const struct tb_diag *fault) {
  struct look *look = self;

  cr_assert(look->quiet, "%s", fault->text);
}

static void look_at(struct look *look, const void *trace, size_t n) {
  struct to_fault_sink sink = { look, hear_fault };

  *look = (struct look){ .part = { trace, TW_HEADER_BYTES, TW_HEADER_BYTES, n, 0 } };
  tb_mem_init(&look->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&look->diag);
  cr_assert_eq(to_substreams_new(&look->mem, sink, &look->s), TB_OK);
  cr_assert_eq(to_pull_new(&look->mem, NULL, TO_READER_BYTES_STAY, to_part_source(&look->part),
                           &look->diag, &look->pull),
               TB_OK);
}

/* Returns the blob of the next event that has one; 0: none is left. */
static uint64_t next_blob(struct look *look) {
  const struct to_generation *gen;
  const struct to_event *ev;
  tb_rc rc;

  while ((rc = to_pull_next(look->pull, &ev, &gen)) == TB_OK) {
    if (ev->type == TW_EV_SYNC && gen != NULL)
      cr_assert_eq(to_substreams_generation(look->s, gen), TB_OK);
    uint64_t id = to_event_blob(gen, ev);
    if (id != 0) return id;
  }
  cr_assert_eq(rc, TB_END, "%s", look->diag.text);
  return 0;
}

static void look_away(struct look *look) {
  to_pull_free(look->pull);
  to_substreams_free(look->s);
  cr_assert_eq(look->mem.bytes, 0);
}

static void fill(unsigned char *out, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; i++)
    out[i] = (unsigned char)(seed = seed * 1103515245 + 12345, seed >> 16);
}

static struct to_bytes blob(struct look *look, uint64_t id) {
  struct tb_diag diag;
  struct to_bytes bytes;

  tb_diag_clear(&diag);
  cr_assert_eq(to_blob_read(look->s, id, &diag, &bytes), TB_OK, "%s", diag.text);
  return bytes;
}

static void expect_blob(struct look *look, uint64_t id, const void *bytes, size_t n) {
  struct to_bytes is = blob(look, id);

  cr_assert_eq(is.len, n);
  cr_assert_eq(memcmp(is.data, bytes, n), 0);
}

Test(substreams, a_blob_is_split_over_batches_and_joined_for_the_event_that_holds_it) {
  static unsigned char bytes[200000];
  struct look look;

  fill(bytes, sizeof bytes, 1);
  tt_blobs_open(&t);
  tt_blobs_put(&t, "heap.spans", 17, bytes, sizeof bytes);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 17);
  expect_blob(&look, 17, bytes, sizeof bytes);
  const struct to_substream *spans = to_substreams_find(look.s, t.experiment, "heap.spans");
  cr_assert_eq(spans->batches, 4);
  cr_assert_eq(spans->blobs, 1);
  cr_assert_eq(spans->blob->id, 17);
  cr_assert(spans->blob->whole && spans->blob->next == NULL && spans->content == NULL);
  cr_assert_eq(blob(&look, 17).data, blob(&look, 17).data, "joined once");
  cr_assert_eq(next_blob(&look), 0);
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, small_blobs_share_a_batch_and_cost_little_more_than_themselves) {
  enum { BLOBS = 1000, BYTES = 50 };
  unsigned char bytes[BYTES];
  struct look look;

  fill(bytes, sizeof bytes, 2);
  tt_blobs_open(&t);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "small");
  for (uint64_t id = 1; id <= BLOBS; id++) {
    bytes[0] = (unsigned char)id;
    tt_blobs_add(&t, "small", id, bytes, sizeof bytes);
  }
  tt_blobs_add(&t, "small", BLOBS + 1, NULL, 0);
  tt_blobs_log(&t, "small", 1);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 1);
  const struct to_substream *small = to_substreams_find(look.s, t.experiment, "small");
  cr_assert_eq(small->batches, 1);
  cr_assert_eq(small->blobs, BLOBS + 1);
  cr_assert_leq(small->bytes, BLOBS * (BYTES + 5) + 5);
  for (uint64_t id = 1; id <= BLOBS; id++) {
    bytes[0] = (unsigned char)id;
    expect_blob(&look, id, bytes, sizeof bytes);
  }
  cr_assert_eq(blob(&look, BLOBS + 1).len, 0);
  look_away(&look);
  tt_blobs_close(&t);
}

static void expect_content(const struct to_content *content, const char *text) {
  cr_assert_eq(content->thread, TT_BLOBS_THREAD);
  cr_assert_eq(content->len, strlen(text));
  cr_assert_eq(memcmp(content->data, text, content->len), 0);
  cr_assert_eq(memcmp(t.bytes.data + content->offset, text, content->len), 0, "its place");
}

static void put_bytes(const char *name, const char *text) {
  tt_blobs_batch(&t, TW_SUBSTREAM_BYTES, name);
  cr_assert_eq(tw_write_bytes(&t.batch, text, strlen(text)), TB_OK);
}

Test(substreams, one_heap_of_batches_is_several_streams_by_name_and_experiment) {
  struct look look;

  tt_blobs_open(&t);
  put_bytes("types", "a");
  put_bytes("spans", "b");
  put_bytes("types", "c");
  t.experiment = 9;
  put_bytes("types", "d");
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "types");
  tt_blobs_add(&t, "types", 1, "e", 1);
  tt_blobs_log(&t, "types", 1);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 1);
  const struct to_substream *types = to_substreams_at(look.s, 0),
                            *spans = to_substreams_at(look.s, 1),
                            *others = to_substreams_at(look.s, 2);
  cr_assert_null(to_substreams_at(look.s, 3));
  cr_assert_eq(types, to_substreams_find(look.s, 1, "types"));
  cr_assert_eq(spans, to_substreams_find(look.s, 1, "spans"));
  cr_assert_eq(others, to_substreams_find(look.s, 9, "types"));
  cr_assert_null(to_substreams_find(look.s, 9, "spans"));
  expect_content(types->content, "a");
  expect_content(types->content->next, "c");
  cr_assert_null(types->content->next->next);
  expect_content(spans->content, "b");
  expect_content(others->content, "d");
  cr_assert(types->batches == 2 && types->bytes == 2 && others->batches == 2 && others->blobs == 1);
  cr_assert_eq(to_blob_find(look.s, 1)->substream, others);
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, pieces_may_come_in_any_order) {
  enum { PIECES = 40, BYTES = 300 };
  static unsigned char bytes[PIECES * BYTES];
  struct look look;

  fill(bytes, sizeof bytes, 3);
  tt_blobs_open(&t);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "mixed");
  for (size_t i = 0; i < PIECES; i++) {
    size_t at = i * 7 % PIECES * BYTES;
    tt_blobs_piece(&t, 5, sizeof bytes, at, bytes + at, BYTES);
  }
  tt_blobs_log(&t, "mixed", 5);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 5);
  expect_blob(&look, 5, bytes, sizeof bytes);
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, what_a_generation_brought_ends_with_it) {
  struct look look;

  tt_blobs_open(&t);
  tt_blobs_put(&t, "a", 1, "first", 5);
  tt_blobs_put(&t, "a", 2, "second", 6);
  tt_blobs_end(&t);
  tt_blobs_put(&t, "b", 1, "another", 7); /* ids start again with each generation */
  tt_blobs_end(&t);
  tt_blobs_end(&t); /* a generation without sub-streams */
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 1);
  expect_blob(&look, 1, "first", 5);
  expect_blob(&look, 2, "second", 6);
  cr_assert_eq(next_blob(&look), 2);
  cr_assert_eq(next_blob(&look), 1);
  expect_blob(&look, 1, "another", 7);
  cr_assert_null(to_blob_find(look.s, 2));
  cr_assert_null(to_substreams_find(look.s, t.experiment, "a"));
  cr_assert_eq(next_blob(&look), 0);
  cr_assert_null(to_substreams_at(look.s, 0));
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, batches_of_go_and_of_strangers_are_none_of_ours) {
  enum { GO_1_23 = 5, GO_1_26 = 13 }; /* AllocFree, in the table of seeds.sh */
  struct tt_pack seeds = tt_seeds_load();
  const size_t which[] = { GO_1_23, GO_1_26 };
  struct look look;

  for (int i = 0; i < 2; i++) {
    look_at(&look, seeds.input[which[i]].data, seeds.input[which[i]].len);
    cr_assert_eq(next_blob(&look), 0);
    cr_assert_null(to_substreams_at(look.s, 0));
    look_away(&look);
  }
  tt_pack_free(&seeds);

  static const char *const strangers[] = { "", "\xd5", "\xd5tcsu", "tcsub\1\1\1a",
                                           "\xd5tcsuB\1\1\1a" };
  tt_blobs_open(&t);
  for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
    tt_blobs_raw(&t, strangers[i], strlen(strangers[i]));
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(next_blob(&look), 0);
  cr_assert_null(to_substreams_at(look.s, 0));
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, where_memory_ends_a_generation_seems_to_have_none_and_the_next_is_read) {
  static unsigned char bytes[70000];
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_bytes joined;
  struct look look;

  tt_blobs_open(&t);
  tt_blobs_put(&t, "a", 1, bytes, sizeof bytes);
  for (uint64_t id = 2; id < 400; id++) tt_blobs_put(&t, "a", id, "x", 1);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  cr_assert_eq(to_pull_next(look.pull, &ev, &gen), TB_OK);
  size_t given = look.mem.bytes, refused = 0;
  for (look.mem.bytes_max = given; to_substreams_generation(look.s, gen) == TB_BUDGET; refused++) {
    cr_assert_null(to_substreams_at(look.s, 0));
    cr_assert_null(to_blob_find(look.s, 1));
    look.mem.bytes_max += 1024;
  }
  cr_assert_gt(refused, 30);
  cr_assert_leq(look.mem.bytes - given, 400 * (112 + 48 + 46) + 16384, "%zu",
                look.mem.bytes - given);
  cr_assert_eq(to_blob_read(look.s, 1, NULL, &joined), TB_BUDGET);
  look.mem.bytes_max = SIZE_MAX;
  expect_blob(&look, 1, bytes, sizeof bytes);
  look_away(&look);
  tt_blobs_close(&t);
}

Test(substreams, a_claimed_size_takes_no_memory) {
  struct look look;

  tt_blobs_open(&t);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "bombs");
  for (uint64_t id = 1; id <= 100; id++)
    tt_blobs_piece(&t, id, TW_BLOB_BYTES_MAX, TW_BLOB_BYTES_MAX - 1, "x", 1);
  tt_blobs_log(&t, "bombs", 1);
  tt_blobs_end(&t);
  look_at(&look, t.bytes.data, t.bytes.len);
  look.quiet = true;
  size_t before = look.mem.bytes_peak;
  cr_assert_eq(next_blob(&look), 1);
  cr_assert_eq(to_substreams_faults(look.s), 100);
  cr_assert_leq(look.mem.bytes_peak, before + (1 << 20), "%zu", look.mem.bytes_peak - before);
  look_away(&look);
  tt_blobs_close(&t);
}
