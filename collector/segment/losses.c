/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/losses.h"

#include <stdlib.h>

#include "base/grow.h"
#include "proto/frame.pb-c.h"

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

void tc__losses_fini(struct tc__losses *losses) {
  free(losses->items);
  *losses = (struct tc__losses){ 0 };
}

/* Searches from the end: repeated losses are usually recent. */
struct tc__loss *tc__losses_find(const struct tc__losses *losses, uint64_t seq, uint32_t reason) {
  for (size_t i = losses->n; i-- > 0;)
    if (losses->items[i].seq == seq && losses->items[i].reason == reason) return &losses->items[i];
  return NULL;
}

tb_rc tc__losses_reserve(struct tc__losses *losses, size_t more) {
  size_t n = losses->n + more < TC__LOSSES_MAX ? losses->n + more : TC__LOSSES_MAX;

  return tb_grow(&losses->items, &losses->cap, n, sizeof *losses->items);
}

static void raise_to(struct tc__loss *noted, const struct tc__loss *loss) {
  noted->last_gen = larger(noted->last_gen, loss->last_gen);
  noted->batches = larger(noted->batches, loss->batches);
  noted->bytes = larger(noted->bytes, loss->bytes);
}

static void join(struct tc__loss *last, const struct tc__loss *loss) {
  if (loss->first_gen < last->first_gen) last->first_gen = loss->first_gen;
  last->last_gen = larger(last->last_gen, loss->last_gen);
  last->batches += loss->batches;
  last->bytes += loss->bytes;
  last->seq = loss->seq;
}

tb_rc tc__losses_note(struct tc__losses *losses, const struct tc__loss *loss) {
  struct tc__loss *noted = tc__losses_find(losses, loss->seq, loss->reason);

  if (noted != NULL) {
    raise_to(noted, loss);
    return TB_OK;
  }
  if (losses->n == TC__LOSSES_MAX) {
    join(&losses->items[losses->n - 1], loss);
    return TB_OK;
  }
  TB_TRY(tc__losses_reserve(losses, 1));
  losses->items[losses->n++] = *loss;
  return TB_OK;
}

tb_rc tc__losses_note_batch(struct tc__losses *losses, uint64_t gen, uint64_t seq, size_t len) {
  struct tc__loss *last = losses->n > 0 ? &losses->items[losses->n - 1] : NULL;

  if (last != NULL && last->first_gen == gen && last->last_gen == gen &&
      last->reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN) {
    last->batches++;
    last->bytes += len;
    return TB_OK;
  }
  return tc__losses_note(
      losses, &(struct tc__loss){ .first_gen = gen,
                                  .last_gen = gen,
                                  .batches = 1,
                                  .bytes = len,
                                  .seq = seq,
                                  .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN });
}

tb_rc tc__losses_move(struct tc__losses *to, struct tc__losses *from) {
  if (to->n == 0) {
    struct tc__losses empty = *to;
    *to = *from;
    *from = empty;
    return TB_OK;
  }
  TB_TRY(tc__losses_reserve(to, from->n));
  for (size_t i = 0; i < from->n; i++) TB_TRY(tc__losses_note(to, &from->items[i]));
  from->n = 0;
  return TB_OK;
}

/* ---- messages ---- */

tb_rc tc__losses_note_messages(struct tc__losses *losses, tc__loss_message *const *message,
                               size_t n) {
  TB_TRY(tc__losses_reserve(losses, n));
  for (size_t i = 0; i < n; i++)
    TB_TRY(tc__losses_note(losses, &(struct tc__loss){ .first_gen = message[i]->first_gen,
                                                       .last_gen = message[i]->last_gen,
                                                       .batches = message[i]->batches,
                                                       .bytes = message[i]->bytes,
                                                       .seq = message[i]->seq,
                                                       .first_seq = message[i]->first_seq,
                                                       .reason = message[i]->reason }));
  return TB_OK;
}

static void describe(const struct tc__loss *loss, tc__loss_message *out) {
  out->first_gen = loss->first_gen;
  out->last_gen = loss->last_gen;
  out->batches = loss->batches;
  out->bytes = loss->bytes;
  out->reason = loss->reason;
  out->seq = loss->seq;
  out->first_seq = loss->first_seq;
}

tb_rc tc__losses_to_messages(const struct tc__losses *losses, tc__loss_message **message,
                             size_t *n) {
  for (size_t i = 0; i < losses->n; i++) {
    tc__loss_message *loss = malloc(sizeof *loss);
    if (loss == NULL) return TB_NOMEM;
    tracecollect__v1__loss_meta__init(loss);
    describe(&losses->items[i], loss);
    message[(*n)++] = loss;
  }
  return TB_OK;
}

static tb_rc put_into(const struct tc__losses *all, tc_meta *meta) {
  tc__loss_message **message = calloc(all->n + 1, sizeof(tc__loss_message *));
  size_t n = 0;

  if (message == NULL) return TB_NOMEM;
  tb_rc rc = tc__losses_to_messages(all, message, &n);
  if (rc == TB_OK) {
    tc__loss_message **before = meta->losses;
    size_t n_before = meta->n_losses;
    meta->losses = message;
    meta->n_losses = n;
    message = before;
    n = n_before;
  }
  for (size_t i = 0; i < n; i++) tracecollect__v1__loss_meta__free_unpacked(message[i], NULL);
  free(message);
  return rc;
}

tb_rc tc__losses_into_meta(const struct tc__losses *losses, tc_meta *meta) {
  struct tc__losses all = { 0 };
  tb_rc rc = tc__losses_note_messages(&all, meta->losses, meta->n_losses);

  for (size_t i = 0; rc == TB_OK && i < losses->n; i++)
    rc = tc__losses_note(&all, &losses->items[i]);
  if (rc == TB_OK) rc = put_into(&all, meta);
  tc__losses_fini(&all);
  return rc;
}
