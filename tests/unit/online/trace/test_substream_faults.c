/* SPDX-License-Identifier: Apache-2.0 */
/* J9, J10, I19: a fault of a sub-stream or a blob is reported with place and reason. Faulty data is not delivered, but correct
 * data beside it is. Writing refuses what could not be read. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/trace/pull.h"
#include "online/trace/substreams.h"
#include "support/blob_trace.h"

enum { FAULTS_MAX = 4 };

static struct tt_blobs t;

struct heard {
  struct tb_diag fault[FAULTS_MAX];
  size_t count;
};

static void hear(void *self, const struct tb_diag *fault) {
  struct heard *heard = self;

  cr_assert_lt(heard->count, FAULTS_MAX, "%s", fault->text);
  heard->fault[heard->count++] = *fault;
}

/* A reader at the end of a generation, and the generation's parts. */
struct read {
  struct tb_mem mem;
  struct to_part part;
  struct to_pull *pull;
  struct to_substreams *s;
  struct heard heard;
};

static void read_it(struct read *r) {
  const struct to_generation *gen;
  const struct to_event *ev;

  tt_blobs_end(&t);
  *r = (struct read){ .part = { t.bytes.data, TW_HEADER_BYTES, TW_HEADER_BYTES, t.bytes.len, 0 } };
  tb_mem_init(&r->mem, tb_mem_libc, NULL, SIZE_MAX);
  struct to_fault_sink sink = { &r->heard, hear };
  cr_assert_eq(to_substreams_new(&r->mem, sink, &r->s), TB_OK);
  cr_assert_eq(
      to_pull_new(&r->mem, NULL, TO_READER_BYTES_STAY, to_part_source(&r->part), NULL, &r->pull),
      TB_OK);
  cr_assert_eq(to_pull_next(r->pull, &ev, &gen), TB_OK);
  cr_assert_eq(to_substreams_generation(r->s, gen), TB_OK);
  cr_assert_eq(to_substreams_faults(r->s), r->heard.count);
}

static void read_no_more(struct read *r) {
  to_pull_free(r->pull);
  to_substreams_free(r->s);
  cr_assert_eq(r->mem.bytes, 0);
  tt_blobs_close(&t);
}

static void open_pieces(void) {
  tt_blobs_open(&t);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "s");
  tt_blobs_piece(&t, 99, 2, 0, "ok", 2); /* a correct blob beside each fault */
}

static void expect_good(struct read *r) {
  struct to_bytes bytes;

  cr_assert_eq(to_blob_read(r->s, 99, NULL, &bytes), TB_OK);
  cr_assert(bytes.len == 2 && memcmp(bytes.data, "ok", 2) == 0);
}

/* Expects one fault of a blob: reported once when the generation is read, and to each caller
 * that asks for the blob. */
static void expect_blob_fault(uint64_t id, const char *text) {
  struct to_bytes bytes;
  struct tb_diag diag;
  struct read r;

  read_it(&r);
  expect_good(&r);
  cr_assert_eq(r.heard.count, 1);
  const struct tb_diag *fault = &r.heard.fault[0];
  cr_assert_str_eq(fault->text, text);
  cr_assert(fault->gen == 1 && fault->thread == TT_BLOBS_THREAD && fault->rc == TB_BROKEN);
  cr_assert_eq(t.bytes.data[fault->offset], '!', "the place, offset %lu",
               (unsigned long)fault->offset);
  cr_assert(!to_blob_find(r.s, id)->whole);
  tb_diag_clear(&diag);
  cr_assert_eq(to_blob_read(r.s, id, &diag, &bytes), TB_BROKEN);
  cr_assert(strcmp(diag.text, text) == 0 && diag.offset == fault->offset && diag.gen == 1);
  read_no_more(&r);
}

Test(substream_faults, pieces_that_are_missing) {
  open_pieces();
  tt_blobs_piece(&t, 1, 10, 3, "!defghij", 7);
  expect_blob_fault(1, "blob 1: bytes 0 to 3 of 10 are missing");
  open_pieces();
  tt_blobs_piece(&t, 1, 10, 0, "!bc", 3);
  expect_blob_fault(1, "blob 1: bytes 3 to 10 of 10 are missing");
  open_pieces();
  tt_blobs_piece(&t, 1, 10, 8, "!j", 2);
  tt_blobs_piece(&t, 1, 10, 3, "defg", 4);
  tt_blobs_piece(&t, 1, 10, 0, "abc", 3);
  expect_blob_fault(1, "blob 1: bytes 7 to 8 of 10 are missing");
}

Test(substream_faults, pieces_that_come_twice_or_overlap) {
  open_pieces();
  tt_blobs_piece(&t, 1, 6, 0, "!bc", 3); /* equal, so it does not matter which is reported */
  tt_blobs_piece(&t, 1, 6, 0, "!bc", 3);
  tt_blobs_piece(&t, 1, 6, 3, "def", 3);
  expect_blob_fault(1, "blob 1: bytes 0 to 3 are there twice");
  open_pieces();
  tt_blobs_piece(&t, 1, 6, 0, "abcd", 4);
  tt_blobs_piece(&t, 1, 6, 2, "!def", 4);
  expect_blob_fault(1, "blob 1: bytes 2 to 4 are there twice");
  open_pieces();
  tt_blobs_piece(&t, 1, 0, 0, NULL, 0);
  tt_blobs_piece(&t, 1, 0, 0, NULL, 0);
  tt_blobs_piece(&t, 33, 1, 0, "x",
                 1); /* '!' is 33; the place is where the piece's bytes would be */
  expect_blob_fault(1, "blob 1: bytes 0 to 0 are there twice");
}

Test(substream_faults, pieces_that_do_not_belong_together) {
  open_pieces();
  tt_blobs_piece(&t, 1, 6, 0, "abc", 3);
  tt_blobs_piece(&t, 1, 7, 3, "!efg", 4);
  expect_blob_fault(1, "blob 1 is said to have 6 bytes, and 7");
  open_pieces();
  tt_blobs_piece(&t, 1, 6, 0, "abc", 3);
  tt_blobs_batch(&t, TW_SUBSTREAM_BLOBS, "other");
  tt_blobs_piece(&t, 1, 6, 3, "!ef", 3);
  expect_blob_fault(1, "blob 1 is in two sub-streams");
}

/* Expects pieces with impossible numbers to end the batch: its rest is not read. */
static void expect_batch_fault(const char *text) {
  size_t batch = t.bytes.len;
  struct to_bytes bytes;
  struct tb_diag diag;
  struct read r;

  tt_blobs_piece(&t, 98, 1, 0, "x", 1); /* comes after the fault */
  read_it(&r);
  expect_good(&r);
  cr_assert_eq(r.heard.count, 1);
  cr_assert_str_eq(r.heard.fault[0].text, text);
  cr_assert_gt(r.heard.fault[0].offset, batch);
  cr_assert_eq(t.bytes.data[r.heard.fault[0].offset - 1], 'k', "the place is behind \"ok\"");
  tb_diag_clear(&diag);
  cr_assert_eq(to_blob_read(r.s, 98, &diag, &bytes), TB_NOTFOUND);
  cr_assert_str_eq(diag.text, "blob 98 does not exist");
  cr_assert_eq(diag.gen, 1);
  read_no_more(&r);
}

Test(substream_faults, numbers_that_cannot_be) {
  const unsigned char cut[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80 };

  open_pieces();
  tt_blobs_piece(&t, 0, 1, 0, "x", 1);
  expect_batch_fault("a piece of blob 0, which is none");
  open_pieces();
  tt_blobs_piece(&t, 1, TW_BLOB_BYTES_MAX + 1ul, 0, "x", 1);
  expect_batch_fault("blob 1 is said to have 67108865 bytes, above 67108864");
  open_pieces();
  tt_blobs_piece(&t, 1, 5, 3, "abc", 3);
  expect_batch_fault("3 bytes at 3 of blob 1, which has 5");
  open_pieces();
  tt_blobs_piece(&t, 1, 5, UINT64_MAX, "x", 1);
  expect_batch_fault("1 bytes at 18446744073709551615 of blob 1, which has 5");
  open_pieces();
  tt_blobs_piece(&t, 1, 5, 5, NULL, 0);
  expect_batch_fault("an empty piece of blob 1");
  open_pieces();
  cr_assert_eq(tw_write_bytes(&t.batch, cut, sizeof cut), TB_OK);
  expect_batch_fault("the numbers before a piece of a blob are cut");
}

Test(substream_faults, a_piece_longer_than_its_batch) {
  struct read r;

  open_pieces();
  cr_assert_eq(tw_write_bytes(&t.batch, "\1\x7f\0\x7fxyz", 7), TB_OK);
  read_it(&r);
  expect_good(&r);
  cr_assert_str_eq(r.heard.fault[0].text, "a piece of blob 1 has 127 bytes, its batch 3");
  cr_assert_null(to_blob_find(r.s, 1));
  read_no_more(&r);
}

Test(substream_faults, headers_that_are_ours_and_cannot_be_read) {
  static const struct {
    const char *bytes;
    size_t len;
    tb_rc rc;
    const char *text;
  } cases[] = {
    { "\xd5tcsub\1\2", 8, TB_BROKEN, "the header of a sub-stream is cut off" },
    { "\xd5tcsub\2\2\1a", 10, TB_UNSUPPORTED, "a sub-stream of version 2, known is 1" },
    { "\xd5tcsub\1\3\1a", 10, TB_UNSUPPORTED, "a sub-stream of kind 3" },
    { "\xd5tcsub\1\1\0a", 10, TB_BROKEN, "the name of a sub-stream is none" },
    { "\xd5tcsub\1\1\2a", 10, TB_BROKEN, "the name of a sub-stream is none" },
    { "\xd5tcsub\1\1\2a ", 11, TB_BROKEN, "the name of a sub-stream is none" },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct read r;
    open_pieces();
    tt_blobs_raw(&t, cases[i].bytes, cases[i].len);
    read_it(&r);
    expect_good(&r);
    cr_assert_str_eq(r.heard.fault[0].text, cases[i].text);
    cr_assert_eq(r.heard.fault[0].rc, cases[i].rc);
    cr_assert_eq(t.bytes.data[r.heard.fault[0].offset], 0xd5);
    cr_assert_null(to_substreams_at(r.s, 1));
    read_no_more(&r);
  }
}

Test(substream_faults, more_sub_streams_than_a_generation_may_have) {
  char name[16];
  struct read r;

  open_pieces();
  for (int i = 1; i <= TO_SUBSTREAMS_MAX; i++) {
    snprintf(name, sizeof name, "s%d", i);
    tt_blobs_batch(&t, TW_SUBSTREAM_BYTES, name);
  }
  read_it(&r);
  expect_good(&r);
  cr_assert_eq(r.heard.count, 1);
  cr_assert_str_eq(r.heard.fault[0].text, "a generation with more than 256 sub-streams");
  cr_assert_not_null(to_substreams_find(r.s, 1, "s255"));
  cr_assert_null(to_substreams_find(r.s, 1, "s256"));
  read_no_more(&r);
}

Test(substream_faults, what_could_not_be_read_is_not_written) {
  static unsigned char room[TW_WRITE_ROOM];
  static const char *const names[] = { "", "a b", "a\n", "\xc3\xa4" };
  struct tw_batch head = { .gen = 1, .thread = 1, .experiment = 1 };
  struct tw_blob none = { .id = 0 }, huge = { .id = 1, .len = TW_BLOB_BYTES_MAX + 1ul },
                 small = { .id = 1, .bytes = "abc", .len = 3 };
  char longest[TW_SUBSTREAM_NAME_MAX + 1];
  struct tw_write w;

  tw_write_open(&w, room, sizeof room, 22, &head);
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "a", 1), TB_UNSUPPORTED);
  tw_write_open(&w, room, sizeof room, 23, &head);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, names[i], strlen(names[i])), TB_BROKEN);
  memset(longest, 'Z', sizeof longest);
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, longest, sizeof longest), TB_BROKEN);
  cr_assert(tw_write_is_empty(&w));
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, longest, sizeof longest - 1), TB_OK);
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "a", 1), TB_BROKEN, "only once a batch");
  cr_assert_eq(tw_write_blob(&w, &none), TB_BROKEN);
  cr_assert_eq(tw_write_blob(&w, &huge), TB_BROKEN);
  head.experiment = 0;
  tw_write_open(&w, room, sizeof room, 23, &head);
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "a", 1), TB_BROKEN, "an ordinary batch");
  cr_assert_eq(tw_write_blob(&w, &small), TB_BROKEN);
}

Test(substream_faults, the_smallest_batch_still_takes_a_piece) {
  static unsigned char room[TW_SUBSTREAM_ROOM_MIN], bytes[5000];
  struct tw_batch head = { .gen = UINT64_MAX, .thread = -1, .time = UINT64_MAX, .experiment = 255 };
  struct tw_blob blob = { .id = UINT64_MAX, .bytes = bytes, .len = sizeof bytes };
  char longest[TW_SUBSTREAM_NAME_MAX];
  struct tw_write w;
  tb_rc rc = TB_AGAIN;

  memset(longest, '/', sizeof longest);
  for (size_t batches = 0; rc == TB_AGAIN; batches++) {
    size_t before = blob.done;
    cr_assert_lt(batches, 20);
    tw_write_open(&w, room, sizeof room, 26, &head);
    cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, longest, sizeof longest), TB_OK);
    rc = tw_write_blob(&w, &blob);
    cr_assert_gt(blob.done, before);
    cr_assert_leq(tw_write_close(&w), sizeof room);
  }
  cr_assert(rc == TB_OK && blob.done == blob.len);
}

Test(substream_faults, the_word_for_a_blob_is_read_strictly) {
  static const uint64_t ids[] = { 1, 9, 10, 4711, UINT64_MAX };
  static const char *const none[] = { "",
                                      "blob:",
                                      "blob:0",
                                      "blob:01",
                                      "blob:-1",
                                      "blob:1 ",
                                      " blob:1",
                                      "blob:18446744073709551616",
                                      "blob:99999999999999999999" };
  char word[TW_BLOB_WORD_BYTES];

  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    size_t n = tw_blob_word(ids[i], word);
    cr_assert_eq(n, strlen(word));
    cr_assert_eq(tw_blob_word_read(word, n), ids[i]);
  }
  cr_assert_str_eq(word, "blob:18446744073709551615");
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    cr_assert_eq(tw_blob_word_read(none[i], strlen(none[i])), 0, "%s", none[i]);
}
