/* SPDX-License-Identifier: Apache-2.0 */
/* A8: compares wire/events.def with the table of the installed Go: numbers, names, arguments. Go's file is read as
 * text; the test is skipped without a Go, or with one before 1.26: in CI that is a failure. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/spec.h"

struct go_table {
  char *names[256]; /* by number, as Go's constants say: "GoStart" of EvGoStart */
  char *text;
};

static char *read_go_file(void) {
  char path[1000], *text = NULL;
  size_t len = 0;
  FILE *file = popen("go=$(\"$TC_SOURCE_DIR/tools/find-go.sh\") && \"$go\" env GOROOT", "r");

  if (file == NULL) return NULL;
  if (fgets(path, sizeof path - 100, file) == NULL) path[0] = '\0';
  pclose(file);
  path[strcspn(path, "\n")] = '\0';
  strcat(path, "/src/internal/trace/tracev2/events.go");
  file = fopen(path, "r");
  if (file == NULL) return NULL;
  if (getdelim(&text, &len, EOF, file) < 0) text = NULL;
  fclose(file);
  return text;
}

/* Constants count up line by line, from 0 and, for experiments, from 127. */
static void read_constants(struct go_table *table) {
  int number = -1;

  for (const char *line = table->text; line != NULL && *line != '\0';
       line = strchr(line, '\n'), line += line != NULL) {
    char name[64] = "";
    if (strncmp(line, "\tEvNone EventType = iota", 24) == 0)
      number = 0;
    else if (strncmp(line, "\tMaxEvent EventType = 127 + iota", 32) == 0)
      number = 127;
    else if (line[0] == ')')
      number = -1;
    if (number < 0 || sscanf(line, "\tEv%63[A-Za-z]", name) != 1) {
      if (number == 127 && line[1] == 'M') number++;
      continue;
    }
    table->names[number++] = strdup(name);
  }
}

static bool open_table(struct go_table *table) {
  *table = (struct go_table){ .text = read_go_file() };
  if (table->text == NULL || strstr(table->text, "EvEndOfGeneration") == NULL) return false;
  read_constants(table);
  return true;
}

static void close_table(struct go_table *table) {
  for (int i = 0; i < 256; i++) free(table->names[i]);
  free(table->text);
}

/* Returns the part of Go's `specs` for an event; NULL if there is none. */
static char *spec_text(const struct go_table *table, const char *name) {
  char start[80];
  snprintf(start, sizeof start, "\tEv%s: {", name);
  const char *from = strstr(table->text, start);
  const char *to = from == NULL ? NULL : strstr(from, "\n\t},");
  return to == NULL ? NULL : strndup(from, (size_t)(to - from));
}

/* Writes our arguments in Go's form: "dt", "g", "g_seq". */
static void arguments(const struct tw_spec *spec, char *out, size_t size) {
  int n = snprintf(out, size, "Args: ");
  const char *separator = "[]string{";

  if (tw_spec_has_dt(spec))
    n += snprintf(out + n, size - n, "%s\"dt\"", separator), separator = ", ";
  for (unsigned i = 0; i < spec->nargs; i++, separator = ", ")
    n += snprintf(out + n, size - n, "%s\"%s\"", separator, spec->args[i].label);
  snprintf(out + n, size - n, "},");
}

static void drop_doubled_spaces(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++)
    if (*from != ' ' || from[1] != ' ') *to++ = *from;
  *to = '\0';
}

static void compare(const struct go_table *table, unsigned number) {
  const struct tw_spec *spec = tw_spec((uint8_t)number);
  const char *name = table->names[number];
  char wanted[300];

  if (name == NULL || strcmp(name, "None") == 0) {
    cr_assert_eq(spec->kind, TW_KIND_NONE, "event %u is not Go's", number);
    return;
  }
  cr_assert_not_null(spec->name, "Go's event %u, %s, is not in our table", number, name);
  cr_assert_str_eq(spec->name, name);
  char *text = spec_text(table, name);
  cr_assert_not_null(text, "%s", name);
  drop_doubled_spaces(text);
  arguments(spec, wanted, sizeof wanted);
  if (spec->nargs > 0 || tw_spec_has_dt(spec))
    cr_assert_not_null(strstr(text, wanted), "%s: %s in %s", name, wanted, text);
  else
    cr_assert_null(strstr(text, "Args:"), "%s", name);
  cr_assert_eq(strstr(text, "IsTimedEvent: true") != NULL, tw_spec_has_dt(spec), "%s", name);
  cr_assert_eq(strstr(text, "HasData: true") != NULL, spec->kind == TW_KIND_DATA, "%s", name);
  cr_assert_eq(strstr(text, "IsStack: true") != NULL, spec->kind == TW_KIND_STACK, "%s", name);
  cr_assert_eq(strstr(text, "Experiment: AllocFree") != NULL, spec->kind == TW_KIND_EXPERIMENT,
               "%s", name);
  if (spec->opens != TW_EV_NONE) {
    snprintf(wanted, sizeof wanted, "StartEv: Ev%s,", tw_spec(spec->opens)->name);
    cr_assert_not_null(strstr(text, wanted), "%s", name);
  } else {
    cr_assert_null(strstr(text, "StartEv:"), "%s", name);
  }
  free(text);
}

Test(event_table, is_the_one_of_go) {
  struct go_table table;

  if (!open_table(&table)) {
    close_table(&table);
    if (getenv("CI") != NULL) cr_assert_fail("no Go >= 1.26 here to compare with");
    puts("SKIP event_table: no Go >= 1.26 here"); /* for count.awk: Criterion is silent about it */
    fflush(stdout);
    cr_skip_test("no Go >= 1.26 here");
  }
  for (unsigned number = 0; number < 256; number++) compare(&table, number);
  close_table(&table);
}
