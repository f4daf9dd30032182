/* SPDX-License-Identifier: Apache-2.0 */
/* A report: figures and tables, and the schema that describes them.
 *
 * An analysis declares its schema as data and fills in values. Code that shows, sends, sums or compares reports reads
 * the schema and does not depend on a single analysis.
 *
 * A name ends with its unit: _ns, _bytes, _share (0..1); without one it is a number of things. Distributions
 * are of nanoseconds. Names never change; new ones are added after the old ones.
 *
 * A NUL follows the text of a value. */
#ifndef TO_ANALYSIS_REPORT_H
#define TO_ANALYSIS_REPORT_H

#include "online/event/generation.h"
#include "online/spans/stacks/callstack.h"
#include "online/window/distribution.h"
#include "online/words/words.h"

enum to_value_type {
  TO_VALUE_COUNT, /* number */
  TO_VALUE_NS,    /* number: a length of time */
  TO_VALUE_TIME,  /* number: nanoseconds on the trace clock */
  TO_VALUE_BYTES, /* number */
  TO_VALUE_ID,    /* number: a goroutine, thread, P, task */
  TO_VALUE_SHARE, /* share, 0..1 */
  TO_VALUE_FLAG,  /* number: 0 or 1 */
  TO_VALUE_TEXT,
  TO_VALUE_STACK,
  TO_VALUE_DISTRIBUTION,
};
const char *to_value_type_name(enum to_value_type type); /* "distribution" */

struct to_value {
  bool none; /* unknown, or not defined for this row */
  union {
    int64_t number;
    double share;
    struct to_string text;
    const struct to_callstack *stack; /* NULL: not kept */
    const struct to_distribution *distribution;
  };
};

/* How reports of consecutive stretches of a stream are added up. */
enum to_over_time {
  TO_OVER_SUM,
  TO_OVER_LAST, /* a number of now */
  TO_OVER_GREATEST,
  TO_OVER_LEAST,
  TO_OVER_MEAN, /* weighted by time */
  TO_OVER_UNKNOWN,
};

/* An option, a figure or a column. */
struct to_field {
  const char *name;
  enum to_value_type type;
  const char *about;  /* one sentence for the user */
  const char *metric; /* family in /metrics; a column makes a series a row; NULL: none */
  const char *label;  /* label of the row's series in /metrics, for a text column; NULL: none */
  bool greatest;      /* rows and reports that are added up have the greatest value, not the sum */
  bool of_time; /* a share of the report's time: reports that are added up have the mean by time */
  enum to_over_time over_time; /* of numbers */
};

enum { TO_ORDERS_MAX = 3 };

/* A column to sort rows by: a distribution by its total. */
struct to_row_order {
  uint8_t column; /* from 1; 0: end of the list */
  bool rising;
};

struct to_table_schema {
  const char *name;
  const char *about;       /* as a heading: "By stack" */
  const char *order_about; /* "most blocked time first" */
  unsigned keys;           /* the first columns, which are the row's key */
  unsigned columns;
  const struct to_field *column;
  struct to_row_order order[TO_ORDERS_MAX];
  bool is_list; /* rows are single things: without a row "other" for those above the limit */
  bool is_now;  /* a list of what is so now */
};

struct to_schema {
  unsigned options, figures, tables;
  const struct to_field *option; /* parameters of the report */
  const struct to_field *figure;
  const struct to_table_schema *table;
};

struct to_table {
  size_t rows;                  /* in value */
  size_t rows_total;            /* before the limit, with "other" */
  bool has_other;               /* the last row sums those above the limit; its keys are none */
  const struct to_value *value; /* rows * columns, row by row */
};

static inline const struct to_value *to_table_row(const struct to_table_schema *schema,
                                                  const struct to_table *table, size_t row) {
  return table->value + row * schema->columns;
}

enum to_analysis_kind {
#define TO_ANALYSIS(ID, name, about) TO_ANALYSIS_##ID,
#include "online/analysis/analyses.def"
#undef TO_ANALYSIS
  TO_ANALYSIS_KINDS
};

struct to_report {
  enum to_analysis_kind kind;
  const struct to_schema *schema;
  enum to_program program; /* in whose words people read it: online/words/words.h */
  enum to_window window;
  to_ns from, until;                      /* trace clock */
  uint64_t from_wall_ns, until_wall_ns;   /* 0: unknown */
  uint64_t first_gen, last_gen;           /* 0: none */
  uint64_t events;                        /* between from and until, Sync included */
  uint64_t thinned_events;                /* events of generations whose lengths the report lacks */
  uint64_t epochs;                        /* over the whole stream; 0: no event yet */
  const struct to_value *option, *figure; /* in the schema's order */
  const struct to_table *table;
  size_t notes;
  const char *const *note; /* sentences: what the trace lacks, and how to get it */
};

/* Finds an index by name; -1: not found. */
int to_schema_table(const struct to_schema *schema, const char *name);
int to_fields_find(const struct to_field *field, unsigned n, const char *name);

#endif
