/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long /healthz waits while live readers are served.
 *
 * bench_live READERS RATE SECONDS: so many connections read /api/v1/live while RATE generations a second
 * are published, after the ring of live events was filled. Another connection asks for /healthz every
 * 2 ms. Prints "P50 P99 MAX EVENTS": milliseconds, and the events that all readers received. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "collector/http/server.h"
#include "proto/feed.pb-c.h"
#include "support/tls_host.h"

enum { READERS_MAX = 1024, ORIGINS = 200, SAMPLES_MAX = 100000, FILLING = 60000, ASK_NS = 2000000 };

static struct tt_tls_host host;
static struct tc_http *http;
static struct tc_feed *feed;
static struct tc_config config;
static char dir[] = "/tmp/tc_bench_live_XXXXXX";
static struct tc_feed_origin origins[ORIGINS];
static atomic_bool done;
static atomic_ulong events;
static double samples[SAMPLES_MAX];

static void must(bool well, const char *what) {
  if (well) return;
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns) {
  struct timespec at = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
  }
}

/* --- the server -------------------------------------------------------------------------------- */

static const char *unhealthy(void *self) {
  (void)self;
  return NULL;
}

static void on_tick(void *self) {
  (void)self;
  tc_tls_loop_tick(&host.tls);
  tc_http_tick(http);
}

static void on_stop(void *self) {
  (void)self;
  tc_http_close(http);
  tc_tls_loop_close(&host.tls);
}

static void open_feed(void) {
  char set[64];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  must(mkdtemp(dir) != NULL, dir);
  tc_config_init(&config);
  snprintf(set, sizeof set, "state=%s", dir);
  must(tc_config_set(&config, set, &diag) == TB_OK, diag.text);
  must(tc_config_finish(&config, &diag) == TB_OK, diag.text);
  must(tc_feed_new(&config, 1, &feed) == TB_OK, "feed");
}

static struct tc_metrics metrics;

static uint16_t open_server(size_t readers) {
  struct tc_loop_handler handler = { .tick = on_tick, .stop = on_stop };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  open_feed();
  tt_tls_host_open(&host, handler);
  struct tc_http_env env = { .tls = &host.tls,
                             .address = "127.0.0.1:0",
                             .path = config.listen_sock,
                             .certs = host.dir,
                             .limits = { .connections_max = readers + 16,
                                         .head_bytes_max = config.http_head_bytes_max,
                                         .request_ms = 30000,
                                         .idle_ms = 30000,
                                         .stall_ms = 30000,
                                         .live_max = readers,
                                         .live_bytes_max = config.http_live_bytes_max,
                                         .heartbeat_ms = 15000 },
                             .source = { .unhealthy = unhealthy },
                             .metrics = &metrics,
                             .feed = feed };
  must(tc_http_open(&env, &diag, &http) == TB_OK, diag.text);
  must(tc_feed_start(feed, NULL, &diag) == TB_OK, diag.text);
  uint16_t port = (uint16_t)atoi(strrchr(tc_http_address(http), ':') + 1);
  tt_tls_host_start(&host);
  return port;
}

/* Closes in the daemon's order: the feed before its readers. */
static void close_server(void) {
  tc_feed_stop(feed);
  tt_tls_host_end(&host);
  tc_http_free(http);
  tc_feed_free(feed);
  tc_config_fini(&config);
  rmdir(dir);
}

static void publish(uint64_t number) {
  struct tc_feed_origin *origin = &origins[number % ORIGINS];
  Tracecollect__V1__GenerationNote gen = TRACECOLLECT__V1__GENERATION_NOTE__INIT,
                                   *list[] = { &gen };
  Tracecollect__V1__FeedMessage message = TRACECOLLECT__V1__FEED_MESSAGE__INIT;
  uint8_t bytes[256];

  snprintf(origin->service, sizeof origin->service, "bench");
  snprintf(origin->instance, sizeof origin->instance, "host-%u", (unsigned)(number % ORIGINS));
  gen.last_gen = number / ORIGINS + 1;
  gen.state = TRACECOLLECT__V1__GENERATION_STATE__GENERATION_ARCHIVED;
  message.generations = list;
  message.n_generations = 1;
  struct tc_feed_note note = {
    .slot = TC_FEED_GENERATION, .count = 1, .gen = gen.last_gen, .bytes = bytes
  };
  note.len = tracecollect__v1__feed_message__pack(&message, bytes);
  tc_feed_publish(feed, 0, origin, &note);
}

/* --- its clients ------------------------------------------------------------------------------- */

static int dial(uint16_t port, const char *ask) {
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_port = htons(port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

  must(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
  must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
  must(write(fd, ask, strlen(ask)) == (ssize_t)strlen(ask), "write");
  return fd;
}

static unsigned long count_events(const char *text, size_t n) {
  unsigned long found = 0;

  for (const char *at = text; (at = memmem(at, n - (size_t)(at - text), "\ndata: ", 7)) != NULL;
       at++)
    found++;
  return found;
}

static void *read_all(void *epoll) {
  static char text[256 << 10];
  struct epoll_event ready[64];

  while (!atomic_load(&done)) {
    int n = epoll_wait(*(int *)epoll, ready, 64, 100);

    for (int i = 0; i < n; i++) {
      ssize_t got = read(ready[i].data.fd, text, sizeof text);

      must(got > 0, "a live reader ended");
      atomic_fetch_add(&events, count_events(text, (size_t)got));
    }
  }
  return NULL;
}

static double ask_health(int fd) {
  static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  uint64_t began = now_ns();
  char answer[1024];
  size_t len = 0;

  must(write(fd, ask, sizeof ask - 1) == (ssize_t)sizeof ask - 1, "write");
  while (len < 3 || memcmp(answer + len - 3, "ok\n", 3) != 0) {
    ssize_t n = read(fd, answer + len, sizeof answer - len);

    must(n > 0, "/healthz");
    len += (size_t)n;
  }
  return (double)(now_ns() - began) / 1e6;
}

struct publisher {
  uint64_t number, rate;
};

static void *publish_all(void *self) {
  struct publisher *p = self;
  uint64_t began = now_ns();

  for (uint64_t n = 0; !atomic_load(&done); n++) {
    sleep_until(began + n * 1000000000 / p->rate);
    publish(p->number++);
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  must(argc == 4, "bench_live READERS RATE SECONDS");
  size_t readers = (size_t)atol(argv[1]), n = 0;
  struct publisher publisher = { .rate = (uint64_t)atol(argv[2]) };
  uint64_t end_ns, at_ns;
  pthread_t publishing, reading;
  int epoll = epoll_create1(EPOLL_CLOEXEC);

  must(readers <= READERS_MAX && publisher.rate > 0 && epoll >= 0, "arguments");
  uint16_t port = open_server(readers);
  must(pthread_create(&reading, NULL, read_all, &epoll) == 0, "thread");
  for (size_t i = 0; i < readers; i++) {
    struct epoll_event event = { .events = EPOLLIN };

    event.data.fd =
        dial(port, "GET /api/v1/live?kinds=generation HTTP/1.1\r\nHost: localhost\r\n\r\n");
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event) == 0, "epoll_ctl");
    if (i > 0) continue;
    at_ns = now_ns();
    for (; publisher.number < FILLING; publisher.number++) {
      publish(publisher.number);
      if (publisher.number % 100 == 0) sleep_until(at_ns += 5000000);
    }
  }
  int fd = dial(port, "");
  must(pthread_create(&publishing, NULL, publish_all, &publisher) == 0, "thread");
  atomic_store(&events, 0);
  at_ns = now_ns();
  end_ns = at_ns + (uint64_t)atol(argv[3]) * 1000000000;
  while (at_ns < end_ns && n < SAMPLES_MAX) {
    samples[n++] = ask_health(fd);
    at_ns += ASK_NS;
    if (at_ns < now_ns()) at_ns = now_ns();
    sleep_until(at_ns);
  }
  atomic_store(&done, true);
  pthread_join(publishing, NULL);
  pthread_join(reading, NULL);
  close_server();
  qsort(samples, n, sizeof samples[0], compare);
  printf("%.2f %.2f %.2f %lu\n", samples[n / 2], samples[n * 99 / 100], samples[n - 1],
         atomic_load(&events));
  return 0;
}
