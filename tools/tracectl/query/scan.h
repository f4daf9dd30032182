/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as data: their columns, how a column gets its value from a scan's current row, and how a scan moves. Private to this
 * room. A scan reads the query's traces one after the other; a kind of tables knows how to read one trace.
 */
#ifndef TK_QUERY_SCAN_H
#define TK_QUERY_SCAN_H

#include "tools/tracectl/query/events.h"
#include "tools/tracectl/query/tables.h"

struct tk_scan;
struct tk_report_rows;
struct tk_out;

/* Each returns 1: the scan is at a row; 0: the trace has no more rows; -1: error. */
struct tk_table_ops {
  int (*begin)(struct tk_scan *scan, char error[TK_QUERY_ERROR]);
  int (*next)(struct tk_scan *scan, char error[TK_QUERY_ERROR]);
  void (*end)(struct tk_scan *scan); /* after begin, even if it failed; NULL: nothing to free */
};

/* Conditions that a table can use to skip rows. SQLite checks each row again. */
enum tk_push {
  TK_PUSH_NONE,
  TK_PUSH_NAME,      /* name of a kind of spans, or of a report: = */
  TK_PUSH_KEY,       /* a life, or a stack: = */
  TK_PUSH_ID,        /* a goroutine's id: = */
  TK_PUSH_GOROUTINE, /* = */
  TK_PUSH_GEN,       /* = and bounds */
  TK_PUSH_WALL,
};

enum tk_value_kind {
  TK_VALUE_NONE,
  TK_VALUE_NUMBER,
  TK_VALUE_TEXT,
  TK_VALUE_NO_MEMORY, /* memory for the value cannot be allocated */
  TK_VALUE_TOO_LONG,
};

/* Value of a column at the scan's current row. A text is valid until the scan moves or reads another text of this column; with `stays`,
 * as long as the traces. */
struct tk_value {
  enum tk_value_kind kind;
  bool stays; /* valid as long as the traces, and ends with a NUL */
  int64_t number;
  struct to_string text;
};

struct tk_query_column {
  const char *name;
  void (*value)(struct tk_scan *scan, struct tk_value *out); /* out is initially TK_VALUE_NONE */
  enum tk_push push;
  bool is_detail; /* for events: details beyond time and context */
  bool is_hidden; /* made of other columns: not in SELECT *, nor in a table's export */
};

enum { TK_QUERY_COLUMNS_MAX = 24 };

struct tk_query_table {
  const char *name;
  const struct tk_table_ops *ops;
  uint32_t kinds; /* for spans: bits of enum to_span_kind */
  bool is_small;  /* rows are found by key directly */
  struct tk_query_column column[TK_QUERY_COLUMNS_MAX];
};

struct tk_wants {
  char name[64]; /* "": any */
  bool has_key, has_id;
  int64_t key, id;
  struct tk_events_ask events;
};

struct tk_scan {
  const struct tk_query_table *table;
  struct tk_traces *traces;
  size_t next_trace;
  bool in_trace;
  struct tk_trace *trace; /* current trace */
  struct tk_wants wants;
  struct tk_numbers numbers; /* of the current pass */

  struct tk_pass *pass; /* for tables of spans */
  struct tk_span at;
  struct tk_events *events; /* for events and generations */
  struct tk_event event;
  struct tk_out *details; /* an event's; made on first use */
  char *args;
  struct tk_generation_rows *generations;
  struct tk_report_rows *reports;
  uint64_t key, end, depth; /* tables in memory: life or stack, end of the keys, frame */
  size_t in_ids;            /* goroutines sought by id: place in by_id */
};

extern const struct tk_query_table tk__span_tables[], tk__memory_tables[], tk__event_tables[],
    tk__generation_tables[], tk__report_tables[]; /* the last one of each has no name */

/* Returns NULL if there is no such table. */
const struct tk_query_table *tk__table(const char *name);

/* Move over all traces to the first, or next, row of the table. The scan must have table, traces and wants. Return 1: at a row; 0: no
 * more rows; -1: error. */
int tk__scan_begin(struct tk_scan *scan, char error[TK_QUERY_ERROR]);
int tk__scan_next(struct tk_scan *scan, char error[TK_QUERY_ERROR]);
void tk__scan_end(struct tk_scan *scan);

/* Setters of values; they leave out unchanged if there is no value. */
void tk__number(struct tk_value *out, int64_t number);
void tk__text(struct tk_value *out, struct to_string text);
void tk__words(struct tk_value *out, const char *text); /* NULL: none */
void tk__name(struct tk_value *out, const char *name);  /* for a text that stays */
void tk__fault(struct tk_value *out, enum tk_value_kind kind);
void tk__id(struct tk_value *out, int64_t id); /* TO_NONE: none */
void tk__life(const struct tk_scan *scan, struct tk_value *out, uint64_t life);
/* number: among the trace's stacks. */
void tk__stack(const struct tk_scan *scan, struct tk_value *out, uint32_t number);
void tk__stream(struct tk_scan *scan, struct tk_value *out);

#endif
