/* SPDX-License-Identifier: Apache-2.0 */
/* One lock is enough: connections change rarely, and people make the requests. */
#include "collector/ingest/recorders.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct member {
  struct member *next;
  struct tc_recorder who;
};

/* A call of tc_recorders_ask(), on its stack. */
struct waiting {
  struct tc_snap_row *rows;
  size_t n, unanswered;
  uint64_t last_ns;
};

struct tc_recorders {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct member *first;
  struct waiting *asks[TC_SNAP_ASKS_MAX]; /* NULL: free */
  uint64_t last_id;
  bool stopping;
  atomic_size_t orders; /* not taken by a loop yet; a tick without one needs no lock */
};

#define WORD(name, word) word,
static const char *const words[] = { TC_SNAP_STATES(WORD) };
#undef WORD

const char *tc_snap_state_word(enum tc_snap_state state) {
  return words[state];
}

tb_rc tc_recorders_new(struct tc_recorders **out) {
  struct tc_recorders *r = calloc(1, sizeof *r);

  if (r == NULL) return TB_NOMEM;
  pthread_mutex_init(&r->lock, NULL);
  tc_cond_init(&r->changed);
  *out = r;
  return TB_OK;
}

void tc_recorders_stop(struct tc_recorders *r) {
  if (r == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->stopping = true;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

void tc_recorders_free(struct tc_recorders *r) {
  if (r == NULL) return;
  for (struct member *m = r->first, *next; m != NULL; m = next) {
    next = m->next;
    free(m);
  }
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

/* --- rows, with the lock held ------------------------------------------------------------------ */

/* A position in the rows of all asks. */
struct place {
  int ask;
  size_t row;
};

/* Returns NULL after the last row. */
static struct tc_snap_row *next_row(struct tc_recorders *r, struct place *at) {
  for (; at->ask < TC_SNAP_ASKS_MAX; at->ask++, at->row = 0)
    if (r->asks[at->ask] != NULL && at->row < r->asks[at->ask]->n)
      return &r->asks[at->ask]->rows[at->row++];
  return NULL;
}

static bool is_open(const struct tc_snap_row *row) {
  return row->done.state == TC_SNAP_WAITED;
}

static void mark_ordered(struct tc_recorders *r, struct tc_snap_row *row) {
  if (row->ordered) return;
  row->ordered = true;
  atomic_fetch_sub(&r->orders, 1);
}

static void answer_row(struct tc_recorders *r, struct waiting *w, struct tc_snap_row *row,
                       const struct tc_snap_done *done) {
  mark_ordered(r, row);
  row->done = *done;
  w->unanswered--;
  pthread_cond_broadcast(&r->changed);
}

tb_rc tc_recorders_join(struct tc_recorders *r, const struct tc_recorder *who) {
  struct member *m = malloc(sizeof *m);

  if (m == NULL) return TB_NOMEM;
  m->who = *who;
  pthread_mutex_lock(&r->lock);
  m->next = r->first;
  r->first = m;
  pthread_mutex_unlock(&r->lock);
  return TB_OK;
}

void tc_recorders_leave(struct tc_recorders *r, uint64_t conn) {
  static const struct tc_snap_done gone = { .state = TC_SNAP_GONE };
  struct place at = { 0 };

  pthread_mutex_lock(&r->lock);
  for (struct member **m = &r->first; *m != NULL; m = &(*m)->next) {
    if ((*m)->who.conn != conn) continue;
    struct member *left = *m;
    *m = left->next;
    free(left);
    break;
  }
  for (struct tc_snap_row *row; (row = next_row(r, &at)) != NULL;)
    if (row->who.conn == conn && is_open(row)) answer_row(r, r->asks[at.ask], row, &gone);
  pthread_mutex_unlock(&r->lock);
}

bool tc_recorders_next(struct tc_recorders *r, unsigned loop, struct tc_snap_order *out) {
  struct place at = { 0 };
  bool found = false;

  if (atomic_load(&r->orders) == 0) return false;
  pthread_mutex_lock(&r->lock);
  for (struct tc_snap_row *row; !found && (row = next_row(r, &at)) != NULL;) {
    if (row->ordered || row->who.loop != loop) continue;
    *out = (struct tc_snap_order){ row->who.conn, row->id, r->asks[at.ask]->last_ns };
    mark_ordered(r, row);
    found = true;
  }
  pthread_mutex_unlock(&r->lock);
  return found;
}

void tc_recorders_answer(struct tc_recorders *r, uint64_t conn, uint64_t id,
                         const struct tc_snap_done *done) {
  struct place at = { 0 };

  pthread_mutex_lock(&r->lock);
  for (struct tc_snap_row *row; (row = next_row(r, &at)) != NULL;)
    if (row->id == id && row->who.conn == conn && is_open(row))
      answer_row(r, r->asks[at.ask], row, done);
  pthread_mutex_unlock(&r->lock);
}

static bool fits(const struct tc_snap_ask *ask, const struct tc_recorder *who) {
  if (*ask->service != '\0' && strcmp(ask->service, who->service) != 0) return false;
  if (*ask->instance != '\0' && strcmp(ask->instance, who->instance) != 0) return false;
  return ask->stream == NULL || memcmp(ask->stream, who->stream, TC_STREAM_BYTES) == 0;
}

static tb_rc find_agents(struct tc_recorders *r, const struct tc_snap_ask *ask,
                         struct tb_arena *arena, struct tb_diag *diag, struct waiting *w) {
  for (const struct member *m = r->first; m != NULL; m = m->next) w->n += fits(ask, &m->who);
  if (w->n == 0) return tb_fail(diag, TB_NOTFOUND, "no such agent is connected");
  if (w->n > TC_SNAP_AGENTS_MAX)
    return tb_fail(diag, TB_BUDGET, "%zu agents match, at most %d can be asked at a time", w->n,
                   TC_SNAP_AGENTS_MAX);
  TB_TRY(tb_arena_alloc(arena, w->n * sizeof *w->rows, &w->rows));
  memset(w->rows, 0, w->n * sizeof *w->rows);
  struct tc_snap_row *row = w->rows;
  for (const struct member *m = r->first; m != NULL; m = m->next)
    if (fits(ask, &m->who)) (row++)->who = m->who;
  return TB_OK;
}

static void order_all(struct tc_recorders *r, struct waiting *w) {
  for (struct tc_snap_row *row = w->rows; row < w->rows + w->n; row++) {
    row->id = ++r->last_id;
    row->ordered = row->who.record_ns == 0;
    if (row->ordered) {
      row->done.state = TC_SNAP_NOT_RECORDING;
      continue;
    }
    w->unanswered++;
    atomic_fetch_add(&r->orders, 1);
  }
}

static void wait_for_all(struct tc_recorders *r, const struct waiting *w, unsigned ms) {
  struct timespec until = tc_from_now(ms < TC_SNAP_WAIT_MS_MAX ? ms : TC_SNAP_WAIT_MS_MAX);

  while (w->unanswered > 0 && !r->stopping &&
         pthread_cond_timedwait(&r->changed, &r->lock, &until) != ETIMEDOUT)
    continue;
}

static tb_rc ask_all(struct tc_recorders *r, struct waiting **mine, const struct tc_snap_ask *ask,
                     struct tb_arena *arena, struct tb_diag *diag, struct waiting *w) {
  TB_TRY(find_agents(r, ask, arena, diag, w));
  order_all(r, w);
  *mine = w;
  wait_for_all(r, w, ask->wait_ms);
  *mine = NULL;
  for (struct tc_snap_row *row = w->rows; row < w->rows + w->n; row++) mark_ordered(r, row);
  return r->stopping ? tb_fail(diag, TB_IO, "the collector is shutting down") : TB_OK;
}

tb_rc tc_recorders_ask(struct tc_recorders *r, const struct tc_snap_ask *ask,
                       struct tb_arena *arena, struct tb_diag *diag, struct tc_snap_row **out_rows,
                       size_t *out_n) {
  struct waiting w = { .last_ns = ask->last_ns };
  int mine = 0;

  pthread_mutex_lock(&r->lock);
  while (mine < TC_SNAP_ASKS_MAX && r->asks[mine] != NULL) mine++;
  tb_rc rc = mine < TC_SNAP_ASKS_MAX
                 ? ask_all(r, &r->asks[mine], ask, arena, diag, &w)
                 : tb_fail(diag, TB_BUDGET, "%d snaps are under way, try again", TC_SNAP_ASKS_MAX);
  pthread_mutex_unlock(&r->lock);
  *out_rows = w.rows;
  *out_n = w.n;
  return rc;
}
