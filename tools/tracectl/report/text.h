/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a report for people: aligned columns, readable numbers, stacks shortened to the program's own
 * frames. */
#ifndef TK_REPORT_TEXT_H
#define TK_REPORT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/report.pb-c.h"

struct tk_report_style {
  FILE *out;
  unsigned columns; /* of the page; at least 60 are used */
  unsigned rows;    /* of each list; 0: all */
  unsigned frames;  /* lines for a stack; 0: all, unfolded */
  bool bold;        /* headings in bold, for a terminal */
};

/* Returns the style for stdout: the terminal's width or 100 columns; bold unless NO_COLOR is set. */
struct tk_report_style tk_report_style_default(void);

/* source: the file's name, or NULL. */
void tk_report_print(const Tracecollect__V1__StreamReport *report, const char *source,
                     const struct tk_report_style *style);
/* Prints a line, bold if headings are. */
void tk_heading_print(const char *text, const struct tk_report_style *style);
/* Prints words with line breaks at the page's edge; lines begin at the cursor's column. Ends the line. */
void tk_words_print(const char *words, size_t column, const struct tk_report_style *style);

#endif
