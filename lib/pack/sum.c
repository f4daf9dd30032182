/* SPDX-License-Identifier: Apache-2.0 */
/* A sum lends texts from its parts, so it is packed before the parts are freed. */
#include "pack/sum.h"

#include "proto/unpack.h"

enum { CHUNK_BYTES = 64 << 10 };

typedef Tracecollect__V1__StreamReport StreamReport;

void tp_sum_init(struct tp_sum *sum, struct tb_mem *mem, tp_merge_fn *merge, size_t part_bytes) {
  *sum = (struct tp_sum){ .merge = merge, .part_bytes = part_bytes };
  tb_arena_init(&sum->arena, mem, CHUNK_BYTES);
  tb_buf_init(&sum->packed, mem);
}

void tp_sum_fini(struct tp_sum *sum) {
  tb_arena_fini(&sum->arena);
  tb_buf_fini(&sum->packed);
}

void tp_sum_clear(struct tp_sum *sum) {
  tb_arena_reset(&sum->arena);
  sum->n = sum->sum_bytes = 0;
  sum->parts = 0;
}

static tb_rc unpack(struct tb_arena *arena, const void *packed, size_t len, StreamReport **out) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  StreamReport *report = tracecollect__v1__stream_report__unpack(&allocator, len, packed);

  if (report == NULL) return arena->is_short ? TB_NOMEM : TB_BUDGET;
  *out = report;
  return TB_OK;
}

static tb_rc pack_report(struct tp_sum *sum, const StreamReport *report) {
  tb_buf_clear(&sum->packed);
  TB_TRY(tb_buf_reserve(&sum->packed, tracecollect__v1__stream_report__get_packed_size(report)));
  sum->packed.len = tracecollect__v1__stream_report__pack(report, sum->packed.data);
  return TB_OK;
}

/* Packs the sum of the parts. */
static tb_rc pack(struct tp_sum *sum) {
  StreamReport *report = sum->part[0];

  if (sum->n > 1) TB_TRY(sum->merge(&sum->arena, sum->part, sum->n, &report));
  TB_TRY(pack_report(sum, report));
  tb_arena_reset(&sum->arena);
  sum->n = 0;
  return TB_OK;
}

/* Makes one part of them. */
static tb_rc fold(struct tp_sum *sum) {
  TB_TRY(pack(sum));
  TB_TRY(unpack(&sum->arena, sum->packed.data, sum->packed.len, &sum->part[0]));
  sum->n = 1;
  sum->sum_bytes = sum->arena.bytes;
  return TB_OK;
}

static bool is_full(const struct tp_sum *sum) {
  return sum->n == TP_SUM_PARTS ||
         (sum->n > 1 && sum->arena.bytes - sum->sum_bytes > sum->part_bytes);
}

tb_rc tp_sum_add(struct tp_sum *sum, const void *packed, size_t len, StreamReport **out) {
  if (is_full(sum)) TB_TRY(fold(sum));
  TB_TRY(unpack(&sum->arena, packed, len, &sum->part[sum->n]));
  *out = sum->part[sum->n++];
  sum->parts++;
  return TB_OK;
}

tb_rc tp_sum_add_report(struct tp_sum *sum, const StreamReport *report) {
  StreamReport *part;

  if (is_full(sum)) TB_TRY(fold(sum));
  TB_TRY(pack_report(sum, report));
  return tp_sum_add(sum, sum->packed.data, sum->packed.len, &part);
}

tb_rc tp_sum_take(struct tp_sum *sum, struct tb_arena *arena, StreamReport **out) {
  *out = NULL;
  if (sum->n == 0) return TB_OK;
  TB_TRY(pack(sum));
  tp_sum_clear(sum);
  return unpack(arena, sum->packed.data, sum->packed.len, out);
}
