/* SPDX-License-Identifier: Apache-2.0 */
/* Syntax and functions of other databases that SQLite does not have, with what to write instead. */
#ifndef TK_NAMES_DIALECT_H
#define TK_NAMES_DIALECT_H

/* Returns a sentence on a statement that SQLite cannot parse, or NULL. */
const char *tk_dialect_syntax(const char *sql);
/* Returns what to write instead of a function that does not exist, or NULL. */
const char *tk_dialect_function(const char *name);

#endif
