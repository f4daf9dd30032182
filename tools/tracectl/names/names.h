/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, their columns and their words, for who asks and for who guessed wrong.
 *
 * A database is asked for its own tables, so that what is printed is what there is.
 */
#ifndef TK_NAMES_NAMES_H
#define TK_NAMES_NAMES_H

#include <sqlite3.h>
#include <stdbool.h>

/* Prints the tables with their columns, or one table (NULL: all) with types and words. Returns enum tk_exit. */
int tk_names_print(sqlite3 *db, const char *table);
/* Prints on stderr what there is instead of the name that SQLite's message says is missing. */
void tk_names_lead_on(sqlite3 *db, const char *sql, const char *message);
/* Does the text begin as a statement that reads: SELECT, WITH, VALUES, EXPLAIN? */
bool tk_names_begins_query(const char *text);

#endif
