/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/utilization.h"

#include <float.h>
#include <string.h>

#include "base/grow.h"

#define NONE_YET  DBL_MAX /* above every sum */
#define NOT_KNOWN DBL_MAX /* above every level */

const to_ns to_utilization_length[TO_LENGTHS] = { 1000000,   2000000,   5000000,   10000000,
                                                  20000000,  50000000,  100000000, 200000000,
                                                  500000000, 1000000000 };

static void forget(struct to_lowest *lowest) {
  for (unsigned i = 0; i < TO_LENGTHS; i++) lowest->sum[i] = NONE_YET;
}

static void join(struct to_lowest *into, const struct to_lowest *from) {
  for (unsigned i = 0; i < TO_LENGTHS; i++)
    if (from->sum[i] < into->sum[i]) into->sum[i] = from->sum[i];
}

void to_utilization_init(struct to_utilization *u) {
  *u = (struct to_utilization){ .starts = true, .steps_max = TO_STEPS_MAX };
  forget(&u->all);
  forget(&u->open);
}

void to_utilization_fini(struct to_utilization *u, struct tb_mem *mem) {
  tb_mem_free(mem, u->step, u->room * sizeof(*u->step));
  tb_mem_free(mem, u->slot, u->slots_room * sizeof(*u->slot));
}

/* ---- windows that slide ---- */

static double level_of(const struct to_utilization *u, const struct to_curve_step *step) {
  uint32_t lowers = u->lowers - step->lowers;
  double level = step->level - (lowers == 0 ? 0 : (double)lowers / (double)step->procs);

  return level > 0 ? level : 0;
}

static double sum_at(const struct to_utilization *u, const struct to_curve_step *step, to_ns time) {
  return step->sum + level_of(u, step) * (double)(time - step->time);
}

/* Computes the window that begins at this time. */
static void look_at(struct to_utilization *u, unsigned i, to_ns begin) {
  const struct to_curve_step *right = &u->step[u->known - 1], *left = &u->step[u->left[i]];
  double sum = sum_at(u, right, begin + to_utilization_length[i]) - sum_at(u, left, begin);

  if (sum < u->open.sum[i]) u->open.sum[i] = sum;
}

/* Moves the left edge to this time, while the right edge is on a level. The mean falls while the level at the right edge is lower
 * than at the left one. */
static void move_left(struct to_utilization *u, unsigned i, to_ns begin, double right) {
  size_t at = u->left[i];

  if (at + 1 == u->known || u->step[at + 1].time > begin) return;
  double before = level_of(u, &u->step[at]);
  do {
    const struct to_curve_step *left = &u->step[++at];
    double level = level_of(u, left);
    u->left[i] = at;
    if (right <= before && right >= level) look_at(u, i, left->time);
    before = level;
  } while (at + 1 < u->known && u->step[at + 1].time <= begin);
}

/* Checks windows that end up to this time, until which the last known step lasts. Only windows after which the mean may rise are
 * checked. next: the level from then on; NOT_KNOWN: it may rise. */
static void slide(struct to_utilization *u, to_ns until, double next) {
  double right = level_of(u, &u->step[u->known - 1]);

  for (unsigned i = 0; i < TO_LENGTHS; i++) {
    to_ns begin = until - to_utilization_length[i];
    if (begin < u->first) break;
    if (u->end - to_utilization_length[i] < u->first) look_at(u, i, u->first);
    move_left(u, i, begin, right);
    if (next > right && level_of(u, &u->step[u->left[i]]) <= next) look_at(u, i, begin);
  }
  u->end = until;
}

/* Checks the last windows so far. */
static void look_at_end(struct to_utilization *u) {
  for (unsigned i = 0; i < TO_LENGTHS && u->known > 0; i++) {
    to_ns begin = u->end - to_utilization_length[i];
    if (begin < u->first) return;
    look_at(u, i, begin);
  }
}

static void know_next(struct to_utilization *u) {
  struct to_curve_step *step = &u->step[u->known];

  if (u->known == 0) {
    step->sum = 0;
    u->first = u->end = step->time;
  } else {
    step->sum = sum_at(u, step - 1, step->time);
    if (step->time > u->end) slide(u, step->time, level_of(u, step));
  }
  u->known++;
}

static void catch_up(struct to_utilization *u) {
  while (u->known < u->n) know_next(u);
}

/* ---- steps ---- */

/* Joins each two neighbours with the lower level, so that half of the steps are left. */
static void join_steps(struct to_utilization *u) {
  size_t n = 0;

  u->starts = false;
  catch_up(u);
  for (size_t i = 0; i < u->n; i += 2, n++) {
    struct to_curve_step step = u->step[i];
    step.level = level_of(u, &step);
    if (i + 2 < u->n && level_of(u, &u->step[i + 1]) < step.level)
      step.level = level_of(u, &u->step[i + 1]);
    step.lowers = u->lowers;
    u->step[n] = step;
    if (n > 0) u->step[n].sum = sum_at(u, &u->step[n - 1], step.time);
  }
  if (u->n % 2 == 0) { /* the last step is not complete: keep it */
    u->step[n] = u->step[u->n - 1];
    u->step[n].sum = sum_at(u, &u->step[n - 1], u->step[n].time);
    n++;
  }
  u->joined += u->n - n;
  u->n = u->known = n;
  for (unsigned i = 0; i < TO_LENGTHS; i++) u->left[i] /= 2;
  look_at_end(u); /* levels before it are lower now */
}

/* Drops steps that no window reaches any more. */
static void drop_old(struct to_utilization *u) {
  size_t old = u->left[TO_LENGTHS - 1];

  if (old == 0) return;
  double sum = u->step[old].sum;
  u->n -= old;
  u->known -= old;
  memmove(u->step, u->step + old, u->n * sizeof(*u->step));
  for (size_t i = 0; i < u->known; i++) u->step[i].sum -= sum; /* small sums are exact */
  for (unsigned i = 0; i < TO_LENGTHS; i++) u->left[i] -= old;
}

tb_rc to_utilization_step(struct to_utilization *u, struct tb_mem *mem, to_ns time, double level,
                          uint32_t procs) {
  if (u->n > 0) {
    const struct to_curve_step *last = &u->step[u->n - 1];
    if (time < last->time) to_utilization_cut(u); /* the clock went back */
    if (u->n > 0 && last->level == level && last->lowers == u->lowers) return TB_OK;
  }
  if (u->n == u->steps_max) {
    if (!u->starts) drop_old(u);
    if (u->n > u->steps_max / 2) join_steps(u);
  }
  TB_TRY(TB_MEM_GROW(mem, u->step, u->room, u->n));
  u->step[u->n++] =
      (struct to_curve_step){ .time = time, .level = level, .lowers = u->lowers, .procs = procs };
  if (!u->starts) catch_up(u);
  return TB_OK;
}

void to_utilization_lower(struct to_utilization *u) {
  if (!u->starts || u->n == 0) return;
  u->lowers++;
  if (u->known == 0) return;
  u->known = 0; /* all minima are computed again */
  memset(u->left, 0, sizeof(u->left));
  forget(&u->open);
  u->slots = 0;
}

void to_utilization_started(struct to_utilization *u) {
  catch_up(u);
  u->starts = false;
}

void to_utilization_cut(struct to_utilization *u) {
  catch_up(u);
  look_at_end(u);
  join(&u->all, &u->open); /* a step that is lowered later must not undo them */
  for (size_t i = 0; i < u->slots; i++) join(&u->all, &u->slot[i]);
  u->n = u->known = 0;
  memset(u->left, 0, sizeof(u->left));
  u->starts = true;
}

/* ---- slots ---- */

static size_t slot_of(const struct to_windows *w, to_ns begin) {
  size_t n = w->slots;

  while (n > 0 && w->slot[n - 1].begin > begin) n--;
  return n;
}

/* Joins and drops slots as the windows do. */
static void thin_out(struct to_utilization *u, const struct to_windows *w) {
  size_t kept = 0;

  for (size_t i = 0; i < u->slots; i++) {
    size_t of = slot_of(w, u->slot[i].begin);
    if (kept > 0 && of == slot_of(w, u->slot[kept - 1].begin))
      join(&u->slot[kept - 1], &u->slot[i]);
    else
      u->slot[kept++] = u->slot[i];
  }
  u->slots = kept;
}

/* Call with a time later than all steps. */
static void look_until(struct to_utilization *u, to_ns now) {
  catch_up(u);
  if (u->known == 0) return;
  if (now > u->end && level_of(u, &u->step[u->known - 1]) > 0)
    slide(u, now, NOT_KNOWN);
  else if (u->end >= u->open.begin)
    look_at_end(u);
}

tb_rc to_utilization_slot(struct to_utilization *u, const struct to_windows *w) {
  look_until(u, w->open.begin);
  if (u->windows_first != w->windows_first) {
    u->windows_first = w->windows_first;
    for (size_t i = 0; i < u->slots; i++) join(&u->all, &u->slot[i]);
    u->slots = 0;
  }
  TB_TRY(TB_MEM_GROW(w->mem, u->slot, u->slots_room, u->slots));
  u->slot[u->slots++] = u->open;
  thin_out(u, w);
  if (!u->starts) {
    for (size_t i = 0; i < u->slots; i++) join(&u->all, &u->slot[i]);
    drop_old(u);
  }
  forget(&u->open);
  u->open.begin = w->open.begin;
  if (u->end == w->open.begin) look_at_end(u); /* from there on it may rise */
  return TB_OK;
}

bool to_utilization_lowest(struct to_utilization *u, const struct to_view *view,
                           enum to_window window, to_ns until, unsigned length, double *out) {
  to_ns ns = to_utilization_length[length];
  double lowest = u->open.sum[length];

  look_until(u, until);
  if (u->open.sum[length] < lowest) lowest = u->open.sum[length];
  for (size_t i = 0; i < u->slots; i++)
    if ((window == TO_WINDOW_ALL || u->slot[i].begin >= view->from) &&
        u->slot[i].sum[length] < lowest)
      lowest = u->slot[i].sum[length];
  if (window == TO_WINDOW_ALL && u->all.sum[length] < lowest) lowest = u->all.sum[length];
  if (lowest == NONE_YET) { /* the stream is shorter than a window */
    if (u->known == 0 || u->end == u->first) return false;
    lowest = 0; /* 0 for all that time, or: */
    if (u->end - u->first < ns) {
      lowest = sum_at(u, &u->step[u->known - 1], u->end);
      ns = u->end - u->first;
    }
  }
  *out = lowest > 0 ? lowest / (double)ns : 0;
  return true;
}
