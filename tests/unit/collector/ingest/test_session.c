/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "collector/ingest/record_pool.h"
#include "collector/ingest/session.h"

/* The messages of an agent, and what ingest passed on for them, as one line of text. */
struct talk {
  struct tc_ingest in;
  struct tb_diag diag;
  struct tb_mem mem;
  struct tb_buf said;
  char heard[4000];
  bool full; /* the store has no room */
};

static void hear(struct talk *t, const char *fmt, ...) {
  size_t len = strlen(t->heard);
  va_list ap;

  va_start(ap, fmt);
  vsnprintf(t->heard + len, sizeof t->heard - len, fmt, ap);
  va_end(ap);
}

static tb_rc on_hello(void *self, const Tracecollect__V1__Hello *hello) {
  struct talk *t = self;

  if (t->full) return TB_AGAIN;
  hear(t, "hello %s;", hello->service);
  return TB_OK;
}

static tb_rc on_record(void *self, struct tc_record *record) {
  struct talk *t = self;

  if (t->full) return TB_AGAIN;
  hear(t, "%s %d %.*s;", tp_kind_name(record->kind), (int)record->seq,
       (int)(record->len > 20 ? 20 : record->len), (const char *)record->payload);
  record->free(record);
  return TB_OK;
}

static void on_known(void *self, uint64_t bytes) {
  hear(self, "known %d;", (int)bytes);
}

static void on_snapped(void *self, const Tracecollect__V1__Snapped *snapped) {
  hear(self, "snapped %d;", (int)snapped->id);
}
static void on_heartbeat(void *self, const Tracecollect__V1__Heartbeat *heartbeat) {
  hear(self, "heartbeat %d;", (int)heartbeat->mono_ns);
}

static void talk_begin(struct talk *t) {
  struct tc_ingest_sink sink = { t, on_hello, on_record, on_known, on_heartbeat, on_snapped };

  memset(t, 0, sizeof *t);
  tb_mem_init(&t->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&t->said, &t->mem);
  tb_diag_clear(&t->diag);
  tc_ingest_init(&t->in, 1, 1 << 20, sink, &t->diag);
}

static void talk_end(struct talk *t) {
  tc_ingest_fini(&t->in);
  tb_buf_fini(&t->said);
  cr_assert_eq(tc_records_held_bytes(), 0, "every record's memory has come back");
}

static void say(struct talk *t, enum tp_kind kind, uint64_t seq, const void *payload, size_t n) {
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame = { .kind = kind,
                            .flags = TP_CRITICAL,
                            .seq = seq,
                            .gen = seq != 0,
                            .payload = payload,
                            .len = (uint32_t)n };

  tp_frame_head(&frame, head);
  tb_buf_add(&t->said, head, sizeof head);
  tb_buf_add(&t->said, payload, n);
}

static void say_hello(struct talk *t) {
  Tracecollect__V1__Hello m = TRACECOLLECT__V1__HELLO__INIT;
  unsigned char bytes[200];
  char service[] = "shop";

  m.major = 1;
  m.service = service;
  say(t, TP_HELLO, 0, bytes, tracecollect__v1__hello__pack(&m, bytes));
}

static void say_heartbeat(struct talk *t) {
  Tracecollect__V1__Heartbeat m = TRACECOLLECT__V1__HEARTBEAT__INIT;
  unsigned char bytes[200];

  m.mono_ns = 77;
  say(t, TP_HEARTBEAT, 0, bytes, tracecollect__v1__heartbeat__pack(&m, bytes));
}

static void say_snapped(struct talk *t, unsigned id, uint64_t last_gen, uint64_t to_wall_ns) {
  Tracecollect__V1__Snapped m = TRACECOLLECT__V1__SNAPPED__INIT;
  unsigned char bytes[200];

  m.id = id;
  m.first_gen = 7;
  m.last_gen = last_gen;
  m.from_wall_ns = 1000;
  m.to_wall_ns = to_wall_ns;
  say(t, TP_SNAPPED, 0, bytes, tracecollect__v1__snapped__pack(&m, bytes));
}

/* Offers the agent's bytes in pieces. Stops at the first result that is not TB_OK. */
static tb_rc offer(struct talk *t, size_t piece) {
  size_t at = 0;
  tb_rc rc = TB_OK;

  while (rc == TB_OK && at < t->said.len) {
    size_t n = t->said.len - at < piece ? t->said.len - at : piece, used;

    rc = tc_ingest_bytes(&t->in, t->said.data + at, n, &used);
    at += used;
  }
  memmove(t->said.data, t->said.data + at, t->said.len - at);
  t->said.len -= at;
  return rc;
}

static void attach(struct talk *t, uint64_t durable_seq, uint64_t credit) {
  say_hello(t);
  cr_assert_eq(offer(t, 1000), TB_AGAIN, "nothing is read between HELLO and its answer");
  tc_ingest_attached(&t->in, 5, durable_seq, credit);
  t->heard[0] = '\0';
}

Test(ingest, records_come_out_the_same_however_the_bytes_are_cut) {
  for (size_t piece = 1; piece < 200; piece += 7) {
    struct talk t;

    talk_begin(&t);
    attach(&t, 0, 1 << 20);
    say(&t, TP_HEADER, 1, "go 1.26 trace", 13);
    say(&t, TP_BATCH, 2, "abc", 3);
    say_heartbeat(&t);
    say(&t, TP_CLOSE, 3, "", 0);
    cr_assert_eq(offer(&t, piece), TB_OK);
    cr_assert_str_eq(t.heard, "HEADER 1 go 1.26 trace;BATCH 2 abc;heartbeat 77;CLOSE 3 ;");
    talk_end(&t);
  }
}

/* As offer(), but first copies the bytes to the place that ingest names, if it names one. Returns how often it did. */
static unsigned offer_in_place(struct talk *t, size_t piece) {
  unsigned placed = 0;

  while (t->said.len > 0) {
    unsigned char *bytes = t->said.data;
    size_t room = tc_ingest_room(&t->in, &bytes), n = t->said.len < piece ? t->said.len : piece,
           used;

    if (room > 0) {
      if (n > room) n = room;
      memcpy(bytes, t->said.data, n);
      placed++;
    }
    cr_assert_eq(tc_ingest_bytes(&t->in, bytes, n, &used), TB_OK, "%s", t->diag.text);
    cr_assert_eq(used, n);
    memmove(t->said.data, t->said.data + n, t->said.len - n);
    t->said.len -= n;
  }
  return placed;
}

Test(ingest, the_bytes_of_a_large_record_may_be_put_where_they_stay) {
  static char big[60000];

  memset(big, 'b', sizeof big);
  for (size_t piece = 777; piece < 90000; piece = piece * 2 + 1) {
    struct talk t;

    talk_begin(&t);
    attach(&t, 0, 1 << 20);
    say(&t, TP_BATCH, 1, big, sizeof big);
    say(&t, TP_BATCH, 2, big, sizeof big);
    say_heartbeat(&t);
    say(&t, TP_BATCH, 3, "small", 5);
    say(&t, TP_CLOSE, 4, "", 0);
    unsigned placed = offer_in_place(&t, piece);
    cr_assert_gt(placed, 0, "pieces of %zu", piece);
    cr_assert_str_eq(t.heard, "BATCH 1 bbbbbbbbbbbbbbbbbbbb;BATCH 2 bbbbbbbbbbbbbbbbbbbb;"
                              "heartbeat 77;BATCH 3 small;CLOSE 4 ;");
    talk_end(&t);
  }
}

Test(ingest, known_records_are_answered_and_not_kept) {
  struct talk t;

  talk_begin(&t);
  attach(&t, 2, 1 << 20);
  say(&t, TP_BATCH, 1, "one", 3);
  say(&t, TP_BATCH, 2, "two", 3);
  say(&t, TP_BATCH, 3, "three", 5);
  cr_assert_eq(offer(&t, 50), TB_OK);
  cr_assert_str_eq(t.heard, "known 35;known 35;BATCH 3 three;");
  talk_end(&t);
}

Test(ingest, a_gap_in_the_sequence_is_named) {
  struct talk t;

  talk_begin(&t);
  attach(&t, 0, 1 << 20);
  say(&t, TP_BATCH, 1, "one", 3);
  say(&t, TP_BATCH, 3, "three", 5);
  cr_assert_eq(offer(&t, 1000), TB_PROTOCOL);
  cr_assert_str_eq(t.diag.text, "record 3 arrived, 2 was expected");
  talk_end(&t);
}

Test(ingest, what_goes_past_the_credit_is_refused_before_memory_is_taken) {
  struct talk t;
  static char big[60000];

  talk_begin(&t);
  attach(&t, 0, 100);
  say(&t, TP_BATCH, 1, big, sizeof big);
  cr_assert_eq(offer(&t, TP_HEADER_BYTES), TB_BUDGET, "the header alone says so");
  cr_assert_str_eq(t.diag.text, "record 1 exceeds the credit by 59932 bytes");
  cr_assert_eq(tc_records_held_bytes(), 0);
  talk_end(&t);
}

Test(ingest, a_full_store_holds_the_record_and_gets_it_once_later) {
  struct talk t;
  size_t used;

  talk_begin(&t);
  t.full = true;
  say_hello(&t);
  cr_assert_eq(offer(&t, 1000), TB_AGAIN);
  cr_assert_str_eq(t.heard, "");
  t.full = false;
  cr_assert_eq(tc_ingest_bytes(&t.in, NULL, 0, &used), TB_AGAIN);
  cr_assert_str_eq(t.heard, "hello shop;");
  tc_ingest_attached(&t.in, 5, 0, 1 << 20);

  t.full = true;
  say(&t, TP_BATCH, 1, "one", 3);
  say(&t, TP_BATCH, 2, "two", 3);
  cr_assert_eq(offer(&t, 1000), TB_AGAIN);
  cr_assert_eq(t.said.len, 35, "the second record is not taken yet");
  cr_assert_eq(tc_ingest_bytes(&t.in, NULL, 0, &used), TB_AGAIN);
  t.full = false;
  cr_assert_eq(tc_ingest_bytes(&t.in, NULL, 0, &used), TB_OK);
  cr_assert_eq(offer(&t, 1000), TB_OK);
  cr_assert_str_eq(t.heard, "hello shop;BATCH 1 one;BATCH 2 two;");
  talk_end(&t);
}

Test(ingest, the_limit_on_held_bytes_pauses_and_goes_on) {
  struct talk t;
  size_t used;

  talk_begin(&t);
  attach(&t, 0, 1 << 20);
  t.in.held_max = 10;
  say(&t, TP_BATCH, 1, "one", 3);
  cr_assert_eq(offer(&t, 1000), TB_AGAIN);
  cr_assert_str_eq(t.heard, "");
  t.in.held_max = 1000;
  cr_assert_eq(offer(&t, 1000), TB_OK);
  cr_assert_eq(tc_ingest_bytes(&t.in, NULL, 0, &used), TB_OK);
  cr_assert_str_eq(t.heard, "BATCH 1 one;");
  talk_end(&t);
}

static void expect_fault(void (*speak)(struct talk *), bool attached, tb_rc rc, const char *text) {
  struct talk t;

  talk_begin(&t);
  if (attached) attach(&t, 0, 1 << 20);
  speak(&t);
  cr_assert_eq(offer(&t, 1 << 21), rc, "%s", text);
  cr_assert_str_eq(t.diag.text, text);
  talk_end(&t);
}

static void speak_batch(struct talk *t) {
  say(t, TP_BATCH, 1, "x", 1);
}
static void speak_ack(struct talk *t) {
  say(t, TP_ACK, 0, "", 0);
}
static void speak_junk_heartbeat(struct talk *t) {
  say(t, TP_HEARTBEAT, 0, "\xff\xff\xff", 3);
}
static void speak_bad_crc(struct talk *t) {
  say(t, TP_BATCH, 1, "abc", 3);
  t->said.data[TP_HEADER_BYTES + 1] ^= 1;
}
static void speak_oversized(struct talk *t) {
  say(t, TP_BATCH, 1, "x", 1);
  t->said.data[2] = 0x10; /* 1 MiB and one byte */
}

static void speak_snap_backwards(struct talk *t) {
  say_snapped(t, 4, 6, 2000);
}

/* Once, such a snap ended the agent for good. The agent's clock had been set back. */
Test(ingest, a_snap_may_end_before_it_began_by_a_clock_that_was_set_back) {
  struct talk t;

  talk_begin(&t);
  attach(&t, 0, 1 << 20);
  say_snapped(&t, 4, 9, 999);
  cr_assert_eq(offer(&t, 1000), TB_OK);
  cr_assert_str_eq(t.heard, "snapped 4;");
  talk_end(&t);
}

Test(ingest, faults_are_named) {
  expect_fault(speak_snap_backwards, true, TB_PROTOCOL,
               "SNAPPED without an id or with reversed generations");
  expect_fault(speak_batch, false, TB_PROTOCOL, "the first frame is BATCH, not HELLO");
  expect_fault(say_hello, true, TB_PROTOCOL, "a second HELLO");
  expect_fault(speak_ack, true, TB_PROTOCOL, "agents must not send ACK");
  expect_fault(speak_junk_heartbeat, true, TB_PROTOCOL, "HEARTBEAT does not unpack");
  expect_fault(speak_bad_crc, true, TB_PROTOCOL, "BATCH frame fails its checksum");
  expect_fault(speak_oversized, true, TB_PROTOCOL, "BATCH frame of 1048577 bytes, limit 73728");
}

/* Offers n generations without a batch, and returns how many were accepted. */
static unsigned offer_ends(struct talk *t, unsigned n) {
  unsigned taken = 0;
  size_t used;

  for (; taken < n; taken++) {
    say(t, TP_GENEND, t->in.expected, "", 0);
    if (offer(t, 1000) != TB_OK) break;
  }
  (void)!tc_ingest_bytes(&t->in, NULL, 0, &used);
  return taken;
}

static void join(struct talk *t, struct tc_quota *quota) {
  talk_begin(t);
  attach(t, 0, 1 << 20);
  t->in.quota = quota;
  t->in.tenant_held_max = 1 << 20;
}

Test(ingest, a_stream_and_a_name_have_so_many_generations_a_second) {
  struct tc_quota name = { 0 };
  struct talk a;

  join(&a, &name);
  a.in.stream_rate = 2;
  cr_expect_lt(offer_ends(&a, 100), 50);
  cr_expect_eq(a.in.hold, TC_HOLD_STREAM_RATE);
  a.in.stream_rate = 0;
  a.in.tenant_rate = 2;
  cr_expect_lt(offer_ends(&a, 100), 50);
  cr_expect_eq(a.in.hold, TC_HOLD_TENANT_RATE);
  a.in.tenant_rate = 0;
  cr_expect_eq(offer_ends(&a, 100), 100);
  talk_end(&a);
  cr_expect_eq(atomic_load(&name.jobs), 0);
  cr_expect_eq(tc_quotas_with_jobs(), 0);
}

Test(ingest, what_is_no_generation_has_no_limit) {
  struct tc_quota name = { 0 };
  struct talk a;

  join(&a, &name);
  a.in.stream_rate = a.in.jobs_max = 1;
  for (unsigned i = 0; i < 100; i++) {
    say(&a, TP_BATCH, a.in.expected, "x", 1);
    cr_assert_eq(offer(&a, 1000), TB_OK);
  }
  talk_end(&a);
}

Test(ingest, each_name_has_its_share_of_the_archives_jobs) {
  struct tc_quota greedy = { 0 }, other = { 0 };
  struct talk a, b;
  size_t used;

  join(&a, &greedy);
  join(&b, &other);
  a.in.jobs_max = b.in.jobs_max = 4;
  for (unsigned i = 0; i < 4; i++) tc_job_begun(&greedy); /* jobs that are in the store */
  say(&a, TP_GENEND, 1, "", 0);
  cr_expect_eq(offer(&a, 1000), TB_AGAIN);
  cr_expect_eq(a.in.hold, TC_HOLD_TENANT_SHARE);
  say(&b, TP_GENEND, 1, "", 0);
  cr_expect_eq(offer(&b, 1000), TB_OK, "a name without a job may always begin one");
  tc_job_begun(&other);
  tc_job_done(&greedy);
  tc_job_done(&greedy);
  cr_expect_eq(tc_ingest_bytes(&a.in, NULL, 0, &used), TB_AGAIN, "2 of 4 are its half");
  tc_job_done(&other);
  cr_expect_eq(tc_ingest_bytes(&a.in, NULL, 0, &used), TB_OK);
  tc_job_done(&greedy);
  tc_job_done(&greedy);
  talk_end(&a);
  talk_end(&b);
  cr_expect_eq(tc_quotas_with_jobs(), 0);
}

Test(ingest, one_tenants_limit_pauses_that_tenant_only) {
  struct tc_quota greedy = { 0 }, other = { 0 };
  struct talk a, b;
  size_t used;

  talk_begin(&a);
  talk_begin(&b);
  attach(&a, 0, 1 << 20);
  attach(&b, 0, 1 << 20);
  a.in.quota = &greedy;
  b.in.quota = &other;
  a.in.tenant_held_max = b.in.tenant_held_max = 2000;
  struct tc_record *held = tc_record_new(1900, &greedy); /* of another connection with this name */
  say(&a, TP_BATCH, 1, "one", 3);
  say(&b, TP_BATCH, 1, "one", 3);
  cr_expect_eq(offer(&a, 1000), TB_AGAIN);
  cr_expect_str_eq(a.heard, "");
  cr_expect_eq(offer(&b, 1000), TB_OK);
  cr_expect_str_eq(b.heard, "BATCH 1 one;");
  tc_record_free(held);
  cr_expect_eq(tc_ingest_bytes(&a.in, NULL, 0, &used), TB_OK);
  cr_expect_eq(offer(&a, 1000), TB_OK);
  cr_expect_str_eq(a.heard, "BATCH 1 one;");
  talk_end(&a);
  talk_end(&b);
}
