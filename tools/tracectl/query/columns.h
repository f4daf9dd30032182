/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as data: their columns, and how each gets its value from where a scan stands. Private to this room. */
#ifndef TK_QUERY_COLUMNS_H
#define TK_QUERY_COLUMNS_H

#include <sqlite3.h>

#include "tools/tracectl/query/source.h"

struct tk_scan;

struct tk_query_column {
  const char *name;
  void (*value)(const struct tk_scan *c, sqlite3_context *out);
};

enum { TK_QUERY_COLUMNS_MAX = 24 };

struct tk_query_table {
  const char *name;
  uint32_t kinds;     /* of a pass: bits of enum to_span_kind; 0: made of what is in memory */
  int key;            /* the column that finds rows at once, or the kind of spans; -1: none */
  bool of_goroutines; /* in memory: a row a life; else a row a stack, or */
  bool has_depths;    /* a row a frame */
  struct tk_query_column column[TK_QUERY_COLUMNS_MAX];
};
extern const struct tk_query_table tk_query_tables[]; /* the last one has no name */

struct tk_scan {
  const struct tk_query_table *table;
  struct tk_source *source;
  struct tk_span at; /* of a pass */
  uint64_t key;      /* of what is in memory: the life or stack, */
  uint64_t depth;    /* and its frame */
};

#endif
