/* SPDX-License-Identifier: Apache-2.0 */
/* feed_latency URL [GENERATIONS]: subscribes to a live feed and prints how long after the agent saw a
 * generation end its "archived" and its first report came, in ms:
 *
 *   archived<TAB>N<TAB>P50<TAB>P99<TAB>MAX
 *   report<TAB>N<TAB>P50<TAB>P99<TAB>MAX
 *
 * Ends after so many generations, or after 30 s of silence; without GENERATIONS never. Collector and agent must run on
 * this machine, to have the same clock. */
#include <inttypes.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/feed.pb-c.h"

enum { SAMPLES_MAX = 100000, SILENCE_MS = 30000, QUEUE = 4096 };

struct samples {
  double ms[SAMPLES_MAX];
  size_t n;
};

/* The generation whose first report is awaited, by stream: only one stream sends at a time. */
static struct {
  uint64_t gen, end_wall_ns;
  bool reported;
} awaited;
static struct samples archived, reported;

static uint64_t wall_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_REALTIME, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void add(struct samples *s, uint64_t now, uint64_t then) {
  if (s->n < SAMPLES_MAX) s->ms[s->n++] = ((double)now - (double)then) / 1e6;
}

static void note(const Tracecollect__V1__FeedMessage *m, uint64_t now) {
  for (size_t i = 0; i < m->n_generations; i++) {
    const Tracecollect__V1__GenerationNote *gen = m->generations[i];

    if (gen->state == TRACECOLLECT__V1__GENERATION_STATE__GENERATION_ARCHIVED)
      add(&archived, now, m->until_wall_ns);
    if (gen->state != TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BEGIN) continue;
    awaited.gen = gen->last_gen;
    awaited.end_wall_ns = m->until_wall_ns;
    awaited.reported = false;
  }
  if (m->n_reports == 0 || awaited.reported || m->generation != awaited.gen) return;
  add(&reported, now, awaited.end_wall_ns);
  awaited.reported = true;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double quantile(const struct samples *s, double q) {
  size_t at = (size_t)(q * (double)s->n);

  return s->n == 0 ? 0 : s->ms[at < s->n ? at : s->n - 1];
}

static void print(const char *name, struct samples *s) {
  qsort(s->ms, s->n, sizeof s->ms[0], compare);
  printf("%s\t%zu\t%.1f\t%.1f\t%.1f\n", name, s->n, quantile(s, 0.5), quantile(s, 0.99),
         quantile(s, 1));
}

static int check(int rv, const char *what) {
  if (rv != 0) fprintf(stderr, "feed_latency: %s: %s\n", what, nng_strerror(rv));
  return rv;
}

static bool subscribe(nng_socket *sub, const char *url) {
  return check(nng_sub0_open(sub), "socket") == 0 &&
         check(nng_socket_set(*sub, NNG_OPT_SUB_SUBSCRIBE, "", 0), "subscribe") == 0 &&
         check(nng_socket_set_int(*sub, NNG_OPT_RECVBUF, QUEUE), "queue") == 0 &&
         check(nng_socket_set_ms(*sub, NNG_OPT_RECVTIMEO, SILENCE_MS), "time-out") == 0 &&
         check(nng_dial(*sub, url, NULL, NNG_FLAG_NONBLOCK), url) == 0;
}

int main(int argc, char **argv) {
  size_t wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : SIZE_MAX;
  nng_socket sub;
  nng_msg *msg;

  if (argc < 2 || !subscribe(&sub, argv[1])) return 1;
  while ((reported.n < wanted || archived.n < wanted) && nng_recvmsg(sub, &msg, 0) == 0) {
    uint64_t now = wall_ns();
    const char *body = nng_msg_body(msg);
    size_t topic = strnlen(body, nng_msg_len(msg)) + 1;
    Tracecollect__V1__FeedMessage *m = tracecollect__v1__feed_message__unpack(
        NULL, nng_msg_len(msg) - topic, (const uint8_t *)body + topic);

    if (m != NULL) note(m, now);
    tracecollect__v1__feed_message__free_unpacked(m, NULL);
    nng_msg_free(msg);
  }
  print("archived", &archived);
  print("report", &reported);
  return 0; /* nng 1.5's nng_close() was seen to wait forever under load: the socket ends with us */
}
