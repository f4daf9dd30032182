/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "online/trace/pull.h"
#include "support/order_text.h"
#include "support/seeds.h"

/* Pieces of a trace, each in a block that is freed by the next call. */
struct pieces {
  const unsigned char *pos;
  size_t left, piece;
  unsigned char *lent;
};

static tb_rc next_piece(void *self, const void **out_bytes, size_t *out_n) {
  struct pieces *p = self;
  size_t n = p->left < p->piece ? p->left : p->piece;

  free(p->lent);
  p->lent = NULL;
  if (n == 0) return TB_END;
  p->lent = malloc(n);
  memcpy(p->lent, p->pos, n);
  p->pos += n;
  p->left -= n;
  *out_bytes = p->lent;
  *out_n = n;
  return TB_OK;
}

/* I8, I9: a stack has the same frames when they are read in order and when they are read by depth. */
static void look_at_stack(const struct to_generation *gen, uint64_t id) {
  struct to_frame frame, at;
  struct to_stack_iter it;
  uint64_t depth = 0;

  if (!to_generation_stack(gen, id, &it)) return;
  for (; to_stack_next(&it, &frame); depth++) {
    cr_assert(to_stack_at(gen, id, depth, &at));
    cr_assert(at.pc == frame.pc && at.line == frame.line && at.function.len == frame.function.len);
    cr_assert(at.function.data == frame.function.data && at.file.data == frame.file.data);
  }
  cr_assert_eq(to_stack_length(gen, id), depth);
  cr_assert_not(to_stack_at(gen, id, depth, &at));
  if (depth > 1) cr_assert(to_stack_at(gen, id, 0, &at), "backwards, too");
}

/* Reads every stack and string of the event, which are valid until the next call. */
static void look(const struct to_generation *gen, const struct to_event *ev) {
  enum tw_arg_type types[4];
  unsigned n = to_event_args(ev->type, types);
  struct to_string text;

  for (unsigned i = 0; gen != NULL && i < n; i++) {
    if (types[i] == TW_ARG_STRING && i < 3)
      cr_assert(to_generation_string(gen, ev->args[i], &text));
    if (types[i] == TW_ARG_STACK) look_at_stack(gen, ev->args[i]);
  }
}

/* Compares pulled events with pushed ones. */
static void compare(const struct tt_run *pushed, const unsigned char *bytes, size_t n,
                    size_t piece) {
  struct pieces pieces = { bytes, n, piece, NULL };
  struct to_part part = { bytes, 16, 16, n, 0 };
  struct to_pull_source source = { &pieces, next_piece };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_diag diag;
  struct tb_mem mem;
  size_t count = 0;
  tb_rc rc;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  if (piece == 0) source = to_part_source(&part);
  cr_assert_eq(to_pull_new(&mem, NULL, piece == 0 ? TO_READER_BYTES_STAY : 0, source, &diag, &pull),
               TB_OK);
  while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) {
    cr_assert_lt(count, pushed->count);
    const struct to_event *want = &pushed->events[count++];
    cr_assert(ev->type == want->type && ev->time == want->time && ev->g == want->g, "event %zu",
              count);
    look(gen, ev);
  }
  cr_assert_eq(count, pushed->count);
  cr_assert_eq(to_pull_version(pull),
               n < 16 ? 0 : (unsigned)(bytes[5] - '0') * 10 + bytes[6] - '0');
  cr_assert_eq(rc, pushed->rc == TB_OK ? TB_END : pushed->rc, "%s", diag.text);
  cr_assert_str_eq(diag.text, pushed->diag.text);
  cr_assert_eq(to_pull_next(pull, &ev, &gen), rc, "and so it stays");
  to_pull_free(pull);
  free(pieces.lent);
  cr_assert_eq(mem.bytes, 0);
}

/* G2, G4, G5: a trace is the same stream of events whether they are pushed or pulled. */
Test(pull, gives_the_events_and_the_faults_that_pushing_gives) {
  struct tt_pack seeds = tt_seeds_load();

  for (size_t i = 0; i < seeds.n; i++) {
    size_t n = seeds.input[i].len, cuts[] = { n, n - 1, n / 2, 20 };
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
      struct tt_run pushed = { 0 };
      tt_order_bytes(&pushed, seeds.input[i].data, cuts[c]);
      compare(&pushed, seeds.input[i].data, cuts[c], 0);
      compare(&pushed, seeds.input[i].data, cuts[c], 700);
      tt_run_fini(&pushed);
    }
  }
  tt_pack_free(&seeds);
}

static void compare_goroutine(const struct tt_run *pushed, const unsigned char *bytes, size_t n,
                              int64_t goroutine) {
  struct pieces pieces = { bytes, n, 700, NULL };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_diag diag;
  struct tb_mem mem;
  size_t at = 0;
  tb_rc rc;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(
      to_pull_new(&mem, NULL, 0, (struct to_pull_source){ &pieces, next_piece }, &diag, &pull),
      TB_OK);
  to_pull_only(pull, goroutine);
  while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) {
    while (at < pushed->count && pushed->events[at].g != goroutine) at++;
    cr_assert_lt(at, pushed->count);
    cr_assert(ev->type == pushed->events[at].type && ev->time == pushed->events[at].time);
    at++;
    look(gen, ev);
  }
  for (; at < pushed->count; at++) cr_assert_neq(pushed->events[at].g, goroutine);
  cr_assert_eq(rc, pushed->rc == TB_OK ? TB_END : pushed->rc, "%s", diag.text);
  to_pull_free(pull);
  free(pieces.lent);
  cr_assert_eq(mem.bytes, 0);
}

Test(pull, gives_one_goroutines_events_alone) {
  struct tt_pack seeds = tt_seeds_load();

  for (size_t i = 0; i < seeds.n; i++) {
    struct tt_run pushed = { 0 };
    tt_order_bytes(&pushed, seeds.input[i].data, seeds.input[i].len);
    for (int64_t goroutine = 1; goroutine < 40; goroutine += 13)
      compare_goroutine(&pushed, seeds.input[i].data, seeds.input[i].len, goroutine);
    tt_run_fini(&pushed);
  }
  tt_pack_free(&seeds);
}

static tb_rc refuse(void *self, const void **out_bytes, size_t *out_n) {
  (void)self, (void)out_bytes, (void)out_n;
  return TB_IO;
}

Test(pull, a_source_that_fails_is_told) {
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_pull_new(&mem, NULL, 0, (struct to_pull_source){ NULL, refuse }, &diag, &pull),
               TB_OK);
  cr_assert_eq(to_pull_next(pull, &ev, &gen), TB_IO);
  cr_assert_eq(to_pull_next(pull, &ev, &gen), TB_IO);
  to_pull_free(pull);
  cr_assert_eq(mem.bytes, 0);
}
