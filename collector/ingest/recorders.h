/* SPDX-License-Identifier: Apache-2.0 */
/* The connected agents, and requests for a snap to those that are flight recorders.
 *
 *   archive worker ──ask──> recorders <──next── loops ──SNAP──> agents
 *                  <─rows──┘         <─answer── loops <─SNAPPED──┘
 *
 * A loop takes its orders at each tick. Only flight recorders are sent a SNAP; other agents are answered for here, and so
 * are agents whose connection ends.
 *
 * Memory    about 200 bytes a connection; the caller of ask owns the rows.
 * Threads   join, leave, next, answer: the connection's loop. ask: any but loops, as it blocks. Others: the creator's.
 * Errors    join: TB_NOMEM. ask: TB_NOTFOUND: no such agent is connected; TB_BUDGET: too many agents or callers;
 *           TB_IO: the collector is shutting down; TB_NOMEM.
 */
#ifndef TC_INGEST_RECORDERS_H
#define TC_INGEST_RECORDERS_H

#include "base/arena.h"
#include "collector/store/store.h"

enum {
  TC_SNAP_AGENTS_MAX = 1000, /* agents of one call of ask */
  TC_SNAP_ASKS_MAX = 4,      /* calls of ask at a time */
  TC_SNAP_WAIT_MS_MAX = 20000,
};

struct tc_recorder {
  uint64_t conn; /* unique over all loops */
  unsigned loop;
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  uint64_t record_ns; /* how much trace it keeps until a SNAP; 0: not a flight recorder */
};

/* TC_SNAP(NAME, word) */
#define TC_SNAP_STATES(X)                                                                          \
  X(WAITED, "no answer in time")                                                                   \
  X(SHIPPED, "shipped")                                                                            \
  X(NOTHING, "nothing")                                                                            \
  X(NOT_RECORDING, "not a flight recorder")                                                        \
  X(BUSY, "busy")                                                                                  \
  X(GONE, "connection lost")

#define TC_SNAP_CODE(name, word) TC_SNAP_##name,
enum tc_snap_state { TC_SNAP_STATES(TC_SNAP_CODE) TC_SNAP_STATE_COUNT };
#undef TC_SNAP_CODE

/* The agent's report of the generations that it sent, all of which are acked. */
struct tc_snap_done {
  enum tc_snap_state state;
  uint64_t first_gen, last_gen, generations, batches, bytes, lost_generations;
  uint64_t from_wall_ns, to_wall_ns;
};

struct tc_snap_row {
  struct tc_recorder who;
  struct tc_snap_done done;
  uint64_t id;
  bool ordered;
};

struct tc_snap_order {
  uint64_t conn, id, last_ns;
};

struct tc_snap_ask {
  const char *service, *instance; /* "": any */
  const unsigned char *stream;    /* NULL: any */
  uint64_t last_ns;
  unsigned wait_ms;
};

struct tc_recorders;

TB_MUST tb_rc tc_recorders_new(struct tc_recorders **out);
/* Ends all current and later calls of ask with TB_IO. NULL is fine. */
void tc_recorders_stop(struct tc_recorders *r);
void tc_recorders_free(struct tc_recorders *r); /* NULL is fine */

TB_MUST tb_rc tc_recorders_join(struct tc_recorders *r, const struct tc_recorder *who);
void tc_recorders_leave(struct tc_recorders *r, uint64_t conn); /* accepts one that never joined */
bool tc_recorders_next(struct tc_recorders *r, unsigned loop, struct tc_snap_order *out);
/* Ignores an id that nobody waits for. */
void tc_recorders_answer(struct tc_recorders *r, uint64_t conn, uint64_t id,
                         const struct tc_snap_done *done);

/* Requests a snap from all agents that match, and waits until each has answered or wait_ms have passed. The arena owns the rows. */
TB_MUST tb_rc tc_recorders_ask(struct tc_recorders *r, const struct tc_snap_ask *ask,
                               struct tb_arena *arena, struct tb_diag *diag,
                               struct tc_snap_row **out_rows, size_t *out_n);

const char *tc_snap_state_word(enum tc_snap_state state);

#endif
