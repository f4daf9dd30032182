/* SPDX-License-Identifier: Apache-2.0 */
/* Agents for the flood and attack tests, without the agent library.
 *
 *     flooding_agent flood ADDRESS CERTS NAME GENERATIONS [BATCHES]  as fast as credit lets: generations of one byte, or of
 *                                                                    so many batches of 40 KiB
 *     flooding_agent pace ADDRESS CERTS NAME GENERATIONS [STATE]     one after the other: prints p50 and the highest times
 *                                                                    to its ack and to its file in STATE/archive, in ms
 *     flooding_agent endless ADDRESS CERTS NAME BATCHES [MS]         one generation of so many batches of 40 KiB, without an
 *                                                                    end; rests so long after each MB is acked
 *     flooding_agent empty ADDRESS CERTS NAME GENERATIONS            ends of generations that have no batch
 *     flooding_agent single ADDRESS CERTS NAME STREAMS               so many streams at once: of four, one sends its header
 *                                                                    and no more, one a batch, one a loss, one its end
 *     flooding_agent churn ADDRESS CERTS NAME MS                     opens a stream and leaves it, again and again: every
 *                                                                    other one ends, the rest is cut off
 * CERTS/NAME.pem is the certificate. Each prints one line of JSON: what was sent and acked. */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/sender.h"

enum { RESTS_EVERY = 25 }; /* batches: a MB */

struct order {
  struct tt_peer_terms terms;
  const char *verb;
  uint64_t count;
  const char *more; /* NULL: no further argument */
};

static void must(bool done, const char *what) {
  if (done) return;
  fprintf(stderr, "flooding_agent: %s\n", what);
  exit(1);
}

static double now_ms(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static struct tt_sender *new_sender(void) {
  struct tt_sender *sender = malloc(sizeof *sender);

  must(sender != NULL, "no memory");
  return sender;
}

static struct tt_sender *begin(const struct order *order) {
  struct tt_sender *sender = new_sender();

  must(tt_sender_open(sender, &order->terms, order->verb, "host:1"), sender->peer.why);
  must(tt_sender_header(sender), sender->peer.why);
  return sender;
}

static void end(struct tt_sender *sender) {
  tt_sender_leave(sender);
  free(sender);
}

static void flood(const struct order *order) {
  struct tt_sender *s = begin(order);
  unsigned batches = order->more != NULL ? (unsigned)strtoul(order->more, NULL, 10) : 1;
  unsigned bytes = order->more != NULL ? TT_SENDER_BATCH_MAX : 1;
  double began = now_ms();

  for (uint64_t gen = 1; gen <= order->count; gen++)
    must(tt_sender_generation(s, gen, batches, bytes), s->peer.why);
  must(tt_sender_sync(s), s->peer.why);
  printf("{\"generations\":%" PRIu64 ",\"ms\":%.0f,\"holds\":%u}\n", order->count, now_ms() - began,
         s->holds);
  end(s);
}

/* ---- pace */

static int by_size(const void *x, const void *y) {
  return (*(const double *)x > *(const double *)y) - (*(const double *)x < *(const double *)y);
}

/* Searches all days' folders: the next day may have begun. */
static bool is_archived(const struct tt_sender *s, const char *state, uint64_t gen) {
  char pattern[400], hex[33];
  glob_t found;

  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", s->stream[i]);
  snprintf(pattern, sizeof pattern, "%s/archive/*/%s/%016" PRIx64 ".trace", state, hex, gen);
  bool is = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
  globfree(&found);
  return is;
}

static void pace(const struct order *order) {
  struct tt_sender *s = begin(order);
  uint64_t n = order->count;
  double *acked = calloc(n, sizeof *acked), *archived = calloc(n, sizeof *archived);

  must(acked != NULL && archived != NULL, "no memory");
  for (uint64_t gen = 1; gen <= n; gen++) {
    double began = now_ms();
    must(tt_sender_generation(s, gen, 1, 1) && tt_sender_sync(s), s->peer.why);
    acked[gen - 1] = now_ms() - began;
    while (order->more != NULL && !is_archived(s, order->more, gen)) {
      usleep(1000);
      must(now_ms() - began < TT_PATIENCE_MS, "not archived");
    }
    archived[gen - 1] = now_ms() - began;
    if (order->more == NULL) usleep(10000);
  }
  qsort(acked, n, sizeof *acked, by_size);
  qsort(archived, n, sizeof *archived, by_size);
  printf("{\"acked_p50\":%.1f,\"acked_p99\":%.1f,\"acked_max\":%.1f,\"archived_p50\":%.1f,"
         "\"archived_max\":%.1f}\n",
         acked[n / 2], acked[n * 99 / 100], acked[n - 1], archived[n / 2], archived[n - 1]);
  free(acked);
  free(archived);
  end(s);
}

/* ---- attacks */

static void say_acked(uint64_t streams, uint64_t batches, uint64_t bytes, double began) {
  printf("{\"streams\":%" PRIu64 ",\"acked_batches\":%" PRIu64 ",\"acked_bytes\":%" PRIu64
         ",\"ms\":%.0f}\n",
         streams, batches, bytes, now_ms() - began);
}

static void endless(const struct order *order) {
  struct tt_sender *s = begin(order);
  unsigned rest_ms = order->more != NULL ? (unsigned)strtoul(order->more, NULL, 10) : 0;
  double began = now_ms();

  for (uint64_t i = 1; i <= order->count; i++) {
    must(tt_sender_batch(s, 1, TT_SENDER_BATCH_MAX), s->peer.why);
    if (rest_ms == 0 || i % RESTS_EVERY != 0) continue;
    must(tt_sender_sync(s), s->peer.why);
    usleep(1000 * rest_ms);
  }
  must(tt_sender_sync(s), s->peer.why);
  say_acked(1, s->produced_batches, s->produced_bytes, began);
  end(s);
}

static void empty(const struct order *order) {
  struct tt_sender *s = begin(order);
  double began = now_ms();

  for (uint64_t gen = 1; gen <= order->count; gen++) must(tt_sender_end(s, gen, 0, 0), s->peer.why);
  must(tt_sender_sync(s), s->peer.why);
  say_acked(1, s->produced_batches, s->produced_bytes, began);
  end(s);
}

static bool send_single(struct tt_sender *s, uint64_t number) {
  switch (number % 4) {
  case 0: return tt_sender_header(s);
  case 1: return tt_sender_batch(s, 1, 100);
  case 2: return tt_sender_loss(s, 1, 3, 300);
  default: return tt_sender_end_stream(s);
  }
}

static void single(const struct order *order) {
  struct tt_sender **all = calloc(order->count, sizeof(struct tt_sender *));
  struct tt_peer_terms terms = order->terms;
  uint64_t batches = 0, bytes = 0;
  double began = now_ms();
  char instance[32];

  must(all != NULL, "no memory");
  for (uint64_t i = 0; i < order->count; i++) {
    struct tt_sender *s = all[i] = new_sender();
    snprintf(instance, sizeof instance, "host:%" PRIu64, i);
    must(tt_sender_open(s, &terms, order->verb, instance), s->peer.why);
    must(send_single(s, i) && tt_sender_sync(s), s->peer.why);
    terms.ctx = all[0]->peer.ctx;
    batches += s->produced_batches;
    bytes += s->produced_bytes;
  }
  say_acked(order->count, batches, bytes, began);
  for (uint64_t i = 0; i < order->count; i++) end(all[i]);
  free(all);
}

static void churn(const struct order *order) {
  struct tt_sender *s = new_sender();
  struct tt_peer_terms terms = order->terms;
  uint64_t streams = 0, refused = 0, batches = 0;
  double began = now_ms();
  SSL_CTX *ctx = NULL;
  char refusal[200] = "";

  while (now_ms() - began < (double)order->count) {
    bool welcome = tt_sender_open(s, &terms, order->verb, "host:1");
    must(welcome || s->refusal[0] != '\0', s->peer.why);
    if (ctx == NULL) SSL_CTX_up_ref(ctx = terms.ctx = s->peer.ctx);
    if (welcome) {
      must(tt_sender_header(s) && tt_sender_generation(s, 1, 1, 100), s->peer.why);
      if (streams++ % 2 == 0) must(tt_sender_end_stream(s), s->peer.why);
      must(tt_sender_sync(s), s->peer.why);
      batches++;
    } else {
      refused++;
      memcpy(refusal, s->refusal, sizeof refusal);
    }
    tt_sender_close(s);
  }
  SSL_CTX_free(ctx);
  free(s);
  printf("{\"streams\":%" PRIu64 ",\"acked_batches\":%" PRIu64 ",\"refused\":%" PRIu64
         ",\"refusal\":\"%s\",\"ms\":%.0f}\n",
         streams, batches, refused, refusal, now_ms() - began);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const struct order *order);
  } verbs[] = { { "flood", flood }, { "pace", pace },     { "endless", endless },
                { "empty", empty }, { "single", single }, { "churn", churn } };

  if (argc < 6) return 2;
  struct order order = { .terms = { argv[2], argv[3], NULL, argv[4], "tracecollect/1", NULL },
                         .verb = argv[1],
                         .count = strtoull(argv[5], NULL, 10),
                         .more = argc > 6 ? argv[6] : NULL };
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (strcmp(argv[1], verbs[i].name) == 0) {
      verbs[i].run(&order);
      return 0;
    }
  return 2;
}
