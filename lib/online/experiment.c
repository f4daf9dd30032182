/* SPDX-License-Identifier: Apache-2.0 */
#include "online/experiment.h"

#include <inttypes.h>

#include "online/rules.h"
#include "wire/varint.h"

void to__experiment_begin(struct to_order *order, const struct to_generation *gen) {
  for (unsigned type = TW_OWN_EVENT_FIRST; type <= UINT8_MAX; type++) {
    const struct tw_own_event *own = tw_own_event(gen->experiments, (uint8_t)type);
    order->arg_counts[type] = own == NULL ? TO_NO_TIMED_EVENT : own->spec.nargs;
    order->longer_end[type] = own == NULL ? 0 : (uint8_t)(8 + 1 - own->spec.nargs);
  }
  if (gen->experiments == NULL) return;
  for (unsigned i = 0; i < TW_SEQUENCES_MAX; i++) tb_map_clear(&order->sequences[i]);
}

static const struct tw_own_event *event_of(const struct to_order *order,
                                           const struct to_thread *t) {
  return tw_own_event(order->gen->experiments, t->type);
}

/* They are whole: the cursor has seen to that. */
static const unsigned char *read_args(const struct to_thread *t, unsigned n,
                                      uint64_t args[TW_TIMED_ARGS_MAX]) {
  const unsigned char *pos = t->args;

  for (unsigned i = 0; i < TW_TIMED_ARGS_MAX; i++) {
    args[i] = 0;
    if (i < n) pos += tw_varint_read(pos, pos + TW_VARINT_BYTES_MAX, &args[i]);
  }
  return pos;
}

static uint64_t whose(const struct tw_own_event *own, const uint64_t *args) {
  return own->of_arg < 0 ? 0 : args[own->of_arg];
}

#define REFUSE(order, t, ...)                                                                      \
  (to__place((order), (t)), tb_fail((order)->diag, TB_BROKEN, __VA_ARGS__))

static tb_rc check_context(struct to_order *order, const struct to_thread *t,
                           const struct tw_own_event *own) {
  static const uint8_t needs[TW_CONTEXTS] = { [TW_CTX_MPG] = TO_HAS_M | TO_HAS_P | TO_HAS_G,
                                              [TW_CTX_MP] = TO_HAS_M | TO_HAS_P,
                                              [TW_CTX_M] = TO_HAS_M };
  unsigned missing = needs[own->context] & ~(unsigned)t->has;

  if (missing == 0) return TB_OK;
  return REFUSE(order, t, "%s needs a %s", own->spec.name,
                missing & TO_HAS_M   ? "thread"
                : missing & TO_HAS_P ? "proc"
                                     : "goroutine");
}

static tb_rc check_ids(struct to_order *order, const struct to_thread *t,
                       const struct tw_own_event *own, const uint64_t *args) {
  const struct to_generation *gen = order->gen;

  for (unsigned i = 0; i < own->spec.nargs; i++) {
    bool stack = own->spec.args[i].type == TW_ARG_STACK;
    const struct to_ids *ids = stack ? &gen->stack_ids : &gen->string_ids;
    if (!stack && own->spec.args[i].type != TW_ARG_STRING) continue;
    if (args[i] != 0 && !to__ids_has(ids, args[i]))
      return REFUSE(order, t, "%s names %s %" PRIu64 ", which the generation does not have",
                    own->spec.name, stack ? "stack" : "string", args[i]);
  }
  return TB_OK;
}

static tb_rc take_number(struct to_order *order, const struct to_thread *t,
                         const struct tw_own_event *own, const uint64_t *args) {
  struct tb_map *sequence = &order->sequences[own->sequence];
  uint64_t of = whose(own, args), number = args[own->seq_arg];
  uint64_t *last = tb_map_find(sequence, of);
  uint64_t expected = (last == NULL ? 0 : *last) + 1;

  if (number < expected)
    return REFUSE(order, t, "%s is number %" PRIu64 " of %s %" PRIu64 ", which is at %" PRIu64,
                  own->spec.name, number, order->gen->experiments->sequence[own->sequence].name, of,
                  expected - 1);
  if (number > expected) return TB_AGAIN;
  if (last == NULL) TB_TRY(tb_map_put(sequence, of, &last, NULL));
  *last = number;
  return TB_OK;
}

static tb_rc check(struct to_order *order, const struct to_thread *t,
                   const struct tw_own_event *own, const uint64_t *args) {
  TB_TRY(check_context(order, t, own));
  TB_TRY(check_ids(order, t, own, args));
  return own->seq_arg < 0 ? TB_OK : take_number(order, t, own, args);
}

struct to_own_step to__experiment_step(struct to_order *order, const struct to_thread *t,
                                       to_ns time, to_ns last, struct to_event *out) {
  const struct tw_own_event *own = event_of(order, t);
  struct to_own_step step = { .pos = t->args };

  if (own == NULL) {
    step.rc = REFUSE(order, t, "event type %u has no place here", t->type);
    return step;
  }
  *out = (struct to_event){ .time = time > last ? time : (to_ns)((uint64_t)last + 1),
                            .m = t->id,
                            .p = t->p->id,
                            .g = t->g->id,
                            .type = t->type };
  step.pos = read_args(t, own->spec.nargs, out->args);
  step.rc = check(order, t, own, out->args);
  return step;
}

bool to__experiment_want(const struct to_order *order, const struct to_thread *t,
                         struct to_want *out) {
  const struct tw_own_event *own = event_of(order, t);
  uint64_t args[TW_TIMED_ARGS_MAX];

  if (own == NULL || own->seq_arg < 0) return false;
  read_args(t, own->spec.nargs, args);
  *out = (struct to_want){ whose(own, args), args[own->seq_arg],
                           (uint8_t)(TO_WANT_SEQUENCE + own->sequence) };
  return true;
}
