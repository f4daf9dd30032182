/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/names/dialect.h"
#include "tools/tracectl/names/reader.h"
#include "tools/tracectl/names/words.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

enum { NAMES_MAX = 64, NAME_MAX_LEN = 40 };

struct names {
  char name[NAMES_MAX][NAME_MAX_LEN];
  unsigned n;
};

static void read_names(sqlite3 *db, const char *sql, const char *of, struct names *out) {
  sqlite3_stmt *s = NULL;

  out->n = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) return;
  if (of != NULL) sqlite3_bind_text(s, 1, of, -1, SQLITE_STATIC);
  while (out->n < NAMES_MAX && sqlite3_step(s) == SQLITE_ROW)
    snprintf(out->name[out->n++], NAME_MAX_LEN, "%s", (const char *)sqlite3_column_text(s, 0));
  sqlite3_finalize(s);
}

static void read_tables(sqlite3 *db, struct names *out) {
  read_names(db, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')", NULL, out);
}

static void read_columns(sqlite3 *db, const char *table, struct names *out) {
  read_names(db, "SELECT name FROM pragma_table_xinfo(?1)", table, out);
}

static bool has(const struct names *names, const char *name) {
  for (unsigned i = 0; i < names->n; i++)
    if (sqlite3_stricmp(names->name[i], name) == 0) return true;
  return false;
}

/* ---- near names ---- */

/* The nearest one, or else the first one that contains the word: "dur" means duration_ns. */
static const char *near(const struct names *names, const char *word) {
  struct tb_nearest nearest = { .word = word };
  const char *longer = NULL;

  for (unsigned i = 0; i < names->n; i++) {
    tb_nearest_try(&nearest, names->name[i]);
    if (longer == NULL && strlen(word) > 2 && strcasestr(names->name[i], word) != NULL)
      longer = names->name[i];
  }
  return nearest.best != NULL ? nearest.best : longer;
}

/* Names of other tools, or of what is one row among many here. */
static const char *table_meant(const char *word) {
  static const struct {
    const char *part, *table;
  } guesses[] = { { "mutex", "waits" },
                  { "lock", "waits" },
                  { "contention", "waits" },
                  { "channel", "waits" },
                  { "stw", "stops" },
                  { "pause", "stops" },
                  { "gc", "spans, where kind='range' and state LIKE 'GC %', or query --saved gc" },
                  { "thread", "spans" },
                  { "proc", "spans" },
                  { "range", "spans" },
                  { "slice", "spans" },
                  { "duration", "spans" },
                  { "profile", "samples" } };

  for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
    if (strcasestr(word, guesses[i].part) != NULL) return guesses[i].table;
  return NULL;
}

static void print_names(const char *before, const struct names *names) {
  fputs(before, stderr);
  for (unsigned i = 0; i < names->n; i++)
    fprintf(stderr, "%s%s", i > 0 ? ", " : "", names->name[i]);
}

static void print_meant(const char *meant) {
  if (meant != NULL) fprintf(stderr, "; did you mean %s?\n", meant);
  if (meant == NULL) fputs(".\n", stderr);
}

static void lead_to_table(sqlite3 *db, const char *word) {
  struct names tables;

  read_tables(db, &tables);
  const char *meant = near(&tables, word);
  print_names("  There are ", &tables);
  print_meant(meant != NULL ? meant : table_meant(word));
}

/* Returns what a table has for a column of another name, or NULL. */
static const char *column_meant(const struct names *columns, const char *word) {
  static const struct {
    const char *word, *of, *column; /* of: a column that only such tables have; NULL: any */
  } guesses[] = { { "created_by", "creation_stack", "creation_stack: place(creation_stack)" },
                  { "goroutine", NULL, "life (goroutines has its id)" },
                  { "start", "from_ns", "from_ns" },
                  { "begin", "from_ns", "from_ns" },
                  { "end", "until_ns", "until_ns" },
                  { "ts", NULL, "from_ns or time_ns" },
                  { "goid", NULL, "id of goroutines, subject of spans" },
                  { "gid", NULL, "id of goroutines, subject of spans" } };

  for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
    if (sqlite3_stricmp(guesses[i].word, word) == 0 &&
        (guesses[i].of == NULL || has(columns, guesses[i].of)))
      return guesses[i].column;
  return NULL;
}

/* Returns false if the statement names no table. */
static bool list_columns(sqlite3 *db, const char *sql, const char *word) {
  struct names tables, columns;
  bool any = false;

  read_tables(db, &tables);
  for (unsigned i = 0; i < tables.n; i++) {
    if (!tk_words_in(sql, tables.name[i])) continue;
    read_columns(db, tables.name[i], &columns);
    fprintf(stderr, "  %s has ", tables.name[i]);
    print_names("", &columns);
    const char *meant = column_meant(&columns, word);
    print_meant(meant != NULL ? meant : near(&columns, word));
    any = true;
  }
  return any;
}

/* Tables that have the column, though the statement does not name them. */
static void list_owners(sqlite3 *db, const char *sql, const char *word) {
  struct names tables, columns, owners = { .n = 0 };

  read_tables(db, &tables);
  for (unsigned i = 0; i < tables.n; i++) {
    read_columns(db, tables.name[i], &columns);
    if (!tk_words_in(sql, tables.name[i]) && has(&columns, word))
      memcpy(owners.name[owners.n++], tables.name[i], NAME_MAX_LEN);
  }
  if (owners.n == 0) return;
  fprintf(stderr, "  %s is a column of ", word);
  print_names("", &owners);
  fputs(".\n", stderr);
}

static void lead_to_column(sqlite3 *db, const char *sql, const char *name) {
  const char *dot = strrchr(name, '.'), *word = dot != NULL ? dot + 1 : name;

  if (!list_columns(db, sql, word)) fputs("  The statement names no table.\n", stderr);
  list_owners(db, sql, word);
}

bool tk_names_begins_query(const char *sql) {
  static const char *const begins[] = { "select", "with", "values", "explain" };
  struct tk_reader r = { .at = sql };

  do tk_reader_next(&r);
  while (tk_reader_is(&r, "("));
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (tk_reader_is(&r, begins[i])) return true;
  return false;
}

static const char *after(const char *text, const char *begin) {
  size_t len = strlen(begin);

  return strncmp(text, begin, len) == 0 ? text + len : NULL;
}

static void lead_to_function(const char *name) {
  fputs("  There are p(x, 99), median(x), place(stack), call(stack), and SQLite's own", stderr);
  print_meant(tk_dialect_function(name));
}

void tk_names_lead_on(sqlite3 *db, const char *sql, const char *message) {
  const char *name;

  if ((name = after(message, "no such table: ")) != NULL) lead_to_table(db, name);
  if ((name = after(message, "no such column: ")) != NULL) lead_to_column(db, sql, name);
  if ((name = after(message, "no such function: ")) != NULL) lead_to_function(name);
  bool is_syntax =
      strstr(message, "syntax error") != NULL || after(message, "unrecognized token") != NULL;
  const char *instead = is_syntax ? tk_dialect_syntax(sql) : NULL;
  if (instead != NULL)
    fprintf(stderr, "  %s.\n", instead);
  else if (is_syntax && !tk_names_begins_query(sql))
    fputs("  tracectl query --schema [TABLE] shows tables and columns.\n", stderr);
}

/* ---- for who asks ---- */

static bool is_text(const char *column) {
  static const char *const texts[] = { "stream", "kind",  "state",     "reason",   "cause",
                                       "entry",  "label", "args",      "event",    "function",
                                       "file",   "type",  "category",  "message",  "name",
                                       "window", "row",   "verdict",   "words",    "service",
                                       "place",  "id",    "peak_unit", "instances" };

  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(texts[i], column) == 0) return true;
  return false;
}

static bool is_text_of(const char *table, const char *column) {
  bool is_number_there = strcmp(column, "id") == 0 && strcmp(table, "findings") != 0;

  return is_text(column) && !is_number_there;
}

static void words_of(const char *table, const char *column, char *text, size_t size) {
  const char *word;
  size_t len = 0;

  text[0] = 0;
  for (unsigned i = 0; len < size && (word = tk_words_at(table, column, i)) != NULL; i++)
    len += (size_t)snprintf(text + len, size - len, "%s%s", i > 0 ? ", " : "", word);
}

/* Waits' reasons with their meaning; those of stops say it themselves. */
static void print_reasons(const char *table) {
  const char *word;

  if (strcmp(table, "spans") != 0 && strcmp(table, "waits") != 0) return;
  puts("\nReasons of waits:");
  for (unsigned i = 0; (word = tk_words_at("waits", "reason", i)) != NULL; i++)
    printf("  %-27s %s\n", word, tk_words_about(word));
  puts("Go writes \"sync\" for Mutex, RWMutex and WaitGroup: frames.function of the stack tells "
       "which, as sync.(*WaitGroup).Wait.");
}

static int print_table(sqlite3 *db, const char *name) {
  struct names columns;
  struct tk_table table;
  char words[4000];

  read_columns(db, name, &columns);
  tk_table_init(&table, "COLUMN,TYPE,VALUES");
  for (unsigned i = 0; i < columns.n; i++) {
    words_of(name, columns.name[i], words, sizeof words);
    tk_table_add(&table, "%s", columns.name[i]);
    tk_table_add(&table, "%s", is_text_of(name, columns.name[i]) ? "text" : "integer");
    tk_table_add(&table, "%s", words);
  }
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  print_reasons(name);
  return TK_DONE;
}

static int print_tables(sqlite3 *db, const struct names *tables) {
  struct names columns;

  for (unsigned i = 0; i < tables->n; i++) {
    read_columns(db, tables->name[i], &columns);
    printf("%-12s", tables->name[i]);
    for (unsigned k = 0; k < columns.n; k++) printf(" %s", columns.name[k]);
    putchar('\n');
  }
  puts("Functions: p(x, 99), median(x), place(stack), call(stack), and SQLite's own. --schema "
       "TABLE shows types "
       "and values.");
  return TK_DONE;
}

int tk_names_print(sqlite3 *db, const char *table) {
  struct names tables;

  read_tables(db, &tables);
  if (table == NULL) return print_tables(db, &tables);
  if (has(&tables, table)) return print_table(db, table);
  tk_fail("query", "no such table: %s", table);
  lead_to_table(db, table);
  return TK_USAGE;
}
