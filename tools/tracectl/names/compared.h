/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of a statement: `kind = 'gc'`, `reason IN (...)`, `state LIKE 'wait%'`.
 *
 * A word that a column never has is no error of SQL: the statement only finds nothing, or everything.
 */
#ifndef TK_NAMES_COMPARED_H
#define TK_NAMES_COMPARED_H

/* Prints a line on stderr for each word, once, that none of the statement's tables has in the column it is compared with. */
void tk_compared_check(const char *sql);

#endif
