/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of report by other names: what they are called elsewhere, or a misspelt one. */
#ifndef TK_NAMES_MEANT_H
#define TK_NAMES_MEANT_H

/* Returns the kind of report that was meant, or NULL. */
const char *tk_kind_meant(const char *word);

#endif
