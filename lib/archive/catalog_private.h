/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by catalog.c, catalog_write.c and catalog_rebuild.c. */
#ifndef TC_ARCHIVE_CATALOG_PRIVATE_H
#define TC_ARCHIVE_CATALOG_PRIVATE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "archive/catalog.h"

enum tc__statement {
  TC__PUT,
  TC__PUT_OPEN_META,
  TC__OPEN_META,
  TC__DROP_OPEN,
  TC__PUT_LIVE,
  TC__PUT_PRODUCED,
  TC__BEGIN,
  TC__COMMIT,
  TC__SEGMENTS,
  TC__NEWEST,
  TC__STREAMS,
  TC__PENDING,
  TC__OLDEST,
  TC__HEAVY,
  TC__NOTE,
  TC__TOTALS,
  TC__STATEMENTS
};

struct tc_catalog {
  sqlite3 *db;
  int dir_fd;  /* our own handle of the state folder: the database's path goes through it */
  bool rotten; /* a page was wrong, or the disk could not read it */
  ino_t file;  /* the database, as it was when it was opened; 0: there was none */
  sqlite3_stmt *stmt[TC__STATEMENTS];
};

tb_rc tc__catalog_fail(struct tc_catalog *catalog, struct tb_diag *diag, const char *what);
/* The statement, prepared once and reset. */
tb_rc tc__catalog_statement(struct tc_catalog *catalog, enum tc__statement which, const char *sql,
                            struct tb_diag *diag, sqlite3_stmt **out);
/* Steps a statement without rows. */
tb_rc tc__catalog_run(struct tc_catalog *catalog, sqlite3_stmt *stmt, struct tb_diag *diag,
                      const char *what);
/* Walks the rows of a statement that selects TC__SEGMENT_COLUMNS. */
tb_rc tc__catalog_each_segment(struct tc_catalog *catalog, sqlite3_stmt *stmt,
                               tc_segment_row_fn *each, void *self, struct tb_diag *diag);

#define TC__SEGMENT_COLUMNS                                                                        \
  "g.id, g.stream, g.service, g.instance, g.path, g.first_gen, g.last_gen, g.bytes, g.batches, "   \
  "g.events, "                                                                                     \
  "g.first_wall, g.last_wall, g.go_version, g.verdict, g.reason, g.expired, g.unsafe, g.hash, "    \
  "g.first_arrival, g.last_arrival, g.estimated, g.open, g.hash_kind "

#endif
