/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/source.h"
#include "collector/ingest/handshake_limiter.h"

static const struct tc_handshake_limiter_limits limits = { .half_open_max = 3,
                                                           .failures_rate = 20,
                                                           .failures_burst = 50 };
static const uint64_t second_ns = 1000000000;

/* A peer connects and its handshake fails. Returns false if the peer was not let in. */
static bool fail_once(struct tc_handshake_limiter *limiter, uint64_t source, uint64_t now_ns) {
  if (tc_handshake_limiter_enter(limiter, source, &limits, now_ns) != TC_HANDSHAKE_LIMITER_OPEN)
    return false;
  tc_handshake_limiter_leave(limiter, source, true, now_ns);
  return true;
}

Test(limiter, a_source_may_fail_in_a_burst_and_then_at_a_rate) {
  struct tc_handshake_limiter *limiter;
  uint64_t now = 5 * second_ns;
  unsigned in = 0;

  cr_assert_eq(tc_handshake_limiter_new(7, &limiter), TB_OK);
  for (int i = 0; i < 200; i++) in += fail_once(limiter, 1, now);
  cr_expect_eq(in, 50);
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now),
               TC_HANDSHAKE_LIMITER_CLOSED_FAILING);
  in = 0;
  for (int ms = 0; ms < 10000; ms++) in += fail_once(limiter, 1, now += 1000000);
  cr_expect(in >= 199 && in <= 201, "%u in ten seconds", in);
  in = 0;
  now += 100 * second_ns; /* all failures are forgiven, and no more than that */
  for (int i = 0; i < 200; i++) in += fail_once(limiter, 1, now);
  cr_expect_eq(in, 50);
  tc_handshake_limiter_free(limiter);
}

Test(limiter, others_come_in_while_one_is_shut_out) {
  struct tc_handshake_limiter *limiter;

  cr_assert_eq(tc_handshake_limiter_new(7, &limiter), TB_OK);
  for (int i = 0; i < 100; i++) (void)fail_once(limiter, 1, second_ns);
  for (uint64_t source = 2; source < 2000; source++)
    cr_expect(fail_once(limiter, source, second_ns), "source %d", (int)source);
  cr_expect_not(fail_once(limiter, 1, second_ns));
  tc_handshake_limiter_free(limiter);
}

Test(limiter, a_herd_waits_its_turn_while_its_handshakes_get_on) {
  struct tc_handshake_limiter *limiter;
  uint64_t now = second_ns;

  cr_assert_eq(tc_handshake_limiter_new(7, &limiter), TB_OK);
  for (int i = 0; i < 3; i++)
    cr_assert_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now), TC_HANDSHAKE_LIMITER_OPEN);
  for (int i = 0; i < 1000; i++) { /* one handshake ends each half second */
    cr_assert_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now += second_ns / 2),
                 TC_HANDSHAKE_LIMITER_LATER, "%d", i);
    tc_handshake_limiter_leave(limiter, 1, false, now);
    cr_assert_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now), TC_HANDSHAKE_LIMITER_OPEN,
                 "%d", i);
  }
  tc_handshake_limiter_free(limiter);
}

Test(limiter, one_that_lets_them_hang_is_shut_out_and_others_come_in) {
  struct tc_handshake_limiter *limiter;
  uint64_t now = second_ns;

  cr_assert_eq(tc_handshake_limiter_new(7, &limiter), TB_OK);
  for (int i = 0; i < 3; i++)
    cr_assert_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now), TC_HANDSHAKE_LIMITER_OPEN);
  cr_expect_eq(
      tc_handshake_limiter_enter(limiter, 1, &limits, now + TC_HANDSHAKE_LIMITER_PATIENCE_NS - 1),
      TC_HANDSHAKE_LIMITER_LATER);
  now += TC_HANDSHAKE_LIMITER_PATIENCE_NS;
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now),
               TC_HANDSHAKE_LIMITER_CLOSED_HANGING);
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 2, &limits, now), TC_HANDSHAKE_LIMITER_OPEN);
  /* a failed handshake does not count as progress */
  tc_handshake_limiter_leave(limiter, 1, true, now);
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now), TC_HANDSHAKE_LIMITER_OPEN);
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now),
               TC_HANDSHAKE_LIMITER_CLOSED_HANGING);
  for (int i = 0; i < 3; i++) tc_handshake_limiter_leave(limiter, 1, false, now);
  for (int i = 0; i < 3; i++)
    cr_expect_eq(tc_handshake_limiter_enter(limiter, 1, &limits, now), TC_HANDSHAKE_LIMITER_OPEN);
  tc_handshake_limiter_free(limiter);
}

Test(limiter, more_sources_than_places_are_let_through_and_none_is_mixed_up) {
  struct tc_handshake_limiter *limiter;
  unsigned in = 0;

  cr_assert_eq(tc_handshake_limiter_new(99, &limiter), TB_OK);
  for (uint64_t source = 1; source <= 4 * TC_HANDSHAKE_LIMITER_SOURCES; source++)
    in += tc_handshake_limiter_enter(limiter, source, &limits, second_ns) ==
          TC_HANDSHAKE_LIMITER_OPEN;
  cr_expect_eq(in, 4 * TC_HANDSHAKE_LIMITER_SOURCES, "each has one half-open");
  for (uint64_t source = 1; source <= 4 * TC_HANDSHAKE_LIMITER_SOURCES; source++)
    tc_handshake_limiter_leave(limiter, source, false, second_ns);
  for (int i = 0; i < 3; i++)
    cr_expect_eq(tc_handshake_limiter_enter(limiter, 12345, &limits, second_ns),
                 TC_HANDSHAKE_LIMITER_OPEN);
  cr_expect_eq(tc_handshake_limiter_enter(limiter, 12345, &limits, second_ns),
               TC_HANDSHAKE_LIMITER_LATER, "there are places again");
  tc_handshake_limiter_free(limiter);
}

/* Opens both ends of a loopback connection from this address. */
static uint64_t source_from(int family, const char *address) {
  struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
  struct sockaddr_in four = { .sin_family = AF_INET };
  struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
  socklen_t len = family == AF_INET ? sizeof four : sizeof six;
  int acceptor = socket(family, SOCK_STREAM, 0), peer = socket(family, SOCK_STREAM, 0);

  inet_pton(AF_INET, "127.0.0.1", &four.sin_addr);
  inet_pton(AF_INET6, "::1", &six.sin6_addr);
  if (acceptor < 0 || bind(acceptor, at, len) != 0 || listen(acceptor, 1) != 0)
    return 0; /* this machine has no IPv6 */
  cr_assert_eq(getsockname(acceptor, at, &len), 0);
  if (family == AF_INET) {
    struct sockaddr_in from = { .sin_family = AF_INET };
    inet_pton(AF_INET, address, &from.sin_addr);
    cr_assert_eq(bind(peer, (struct sockaddr *)&from, sizeof from), 0);
  }
  cr_assert_eq(connect(peer, at, len), 0);
  int fd = accept(acceptor, NULL, NULL);
  uint64_t source = tb_source_of(fd);
  close(fd);
  close(peer);
  close(acceptor);
  return source;
}

Test(limiter, a_source_is_an_address_without_its_port) {
  int pair[2];

  cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  cr_expect_eq(tb_source_of(pair[0]), (UINT64_C(1) << 32) + getuid(), "on a unix socket: a user");
  close(pair[0]);
  close(pair[1]);
  cr_expect_neq(source_from(AF_INET, "127.0.0.1"), 0);
  cr_expect_eq(source_from(AF_INET, "127.0.0.1"), source_from(AF_INET, "127.0.0.1"));
  cr_expect_neq(source_from(AF_INET, "127.0.0.1"), source_from(AF_INET, "127.0.0.2"));
  cr_expect_eq(source_from(AF_INET6, "::1"), 0, "the /64 that ::1 is in");
}

Test(limiter, whatever_the_seed_each_of_many_sources_is_shut_out) {
  static const uint64_t seeds[] = { 1, 0x9876543210fedcba, UINT64_MAX };

  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    struct tc_handshake_limiter *limiter;
    cr_assert_eq(tc_handshake_limiter_new(seeds[i], &limiter), TB_OK);
    for (uint64_t source = 1; source <= 100; source++) {
      unsigned in = 0;
      for (int n = 0; n < 100; n++) in += fail_once(limiter, source, second_ns);
      cr_expect_eq(in, 50, "seed %d: source %d", (int)i, (int)source);
    }
    tc_handshake_limiter_free(limiter);
  }
}
