/* SPDX-License-Identifier: Apache-2.0 */
/* The definition tables of this program as tables for people: each .def file once. */
#ifndef TK_HELP_TABLES_H
#define TK_HELP_TABLES_H

#include "tools/tracectl/term/table.h"

struct tk_table_of {
  const char *name, *head, *about;
  void (*fill)(struct tk_table *table);
};

extern const struct tk_table_of tk_tables[];
extern const size_t tk_tables_count;

#endif
