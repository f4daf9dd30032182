/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads give the same result as one: the same events, stacks and strings, verdict, place
 * and words. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "online/event/generation.h"
#include "support/seeds.h"
#include "support/stored.h"
#include "tools/tracectl/trace_file/ahead.h"

enum { PIECE = 5000, REAL_BYTES_MAX = 2 << 20 };

struct answer {
  tb_rc rc;
  struct tb_diag diag;
  uint64_t events, generations, hash;
  unsigned version;
};

static void mix(struct answer *a, uint64_t value) {
  a->hash = (a->hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  a->hash ^= a->hash >> 29;
}

static void mix_text(struct answer *a, struct to_string text) {
  mix(a, text.len);
  for (size_t i = 0; i < text.len; i++) mix(a, (unsigned char)text.data[i]);
}

/* A stack is read through the table of all frames, which one of the two makes in advance. */
static void mix_stack(struct answer *a, const struct to_generation *gen, uint64_t id) {
  struct to_stack_iter it;
  struct to_frame frame;

  mix(a, to_generation_stack(gen, id, &it));
  while (to_stack_next(&it, &frame)) {
    mix(a, frame.pc ^ frame.line << 48);
    mix_text(a, frame.function);
    mix_text(a, frame.file);
  }
}

static tb_rc take(void *self, const struct to_generation *gen, const struct to_event *ev,
                  size_t n) {
  struct answer *a = self;
  enum tw_arg_type types[4];

  for (a->events += n; n > 0; n--, ev++) {
    mix(a, (uint64_t)ev->time);
    mix(a, (uint64_t)ev->m ^ (uint64_t)ev->p << 20 ^ (uint64_t)ev->g << 40 ^ ev->type);
    for (unsigned i = 0; i < 4; i++) mix(a, ev->args[i]);
    for (unsigned i = 0, args = to_event_args(ev->type, types); gen != NULL && i < args; i++)
      if (types[i] == TW_ARG_STACK && ev->args[i] % 8 == 1) mix_stack(a, gen, ev->args[i]);
    if (ev->type == TW_EV_USER_TASK_END) mix_text(a, to_generation_extra_string(gen, ev->args[3]));
  }
  return TB_OK;
}

/* Bytes in pieces, each freed by the next call; or all at once, without a copy. */
struct bytes {
  const unsigned char *pos;
  size_t left, piece;
  unsigned char *lent;
};

static tb_rc next_piece(void *self, const void **out_bytes, size_t *out_n) {
  struct bytes *b = self;
  size_t n = b->piece == 0 || b->left < b->piece ? b->left : b->piece;

  free(b->lent);
  b->lent = NULL;
  if (n == 0) return TB_END;
  *out_bytes = b->pos;
  if (b->piece != 0) *out_bytes = b->lent = memcpy(malloc(n), b->pos, n);
  b->pos += n;
  b->left -= n;
  *out_n = n;
  return TB_OK;
}

static struct to_reader *begin(struct answer *a, struct tb_mem *mem, unsigned flags) {
  struct to_reader *reader;

  tb_mem_init(mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&a->diag);
  cr_assert_eq(
      to_reader_new(mem, NULL, flags, (struct to_event_sink){ a, take }, &a->diag, &reader), TB_OK);
  return reader;
}

static void end(struct answer *a, struct tb_mem *mem, struct to_reader *reader) {
  a->generations = to_reader_generations(reader);
  a->version = to_reader_version(reader);
  to_reader_free(reader);
  cr_assert_eq(mem->bytes, 0);
}

static tb_rc order(struct to_reader *reader, tb_rc rc) {
  while (rc == TB_AGAIN) rc = to_reader_run(reader, 1000);
  return rc;
}

static struct answer by_one(struct bytes bytes, unsigned flags) {
  struct answer a = { 0 };
  struct tb_mem mem;
  struct to_reader *reader = begin(&a, &mem, flags);
  const void *more;
  size_t n, used;

  while (a.rc == TB_OK && next_piece(&bytes, &more, &n) == TB_OK)
    for (; n > 0 && a.rc == TB_OK; n -= used, more = (const char *)more + used)
      a.rc = order(reader, to_reader_feed(reader, more, n, &used));
  if (a.rc == TB_OK) a.rc = order(reader, to_reader_finish(reader));
  free(bytes.lent);
  end(&a, &mem, reader);
  return a;
}

static struct answer by_two(struct bytes bytes, unsigned flags) {
  struct answer a = { 0 };
  struct tb_mem mem;
  struct to_reader *reader = begin(&a, &mem, 0);
  struct to_prepared *prepared;
  struct tk_ahead *ahead;

  cr_assert_eq(tk_ahead_open(flags, (struct to_pull_source){ &bytes, next_piece }, &ahead), TB_OK);
  while (a.rc == TB_OK && (prepared = tk_ahead_next(ahead)) != NULL)
    a.rc = order(reader, to_reader_adopt(reader, prepared));
  tk_ahead_close(ahead);
  free(bytes.lent);
  end(&a, &mem, reader);
  return a;
}

static void compare(const char *name, const unsigned char *data, size_t n, size_t piece,
                    bool frames) {
  unsigned flags = (piece == 0 ? TO_READER_BYTES_STAY : 0) | (frames ? TO_READER_FRAMES : 0);
  struct answer one = by_one((struct bytes){ data, n, piece, NULL }, flags);
  struct answer two = by_two((struct bytes){ data, n, piece, NULL }, flags);

  cr_assert_eq(one.rc, two.rc, "%s: %s and %s", name, tb_rc_name(one.rc), tb_rc_name(two.rc));
  cr_assert_eq(one.events, two.events, "%s: event counts", name);
  cr_assert_eq(one.hash, two.hash, "%s: events", name);
  cr_assert(one.generations == two.generations && one.version == two.version, "%s", name);
  cr_assert_str_eq(one.diag.text, two.diag.text);
  cr_assert(one.diag.gen == two.diag.gen && one.diag.thread == two.diag.thread &&
                one.diag.offset == two.diag.offset,
            "%s: place of \"%s\"", name, one.diag.text);
}

/* Compares with the trace whole, cut off, and with changed bytes. */
static void compare_all(const char *name, unsigned char *data, size_t n, unsigned wounds) {
  compare(name, data, n, 0, true);
  compare(name, data, n, PIECE, false);
  for (unsigned i = 1; i <= wounds; i++) {
    size_t at = n / (wounds + 1) * i;
    compare(name, data, at, 0, false);
    data[at] ^= 0x41;
    compare(name, data, n, i % 2 == 0 ? PIECE : 0, false);
    data[at] ^= 0x41;
  }
  compare(name, data, n - 1, 0, false);
  compare(name, data, 0, 0, false);
}

static void look(const struct tt_stored *trace) {
  compare_all(trace->path, trace->bytes, trace->len, 2);
}

Test(ahead, real_traces_whole_cut_and_broken_read_as_by_one_thread) {
  cr_assert_gt(tt_each_stored("tests/data", REAL_BYTES_MAX, look), 4);
}

Test(ahead, so_do_small_traces_broken_in_many_places) {
  struct tt_pack seeds = tt_seeds_load();

  for (size_t i = 0; i < seeds.n; i++) {
    unsigned char *copy =
        memcpy(malloc(seeds.input[i].len), seeds.input[i].data, seeds.input[i].len);
    compare_all("a seed", copy, seeds.input[i].len, 12);
    free(copy);
  }
  tt_pack_free(&seeds);
}

static tb_rc refuse(void *self, const void **out_bytes, size_t *out_n) {
  struct bytes *b = self;

  return b->left == 0 ? TB_IO : next_piece(self, out_bytes, out_n);
}

/* Events before the failure are delivered first. */
Test(ahead, a_source_that_fails_ends_the_trace) {
  struct tt_pack seeds = tt_seeds_load();
  struct bytes bytes = { seeds.input[0].data, seeds.input[0].len, 100, NULL };
  struct answer a = { 0 };
  struct to_prepared *prepared = NULL;
  struct tk_ahead *ahead;
  struct tb_mem mem;
  struct to_reader *reader = begin(&a, &mem, 0);

  cr_assert_eq(tk_ahead_open(0, (struct to_pull_source){ &bytes, refuse }, &ahead), TB_OK);
  while (a.rc == TB_OK && (prepared = tk_ahead_next(ahead)) != NULL)
    a.rc = order(reader, to_reader_adopt(reader, prepared));
  cr_assert_eq(a.rc, TB_IO, "%s", tb_rc_name(a.rc));
  cr_assert(to_prepared_is_last(prepared));
  cr_assert_null(tk_ahead_next(ahead));
  tk_ahead_close(ahead);
  end(&a, &mem, reader);
  free(bytes.lent);
  tt_pack_free(&seeds);
}

/* A reader that has seen enough need not read the rest. */
Test(ahead, can_be_closed_at_any_time) {
  struct tt_pack seeds = tt_seeds_load();

  for (unsigned taken = 0; taken < 3; taken++) {
    struct bytes bytes = { seeds.input[0].data, seeds.input[0].len, 10, NULL };
    struct tk_ahead *ahead;
    cr_assert_eq(tk_ahead_open(0, (struct to_pull_source){ &bytes, next_piece }, &ahead), TB_OK);
    for (unsigned i = 0; i < taken; i++) (void)tk_ahead_next(ahead);
    tk_ahead_close(ahead);
    free(bytes.lent);
  }
  tt_pack_free(&seeds);
}
