/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/saved.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

#define TK_SAVED(name, about, sql) { name, about, sql },
const struct tk_saved tk_saved[] = {
#include "tools/tracectl/query/saved.def"
  { 0 },
};
#undef TK_SAVED

const struct tk_saved *tk_saved_find(const char *name) {
  struct tb_nearest nearest = { .word = name };

  for (const struct tk_saved *q = tk_saved; q->name != NULL; q++) {
    if (strcmp(q->name, name) == 0) return q;
    tb_nearest_try(&nearest, q->name);
  }
  if (nearest.best != NULL)
    tk_usage("query", "no saved query \"%s\"; did you mean \"%s\"?", name, nearest.best);
  else
    tk_usage("query", "no saved query \"%s\": --list shows them", name);
  return NULL;
}

static void print_object(const struct tk_saved *q) {
  json_t *line = json_pack("{s:s,s:s,s:s}", "name", q->name, "about", q->about, "sql", q->sql);

  json_dumpf(line, stdout, JSON_COMPACT);
  putchar('\n');
  json_decref(line);
}

void tk_saved_list(bool json) {
  struct tk_table table;

  for (const struct tk_saved *q = tk_saved; json && q->name != NULL; q++) print_object(q);
  if (json) return;
  tk_table_init(&table, "NAME,ANSWERS");
  for (const struct tk_saved *q = tk_saved; q->name != NULL; q++) {
    tk_table_add(&table, "%s", q->name);
    tk_table_add(&table, "%s", q->about);
  }
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
}
