/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers the reasons of one stream's waits: those of online/event/reasons.def, and unknown ones by their text. Each Go version
 * adds some, and a C program has its own (ta_wait_begin).
 *
 * Numbers below TO_REASONS are enum to_reason. The first TO_REASONS_MAX - TO_REASONS unknown reasons get the next numbers until
 * the object is freed; further ones are TO_REASON_OTHER.
 *
 * Memory    from mem: 80 bytes and twice the text for each unknown reason.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_EVENT_REASONS_H
#define TO_EVENT_REASONS_H

#include "base/mem.h"
#include "online/event/view.h"

enum { TO_REASONS_MAX = 64 };

struct to_own_reason;
struct to_reasons {
  struct tb_mem *mem;
  unsigned n;
  struct to_own_reason *own[TO_REASONS_MAX - TO_REASONS];
};

void to_reasons_init(struct to_reasons *r, struct tb_mem *mem);
void to_reasons_fini(struct to_reasons *r); /* accepts a zeroed one */

TB_MUST tb_rc to_reasons_number(struct to_reasons *r, struct to_string words, uint8_t *out);
/* Returns a pointer that is valid as long as r. */
const struct to_reason_info *to_reasons_info(const struct to_reasons *r, unsigned number);

#endif
