/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the streams for a snap, and the snap's outcome. The test plays the loop; one
 * thread plays the archive's worker. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/ingest/recorders.h"
#include "tests/support/patience.h"

struct scene {
  struct tc_recorders *recorders;
  struct tb_mem mem;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tc_snap_ask ask;
  struct tc_snap_row *rows;
  size_t n;
  tb_rc rc;
  pthread_t thread;
};

static void begin(struct scene *sc, const char *service, const char *instance) {
  *sc = (struct scene){ .ask = { .service = service, .instance = instance, .last_ns = 5 } };
  sc->ask.wait_ms = TC_SNAP_WAIT_MS_MAX;
  cr_assert_eq(tc_recorders_new(&sc->recorders), TB_OK);
  tb_mem_init(&sc->mem, tb_mem_libc, NULL, 1 << 20);
  tb_arena_init(&sc->arena, &sc->mem, 4096);
  tb_diag_clear(&sc->diag);
}

static void end(struct scene *sc) {
  tb_arena_fini(&sc->arena);
  tc_recorders_free(sc->recorders);
}

static void join(struct scene *sc, uint64_t conn, const char *service, const char *instance,
                 uint64_t record_ns) {
  struct tc_recorder who = { .conn = conn, .loop = (unsigned)conn % 2, .record_ns = record_ns };

  strcpy(who.service, service);
  strcpy(who.instance, instance);
  cr_assert_eq(tc_recorders_join(sc->recorders, &who), TB_OK);
}

static void *ask_main(void *self) {
  struct scene *sc = self;

  sc->rc = tc_recorders_ask(sc->recorders, &sc->ask, &sc->arena, &sc->diag, &sc->rows, &sc->n);
  return NULL;
}

static void ask(struct scene *sc) {
  cr_assert_eq(pthread_create(&sc->thread, NULL, ask_main, sc), 0);
}

static void answered(struct scene *sc) {
  pthread_join(sc->thread, NULL);
}

/* Returns the next order of a loop, as the loop's ticks would find it. */
static struct tc_snap_order next(struct scene *sc, unsigned loop) {
  struct tc_snap_order order;
  time_t end_s = time(NULL) + TT_PATIENCE_S;

  while (!tc_recorders_next(sc->recorders, loop, &order)) {
    cr_assert_lt(time(NULL), end_s, "no order");
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  return order;
}

static const struct tc_snap_row *row_of(const struct scene *sc, uint64_t conn) {
  size_t i = 0;

  while (i < sc->n && sc->rows[i].who.conn != conn) i++;
  cr_assert_lt(i, sc->n, "no row");
  return &sc->rows[i];
}

Test(recorders, all_that_fit_are_asked_by_their_loops_and_answer) {
  struct tc_snap_done done = { .state = TC_SNAP_SHIPPED, .first_gen = 3, .last_gen = 9 };
  struct scene sc;

  begin(&sc, "shop", "");
  join(&sc, 1, "shop", "a", 30);
  join(&sc, 2, "shop", "b", 30);
  join(&sc, 3, "shop", "c", 0);
  join(&sc, 4, "bank", "a", 30);
  ask(&sc);
  struct tc_snap_order one = next(&sc, 1), two = next(&sc, 0);
  cr_assert_eq(one.conn, 1);
  cr_assert_eq(two.conn, 2);
  cr_assert_eq(one.last_ns, 5);
  cr_assert_neq(one.id, two.id);
  tc_recorders_answer(sc.recorders, 2, one.id, &done); /* an order that is not its own */
  tc_recorders_answer(sc.recorders, 1, one.id + 99, &done);
  tc_recorders_answer(sc.recorders, 1, one.id, &done);
  tc_recorders_answer(sc.recorders, 1, one.id, &(struct tc_snap_done){ .state = TC_SNAP_BUSY });
  tc_recorders_leave(sc.recorders, 2);
  answered(&sc);
  cr_assert_eq(sc.rc, TB_OK);
  cr_assert_eq(sc.n, 3);
  cr_assert_eq(row_of(&sc, 1)->done.state, TC_SNAP_SHIPPED);
  cr_assert_eq(row_of(&sc, 1)->done.last_gen, 9);
  cr_assert_eq(row_of(&sc, 2)->done.state, TC_SNAP_GONE);
  cr_assert_eq(row_of(&sc, 3)->done.state, TC_SNAP_NOT_RECORDING);
  tc_recorders_answer(sc.recorders, 1, one.id, &done); /* too late to change anything */
  end(&sc);
}

Test(recorders, who_is_not_there_is_told_at_once) {
  struct scene sc;

  begin(&sc, "shop", "a");
  join(&sc, 1, "shop", "b", 30);
  join(&sc, 2, "shop", "a", 30);
  tc_recorders_leave(sc.recorders, 2);
  tc_recorders_leave(sc.recorders, 77);
  ask_main(&sc);
  cr_assert_eq(sc.rc, TB_NOTFOUND);
  end(&sc);
}

Test(recorders, who_does_not_answer_is_told_in_time_and_its_order_is_taken_back) {
  struct tc_snap_order order;
  struct scene sc;

  begin(&sc, "shop", "");
  sc.ask.wait_ms = 1;
  join(&sc, 1, "shop", "a", 30);
  ask_main(&sc);
  cr_assert_eq(sc.rc, TB_OK);
  cr_assert_eq(row_of(&sc, 1)->done.state, TC_SNAP_WAITED);
  cr_assert_not(tc_recorders_next(sc.recorders, 1, &order));
  end(&sc);
}

Test(recorders, too_many_at_a_time_are_refused_and_the_end_ends_all) {
  struct scene sc[TC_SNAP_ASKS_MAX + 1];

  begin(&sc[0], "shop", "");
  join(&sc[0], 1, "shop", "a", 30);
  for (int i = 1; i <= TC_SNAP_ASKS_MAX; i++) {
    begin(&sc[i], "shop", "");
    tc_recorders_free(sc[i].recorders);
    sc[i].recorders = sc[0].recorders;
  }
  for (int i = 0; i < TC_SNAP_ASKS_MAX; i++) {
    ask(&sc[i]);
    next(&sc[0], 1);
  }
  ask_main(&sc[TC_SNAP_ASKS_MAX]);
  cr_assert_eq(sc[TC_SNAP_ASKS_MAX].rc, TB_BUDGET);
  tc_recorders_stop(sc[0].recorders);
  for (int i = 0; i < TC_SNAP_ASKS_MAX; i++) {
    answered(&sc[i]);
    cr_assert_eq(sc[i].rc, TB_IO);
  }
  for (int i = 1; i <= TC_SNAP_ASKS_MAX; i++) tb_arena_fini(&sc[i].arena);
  end(&sc[0]);
}
