/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ingest/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "collector/ingest/record_pool.h"
#include "proto/unpack.h"

enum {
  CONTROL_UNPACKED_MAX = 64 << 10,
  BULK_BYTES = 4 << 10, /* from this size on a separate read costs less than copying */
};

static tb_rc hold_for(struct tc_ingest *in, enum tc_ingest_hold why) {
  in->hold = why;
  return TB_AGAIN;
}

/* The archive writes a file for each job, however small. */
static bool is_job(const struct tc_ingest *in) {
  enum tp_kind kind = in->frame.kind;

  return in->quota != NULL && in->state == TC_INGEST_STREAMING && in->frame.seq >= in->expected &&
         (kind == TP_GENEND || kind == TP_LOSS || kind == TP_CLOSE);
}

/* The archive works in the order of arrival. Each owner gets an equal share of the waiting jobs, and so of the archive's time:
 * one with few jobs does not wait for one with many.
 *
 * All together may have as many waiting jobs as the archive handles in a quarter of a second (jobs_max at least). A fixed
 * number alone would limit the archive's speed, as each job also waits for the disk: the longer, the busier the machine is. */
static bool has_share(const struct tc_ingest *in, uint64_t now) {
  size_t mine = atomic_load_explicit(&in->quota->jobs, memory_order_relaxed);
  size_t quotas = tc_quotas_with_jobs(); /* 0: the last job has just ended */
  uint64_t paced = tc_jobs_paced(now), all = paced > in->jobs_max ? paced : in->jobs_max;

  return in->jobs_max == 0 || mine == 0 || quotas == 0 || mine < all / quotas;
}

static tb_rc job_begin(struct tc_ingest *in) {
  uint64_t now = tc_mono_ns();

  if (!has_share(in, now)) return hold_for(in, TC_HOLD_TENANT_SHARE);
  if (!tc_rate_limit_take(&in->pace, in->stream_rate, now))
    return hold_for(in, TC_HOLD_STREAM_RATE);
  if (tc_rate_limit_take(&in->quota->pace, in->tenant_rate, now)) return TB_OK;
  tc_rate_limit_return(&in->pace, in->stream_rate);
  return hold_for(in, TC_HOLD_TENANT_RATE);
}

static tb_rc record_begin(struct tc_ingest *in) {
  size_t bytes = sizeof *in->record + in->frame.len;
  bool job = is_job(in);

  if (tc_records_held_bytes() + bytes > in->held_max) return hold_for(in, TC_HOLD_MEMORY);
  if (in->quota != NULL && atomic_load(&in->quota->record_bytes) + bytes > in->tenant_held_max)
    return hold_for(in, TC_HOLD_TENANT_MEMORY);
  if (job) TB_TRY(job_begin(in));
  in->hold = TC_HOLD_NONE;
  struct tc_record *record = tc_record_new(in->frame.len, in->quota);
  if (record == NULL) return tb_fail(in->diag, TB_NOMEM, "no memory for a record");
  record->conn = in->conn;
  record->seq = in->frame.seq;
  record->gen = in->frame.gen;
  record->stream = in->stream;
  record->kind = (uint8_t)in->frame.kind;
  record->is_job = job;
  if (job) tc_job_begun(in->quota);
  in->record = record;
  in->filled = 0;
  return TB_OK;
}

static void next_frame(struct tc_ingest *in) {
  in->bulk = in->head_len == TP_HEADER_BYTES && in->frame.len >= BULK_BYTES;
  tc_record_free(in->record);
  in->record = NULL;
  in->head_len = 0;
  in->whole = false;
  in->frames++;
}

size_t tc_ingest_begun(const struct tc_ingest *in) {
  return in->whole ? 0 : in->head_len + (in->record != NULL ? in->filled : 0);
}

/* Distinguishes a lack of memory from an invalid message: the agent must not be refused for our shortage. */
static tb_rc not_unpacked(struct tc_ingest *in, const struct tb_arena *arena) {
  if (arena->is_short) return tb_fail(in->diag, TB_NOMEM, "no memory for a message");
  return tb_fail(in->diag, TB_PROTOCOL, "%s does not unpack", tp_kind_name(in->frame.kind));
}

static tb_rc take_hello(struct tc_ingest *in, struct tb_arena *arena) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  const Tracecollect__V1__Hello *hello =
      tracecollect__v1__hello__unpack(&allocator, in->frame.len, in->record->payload);

  if (hello == NULL) return not_unpacked(in, arena);
  TB_TRY(in->sink.hello(in->sink.self, hello));
  in->state = TC_INGEST_ATTACHING;
  return TB_OK;
}

static tb_rc take_heartbeat(struct tc_ingest *in, struct tb_arena *arena) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  const Tracecollect__V1__Heartbeat *heartbeat =
      tracecollect__v1__heartbeat__unpack(&allocator, in->frame.len, in->record->payload);

  if (heartbeat == NULL) return not_unpacked(in, arena);
  in->sink.heartbeat(in->sink.self, heartbeat);
  return TB_OK;
}

static tb_rc take_snapped(struct tc_ingest *in, struct tb_arena *arena) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  const Tracecollect__V1__Snapped *snapped =
      tracecollect__v1__snapped__unpack(&allocator, in->frame.len, in->record->payload);

  if (snapped == NULL) return not_unpacked(in, arena);
  /* Do not check the times: the agent's clock may have been set back. */
  if (snapped->id == 0 || snapped->last_gen < snapped->first_gen)
    return tb_fail(in->diag, TB_PROTOCOL, "SNAPPED without an id or with reversed generations");
  if (in->sink.snapped != NULL) in->sink.snapped(in->sink.self, snapped);
  return TB_OK;
}

static tb_rc unpack_control(struct tc_ingest *in, struct tb_arena *arena) {
  switch (in->frame.kind) {
  case TP_HELLO: return take_hello(in, arena);
  case TP_SNAPPED: return take_snapped(in, arena);
  default: return take_heartbeat(in, arena);
  }
}

static tb_rc take_control(struct tc_ingest *in) {
  struct tb_mem mem;
  struct tb_arena arena;
  tb_rc rc;

  if (in->frame.kind != TP_HELLO && in->frame.kind != TP_HEARTBEAT &&
      in->frame.kind != TP_SNAPPED) {
    if (in->frame.kind >= TP_KIND_LIMIT) return TB_OK; /* not critical: from a later version */
    return tb_fail(in->diag, TB_PROTOCOL, "agents must not send %s", tp_kind_name(in->frame.kind));
  }
  if (in->frame.kind == TP_HELLO && in->state != TC_INGEST_GREETING)
    return tb_fail(in->diag, TB_PROTOCOL, "a second HELLO");

  tb_mem_init(&mem, tb_mem_libc, NULL, CONTROL_UNPACKED_MAX);
  tb_arena_init(&arena, &mem, 4 << 10);
  rc = unpack_control(in, &arena);
  tb_arena_fini(&arena);
  return rc;
}

static tb_rc take_record(struct tc_ingest *in) {
  uint64_t seq = in->frame.seq;

  if (seq > in->expected)
    return tb_fail(in->diag, TB_PROTOCOL, "record %" PRIu64 " arrived, %" PRIu64 " was expected",
                   seq, in->expected);
  if (seq < in->expected) {
    in->sink.known(in->sink.self, (uint64_t)TP_HEADER_BYTES + in->frame.len);
    return TB_OK;
  }
  TB_TRY(in->sink.record(in->sink.self, in->record));
  in->record = NULL;
  in->expected++;
  return TB_OK;
}

static tb_rc take_frame(struct tc_ingest *in) {
  tb_rc rc = in->frame.seq != 0 ? take_record(in) : take_control(in);

  if (rc == TB_OK) next_frame(in);
  return rc;
}

/* Checks the header before anything is allocated for the frame. */
static tb_rc open_frame(struct tc_ingest *in) {
  TB_TRY(tp_frame_open(in->head, in->diag, &in->frame));
  if (in->state == TC_INGEST_GREETING && in->frame.kind != TP_HELLO)
    return tb_fail(in->diag, TB_PROTOCOL, "the first frame is %s, not HELLO",
                   tp_kind_name(in->frame.kind));
  if (in->frame.seq == 0) return TB_OK;
  if (in->frame.len > TP_RECORD_BYTES_MAX)
    return tb_fail(in->diag, TB_PROTOCOL, "record of %" PRIu32 " bytes, limit %d", in->frame.len,
                   TP_RECORD_BYTES_MAX);
  in->received += (uint64_t)TP_HEADER_BYTES + in->frame.len;
  if (in->received > in->credit_until)
    return tb_fail(in->diag, TB_BUDGET,
                   "record %" PRIu64 " exceeds the credit by %" PRIu64 " bytes", in->frame.seq,
                   in->received - in->credit_until);
  return TB_OK;
}

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Copies the bytes unless they were read into their place (tc_ingest_room()). */
static void put_bytes(unsigned char *to, const unsigned char *from, size_t n) {
  if (n > 0 && to != from) memcpy(to, from, n);
}

size_t tc_ingest_room(struct tc_ingest *in, unsigned char **out) {
  if (in->state != TC_INGEST_STREAMING || in->whole) return 0;
  if (in->head_len < TP_HEADER_BYTES) {
    /* Another large record is likely to follow: read its header alone, so that its payload can be read into its place. */
    if (!in->bulk) return 0;
    *out = in->head + in->head_len;
    return TP_HEADER_BYTES - in->head_len;
  }
  if (in->record == NULL || in->frame.len - in->filled < BULK_BYTES) return 0;
  *out = in->record->payload + in->filled;
  return in->frame.len - in->filled;
}

tb_rc tc_ingest_bytes(struct tc_ingest *in, const unsigned char *bytes, size_t n,
                      size_t *out_used) {
  *out_used = 0;
  for (;;) {
    if (in->whole) TB_TRY(take_frame(in));
    if (in->state == TC_INGEST_ATTACHING) return TB_AGAIN;
    if (in->head_len < TP_HEADER_BYTES) {
      size_t part = min_size(TP_HEADER_BYTES - in->head_len, n - *out_used);

      if (part == 0) return TB_OK;
      put_bytes(in->head + in->head_len, bytes + *out_used, part);
      in->head_len += (unsigned)part;
      *out_used += part;
      if (in->head_len < TP_HEADER_BYTES) return TB_OK;
      TB_TRY(open_frame(in));
    }
    if (in->record == NULL) TB_TRY(record_begin(in));

    size_t part = min_size(in->frame.len - in->filled, n - *out_used);
    put_bytes(in->record->payload + in->filled, bytes + *out_used, part);
    in->filled += (uint32_t)part;
    *out_used += part;
    if (in->filled < in->frame.len) return TB_OK;
    TB_TRY(tp_frame_close(&in->frame, in->head, in->record->payload, in->diag));
    in->record->crc = in->frame.payload_crc;
    in->whole = true;
  }
}

void tc_ingest_attached(struct tc_ingest *in, uint32_t stream, uint64_t durable_seq,
                        uint64_t credit) {
  in->state = TC_INGEST_STREAMING;
  in->stream = stream;
  in->expected = durable_seq + 1;
  in->credit_until = credit;
}

void tc_ingest_credit(struct tc_ingest *in, uint64_t until) {
  in->credit_until = until;
}

void tc_ingest_init(struct tc_ingest *in, uint64_t conn, size_t held_max,
                    struct tc_ingest_sink sink, struct tb_diag *diag) {
  *in = (struct tc_ingest){ .sink = sink, .diag = diag, .held_max = held_max, .conn = conn };
}

void tc_ingest_fini(struct tc_ingest *in) {
  next_frame(in);
}
