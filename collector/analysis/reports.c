/* SPDX-License-Identifier: Apache-2.0 */
/* New figures only mark a stream's reports as out of date: a report is made when a reader asks for it. Two receivers get
 * figures without asking: the feed, while it has a subscriber, and the pause ring. They get figures once a second, for long
 * windows less often. Figures that arrive sooner are held back until then, or replaced by newer ones. What readers wait for is
 * made first: a report takes longer than a step of other work, so a slice begins with it. */
#include "base/clock.h"
#include "collector/analysis/private.h"
#include "pack/report.h"

enum { PAUSE_REASONS_MAX = 64 };
/* Pause between two reports of a window on the feed, less half a second because a generation may arrive early. */
static const uint64_t window_pause_ns[TO_WINDOWS] = {
  [TO_WINDOW_10S] = 0, /* only TC__SCHEDULER_REPORT_NS */
  [TO_WINDOW_1MIN] = 2500000000,
  [TO_WINDOW_5MIN] = 9500000000,
  [TO_WINDOW_ALL] = 2500000000,
};

bool tc__analysed_is_due(const struct tc__analysed *s) {
  uint32_t any = 0;

  for (unsigned w = 0; w < TO_WINDOWS; w++) any |= s->due.kinds[w];
  return any != 0;
}

static void add_due(struct tc__analysed *s, const struct tc_report_set *set) {
  for (unsigned w = 0; w < TO_WINDOWS; w++) s->due.kinds[w] |= set->kinds[w];
}

/* Window by window: only the first kind of a window has to sum it up. */
static void take_due(struct tc__analysed *s, enum to_analysis_kind *kind, enum to_window *window,
                     bool *on_feed) {
  unsigned w = 0;

  while (s->due.kinds[w] == 0) w++;
  uint32_t bit = s->due.kinds[w] & (0 - s->due.kinds[w]);
  *kind = (enum to_analysis_kind)__builtin_ctz(bit);
  *window = (enum to_window)w;
  *on_feed = (s->due_on_feed.kinds[w] & bit) != 0;
  s->due.kinds[w] &= ~bit;
  s->due_on_feed.kinds[w] &= ~bit;
}

static tb_rc publish(struct tc__analysed *s, enum to_analysis_kind kind, enum to_window window,
                     const struct tb_buf *packed) {
  const struct tc_report report = {
    .stream = s->id,
    .service = s->service,
    .instance = s->instance,
    .kind = to_analysis_name(kind),
    .window = to_window_name(window),
    .bytes = packed->data,
    .len = packed->len,
  };
  return tc_reports_publish(s->u->env.reports, &report);
}

void tc__analysed_report(struct tc__analysed *s) {
  struct tc_scheduler *u = s->u;
  struct tp_report_about about = {
    .stream = s->id, .service = s->service, .instance = s->instance, .broken_generations = s->broken
  };
  enum to_analysis_kind kind;
  enum to_window window;
  struct tb_buf buf;
  bool on_feed;

  take_due(s, &kind, &window, &on_feed);
  if (s->analyses == NULL) {
    tc_reports_missed(u->env.reports, s->id, kind, window);
    return;
  }
  tb_buf_init(&buf, &s->mem);
  tb_rc rc = tp_report_pack(s->analyses, kind, window, TP_REPORT_ROWS_LIVE, &about, &buf);
  if (rc == TB_OK) {
    rc = publish(s, kind, window, &buf);
    if (on_feed)
      tc_feed_encoder_report(s->feed, kind, window, s->broken, buf.data, buf.len, uv_hrtime());
  }
  if (rc != TB_OK) {
    tc_metric_add(&u->env.metrics->reports_refused_total, 1);
    tc_reports_missed(u->env.reports, s->id, kind, window);
  }
  tb_buf_fini(&buf);
}

static void note_pauses(struct tc__analysed *s) {
  struct tc_pauses_history_of of = { s->id, s->service, s->instance, !s->in_history };
  struct to_stop_total total[PAUSE_REASONS_MAX];

  if (s->u->env.history == NULL) return;
  size_t n = to_analyses_stops(s->analyses, PAUSE_REASONS_MAX, total);
  tc_pauses_history_stops(s->u->env.history, &of, total, n, tc_wall_ns());
  s->in_history = true;
}

/* Publishes each window with news once its pause is over; at_end: all at once. */
static void publish_on_feed(struct tc__analysed *s, uint64_t now, bool at_end) {
  unsigned windows = s->feed != NULL ? tc_feed_encoder_report_windows(s->feed) : 0;

  s->feed_pending &= windows;
  for (unsigned w = 0; w < TO_WINDOWS; w++) {
    if ((s->feed_pending >> w & 1) == 0) continue;
    if (!at_end && now - s->window_reported_ns[w] < window_pause_ns[w]) continue;
    s->feed_pending &= ~(1u << w);
    s->window_reported_ns[w] = now;
    s->due_on_feed.kinds[w] = (uint32_t)((UINT64_C(1) << TO_ANALYSIS_KINDS) - 1);
    s->due.kinds[w] |= s->due_on_feed.kinds[w];
  }
}

static void leave_told(struct tc__analysed *s) {
  if (s->in_by_reported) TAILQ_REMOVE(&s->u->by_reported, s, by_reported);
  s->in_by_reported = false;
}

static void tell(struct tc__analysed *s, bool at_end) {
  leave_told(s);
  s->reported_ns = uv_hrtime();
  s->in_by_reported = true;
  TAILQ_INSERT_TAIL(&s->u->by_reported, s, by_reported);
  if (s->history_pending) note_pauses(s);
  s->history_pending = false;
  publish_on_feed(s, s->reported_ns, at_end);
}

void tc__analysed_news(struct tc__analysed *s) {
  if (s->analyses == NULL) return;
  if (tc_reports_outdate(s->u->maker, s->id, s->service, s->instance, s->ref) != TB_OK)
    tc_metric_add(&s->u->env.metrics->reports_refused_total, 1);
  s->history_pending = true;
  s->feed_pending = (1u << TO_WINDOWS) - 1;
  if (!s->in_by_reported || uv_hrtime() - s->reported_ns >= TC__SCHEDULER_REPORT_NS) tell(s, false);
}

void tc__analysed_last_reports(struct tc__analysed *s) {
  if (s->analyses == NULL) return;
  if (s->history_pending || s->feed_pending != 0) tell(s, true);
  const struct tc_report_set set = tc_reports_outdated(s->u->env.reports, s->id);
  add_due(s, &set);
}

struct tc__analysed *tc__scheduler_tell_late(struct tc_scheduler *u, uint64_t now) {
  struct tc__analysed *s;

  while ((s = TAILQ_FIRST(&u->by_reported)) != NULL &&
         s->reported_ns + TC__SCHEDULER_REPORT_NS <= now) {
    leave_told(s);
    if (s->analyses == NULL || (!s->history_pending && s->feed_pending == 0)) continue;
    tell(s, false);
    if (tc__analysed_is_due(s)) return s;
  }
  return NULL;
}

void tc__scheduler_take_asked(struct tc_scheduler *u) {
  struct tc_report_set set;
  uint32_t ref;

  while (tc_reports_asked(u->maker, &ref, &set)) {
    struct tc__analysed *s = tb_map_at(&u->by_ref, ref);

    if (s == NULL) continue; /* just forgotten: no reader waits any more */
    add_due(s, &set);
    s->asked_ns = uv_hrtime();
    if (s->in_asked) continue;
    s->in_asked = true;
    TAILQ_INSERT_TAIL(&u->asked, s, asked);
  }
}

void tc__analysed_reports_forget(struct tc__analysed *s) {
  leave_told(s);
  if (s->in_asked) TAILQ_REMOVE(&s->u->asked, s, asked);
  s->in_asked = false;
  tc_reports_close(s->u->env.reports, s->id);
}
