/* SPDX-License-Identifier: Apache-2.0 */
/* A source's failures are forgiven at a constant rate. A place without failures and half-open handshakes is free. */
#include "collector/ingest/handshake_limiter.h"

#include <pthread.h>
#include <stdlib.h>

enum { TRIES = 8 }; /* places tried for a source */
static const uint64_t SECOND_NS = 1000000000;

struct place {
  uint64_t source;
  uint64_t half_open;
  uint64_t progress_ns; /* when a handshake last succeeded, or the first half-open one began */
  uint64_t failures;    /* not forgiven yet */
  uint64_t forgiven_ns;
};

struct tc_handshake_limiter {
  pthread_mutex_t lock;
  uint64_t seed;
  struct place places[TC_HANDSHAKE_LIMITER_SOURCES];
};

tb_rc tc_handshake_limiter_new(uint64_t seed, struct tc_handshake_limiter **out) {
  struct tc_handshake_limiter *limiter = calloc(1, sizeof *limiter);

  if (limiter == NULL) return TB_NOMEM;
  pthread_mutex_init(&limiter->lock, NULL);
  limiter->seed = seed | 1;
  *out = limiter;
  return TB_OK;
}

void tc_handshake_limiter_free(struct tc_handshake_limiter *limiter) {
  if (limiter == NULL) return;
  pthread_mutex_destroy(&limiter->lock);
  free(limiter);
}

static struct place *place_at(struct tc_handshake_limiter *limiter, uint64_t source,
                              unsigned tries) {
  uint64_t hash = (source ^ limiter->seed) * 0x9e3779b97f4a7c15u * limiter->seed;

  return &limiter->places[((hash >> 32) + tries) % TC_HANDSHAKE_LIMITER_SOURCES];
}

static bool is_empty(const struct place *place) {
  return place->half_open == 0 && place->failures == 0;
}

static void forgive(struct place *place, const struct tc_handshake_limiter_limits *limits,
                    uint64_t now_ns) {
  uint64_t per_failure_ns = SECOND_NS / (limits->failures_rate > 0 ? limits->failures_rate : 1);
  uint64_t forgiven = (now_ns - place->forgiven_ns) / per_failure_ns;

  if (forgiven >= place->failures) {
    place->failures = 0;
    place->forgiven_ns = now_ns;
  } else {
    place->failures -= forgiven;
    place->forgiven_ns += forgiven * per_failure_ns;
  }
}

static struct place *find_place(struct tc_handshake_limiter *limiter, uint64_t source) {
  for (unsigned i = 0; i < TRIES; i++) {
    struct place *place = place_at(limiter, source, i);
    if (place->source == source && !is_empty(place)) return place;
  }
  return NULL;
}

static struct place *take_empty(struct tc_handshake_limiter *limiter, uint64_t source,
                                const struct tc_handshake_limiter_limits *limits, uint64_t now_ns) {
  for (unsigned i = 0; i < TRIES; i++) {
    struct place *place = place_at(limiter, source, i);
    if (place->failures > 0) forgive(place, limits, now_ns);
    if (!is_empty(place)) continue;
    *place = (struct place){ .source = source, .forgiven_ns = now_ns };
    return place;
  }
  return NULL;
}

static enum tc_handshake_limiter_answer
enter(struct place *place, const struct tc_handshake_limiter_limits *limits, uint64_t now_ns) {
  if (place->failures >= limits->failures_burst) return TC_HANDSHAKE_LIMITER_CLOSED_FAILING;
  if (place->half_open >= limits->half_open_max)
    return now_ns - place->progress_ns < TC_HANDSHAKE_LIMITER_PATIENCE_NS
               ? TC_HANDSHAKE_LIMITER_LATER
               : TC_HANDSHAKE_LIMITER_CLOSED_HANGING;
  if (place->half_open++ == 0) place->progress_ns = now_ns;
  return TC_HANDSHAKE_LIMITER_OPEN;
}

enum tc_handshake_limiter_answer
tc_handshake_limiter_enter(struct tc_handshake_limiter *limiter, uint64_t source,
                           const struct tc_handshake_limiter_limits *limits, uint64_t now_ns) {
  enum tc_handshake_limiter_answer answer = TC_HANDSHAKE_LIMITER_OPEN;

  pthread_mutex_lock(&limiter->lock);
  struct place *place = find_place(limiter, source);
  if (place != NULL) forgive(place, limits, now_ns);
  if (place == NULL) place = take_empty(limiter, source, limits, now_ns);
  if (place != NULL) answer = enter(place, limits, now_ns);
  pthread_mutex_unlock(&limiter->lock);
  return answer;
}

void tc_handshake_limiter_leave(struct tc_handshake_limiter *limiter, uint64_t source, bool failed,
                                uint64_t now_ns) {
  pthread_mutex_lock(&limiter->lock);
  struct place *place = find_place(limiter, source);
  if (place != NULL) {
    place->failures += failed;
    if (!failed) place->progress_ns = now_ns;
    place->half_open -= place->half_open > 0;
  }
  pthread_mutex_unlock(&limiter->lock);
}
