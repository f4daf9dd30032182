/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tables: prints this program's built-in tables as text, Markdown or JSON. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/help/tables.h"
#include "tools/tracectl/term/tracectl.h"

struct form {
  bool markdown, json;
};

/* "OPENED BY" becomes opened_by. */
static void key_of(const char *head, char out[40]) {
  size_t n = 0;

  for (; n < 39 && head[n] != '\0'; n++)
    out[n] = head[n] == ' ' ? '_' : (char)tolower((unsigned char)head[n]);
  out[n] = '\0';
}

static void print_json(const struct tk_table *t, const char *name) {
  for (size_t at = t->columns; at + t->columns <= t->cells; at += t->columns) {
    json_t *line = json_object();
    char key[40];

    json_object_set_new(line, "table", json_string(name));
    for (size_t c = 0; c < t->columns; c++) {
      key_of(t->cell[c], key);
      json_object_set_new(line, key, json_string(t->cell[at + c]));
    }
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
  }
}

static void print_table(const struct tk_table_of *which, const struct form *form) {
  struct tk_table table;

  tk_table_init(&table, which->head);
  which->fill(&table);
  if (form->json)
    print_json(&table, which->name);
  else
    tk_table_print(&table, stdout, form->markdown);
  tk_table_fini(&table);
}

static void print_names(void) {
  for (size_t i = 0; i < tk_tables_count; i++)
    printf("%-12s %s\n", tk_tables[i].name, tk_tables[i].about);
}

static const struct tk_table_of *find_table(const char *name) {
  for (size_t i = 0; i < tk_tables_count; i++)
    if (strcmp(tk_tables[i].name, name) == 0) return &tk_tables[i];
  return NULL;
}

static int unknown(const char *name) {
  struct tb_nearest nearest = { .word = name };

  for (size_t i = 0; i < tk_tables_count; i++) tb_nearest_try(&nearest, tk_tables[i].name);
  if (nearest.best != NULL)
    return tk_usage("tables", "no table '%s'; did you mean '%s'?", name, nearest.best);
  return tk_usage("tables", "no table '%s'; 'tracectl tables' lists them", name);
}

const struct tk_option tk_tables_options[] = {
  TK_OPTION(0, "markdown", NULL, tk_read_flag, offsetof(struct form, markdown), "as Markdown"),
  TK_OPTION(0, "json", NULL, tk_read_flag, offsetof(struct form, json), "one object a row"),
  { 0 },
};

int tk_cmd_tables(int argc, char **argv) {
  struct form form = { 0 };
  int code = tk_options_read(argc, argv, tk_tables_options, &form);

  if (code != TK_DONE) return code;
  if (form.json && form.markdown)
    return tk_usage("tables", "only one of --json and --markdown can be given");
  if (optind == argc) {
    print_names();
    return TK_DONE;
  }
  for (int i = optind; i < argc; i++)
    if (find_table(argv[i]) == NULL) return unknown(argv[i]);
  for (; optind < argc; optind++) {
    const struct tk_table_of *which = find_table(argv[optind]);
    if (form.markdown) printf("## %s\n\n%s\n\n", which->name, which->about);
    print_table(which, &form);
    if (!form.json && optind + 1 < argc) putchar('\n');
  }
  return TK_DONE;
}
