/* SPDX-License-Identifier: Apache-2.0 */
/* Entry functions of goroutines, found during a pass: from a goroutine's creation, or its first stack.
 *
 * Memory    the C library's: 24 bytes for each goroutine of the maximum alive at once.
 * Threads   one.
 */
#ifndef TK_QUERY_ENTRIES_H
#define TK_QUERY_ENTRIES_H

#include "tools/tracectl/query/pass.h"

struct tk_entries {
  struct tk_life_entry *of; /* by slot */
  size_t room;
};

/* Call for each span of the pass. TB_NOMEM. */
TB_MUST tb_rc tk_entries_look(struct tk_entries *entries, const struct tk_pass *pass,
                              const struct tk_span *at);
/* Returns the entry of a span's goroutine, or NULL if it is not known yet. Lent until the pass ends. */
const struct to_frame *tk_entries_find(const struct tk_entries *entries, const struct tk_span *at);
void tk_entries_fini(struct tk_entries *entries); /* accepts a zeroed one */

#endif
