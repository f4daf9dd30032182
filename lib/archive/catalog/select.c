/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of readers. A statement consists of the requested conditions and names its index, so that the cost of a page
 * depends on its rows and not on the size of the archive. An index has the start or the end of segments, not both; the
 * length of the longest segment bounds the other side. A time span that few segments match is searched by time, any
 * other stream by stream: then a page is soon full. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "archive/catalog/private.h"

enum { LIMIT_DEFAULT = 1000, FEW = 5000 };

/* Numbers of the ?N in all statements. */
enum {
  P_SEGMENT = 1,
  P_SERVICE,
  P_INSTANCE,
  P_STREAM,
  P_SINCE,
  P_UNTIL,
  P_LAST,
  P_FIRST_GEN,
  P_LAST_GEN,
  P_AFTER_WALL,
  P_LIMIT,
  P_SINCE_ARRIVAL,
  P_UNTIL_ARRIVAL,
  P_AFTER_STREAM,
  P_AFTER_GEN,
};

/* ---- the text */

static void add_sql(struct tc__sql *sql, const char *fmt, ...) TB_PRINTF(2, 3);

static void add_sql(struct tc__sql *sql, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  int n = vsnprintf(sql->text + sql->n, sizeof sql->text - sql->n, fmt, args);
  va_end(args);
  assert(n >= 0 && (size_t)n < sizeof sql->text - sql->n);
  sql->n += (size_t)n;
}

static bool is_given(const char *text) {
  return text != NULL && *text != '\0';
}

static bool asks_wall(const struct tc_select *s) {
  return s->since_wall_ns != 0 || s->until_wall_ns != 0;
}

static bool asks_arrival(const struct tc_select *s) {
  return s->since_arrival_ns != 0 || s->until_arrival_ns != 0;
}

static bool asks_generations(const struct tc_select *s) {
  return s->first_gen != 0 || s->last_gen != 0;
}

/* End of the stream's newest generation, as traced. This is not max(last_wall): after a wall clock was set back, the
 * maximum belongs to an older generation. */
#define NEWEST_WALL                                                                                \
  "(SELECT n.last_wall FROM segments n WHERE n.stream = %s.stream AND n.generations > 0"           \
  " ORDER BY n.first_gen DESC LIMIT 1)"

static const char *owner(enum tc__way way) {
  return way == TC__BY_STREAM ? "s" : "g";
}

/* Adds the conditions on segments g. */
static void add_chosen(struct tc__sql *sql, const struct tc_select *s, enum tc__way way) {
  add_sql(sql, " g.generations > 0");
  if (s->segment != 0) add_sql(sql, " AND g.id = ?1");
  if (s->only_open) add_sql(sql, " AND g.open = 1");
  if (is_given(s->service)) add_sql(sql, " AND g.service = ?2");
  if (is_given(s->instance)) add_sql(sql, " AND g.instance = ?3");
  if (s->stream != NULL) add_sql(sql, " AND g.stream = ?4");
  if (s->since_wall_ns != 0) add_sql(sql, " AND g.last_wall >= ?5");
  if (s->until_wall_ns != 0) add_sql(sql, " AND g.first_wall <= ?6");
  if (s->last_ns != 0)
    add_sql(sql, " AND g.last_wall >= " NEWEST_WALL " - ?7 AND g.first_wall <= " NEWEST_WALL,
            owner(way), owner(way));
  if (s->first_gen != 0) add_sql(sql, " AND g.last_gen >= ?8");
  if (s->last_gen != 0) add_sql(sql, " AND g.first_gen <= ?9");
  if (s->since_arrival_ns != 0) add_sql(sql, " AND g.last_arrival >= ?12");
  if (s->until_arrival_ns != 0) add_sql(sql, " AND g.first_arrival <= ?13");
}

/* Bounds the side of a segment that the index does not have. */
static void add_bounds(struct tc__sql *sql, const struct tc_select *s, enum tc__way way) {
  switch (way) {
  case TC__BY_STREAM:
    if (s->until_wall_ns != 0) add_sql(sql, " AND g.last_wall <= ?6 + s.longest_wall");
    if (s->first_gen != 0) add_sql(sql, " AND g.first_gen >= ?8 - s.longest_gens");
    break;
  case TC__BY_WALL:
  case TC__BY_SERVICE_WALL:
    if (s->since_wall_ns != 0)
      add_sql(sql, " AND g.first_wall >= ?5 - (SELECT longest_wall FROM totals)");
    break;
  case TC__BY_ARRIVAL:
    if (s->until_arrival_ns != 0)
      add_sql(sql, " AND g.last_arrival <= ?13 + (SELECT longest_arrival FROM totals)");
    break;
  default: break;
  }
}

/* Adds the conditions on streams s. */
static void add_walked(struct tc__sql *sql, const struct tc_select *s) {
  if (is_given(s->service)) add_sql(sql, " AND s.service = ?2");
  if (is_given(s->instance)) add_sql(sql, " AND s.instance = ?3");
  if (s->stream != NULL) add_sql(sql, " AND s.stream = ?4");
}

static const char *index_of(const struct tc_select *s, enum tc__way way) {
  switch (way) {
  case TC__BY_WALL: return " INDEXED BY segments_time";
  case TC__BY_SERVICE_WALL: return " INDEXED BY segments_service_time";
  case TC__BY_ARRIVAL: return " INDEXED BY segments_arrival";
  case TC__BY_OPEN: return " INDEXED BY segments_open";
  case TC__BY_STREAM:
    return asks_generations(s) || (!asks_wall(s) && s->last_ns == 0)
               ? " INDEXED BY sqlite_autoindex_segments_1" /* UNIQUE (stream, first_gen) */
               : " INDEXED BY segments_span";
  default: return "";
  }
}

/* ---- which way */

static enum tc__way way_of_time(const struct tc_select *s) {
  if (!asks_wall(s)) return TC__BY_ARRIVAL;
  return is_given(s->service) ? TC__BY_SERVICE_WALL : TC__BY_WALL;
}

static void bind_some(sqlite3_stmt *stmt, int at, uint64_t value) {
  if (value != 0) sqlite3_bind_int64(stmt, at, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void bind_text(sqlite3_stmt *stmt, int at, const char *text) {
  if (is_given(text)) sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

static void bind_blob(sqlite3_stmt *stmt, int at, const unsigned char *id) {
  if (id != NULL) sqlite3_bind_blob(stmt, at, id, 16, SQLITE_STATIC);
}

/* SQLite ignores the numbers that a statement does not have. */
static void bind_select(sqlite3_stmt *stmt, const struct tc_select *s) {
  bind_some(stmt, P_SEGMENT, s->segment);
  bind_text(stmt, P_SERVICE, s->service);
  bind_text(stmt, P_INSTANCE, s->instance);
  bind_blob(stmt, P_STREAM, s->stream);
  bind_some(stmt, P_SINCE, s->since_wall_ns);
  bind_some(stmt, P_UNTIL, s->until_wall_ns);
  bind_some(stmt, P_LAST, s->last_ns);
  bind_some(stmt, P_FIRST_GEN, s->first_gen);
  bind_some(stmt, P_LAST_GEN, s->last_gen);
  sqlite3_bind_int64(stmt, P_AFTER_WALL, (int64_t)s->place.first_wall_ns);
  bind_some(stmt, P_SINCE_ARRIVAL, s->since_arrival_ns);
  bind_some(stmt, P_UNTIL_ARRIVAL, s->until_arrival_ns);
  bind_blob(stmt, P_AFTER_STREAM, s->place.stream);
  sqlite3_bind_int64(stmt, P_AFTER_GEN, (int64_t)s->place.first_gen);
}

static tb_rc prepare(struct tc_catalog *catalog, const struct tc__sql *sql,
                     const struct tc_select *select, struct tb_diag *diag, sqlite3_stmt **out) {
  if (sqlite3_prepare_v3(catalog->db, sql->text, (int)sql->n, 0, out, NULL) != SQLITE_OK)
    return tc__catalog_fail(catalog, diag, "prepare");
  bind_select(*out, select);
  return TB_OK;
}

static tb_rc ask_number(struct tc_catalog *catalog, const struct tc__sql *sql,
                        const struct tc_select *select, struct tb_diag *diag, uint64_t *out) {
  sqlite3_stmt *stmt;

  TB_TRY(prepare(catalog, sql, select, diag, &stmt));
  int step = sqlite3_step(stmt);
  tb_rc rc = step == SQLITE_ROW ? TB_OK : tc__catalog_fail(catalog, diag, "read");
  if (rc == TB_OK) *out = (uint64_t)sqlite3_column_int64(stmt, 0);
  sqlite3_finalize(stmt);
  return rc;
}

static void write_count(const struct tc_select *s, enum tc__way way, struct tc__sql *sql) {
  const struct tc_select span = { .service = s->service,
                                  .since_wall_ns = s->since_wall_ns,
                                  .until_wall_ns = s->until_wall_ns,
                                  .since_arrival_ns = s->since_arrival_ns,
                                  .until_arrival_ns = s->until_arrival_ns };

  *sql = (struct tc__sql){ 0 };
  add_sql(sql, "SELECT count(*) FROM (SELECT 1 FROM segments g%s WHERE g.generations > 0",
          index_of(s, way));
  if (way == TC__BY_SERVICE_WALL) add_sql(sql, " AND g.service = ?2");
  if (way != TC__BY_ARRIVAL && s->until_wall_ns != 0) add_sql(sql, " AND g.first_wall <= ?6");
  if (way == TC__BY_ARRIVAL && s->since_arrival_ns != 0) add_sql(sql, " AND g.last_arrival >= ?12");
  add_bounds(sql, &span, way);
  add_sql(sql, " LIMIT %d)", FEW + 1);
}

static tb_rc find_way(struct tc_catalog *catalog, const struct tc_select *s, bool newest,
                      struct tb_diag *diag, enum tc__way *out) {
  struct tc__sql sql;
  uint64_t n;

  *out = s->segment != 0 ? TC__BY_ID : s->only_open ? TC__BY_OPEN : TC__BY_STREAM;
  if (*out != TC__BY_STREAM || s->stream != NULL) return TB_OK;
  if (newest) { /* a walk from the newest on ends when its page is full */
    if (s->last_ns != 0 || is_given(s->instance) || asks_generations(s)) return TB_OK;
    *out = asks_arrival(s) && !asks_wall(s) ? TC__BY_ARRIVAL
           : is_given(s->service)           ? TC__BY_SERVICE_WALL
                                            : TC__BY_WALL;
    return TB_OK;
  }
  if (!asks_wall(s) && !asks_arrival(s)) return TB_OK;
  write_count(s, way_of_time(s), &sql);
  TB_TRY(ask_number(catalog, &sql, s, diag, &n));
  if (n <= FEW) *out = way_of_time(s);
  return TB_OK;
}

/* ---- segments */

void tc__write_segments(const struct tc_select *s, enum tc__way way, bool newest,
                        struct tc__sql *sql) {
  bool goes_on = s->place.stream != NULL;

  *sql = (struct tc__sql){ 0 };
  add_sql(sql, "SELECT " TC__SEGMENT_COLUMNS "FROM ");
  if (way == TC__BY_STREAM) add_sql(sql, "streams s CROSS JOIN ");
  add_sql(sql, "segments g%s WHERE", index_of(s, way));
  add_chosen(sql, s, way);
  add_bounds(sql, s, way);
  if (way == TC__BY_STREAM) {
    add_sql(sql, " AND g.stream = s.stream");
    add_walked(sql, s);
  }
  if (newest) {
    if (goes_on) add_sql(sql, " AND (g.first_wall, g.stream, g.first_gen) < (?10, ?14, ?15)");
    add_sql(sql, " ORDER BY g.first_wall DESC, g.stream DESC, g.first_gen DESC LIMIT ?11");
    return;
  }
  if (goes_on && way == TC__BY_STREAM) add_sql(sql, " AND s.stream >= ?14");
  if (goes_on) add_sql(sql, " AND (g.stream, g.first_gen) > (?14, ?15)");
  add_sql(sql, " ORDER BY %s.stream, g.first_gen LIMIT ?11", owner(way));
}

/* Finds the place of segment `after`; TB_NOTFOUND if its row was removed. */
static tb_rc find_place(struct tc_catalog *catalog, struct tc_select *select,
                        unsigned char stream[16], struct tb_diag *diag) {
  struct tc__sql sql = { 0 };
  const struct tc_select one = { .segment = select->after };
  sqlite3_stmt *stmt;

  if (select->place.stream != NULL || select->after == 0) return TB_OK;
  add_sql(&sql, "SELECT stream, first_gen, first_wall FROM segments WHERE id = ?1");
  TB_TRY(prepare(catalog, &sql, &one, diag, &stmt));
  int step = sqlite3_step(stmt);
  tb_rc rc = TB_OK;
  if (step == SQLITE_DONE)
    rc = tb_fail(diag, TB_NOTFOUND,
                 "segment %" PRIu64 ", after which the list should continue, was removed",
                 select->after);
  else if (step != SQLITE_ROW || sqlite3_column_bytes(stmt, 0) != 16)
    rc = tc__catalog_fail(catalog, diag, "read");
  if (rc == TB_OK) {
    memcpy(stream, sqlite3_column_blob(stmt, 0), 16);
    select->place.stream = stream;
    select->place.first_gen = (uint64_t)sqlite3_column_int64(stmt, 1);
    select->place.first_wall_ns = (uint64_t)sqlite3_column_int64(stmt, 2);
  }
  sqlite3_finalize(stmt);
  return rc;
}

tb_rc tc__walk_segments(struct tc_catalog *catalog, const struct tc_select *select,
                        enum tc__way way, bool newest, tc_segment_row_fn *each, void *self,
                        struct tb_diag *diag) {
  struct tc__sql sql;
  sqlite3_stmt *stmt;

  tc__write_segments(select, way, newest, &sql);
  TB_TRY(prepare(catalog, &sql, select, diag, &stmt));
  sqlite3_bind_int64(stmt, P_LIMIT, select->limit == 0 ? LIMIT_DEFAULT : (int64_t)select->limit);
  tb_rc rc = tc__catalog_each_segment(catalog, stmt, each, self, diag);
  sqlite3_finalize(stmt);
  return rc;
}

static tb_rc walk_rows(struct tc_catalog *catalog, const struct tc_select *asked, bool newest,
                       tc_segment_row_fn *each, void *self, struct tb_diag *diag) {
  struct tc_select select = *asked;
  unsigned char stream[16];
  enum tc__way way;

  TB_TRY(find_place(catalog, &select, stream, diag));
  TB_TRY(find_way(catalog, &select, newest, diag, &way));
  return tc__walk_segments(catalog, &select, way, newest, each, self, diag);
}

tb_rc tc_catalog_segments(struct tc_catalog *catalog, const struct tc_select *select,
                          tc_segment_row_fn *each, void *self, struct tb_diag *diag) {
  return walk_rows(catalog, select, false, each, self, diag);
}

tb_rc tc_catalog_newest(struct tc_catalog *catalog, const struct tc_select *select,
                        tc_segment_row_fn *each, void *self, struct tb_diag *diag) {
  return walk_rows(catalog, select, true, each, self, diag);
}

/* ---- streams */

static bool goes_by_segments(const struct tc_select *s) {
  return s->segment != 0 || s->only_open || asks_wall(s) || asks_arrival(s) || asks_generations(s);
}

void tc__write_streams(const struct tc_select *s, enum tc__way way, struct tc__sql *sql) {
  *sql = (struct tc__sql){ 0 };
  add_sql(sql, "SELECT " TC__STREAM_COLUMNS ", " NEWEST_WALL " FROM streams s WHERE 1", "s");
  add_walked(sql, s);
  if (goes_by_segments(s) && way == TC__BY_STREAM) {
    add_sql(sql, " AND EXISTS (SELECT 1 FROM segments g%s WHERE", index_of(s, way));
    add_chosen(sql, s, way);
    add_bounds(sql, s, way);
    add_sql(sql, " AND g.stream = s.stream)");
  } else if (goes_by_segments(s)) {
    add_sql(sql, " AND s.stream IN (SELECT g.stream FROM segments g%s WHERE", index_of(s, way));
    add_chosen(sql, s, way);
    add_bounds(sql, s, way);
    add_sql(sql, ")");
  }
  add_sql(sql, " ORDER BY s.stream LIMIT ?11");
}

tb_rc tc_catalog_streams(struct tc_catalog *catalog, const struct tc_select *select,
                         tc_stream_row_fn *each, void *self, struct tb_diag *diag) {
  struct tc__sql sql;
  sqlite3_stmt *stmt;
  enum tc__way way;

  TB_TRY(find_way(catalog, select, false, diag, &way));
  tc__write_streams(select, way, &sql);
  TB_TRY(prepare(catalog, &sql, select, diag, &stmt));
  sqlite3_bind_int64(stmt, P_LIMIT, select->limit == 0 ? -1 : (int64_t)select->limit);
  tb_rc rc = tc__catalog_each_stream(catalog, stmt, each, self, diag);
  sqlite3_finalize(stmt);
  return rc;
}
