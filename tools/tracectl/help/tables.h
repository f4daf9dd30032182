/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are printed from the program's .def files, each once. */
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
