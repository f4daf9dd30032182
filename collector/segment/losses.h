/* SPDX-License-Identifier: Apache-2.0 */
/* A set of losses, on their way into a meta.
 *
 * A loss is known by the record that says so (a LOSS, or the first or last batch that it counts) and by its reason: noting it
 * again, as a crash between two steps or a step that is tried again does, changes nothing. A generation that was given up
 * may have more batches the second time: the greater count stands.
 *
 * Memory    from malloc; at most TC__LOSSES_MAX of them, an agent that has more to report sends the last ones as one.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM: the set is as it was.
 */
#ifndef TC_SEGMENT_LOSSES_H
#define TC_SEGMENT_LOSSES_H

#include "archive/meta.h"
#include "base/result.h"

enum { TC__LOSSES_MAX = 4096 };

struct tc__loss {
  uint64_t first_gen, last_gen, batches, bytes, seq;
  uint32_t reason;
  uint64_t
      first_seq; /* LOSS_DAMAGED: the content of the records from here up to seq is not known */
};

struct tc__losses {
  struct tc__loss *items; /* in the order in which they came */
  size_t n, cap;
};

void tc__losses_fini(struct tc__losses *losses); /* accepts a zeroed one */
/* NULL: there is none. */
struct tc__loss *tc__losses_find(const struct tc__losses *losses, uint64_t seq, uint32_t reason);
/* So many more can be noted without asking for memory. */
tb_rc tc__losses_reserve(struct tc__losses *losses, size_t more);
tb_rc tc__losses_note(struct tc__losses *losses, const struct tc__loss *loss);
/* One more batch of a generation that was given up: it is not kept, but counted. */
tb_rc tc__losses_note_batch(struct tc__losses *losses, uint64_t gen, uint64_t seq, size_t len);
/* All of them, or none. */
tb_rc tc__losses_move(struct tc__losses *to, struct tc__losses *from);

/* Messages: of metas and of the log. */
typedef Tracecollect__V1__LossMeta tc__loss_message;

tb_rc tc__losses_note_messages(struct tc__losses *losses, tc__loss_message *const *message,
                               size_t n);
/* Adds them to an array that has room. */
tb_rc tc__losses_to_messages(const struct tc__losses *losses, tc__loss_message **message,
                             size_t *n);
/* The meta's own and these are its losses from here on. An error: it may have some of them. */
tb_rc tc__losses_into_meta(const struct tc__losses *losses, tc_meta *meta);

#endif
