/* SPDX-License-Identifier: Apache-2.0 */
/* G7: the generations in which a goroutine is active are found without ordering them. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "online/trace/active.h"
#include "online/trace/pull.h"
#include "support/order_text.h"
#include "support/seeds.h"
#include "wire/split.h"

enum { HEADER = 16, GENERATIONS_MAX = 64 };

/* Writes an event's numbers, with dt, to `out`, as in a trace. */
static struct tw_raw raw_event(uint8_t type, const uint64_t *numbers, unsigned n,
                               unsigned char out[64]) {
  unsigned char *pos = out;

  for (unsigned i = 0; i < n; i++) pos += tw_varint_write(pos, numbers[i]);
  return (struct tw_raw){ .type = type, .spec = tw_spec(type), .args = out, .nargs = n };
}

#define ADD(active, TYPE, ...)                                                                     \
  do {                                                                                             \
    const uint64_t numbers_[] = { __VA_ARGS__ };                                                   \
    unsigned char bytes_[64];                                                                      \
    struct tw_raw ev_ =                                                                            \
        raw_event(TW_EV_##TYPE, numbers_, sizeof numbers_ / sizeof numbers_[0], bytes_);           \
    cr_assert_eq(to_active_event((active), &ev_), TB_OK);                                          \
  } while (0)

Test(active, who_only_waits_is_not_among_them) {
  struct to_active active;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_active_init(&active, &mem);
  ADD(&active, GO_STATUS, 1, 10, 1, TW_GO_WAITING);
  ADD(&active, GO_STATUS_STACK, 1, 11, 1, TW_GO_RUNNABLE, 5);
  ADD(&active, PROC_START, 1, 12, 1);
  ADD(&active, GO_STOP, 1, 13, 1);
  ADD(&active, CPU_SAMPLE, 100, 1, 1, 0, 1);
  cr_assert_eq(to_active_count(&active), 0);
  ADD(&active, GO_STATUS, 1, 1, 1, TW_GO_RUNNING);
  ADD(&active, GO_STATUS_STACK, 1, 2, 1, TW_GO_SYSCALL, 5);
  ADD(&active, GO_START, 1, 3, 1);
  ADD(&active, GO_CREATE, 1, 4, 1, 1);
  ADD(&active, GO_UNBLOCK, 1, 5, 1, 1);
  ADD(&active, GO_SWITCH, 1, 6, 1);
  ADD(&active, GC_MARK_ASSIST_ACTIVE, 1, 7);
  ADD(&active, CPU_SAMPLE, 100, 1, 1, 8, 1);
  ADD(&active, GO_START, 1, 3, 2);
  cr_assert_eq(to_active_count(&active), 8);
  for (int64_t g = 1; g <= 8; g++) cr_expect(to_active_has(&active, g), "%ld", (long)g);
  to_active_clear(&active);
  cr_assert_eq(to_active_count(&active), 0);
  to_active_fini(&active);
  cr_assert_eq(mem.bytes, 0);
}

Test(active, packed_ids_come_back_in_their_order) {
  const uint64_t ids[] = { 900, 1, UINT64_MAX, 7, 901, 70000, 1 };
  const int64_t want[] = { -1, 1, 7, 900, 901, 70000 };
  struct to_active_iter it;
  struct to_active active;
  struct tb_mem mem;
  struct tb_buf packed;
  int64_t g;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_active_init(&active, &mem);
  tb_buf_init(&packed, &mem);
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) ADD(&active, GO_START, 1, ids[i], 1);
  cr_assert_eq(to_active_pack(&active, &packed), TB_OK);
  cr_assert(to_active_read(&it, packed.data, packed.len));
  cr_assert_eq(it.left, 6);
  for (int i = 0; i < 6; i++) cr_assert(to_active_next(&it, &g) && g == want[i], "%d", i);
  cr_assert(!to_active_next(&it, &g) && it.left == 0 && it.pos == it.end);
  for (size_t len = 1; len < packed.len; len++) {
    bool whole = to_active_read(&it, packed.data, len);
    while (to_active_next(&it, &g)) continue;
    cr_assert(!whole || it.left > 0, "cut off at %zu", len);
  }
  cr_assert_not(to_active_read(&it, packed.data, 0));
  cr_assert_not(to_active_read(&it, "\xff\xff\x03xyz", 6), "more ids than bytes");
  tb_buf_fini(&packed);
  to_active_fini(&active);
  cr_assert_eq(mem.bytes, 0);
}

/* Reads the batches of a generation event by event, without ordering, as an index by goroutine does. */
static void scan(struct to_active *active, const unsigned char *trace, struct tt_place place) {
  const unsigned char *bytes = trace + place.offset;
  struct tw_experiments *none = calloc(1, sizeof *none);
  size_t n = place.bytes, used;
  struct tw_split split;
  struct tw_item item;
  struct tb_diag diag;
  struct tw_raw ev;

  tw_experiments_init(none);
  tb_diag_clear(&diag);
  tw_split_init(&split, active->ids.mem);
  cr_assert_eq(tw_split_feed(&split, trace, HEADER, &used, &item), TB_OK);
  for (; tw_split_feed(&split, bytes, n, &used, &item) == TB_OK; bytes += used, n -= used) {
    if (item.kind != TW_ITEM_BATCH) continue;
    enum tw_batch_kind kind = tw_batch_kind(&item.batch, split.version);
    if (kind != TW_BATCH_EVENTS && kind != TW_BATCH_CPU_SAMPLES) continue;
    const unsigned char *pos = item.batch.data, *end = pos + item.batch.len;
    size_t len;
    for (; pos < end; pos += len) {
      cr_assert_eq(tw_raw_read_own(pos, (size_t)(end - pos), none, &diag, &ev, &len), TB_OK);
      cr_assert_eq(to_active_event(active, &ev), TB_OK);
    }
  }
  tw_split_fini(&split);
  free(none);
}

static bool restates(const struct to_event *ev) {
  uint32_t status = (uint32_t)ev->args[2];

  return (ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK) &&
         status != TW_GO_RUNNING && status != TW_GO_SYSCALL;
}

/* Notes the goroutines that the event belongs to or acts on. */
static void note(struct tb_map *seen, const struct to_event *ev) {
  enum tw_arg_type types[4];
  uint64_t *ignored;

  if (ev->type == TW_EV_SYNC) return;
  if (ev->g != TO_NONE) cr_assert_eq(tb_map_put(seen, (uint64_t)ev->g, &ignored, NULL), TB_OK);
  if (to_event_args(ev->type, types) > 0 && types[0] == TW_ARG_G && !restates(ev))
    cr_assert_eq(tb_map_put(seen, ev->args[0], &ignored, NULL), TB_OK);
}

/* Does the same with the ordered events. Returns TB_BROKEN if the trace is broken, as some seeds are. */
static tb_rc check_ordered(const struct to_active *active, const struct tt_input *trace,
                           struct tt_place place) {
  struct to_part part = { trace->data, HEADER, place.offset, place.offset + place.bytes, 0 };
  const struct to_generation *gen;
  const struct to_event *ev;
  struct to_pull *pull;
  struct tb_map seen;
  struct tb_diag diag;
  tb_rc rc;

  tb_diag_clear(&diag);
  tb_map_init(&seen, active->ids.mem, tb_seed());
  cr_assert_eq(
      to_pull_new(active->ids.mem, NULL, TO_READER_BYTES_STAY, to_part_source(&part), &diag, &pull),
      TB_OK);
  while ((rc = to_pull_next(pull, &ev, &gen)) == TB_OK) note(&seen, ev);
  to_pull_free(pull);
  if (rc != TB_END) {
    tb_map_fini(&seen);
    return rc;
  }
  cr_expect_eq(seen.count, to_active_count(active), "%zu in order, %zu as they stand", seen.count,
               to_active_count(active));
  uint64_t id, value;
  for (size_t pos = 0; tb_map_next(&seen, &pos, &id, &value);)
    cr_expect(to_active_has(active, (int64_t)id), "goroutine %lu", (unsigned long)id);
  tb_map_fini(&seen);
  return TB_OK;
}

Test(active, are_those_of_the_ordered_events_in_every_generation_of_real_traces) {
  struct tt_pack seeds = tt_seeds_load();
  size_t generations = 0;

  for (size_t s = 0; s < seeds.n; s++) {
    const struct tt_input *trace = &seeds.input[s];
    struct tt_place place[GENERATIONS_MAX];
    struct to_active active;
    struct tb_mem mem;

    tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
    to_active_init(&active, &mem);
    size_t n = tt_generations(trace->data, trace->len, place, GENERATIONS_MAX);
    for (size_t i = 0; i < n; i++, generations++) {
      to_active_clear(&active);
      scan(&active, trace->data, place[i]);
      cr_assert_gt(to_active_count(&active), 0);
      if (check_ordered(&active, trace, place[i]) != TB_OK) break;
    }
    to_active_fini(&active);
    cr_assert_eq(mem.bytes, 0);
  }
  cr_assert_gt(generations, 20);
  tt_pack_free(&seeds);
}
