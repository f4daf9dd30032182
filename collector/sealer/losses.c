/* SPDX-License-Identifier: Apache-2.0 */
/* A file's losses, on their way into a meta. */
#include <stdlib.h>

#include "base/grow.h"
#include "collector/sealer/private.h"
#include "proto/frame.pb-c.h"

void tc__loss_join(struct tc__loss *sum, const struct tc__loss *loss) {
  if (loss->first_gen < sum->first_gen) sum->first_gen = loss->first_gen;
  if (loss->last_gen > sum->last_gen) sum->last_gen = loss->last_gen;
  sum->batches += loss->batches;
  sum->bytes += loss->bytes;
  sum->seq = loss->seq;
}

tb_rc tc__losses_reserve(struct tc__losses *losses, size_t more) {
  size_t n = losses->n + more < TC__LOSSES_MAX ? losses->n + more : TC__LOSSES_MAX;

  return tb_grow(&losses->items, &losses->cap, n, sizeof *losses->items);
}

tb_rc tc__losses_add(struct tc__losses *losses, const struct tc__loss *loss) {
  if (losses->n == TC__LOSSES_MAX) {
    tc__loss_join(&losses->items[losses->n - 1], loss);
    return TB_OK;
  }
  TB_TRY(tc__losses_reserve(losses, 1));
  losses->items[losses->n++] = *loss;
  return TB_OK;
}

tb_rc tc__losses_move(struct tc__losses *to, struct tc__losses *from) {
  if (to->n == 0) {
    struct tc__losses empty = *to;
    *to = *from;
    *from = empty;
    return TB_OK;
  }
  TB_TRY(tc__losses_reserve(to, from->n)); /* all or none */
  for (size_t i = 0; i < from->n; i++) TB_TRY(tc__losses_add(to, &from->items[i]));
  from->n = 0;
  return TB_OK;
}

tb_rc tc__losses_add_late(struct tc__losses *losses, const struct tc__item *item) {
  struct tc__loss *last = losses->n > 0 ? &losses->items[losses->n - 1] : NULL;

  if (last != NULL && last->first_gen == item->gen && last->last_gen == item->gen &&
      last->reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN) {
    last->batches++;
    last->bytes += item->len;
    return TB_OK;
  }
  struct tc__loss loss = { .first_gen = item->gen,
                           .last_gen = item->gen,
                           .batches = 1,
                           .bytes = item->len,
                           .seq = item->seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };
  return tc__losses_add(losses, &loss);
}

struct tc__loss tc__loss_of(const Tracecollect__V1__LossMeta *message) {
  return (struct tc__loss){ .first_gen = message->first_gen,
                            .last_gen = message->last_gen,
                            .batches = message->batches,
                            .bytes = message->bytes,
                            .seq = message->seq,
                            .first_seq = message->first_seq,
                            .reason = message->reason };
}

bool tc__loss_is(const Tracecollect__V1__LossMeta *reported, const struct tc__loss *loss) {
  return reported->seq == loss->seq && reported->reason == loss->reason;
}

tb_rc tc__losses_take_note(struct tc__losses *losses, const tc_meta *note) {
  for (size_t i = 0; i < note->n_losses; i++) {
    struct tc__loss loss = tc__loss_of(note->losses[i]);
    bool known = false; /* sealing may be tried again */
    for (size_t k = 0; k < losses->n; k++) known |= tc__loss_is(note->losses[i], &losses->items[k]);
    if (!known) TB_TRY(tc__losses_add(losses, &loss));
  }
  return TB_OK;
}
