/* SPDX-License-Identifier: Apache-2.0 */
/* One screen of `tracectl top` as lines of text: the part of a model that fits.
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TK_TOP_PAGE_H
#define TK_TOP_PAGE_H

#include "tools/tracectl/top/model.h"

enum {
  TK_PAGE_ROWS_MAX = 200,
  TK_PAGE_LINE_BYTES = 640,
  TK_PAGE_COLUMNS_MIN = 40,
  TK_PAGE_ROWS_MIN = 10,
};

enum tk_look {
  TK_LOOK_PLAIN,
  TK_LOOK_TITLE,
  TK_LOOK_HEADING,
  TK_LOOK_WARN,
  TK_LOOK_BAD,
  TK_LOOK_DIM
};

struct tk_page_line {
  enum tk_look look;
  char text[TK_PAGE_LINE_BYTES]; /* UTF-8, or any bytes of the traced program; may be too long */
};

struct tk_page {
  unsigned rows, columns; /* set by the caller */
  unsigned scroll;        /* streams above the first one shown; limited to the existing ones */
  unsigned n;             /* lines, at most rows */
  struct tk_page_line line[TK_PAGE_ROWS_MAX];
};

struct tk_page_about {
  const char *window;      /* "10s" */
  const char *trouble;     /* why answers are not fresh, for people; NULL: they are */
  const char *alert_error; /* why alerts are not received; NULL: they are */
  bool paused, help;
};

void tk_page_fill(struct tk_page *page, const struct tk_top_model *model,
                  const struct tk_page_about *about);

#endif
