/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/analysis/thinning.h"

#include "collector/analysis/private.h"
#include "collector/base/logger.h"

enum { STEPS = TC_THINNING_LEVELS / 2, QUEUE_LAST = 2, CALM_PART = 4, SECOND_NS = 1000000000 };
static const uint64_t READER_NS =
    UINT64_C(10) * SECOND_NS; /* a reader has its report made again within this time */
static const uint64_t LOG_NS = UINT64_C(60) * SECOND_NS;

/* --- the rule ---------------------------------------------------------------------------------- */

void tc_thinning_measure(struct tc_thinning *t, uint64_t waited_ns) {
  t->any = true;
  if (waited_ns > t->longest_ns) t->longest_ns = waited_ns;
}

static void advance_share(struct tc_thinning *t, uint64_t now) {
  if (now - t->share.since_ns < SECOND_NS) return;
  t->share.missing_ppb = t->share.events == 0
                             ? 0
                             : (uint64_t)((double)t->share.thinned / (double)t->share.events * 1e9);
  t->share.since_ns = now;
  t->share.events = t->share.thinned = 0;
}

bool tc_thinning_advance(struct tc_thinning *t, uint64_t now, uint64_t after_ns, size_t waiting,
                         size_t waiting_max) {
  uint64_t elapsed = now - t->since_ns;
  bool is_late = t->longest_ns >= after_ns || waiting >= waiting_max / 2;
  bool is_idle = waiting == 0;
  unsigned before = t->level;

  advance_share(t, now);
  if (elapsed < (is_late ? after_ns : after_ns / CALM_PART)) return false;
  t->bounds |= t->longest_ns >= after_ns;
  if (is_late && t->level < TC_THINNING_LEVELS) t->level++;
  if (!is_late && t->longest_ns < after_ns / CALM_PART && (t->any || is_idle) && t->level > 0)
    t->level--;
  if (t->level == 0) t->bounds = false;
  t->since_ns = now;
  t->longest_ns = 0;
  t->any = false;
  return t->level != before;
}

static unsigned steps_of(const struct tc_thinning *t, bool is_preferred) {
  unsigned steps = t->level < STEPS ? t->level : STEPS;

  return is_preferred ? t->level - steps : steps;
}

bool tc_thinning_thins(const struct tc_thinning *t, uint64_t turn, bool is_preferred) {
  return (turn & ((UINT64_C(1) << steps_of(t, is_preferred)) - 1)) != 0;
}

size_t tc_thinning_queue(const struct tc_thinning *t, bool is_preferred) {
  return t->bounds && steps_of(t, is_preferred) == STEPS ? QUEUE_LAST : SIZE_MAX;
}

void tc_thinning_count(struct tc_thinning *t, uint64_t events, bool thinned) {
  t->share.events += events;
  if (thinned) t->share.thinned += events;
}

/* --- streams ----------------------------------------------------------------------------------- */

static bool is_preferred(const struct tc__analysed *s, uint64_t now) {
  bool has_reader = s->asked_ns != 0 && now - s->asked_ns < READER_NS;
  bool has_rule = s->watch != NULL && tr_watch_count(s->watch) > 0;

  return has_reader || has_rule || s->tapped != NULL || s->findings.n > 0;
}

/* A loop at its limit changes between two levels: one line a minute is enough. */
static void log_level(struct tc_scheduler *u, uint64_t now, unsigned before) {
  bool begins = before == 0, ends = u->thinning.level == 0;

  if (begins && (u->thinning_logged_ns == 0 || now - u->thinning_logged_ns >= LOG_NS)) {
    u->thinning_logged_ns = now;
    u->thinning_is_logged = true;
    tc_log(TC_WARN, "analysis",
           "loop=%u: generations wait longer than analysis.thin_after for their turns: some are "
           "thinned, "
           "reports state their analysed share",
           u->env.loop);
  }
  if (ends && u->thinning_is_logged) {
    u->thinning_is_logged = false;
    tc_log(TC_INFO, "analysis", "loop=%u: all generations are analysed again", u->env.loop);
  }
}

void tc__scheduler_thinning_advance(struct tc_scheduler *u, uint64_t now) {
  unsigned before = u->thinning.level;

  if (tc_thinning_advance(&u->thinning, now, u->env.config->analysis_thin_after, u->waiting,
                          u->waiting_max))
    log_level(u, now, before);
  tc_metric_set(&u->env.metrics->analysed_share, u->thinning.share.missing_ppb);
}

/* The time of its own work is no wait: a generation may be large, and the machine slow. */
static void measure(struct tc__analysed *s, uint64_t now) {
  uint64_t since = s->first_ns + s->worked_ns;

  if (STAILQ_EMPTY(&s->u->ring)) return; /* no other stream has work */
  tc_thinning_measure(&s->u->thinning, now > since ? now - since : 0);
}

size_t tc__analysed_thinning_queue(const struct tc__analysed *s) {
  return tc_thinning_queue(&s->u->thinning, is_preferred(s, uv_hrtime()));
}

void tc__analysed_thinning_begin(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;
  uint64_t now = uv_hrtime();

  measure(s, now);
  tc__scheduler_thinning_advance(u, now);
  s->thins = tc_thinning_thins(&u->thinning, s->turn++, is_preferred(s, now));
}

void tc__analysed_thinning_end(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;
  uint64_t now = uv_hrtime();

  measure(s, now);
  tc_thinning_count(&u->thinning, s->delivered, s->thins);
  tc__scheduler_thinning_advance(u, now);
  if (!s->thins) return;
  tc_metric_add(&u->env.metrics->generations_thinned_total, 1);
  tc_metric_add(&u->env.metrics->events_thinned_total, s->delivered);
}
