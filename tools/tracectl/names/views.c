/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/views.h"

#define TIMES "from_ns, until_ns, duration_ns, from_known, until_known"

static const struct view {
  const char *name, *sql;
} views[] = {
  { "syscalls",
    "CREATE VIEW syscalls AS SELECT stream, subject AS goroutine, life, " TIMES
    ", stack, thread, gen, wall_ns, idle FROM spans WHERE kind='goroutine' AND state='syscall'" },
  { "stops", "CREATE VIEW stops AS SELECT stream, reason, life, " TIMES
             ", stack, end_stack, thread, gen, wall_ns FROM spans WHERE kind='range' AND "
             "state='stop-the-world'" },
  { "waits", "CREATE VIEW waits AS SELECT stream, subject AS goroutine, life, reason, " TIMES
             ", stack, by_life, by_thread, by_stack, gen, wall_ns, idle FROM spans "
             "WHERE kind='goroutine' AND state='waiting'" },
  { NULL, NULL },
};

const char *tk_views_name(size_t i) {
  return views[i].name;
}

int tk_views_add(sqlite3 *db) {
  int rc = SQLITE_OK;

  for (size_t i = 0; rc == SQLITE_OK && views[i].name != NULL; i++)
    rc = sqlite3_exec(db, views[i].sql, NULL, NULL, NULL);
  return rc;
}
