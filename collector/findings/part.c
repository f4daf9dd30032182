/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/findings/part.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text/hex.h"

enum { RANGE_BYTES = 96, SECOND = 1000000000 };
/* Whatever ended a wait began before it. */
static const uint64_t before_why_ns = 2000000000, around_most_ns = 10000000000;

void tc_part_times(struct tc_part *p, bool is_leak, uint64_t from_ns, uint64_t until_ns) {
  const uint64_t most = (is_leak ? TC_PART_LEAK_S : TC_PART_S) * (uint64_t)SECOND;
  uint64_t first = until_ns > most ? until_ns - most : 0;

  if (from_ns < first || is_leak) from_ns = first;
  p->from_ns = from_ns < until_ns ? from_ns : until_ns;
  p->until_ns = until_ns;
}

static uint64_t around(const struct tc_part *p) {
  uint64_t ns = (p->until_ns - p->from_ns) / 4 + 1000000;

  return ns < around_most_ns ? ns : around_most_ns;
}

static bool has_time(const struct tc_part *p) {
  return p->until_ns != 0 && p->from_ns > around(p);
}

enum { TIME_BYTES = 32 };

/* As --since takes it, and the API. */
static const char *time_text(uint64_t wall_ns, char out[TIME_BYTES]) {
  snprintf(out, TIME_BYTES, "@%" PRIu64 ".%09" PRIu64, wall_ns / SECOND, wall_ns % SECOND);
  return out;
}

void tc_part_fetch(const struct tc_part *p, char out[TC_PART_FETCH_BYTES]) {
  char hex[2 * TC_STREAM_BYTES + 1], part[RANGE_BYTES], from[TIME_BYTES], until[TIME_BYTES];

  if (has_time(p))
    snprintf(part, sizeof part, "--since %s --until %s", time_text(p->from_ns - around(p), from),
             time_text(p->until_ns + around(p), until));
  else
    snprintf(part, sizeof part, "--gen %" PRIu64 "..%" PRIu64, p->gen, p->gen);
  snprintf(out, TC_PART_FETCH_BYTES, "tracectl fetch --stream %s %s -o %s-%" PRIu64 ".trace",
           tb_hex(p->stream, sizeof p->stream, hex), part, p->service, p->gen);
}

/* The goroutine of an alert, or the one that is explained. */
static int64_t pinned(const struct tc_part *p) {
  int64_t goroutine = p->goroutine;

  if (goroutine <= 0 && p->why != NULL) sscanf(p->why, "goroutine=%" SCNd64, &goroutine);
  return goroutine;
}

void tc_part_timeline(const struct tc_part *p, char out[TC_PART_PATH_BYTES]) {
  char hex[2 * TC_STREAM_BYTES + 1], pin[40] = "";

  out[0] = '\0';
  if (!has_time(p)) return;
  if (pinned(p) > 0) snprintf(pin, sizeof pin, "&pin=%" PRId64, pinned(p));
  snprintf(out, TC_PART_PATH_BYTES, "/timeline/%s?from=%" PRIu64 "&to=%" PRIu64 "%s",
           tb_hex(p->stream, sizeof p->stream, hex), p->from_ns - around(p),
           p->until_ns + around(p), pin);
}

void tc_part_why(const struct tc_part *p, char out[TC_PART_PATH_BYTES]) {
  char hex[2 * TC_STREAM_BYTES + 1], from[TIME_BYTES], until[TIME_BYTES];

  out[0] = '\0';
  if (p->why == NULL || p->why[0] == '\0' || p->until_ns == 0 || p->from_ns <= before_why_ns)
    return;
  snprintf(out, TC_PART_PATH_BYTES, "/why/%s?from=%s&to=%s&%.*s",
           tb_hex(p->stream, sizeof p->stream, hex), time_text(p->from_ns - before_why_ns, from),
           time_text(p->until_ns + before_why_ns, until), TC_WHY_BYTES - 1, p->why);
}

void tc_why_task(uint64_t task, char out[TC_WHY_BYTES]) {
  snprintf(out, TC_WHY_BYTES, "task=%" PRIu64, task);
}

void tc_why_moment(int64_t goroutine, int64_t ns, char out[TC_WHY_BYTES]) {
  snprintf(out, TC_WHY_BYTES, "goroutine=%" PRId64 "&ns=%" PRId64, goroutine, ns);
}
