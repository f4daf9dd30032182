/* SPDX-License-Identifier: Apache-2.0 */
/* A report for people: aligned columns, human numbers, stacks folded to what matters. */
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

/* On stdout, as its terminal has it, 100 columns otherwise; bold unless NO_COLOR is set. */
struct tk_report_style tk_report_style_default(void);

/* source names the file or is NULL. */
void tk_report_print(const Tracecollect__V1__StreamReport *report, const char *source,
                     const struct tk_report_style *style);
/* A line by itself, bold if headings are. */
void tk_heading_print(const char *text, const struct tk_report_style *style);
/* Words, broken at the page's edge: later lines begin at the column where the cursor is now. Ends the line. */
void tk_words_print(const char *words, size_t column, const struct tk_report_style *style);

#endif
