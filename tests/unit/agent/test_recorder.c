/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder by hand: the test plays the writer, the sender and the collector. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/spool/spool.h"
#include "agent/spool/wanted.h"
#include "base/check.h"
#include "proto/frame.pb-c.h"

enum { MIB = 1 << 20, BATCH = 60000 };

#define HOUR_NS UINT64_C(3600000000000)

static unsigned char noise[BATCH];

struct scene {
  struct ta_spool spool;
  uint64_t acked; /* frames read from the wire so far */
};

static struct scene *begin(uint64_t keep_ns) {
  struct scene *sc = calloc(1, sizeof *sc);

  cr_assert_eq(ta_spool_init(&sc->spool, MIB), TB_OK);
  ta_spool_record(&sc->spool, keep_ns);
  ta_spool_header(&sc->spool, "go 1.26 trace\0\0", 16);
  return sc;
}

static void end(struct scene *sc) {
  ta_spool_fini(&sc->spool);
  free(sc);
}

static void write_generation(struct scene *sc, uint64_t gen, unsigned batches) {
  for (unsigned i = 0; i < batches; i++) ta_spool_put(&sc->spool, gen, noise, BATCH);
  ta_spool_end(&sc->spool);
}

static void snap(struct scene *sc, uint64_t last_ns, uint64_t id) {
  bool wake;

  cr_assert_eq(ta_spool_snap(&sc->spool, last_ns, id, &wake), TB_OK);
}

/* Sends and acks everything there is. In the result "1:3" is a whole generation of three
 * batches, "x2" a lost one. */
static void drain(struct scene *sc, char *out, size_t room) {
  unsigned char *bytes = NULL;
  const unsigned char *span;
  struct tp_frame frame;
  size_t n = 0, more, used, need;
  uint64_t wanted;
  unsigned batches = 0;

  *out = 0;
  while (ta_spool_grant(&sc->spool, UINT64_MAX, &wanted) > 0)
    while ((more = ta_spool_span(&sc->spool, &span)) > 0) {
      bytes = realloc(bytes, n + more);
      memcpy(bytes + n, span, more);
      n += more;
      ta_spool_sent(&sc->spool, more);
    }
  for (size_t at = 0; at < n; at += used) {
    size_t len = strlen(out);
    cr_assert_eq(tp_frame_take(bytes + at, n - at, NULL, &frame, &used, &need), TB_OK);
    cr_assert_eq(frame.seq, ++sc->acked);
    if (frame.kind == TP_BATCH) batches++;
    if (frame.kind == TP_GENEND) {
      snprintf(out + len, room - len, "%s%d:%u", len > 0 ? " " : "", (int)frame.gen, batches);
      batches = 0;
    }
    if (frame.kind == TP_LOSS) {
      Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, frame.len, frame.payload);
      snprintf(out + len, room - len, "%sx%d", len > 0 ? " " : "", (int)loss->first_gen);
      tracecollect__v1__loss__free_unpacked(loss, NULL);
    }
  }
  free(bytes);
  if (n > 0) cr_assert_eq(ta_spool_ack(&sc->spool, sc->acked, NULL), TB_OK);
}

#define expect_sent(sc, text)                                                                      \
  do {                                                                                             \
    char sent_[1000];                                                                              \
    drain(sc, sent_, sizeof sent_);                                                                \
    cr_assert_str_eq(sent_, text);                                                                 \
  } while (0)

static struct ta_counters counters(struct scene *sc) {
  struct ta_counters c;

  ta_spool_counters(&sc->spool, &c);
  cr_assert_eq(c.produced.batches, c.acked.batches + c.lost.batches + c.spooled.batches);
  cr_assert_eq(c.produced.bytes, c.acked.bytes + c.lost.bytes + c.spooled.bytes);
  return c;
}

static struct ta_recorded recorded(struct scene *sc) {
  struct ta_recorded r;

  ta_spool_recorded(&sc->spool, &r);
  return r;
}

Test(recorder, sends_nothing_before_it_is_asked_and_then_all_up_to_that_moment) {
  struct scene *sc = begin(HOUR_NS);
  struct ta_snapped done;

  write_generation(sc, 1, 3);
  write_generation(sc, 2, 2);
  expect_sent(sc, "");
  cr_assert_eq(counters(sc).produced.batches, 0);
  cr_assert_eq(recorded(sc).generations, 2);
  cr_assert_eq(recorded(sc).bytes, 5 * BATCH);

  ta_spool_put(&sc->spool, 3, noise, BATCH);
  snap(sc, 0, 7);
  expect_sent(sc, "1:3 2:2");
  cr_assert_not(ta_spool_snapped(&sc->spool, &done), "generation 3 has not ended");
  write_generation(sc, 3, 1);
  write_generation(sc, 4, 1);
  cr_assert_not(ta_spool_snapped(&sc->spool, &done), "it is not acked");
  char sent[100];
  drain(sc, sent, sizeof sent);
  cr_assert_str_eq(sent, "3:1", "%s: of its two batches one had gone before, 4 is kept", sent);
  cr_assert(ta_spool_snapped(&sc->spool, &done));
  cr_assert_eq(done.id, 7);
  cr_assert_eq(done.first_gen, 1);
  cr_assert_eq(done.last_gen, 3);
  cr_assert_eq(done.generations, 3);
  cr_assert_eq(done.lost_generations, 0);
  cr_assert_eq(done.all.batches, 7);
  cr_assert_eq(counters(sc).acked.batches, 7);
  cr_assert_eq(recorded(sc).generations, 1);
  cr_assert_not(ta_spool_snapped(&sc->spool, &done), "once");
  end(sc);
}

Test(recorder, a_snap_between_two_generations_takes_the_next_one_too) {
  struct scene *sc = begin(HOUR_NS);
  struct ta_snapped done;

  snap(sc, 0, 1); /* before anything was written */
  write_generation(sc, 1, 1);
  write_generation(sc, 2, 1);
  expect_sent(sc, "1:1");
  cr_assert(ta_spool_snapped(&sc->spool, &done));
  cr_assert_eq(done.generations, 1);
  snap(sc, 0, 2);
  write_generation(sc, 3, 2);
  expect_sent(sc, "2:1 3:2");
  cr_assert(ta_spool_snapped(&sc->spool, &done));
  cr_assert_eq(done.first_gen, 2);
  cr_assert_eq(done.last_gen, 3);
  end(sc);
}

Test(recorder, where_ends_are_seen_late_one_more_goes_out) {
  struct scene *sc = begin(HOUR_NS);

  ta_spool_record_ends(&sc->spool, 2);
  write_generation(sc, 1, 1);
  snap(sc, 0, 0);
  write_generation(sc, 2, 1);
  write_generation(sc, 3, 1);
  write_generation(sc, 4, 1);
  expect_sent(sc, "1:1 2:1 3:1");
  end(sc);
}

Test(recorder, what_is_older_than_it_is_to_keep_is_forgotten_and_not_lost) {
  struct scene *sc = begin(1); /* keeps one nanosecond: each generation but the newest is too old */

  for (uint64_t gen = 1; gen <= 100; gen++) write_generation(sc, gen, 2);
  cr_assert_leq(recorded(sc).generations, 1);
  cr_assert_geq(recorded(sc).forgotten_generations, 99);
  cr_assert_eq(counters(sc).lost.batches, 0);
  cr_assert_eq(counters(sc).produced.batches, 0);
  snap(sc, 0, 0);
  write_generation(sc, 101, 1);
  char sent[100];
  drain(sc, sent, sizeof sent);
  cr_assert(strstr(sent, "101:1") != NULL, "%s", sent);
  end(sc);
}

Test(recorder, what_does_not_fit_into_its_memory_is_forgotten_and_not_lost) {
  struct scene *sc = begin(HOUR_NS);

  for (uint64_t gen = 1; gen <= 100; gen++) write_generation(sc, gen, 4);
  struct ta_recorded r = recorded(sc);
  cr_assert_eq(r.generations + r.forgotten_generations, 100);
  cr_assert_geq(r.generations, 3);
  cr_assert_leq(r.bytes, MIB);
  snap(sc, 0, 0);
  expect_sent(sc, "97:4 98:4 99:4 100:4");
  cr_assert_eq(counters(sc).lost.batches, 0);
  end(sc);
}

Test(recorder, a_generation_larger_than_its_memory_is_lost_only_for_who_asks_for_it) {
  struct scene *sc = begin(HOUR_NS);
  struct ta_snapped done;

  write_generation(sc, 1, 1);
  write_generation(sc, 2, 40);
  write_generation(sc, 3, 1);
  cr_assert_eq(counters(sc).lost.batches, 0);
  snap(sc, 0, 9);
  write_generation(sc, 4, 1);
  expect_sent(sc, "x2 3:1 4:1");
  struct ta_counters c = counters(sc);
  cr_assert_eq(c.lost.batches, 40);
  cr_assert_eq(c.lost_generations, 1);
  cr_assert_eq(c.acked.batches, 2);
  cr_assert_eq(c.reported.batches, c.produced.batches);
  cr_assert(ta_spool_snapped(&sc->spool, &done));
  cr_assert_eq(done.generations, 2);
  cr_assert_eq(done.lost_generations, 1);
  end(sc);
}

Test(recorder, a_snap_that_is_not_sent_stays_and_what_is_recorded_gives_way) {
  struct scene *sc = begin(HOUR_NS);

  for (uint64_t gen = 1; gen <= 3; gen++) write_generation(sc, gen, 4);
  snap(sc, 0, 0); /* the snap is never fetched */
  for (uint64_t gen = 4; gen <= 50; gen++) write_generation(sc, gen, 4);
  struct ta_counters c = counters(sc);
  cr_assert_eq(c.spooled.batches, 16, "the snap: 1 to 4");
  cr_assert_eq(c.lost.batches, 0);
  cr_assert_eq(ta_spool_resume(&sc->spool, 0, NULL), TB_OK); /* connected again */
  expect_sent(sc, "1:4 2:4 3:4 4:4");
  end(sc);
}

Test(recorder, snaps_that_are_never_sent_are_lost_when_they_fill_the_memory) {
  struct scene *sc = begin(HOUR_NS);
  struct ta_snapped done;
  char sent[1000];

  snap(sc, 0, 3);
  write_generation(sc, 1, 4);
  for (uint64_t gen = 2; gen <= 12; gen++) {
    snap(sc, 0, 0);
    write_generation(sc, gen, 4);
  }
  struct ta_counters c = counters(sc);
  cr_assert_eq(c.produced.batches, 48);
  cr_assert_gt(c.lost.batches, 0);
  drain(sc, sent, sizeof sent);
  cr_assert(strncmp(sent, "x1 ", 3) == 0, "%s", sent);
  c = counters(sc);
  cr_assert_eq(c.spooled.batches, 0);
  cr_assert_eq(c.reported.batches, 48);
  cr_assert(ta_spool_snapped(&sc->spool, &done));
  cr_assert_eq(done.generations, 0);
  cr_assert_eq(done.lost_generations, 1);
  cr_assert_eq(done.all.batches, 0);
  end(sc);
}

Test(recorder, older_than_the_snap_asks_for_is_forgotten) {
  struct scene *sc = begin(HOUR_NS);

  write_generation(sc, 1, 1);
  write_generation(sc, 2, 1);
  snap(sc, 1, 0); /* the last nanosecond */
  expect_sent(sc, "");
  write_generation(sc, 3, 1);
  write_generation(sc, 4, 1);
  expect_sent(sc, "3:1");
  cr_assert_eq(recorded(sc).forgotten_generations, 2);
  end(sc);
}

Test(recorder, a_stream_that_is_closed_sends_nothing_that_was_not_asked_for) {
  struct scene *sc = begin(HOUR_NS);

  write_generation(sc, 1, 1);
  snap(sc, 0, 0);
  write_generation(sc, 2, 1);
  write_generation(sc, 3, 1);
  ta_spool_finish(&sc->spool);
  cr_assert_not(ta_spool_done(&sc->spool));
  expect_sent(sc, "1:1 2:1");
  cr_assert(ta_spool_done(&sc->spool));
  end(sc);
}

Test(recorder, one_that_was_never_asked_closes_with_nothing) {
  struct scene *sc = begin(HOUR_NS);

  write_generation(sc, 1, 1);
  expect_sent(sc, "");
  write_generation(sc, 2, 1);
  ta_spool_finish(&sc->spool);
  expect_sent(sc, "");
  cr_assert(ta_spool_done(&sc->spool));
  cr_assert_eq(counters(sc).produced.batches, 0);
  end(sc);
}

Test(recorder, a_collector_that_forgot_gets_a_new_stream_and_the_record_goes_on) {
  struct scene *sc = begin(HOUR_NS);

  write_generation(sc, 1, 1);
  snap(sc, 0, 0);
  write_generation(sc, 2, 1);
  expect_sent(sc, "1:1 2:1");
  write_generation(sc, 3, 1);
  write_generation(sc, 4, 1);
  cr_assert_eq(ta_spool_resume(&sc->spool, 0, NULL), TB_NOTFOUND);
  cr_assert_eq(ta_spool_restart(&sc->spool), TB_OK);
  sc->acked = 0;
  cr_assert_eq(ta_spool_resume(&sc->spool, 0, NULL), TB_OK);
  expect_sent(sc, "x1");
  snap(sc, 0, 0);
  write_generation(sc, 5, 1);
  expect_sent(sc, "3:1 4:1 5:1");
  struct ta_counters c = counters(sc);
  cr_assert_eq(c.lost.batches, 2);
  cr_assert_eq(c.acked.batches, 3);
  end(sc);
}

Test(recorder, who_does_not_record_says_so_and_too_many_at_a_time_are_refused) {
  struct scene *streams = begin(0), *sc = begin(HOUR_NS);
  struct ta_snapped done;
  bool wake;

  cr_assert_eq(ta_spool_snap(&streams->spool, 0, 1, &wake), TB_UNSUPPORTED);
  for (uint64_t id = 1; id <= TA_SNAPS_MAX; id++) snap(sc, 0, id);
  cr_assert_eq(ta_spool_snap(&sc->spool, 0, 99, &wake), TB_BUDGET);
  write_generation(sc, 1, 1);
  expect_sent(sc, "1:1");
  for (uint64_t id = 1; id <= TA_SNAPS_MAX; id++) {
    cr_assert(ta_spool_snapped(&sc->spool, &done));
    cr_assert_eq(done.last_gen, 1, "each is told of what it waited for");
  }
  end(streams);
  end(sc);
}

/* Generations of any size, snaps, with and without a sender: nothing is counted twice or left
 * out. */
Test(recorder, keeps_its_books_in_any_order_of_things) {
  for (unsigned seed = 1; seed <= 10; seed++) {
    struct scene *sc = begin(HOUR_NS);
    uint64_t written = 0;
    unsigned dice = seed;
    char sent[4000];

    for (uint64_t gen = 1; gen <= 60; gen++) {
      dice = dice * 1103515245 + 12345;
      unsigned batches = dice >> 16 & 15;
      write_generation(sc, gen, batches + 1);
      written += batches + 1;
      if ((dice >> 20 & 7) == 0) snap(sc, 0, 0);
      if ((dice >> 24 & 3) == 0) drain(sc, sent, sizeof sent);
      if ((dice >> 26 & 7) == 0) cr_assert_eq(ta_spool_resume(&sc->spool, sc->acked, NULL), TB_OK);
    }
    ta_spool_finish(&sc->spool);
    drain(sc, sent, sizeof sent);
    struct ta_counters c = counters(sc);
    cr_assert_eq(c.spooled.batches, 0);
    cr_assert_eq(c.reported.batches, c.produced.batches);
    cr_assert_leq(c.produced.batches, written);
    cr_assert(ta_spool_done(&sc->spool), "seed %u", seed);
    cr_assert_eq(sc->spool.runs.pages.free, sc->spool.runs.pages.max, "seed %u", seed);
    end(sc);
  }
}

Test(recorder, of_two_that_are_asked_for_at_once_the_one_that_reaches_further_is_taken) {
  static const uint64_t asked[][3] = { /* two snaps that are asked for, and the one taken */
                                       { 5, 9, 9 },
                                       { 9, 5, 9 },
                                       { 0, 5, 0 },
                                       { 5, 0, 0 },
                                       { UINT64_MAX, 5, UINT64_MAX - 1 }
  };

  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    atomic_ullong wanted = 0;
    uint64_t back;
    cr_assert(!ta_wanted_take(&wanted, &back));
    ta_wanted_ask(&wanted, asked[i][0]);
    ta_wanted_ask(&wanted, asked[i][1]);
    cr_assert(ta_wanted_take(&wanted, &back));
    cr_assert_eq(back, asked[i][2], "pair %zu", i);
    cr_assert(!ta_wanted_take(&wanted, &back));
  }
}
