/* SPDX-License-Identifier: Apache-2.0 */
/* A set of losses that will be stored in a meta.
 *
 * A loss is identified by its record (a LOSS, or the first or last batch that it counts) and its reason. Adding it again,
 * after a crash or a retry, changes nothing, except that the greater counts are kept: an abandoned generation may have
 * more batches the second time.
 *
 * Memory    from malloc; at most TC__LOSSES_MAX items, further losses are merged into the last.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM: the set is unchanged.
 */
#ifndef TC_SEGMENT_LOSSES_H
#define TC_SEGMENT_LOSSES_H

#include "archive/meta.h"
#include "base/result.h"

enum { TC__LOSSES_MAX = 4096 };

struct tc__loss {
  uint64_t first_gen, last_gen, batches, bytes, seq;
  uint32_t reason;
  uint64_t first_seq; /* LOSS_DAMAGED: the content of records first_seq to seq is unknown */
};

struct tc__losses {
  struct tc__loss *items; /* in order of arrival */
  size_t n, cap;
};

void tc__losses_fini(struct tc__losses *losses); /* accepts a zeroed one */
struct tc__loss *tc__losses_find(const struct tc__losses *losses, uint64_t seq, uint32_t reason);
/* Reserves memory for so many more losses. */
tb_rc tc__losses_reserve(struct tc__losses *losses, size_t more);
tb_rc tc__losses_note(struct tc__losses *losses, const struct tc__loss *loss);
/* Counts a batch of an abandoned generation as lost. */
tb_rc tc__losses_note_batch(struct tc__losses *losses, uint64_t gen, uint64_t seq, size_t len);
/* Moves all losses, or none. */
tb_rc tc__losses_move(struct tc__losses *to, struct tc__losses *from);

/* ---- messages in metas and in the log */
typedef Tracecollect__V1__LossMeta tc__loss_message;

tb_rc tc__losses_note_messages(struct tc__losses *losses, tc__loss_message *const *message,
                               size_t n);
/* Appends messages to an array, which must have room. */
tb_rc tc__losses_to_messages(const struct tc__losses *losses, tc__loss_message **message,
                             size_t *n);
/* Adds losses to those of the meta. After an error the meta may have some of them. */
tb_rc tc__losses_into_meta(const struct tc__losses *losses, tc_meta *meta);

#endif
