/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/arrivals.h"

static struct tc__arrival *all; /* the newest first */

/* Is called again if nng had just started another operation. */
static void end_arrival(struct tc__arrival *arrival, const char *why) {
  if (!arrival->has_ended) arrival->ended(arrival, why);
  arrival->has_ended = true;
  nng_aio_abort(arrival->reads, NNG_ETIMEDOUT);
}

static bool can_end(const struct tc__arrival *arrival, const void *of) {
  return arrival->of == of && !arrival->has_ended && arrival->reads != NULL;
}

static unsigned count_arrivals(const void *of, const uint64_t *source) {
  unsigned n = 0;

  for (const struct tc__arrival *a = all; a != NULL; a = a->next)
    n += can_end(a, of) && (source == NULL || a->source == *source);
  return n;
}

/* Returns the oldest arrival of the source that has the most. */
static struct tc__arrival *find_victim(const void *of) {
  struct tc__arrival *found = NULL;
  unsigned most = 0;

  for (struct tc__arrival *a = all; a != NULL; a = a->next) {
    unsigned same = can_end(a, of) ? count_arrivals(of, &a->source) : 0;

    if (same == 0 || same < most) continue;
    most = same;
    found = a;
  }
  return found;
}

void tc__arrival_put(struct tc__arrival *arrival, unsigned most) {
  if (most > 0)
    for (unsigned n = count_arrivals(arrival->of, NULL); n >= most; n--)
      end_arrival(find_victim(arrival->of),
                  "gives way to a newer one: a quarter of readers.connections_max "
                  "are at their handshakes and greetings");
  arrival->next = all;
  if (all != NULL) all->at = &arrival->next;
  arrival->at = &all;
  all = arrival;
}

void tc__arrival_take_out(struct tc__arrival *arrival) {
  if (arrival->at == NULL) return;
  *arrival->at = arrival->next;
  if (arrival->next != NULL) arrival->next->at = arrival->at;
  arrival->at = NULL;
}

void tc__arrivals_expire(uint64_t now_ns) {
  for (struct tc__arrival *a = all; a != NULL; a = a->next)
    if (now_ns >= a->expires_ns && a->reads != NULL)
      end_arrival(a, "its handshake and greeting took too long");
}
