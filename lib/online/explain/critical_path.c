/* SPDX-License-Identifier: Apache-2.0 */
#include "online/explain/critical_path.h"

#include "base/grow.h"

struct stage { /* a goroutine that is followed back from `at` to `from` */
  uint64_t life;
  to_ns from, at;
};

struct walk {
  const struct to_timeline *timeline;
  struct to_path *path;
  struct stage *stage;
  size_t n, room;
};

const char *to_path_end_name(enum to_path_end end) {
  static const char *const names[] = {
    [TO_PATH_GOES_ON] = "",
    [TO_PATH_NO_WAKER] = "a timer, the network or the runtime ended it",
    [TO_PATH_STILL_OPEN] = "it is still open",
    [TO_PATH_UNKNOWN] = "the trace does not show it",
    [TO_PATH_CYCLE] = "its waker waited itself",
    [TO_PATH_TOO_DEEP] = "too many goroutines wait for one another",
  };

  return names[end];
}

/* Adds a piece. They are found from the last to the first. */
static tb_rc add_piece(struct walk *w, struct to_path_piece piece) {
  struct to_path *path = w->path;

  if (piece.from >= piece.until) return TB_OK;
  TB_TRY(TB_MEM_GROW(path->mem, path->piece, path->room, path->n));
  piece.depth = (uint32_t)(w->n - 1);
  path->piece[path->n++] = piece;
  return TB_OK;
}

static tb_rc add_unknown(struct walk *w, const struct to_history *history, to_ns from,
                         to_ns until) {
  return add_piece(w, (struct to_path_piece){ .from = from,
                                              .until = until,
                                              .history = history,
                                              .state = TO_GO_NOT_EXIST,
                                              .end = TO_PATH_UNKNOWN });
}

/* Stops of the world affect goroutines that run or are runnable; calls and waits continue. */
static void note_ranges(const struct walk *w, struct to_path_piece *piece) {
  const struct to_stretches *stops = &w->timeline->stops;

  if (piece->state != TO_GO_RUNNING && piece->state != TO_GO_RUNNABLE) return;
  piece->stopped_ns = to_stretches_cover(stops, piece->from, piece->until);
  if (piece->state == TO_GO_RUNNING)
    piece->assist_ns =
        to_stretches_cover_without(&piece->history->assists, stops, piece->from, piece->until);
}

static tb_rc add_span(struct walk *w, const struct to_history *history,
                      const struct to_moment_span *span, to_ns from, to_ns until,
                      enum to_path_end end) {
  struct to_path_piece piece = { .from = from,
                                 .until = until,
                                 .history = history,
                                 .stack = span->stack,
                                 .by_stack = span->by_stack,
                                 .state = span->state,
                                 .reason = span->reason,
                                 .cause = span->cause,
                                 .end = (uint8_t)end };

  note_ranges(w, &piece);
  return add_piece(w, piece);
}

static tb_rc follow(struct walk *w, uint64_t life, to_ns from, to_ns at) {
  TB_TRY(TB_MEM_GROW(w->path->mem, w->stage, w->room, w->n));
  w->stage[w->n++] = (struct stage){ .life = life, .from = from, .at = at };
  return TB_OK;
}

/* A waiting goroutine wakes no other: if both still wait at the interval's end, the waker's wait ends first. */
static bool is_cycle(const struct to_moment_span *span, const struct to_history *waker, to_ns at) {
  const struct to_moment_span *its = to_history_at(waker, at);

  return its != NULL && its->state == TO_GO_WAITING && its->until >= span->until;
}

static enum to_path_end can_follow(const struct walk *w, const struct to_history *history,
                                   const struct to_moment_span *span, to_ns at) {
  if (span->state != TO_GO_WAITING) return TO_PATH_GOES_ON;
  if (span->open) return TO_PATH_STILL_OPEN;
  if (!span->until_known) return TO_PATH_UNKNOWN;
  if (span->by_life == 0 || span->by_life == history->life) return TO_PATH_NO_WAKER;
  const struct to_history *waker = to_timeline_find(w->timeline, span->by_life);
  if (waker == NULL) return TO_PATH_UNKNOWN;
  if (is_cycle(span, waker, at)) return TO_PATH_CYCLE;
  return w->n < TO_PATH_DEPTH_MAX ? TO_PATH_GOES_ON : TO_PATH_TOO_DEEP;
}

/* Returns a creator that is older than its goroutine; NULL: unknown. */
static const struct to_history *creator_of(const struct walk *w, const struct to_history *history) {
  if (history == NULL || !history->is_born || history->creator == 0) return NULL;
  const struct to_history *creator = to_timeline_find(w->timeline, history->creator);

  if (creator == NULL || creator == history) return NULL;
  return creator->is_born && creator->born >= history->born ? NULL : creator;
}

/* Continues with the creator's time before the goroutine was created. */
static tb_rc go_before_birth(struct walk *w, struct stage *stage,
                             const struct to_history *history) {
  const struct to_history *creator = creator_of(w, history);
  to_ns at = stage->at;

  if (creator == NULL || history->born < stage->at) {
    bool knows_birth = creator != NULL && history->born > stage->from;
    stage->at = knows_birth ? history->born : stage->from;
    return add_unknown(w, history, stage->at, at);
  }
  stage->life = creator->life;
  return TB_OK;
}

/* Continues where the state of the goroutine is unknown. */
static tb_rc step_over(struct walk *w, struct stage *stage, const struct to_history *history) {
  to_ns before = history == NULL ? INT64_MIN : to_history_before(history, stage->at);

  if (before == INT64_MIN) return go_before_birth(w, stage, history);
  to_ns at = stage->at;
  stage->at = before > stage->from ? before : stage->from;
  return add_unknown(w, history, stage->at, at);
}

static tb_rc step(struct walk *w) {
  struct stage *stage = &w->stage[w->n - 1];
  const struct to_history *history = to_timeline_find(w->timeline, stage->life);
  const struct to_moment_span *span = history == NULL ? NULL : to_history_at(history, stage->at);

  if (span == NULL) return step_over(w, stage, history);
  enum to_path_end end = can_follow(w, history, span, stage->at);
  to_ns from = span->from > stage->from ? span->from : stage->from, at = stage->at;
  stage->at = from;
  if (span->state == TO_GO_WAITING && end == TO_PATH_GOES_ON)
    return follow(w, span->by_life, from, at);
  return add_span(w, history, span, from, at, end);
}

/* Gives up: the rest, which is the earliest part, is unknown. */
static tb_rc cut(struct walk *w, to_ns from) {
  to_ns at = w->stage[w->n - 1].at;

  w->path->cut = true;
  w->n = 1;
  return add_unknown(w, NULL, from, at);
}

static tb_rc walk_back(struct walk *w, to_ns from) {
  while (w->n > 0) {
    if (w->stage[w->n - 1].at <= w->stage[w->n - 1].from) {
      w->n--;
      continue;
    }
    if (w->path->n >= TO_PATH_PIECES_MAX) return cut(w, from);
    TB_TRY(step(w));
  }
  return TB_OK;
}

static void reverse(struct to_path *path) {
  for (size_t i = 0; i < path->n / 2; i++) {
    struct to_path_piece piece = path->piece[i];
    path->piece[i] = path->piece[path->n - 1 - i];
    path->piece[path->n - 1 - i] = piece;
  }
}

tb_rc to_critical_path(const struct to_timeline *t, uint64_t life, to_ns from, to_ns until,
                       struct tb_mem *mem, struct to_path *out) {
  struct walk w = { .timeline = t, .path = out };

  *out = (struct to_path){ .mem = mem };
  tb_rc rc = follow(&w, life, from, until);
  if (rc == TB_OK) rc = walk_back(&w, from);
  tb_mem_free(mem, w.stage, w.room * sizeof(*w.stage));
  if (rc == TB_OK)
    reverse(out);
  else
    to_path_fini(out);
  return rc;
}

void to_path_fini(struct to_path *path) {
  if (path->mem != NULL) tb_mem_free(path->mem, path->piece, path->room * sizeof(*path->piece));
  *path = (struct to_path){ 0 };
}
