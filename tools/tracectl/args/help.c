/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows of options. */
#include <stdio.h>
#include <string.h>

#include "tools/tracectl/args/options.h"

enum { PAGE_COLUMNS = 100, TERM_COLUMNS = 24, TERM_BYTES = 120 };

void tk_help_words(const char *text, size_t column) {
  for (size_t at = column; *text != '\0';) {
    size_t n = strcspn(text, " \n");
    if (at > column && at + 1 + n > PAGE_COLUMNS) at = (size_t)printf("\n%*s", (int)column, "") - 1;
    if (at > column) at += (size_t)printf(" ");
    at += (size_t)printf("%.*s", (int)n, text);
    text += n;
    if (*text == '\n' && text[1] != '\0') at = (size_t)printf("\n%*s", (int)column, "") - 1;
    text += *text != '\0';
  }
  putchar('\n');
}

static void print_row(const struct tk_option *row) {
  char term[TERM_BYTES], letter[] = { '-', row->letter, '\0' };
  bool both = row->letter != 0 && row->name != NULL;

  snprintf(term, sizeof term, "%s%s%s%s%s%s", row->letter != 0 ? letter : "", both ? ", " : "",
           row->name != NULL ? "--" : "", row->name != NULL ? row->name : "",
           row->arg != NULL && (row->letter != 0 || row->name != NULL) ? " " : "",
           row->arg != NULL ? row->arg : "");
  if (*term == '\0') {
    tk_help_words(row->about, 0);
    return;
  }
  printf("  %-*s", TERM_COLUMNS - 2, term);
  if (strlen(term) > TERM_COLUMNS - 4) printf("\n%*s", TERM_COLUMNS, "");
  tk_help_words(row->about, TERM_COLUMNS);
}

void tk_options_print(const struct tk_option *options, const struct tk_option *brief,
                      const char *instead) {
  for (const struct tk_option *row = options; !tk_option_is_end(row); row++) {
    if (row->group == NULL)
      print_row(row);
    else if (row->group == brief)
      puts(instead);
    else
      tk_options_print(row->group, brief, instead);
  }
}
