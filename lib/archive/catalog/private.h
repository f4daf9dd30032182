/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the catalog. */
#ifndef TC_ARCHIVE_CATALOG_PRIVATE_H
#define TC_ARCHIVE_CATALOG_PRIVATE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "archive/catalog/catalog.h"

enum tc__statement {
  TC__PUT,
  TC__PUT_OPEN_META,
  TC__OPEN_META,
  TC__DROP_OPEN,
  TC__PUT_LIVE,
  TC__PUT_PRODUCED,
  TC__BEGIN,
  TC__COMMIT,
  TC__PENDING,
  TC__OLDEST,
  TC__NEWEST,
  TC__HEAVY,
  TC__NOTE,
  TC__TOTALS,
  TC__FOLD_DROP,
  TC__FOLD_PUT,
  TC__FOLD_TOTALS,
  TC__FOLD_SUMS,
  TC__STATEMENTS
};

struct tc_catalog {
  sqlite3 *db;
  int dir_fd;  /* own handle of the state folder; the database is opened through it */
  bool rotten; /* a page was damaged, or the disk could not read it */
  ino_t file;  /* inode of the database when it was opened; 0: there was none */
  sqlite3_stmt *stmt[TC__STATEMENTS];
};

tb_rc tc__catalog_fail(struct tc_catalog *catalog, struct tb_diag *diag, const char *what);
/* Returns the statement, prepared once and reset. */
tb_rc tc__catalog_statement(struct tc_catalog *catalog, enum tc__statement which, const char *sql,
                            struct tb_diag *diag, sqlite3_stmt **out);
/* Steps a statement that returns no rows. */
tb_rc tc__catalog_run(struct tc_catalog *catalog, sqlite3_stmt *stmt, struct tb_diag *diag,
                      const char *what);
/* Walks the rows of a statement that selects TC__SEGMENT_COLUMNS. */
tb_rc tc__catalog_each_segment(struct tc_catalog *catalog, sqlite3_stmt *stmt,
                               tc_segment_row_fn *each, void *self, struct tb_diag *diag);

/* Walks the rows of a statement that selects TC__STREAM_COLUMNS and the newest wall clock. */
tb_rc tc__catalog_each_stream(struct tc_catalog *catalog, sqlite3_stmt *stmt,
                              tc_stream_row_fn *each, void *self, struct tb_diag *diag);

/* catalog/select.c: the ways to find rows, each by an index of its own. */
enum tc__way {
  TC__BY_ID,
  TC__BY_OPEN,
  TC__BY_STREAM,
  TC__BY_WALL,
  TC__BY_SERVICE_WALL,
  TC__BY_ARRIVAL
};
struct tc__sql {
  char text[3072];
  size_t n;
};
void tc__write_segments(const struct tc_select *select, enum tc__way way, bool newest,
                        struct tc__sql *sql);
tb_rc tc__walk_segments(struct tc_catalog *catalog, const struct tc_select *select,
                        enum tc__way way, bool newest, tc_segment_row_fn *each, void *self,
                        struct tb_diag *diag);
void tc__write_streams(const struct tc_select *select, enum tc__way way, struct tc__sql *sql);

#define TC__STREAM_COLUMNS                                                                         \
  "s.stream, s.service, s.instance, s.identity, s.live_peer,"                                      \
  " CASE WHEN s.live_state <> '' THEN s.live_state WHEN s.ended = 'clean' THEN 'closed'"           \
  "      WHEN s.ended = 'exec' THEN 'exec'"                                                        \
  "      WHEN s.ended = 'unclean' THEN 'unclean' ELSE 'waiting' END,"                              \
  " s.go_version, max(s.last_seq, s.live_seq), s.batches, s.bytes, s.generations, s.broken, "      \
  "s.events,"                                                                                      \
  " s.lost_batches, s.lost_bytes, s.lost_generations, s.first_arrival, s.last_arrival,"            \
  " s.produced_batches, s.produced_bytes, s.spool_bytes, s.cut_seq, s.cut_settled_seq,"            \
  " s.cut_produced_batches, s.cut_produced_bytes, s.cut_told_batches, s.cut_told_bytes,"           \
  " s.cut_open_batches, s.cut_open_bytes, s.last_loss"

#define TC__SEGMENT_COLUMNS                                                                        \
  "g.id, g.stream, g.service, g.instance, g.path, g.first_gen, g.last_gen, g.bytes, g.batches, "   \
  "g.events, "                                                                                     \
  "g.first_wall, g.last_wall, g.go_version, g.verdict, g.reason, g.expired, g.unsafe, g.hash, "    \
  "g.first_arrival, g.last_arrival, g.estimated, g.open, g.hash_kind "

#endif
