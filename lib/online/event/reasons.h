/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons of one stream's waits: those of online/event/reasons.def, and others by their words. Go adds some with each version, and a
 * C program names its own (ta_wait_begin).
 *
 * Numbers below TO_REASONS are enum to_reason. The first TO_REASONS_MAX - TO_REASONS others get the next ones, for as long as the
 * object lives; further ones are TO_REASON_OTHER.
 *
 * Memory    from mem: 80 bytes and twice its words for each other one.
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
/* Lent as long as the object. */
const struct to_reason_info *to_reasons_info(const struct to_reasons *r, unsigned number);

#endif
