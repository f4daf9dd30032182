/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/experiment.h"

#include <inttypes.h>
#include <string.h>

#include "online/order/rules.h"
#include "wire/varint.h"

static bool handles(const struct to_handler *handler, const char *experiment, const char *event) {
  if (strcmp(handler->experiment, experiment) != 0) return false;
  return event == NULL ? handler->event == NULL
                       : handler->event != NULL && strcmp(handler->event, event) == 0;
}

/* Prefers the event's own handler to its experiment's. */
static const struct to_handler *find_handler(const struct to_order *order,
                                             const struct to_generation *gen, uint8_t type) {
  const struct tw_own_event *own = tw_own_event(gen->experiments, type);
  const struct to_handler *end = order->handlers + order->n_handlers;

  if (own == NULL) return NULL;
  const char *experiment = gen->experiments->experiment[own->experiment].name;
  for (const struct to_handler *h = order->handlers; h < end; h++)
    if (handles(h, experiment, own->spec.name)) return h;
  for (const struct to_handler *h = order->handlers; h < end; h++)
    if (handles(h, experiment, NULL)) return h;
  return NULL;
}

void to__experiment_begin(struct to_order *order, const struct to_generation *gen) {
  for (unsigned type = TW_OWN_EVENT_FIRST; type <= UINT8_MAX; type++) {
    const struct tw_own_event *own = tw_own_event(gen->experiments, (uint8_t)type);
    order->arg_counts[type] = own == NULL ? TO_NO_TIMED_EVENT : own->spec.nargs;
    order->longer_end[type] = own == NULL ? 0 : (uint8_t)(8 + 1 - own->spec.nargs);
  }
  if (gen->experiments == NULL) return;
  for (unsigned i = 0; i < TW_SEQUENCES_MAX; i++) tb_map_clear(&order->sequences[i]);
  for (unsigned i = 0; i < TW_OWN_EVENTS_MAX; i++)
    order->handler[i] = find_handler(order, gen, (uint8_t)(TW_OWN_EVENT_FIRST + i));
}

static const struct tw_own_event *event_of(const struct to_order *order,
                                           const struct to_thread *t) {
  return tw_own_event(order->gen->experiments, t->type);
}

/* Reads the arguments, which the cursor has checked. */
static const unsigned char *read_args(const struct to_thread *t, unsigned n,
                                      uint64_t args[TW_TIMED_ARGS_MAX]) {
  const unsigned char *pos = t->args;

  for (unsigned i = 0; i < TW_TIMED_ARGS_MAX; i++) {
    args[i] = 0;
    if (i < n) pos += tw_varint_read(pos, pos + TW_VARINT_BYTES_MAX, &args[i]);
  }
  return pos;
}

/* Returns false if the event has no sequence number. */
static bool number_of(const struct tw_own_event *own, const uint64_t *args, struct to_want *out) {
  if (own->seq_arg < 0) return false;
  *out = (struct to_want){ own->of_arg < 0 ? 0 : args[own->of_arg], args[own->seq_arg],
                           (uint8_t)(TO_WANT_SEQUENCE + own->sequence) };
  return true;
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

static uint64_t next_number(const struct to_order *order, const struct to_want *number) {
  const uint64_t *last =
      tb_map_find(&order->sequences[number->kind - TO_WANT_SEQUENCE], number->id);

  return (last == NULL ? 0 : *last) + 1;
}

static tb_rc check_number(struct to_order *order, const struct to_thread *t,
                          const struct tw_own_event *own, const struct to_want *number) {
  uint64_t next = next_number(order, number);

  if (number->seq < next)
    return REFUSE(order, t, "%s is number %" PRIu64 " of %s %" PRIu64 ", which is at %" PRIu64,
                  own->spec.name, number->seq,
                  order->gen->experiments->sequence[own->sequence].name, number->id, next - 1);
  return number->seq > next ? TB_AGAIN : TB_OK;
}

static tb_rc take_number(struct to_order *order, const struct to_want *number) {
  uint64_t *last;

  TB_TRY(tb_map_put(&order->sequences[number->kind - TO_WANT_SEQUENCE], number->id, &last, NULL));
  *last = number->seq;
  return TB_OK;
}

static tb_rc ask_handler(struct to_order *order, const struct to_thread *t,
                         const struct to_event *ev) {
  const struct to_handler *handler = order->handler[ev->type - TW_OWN_EVENT_FIRST];
  const struct to_handled at = { order->gen, ev, order, t };

  if (handler == NULL) return TB_OK;
  tb_rc rc = handler->fits(handler->self, &at);
  if (rc == TB_OK || rc == TB_AGAIN) return rc;
  to__place(order, t);
  return tb_fail(order->diag, rc == TB_END ? TB_BROKEN : rc, "%s does not fit its handler's rule",
                 to_generation_spec(order->gen, ev->type)->name);
}

/* All checks come before the first write, so an event that has to wait changes nothing. */
static tb_rc check_event(struct to_order *order, const struct to_thread *t,
                         const struct tw_own_event *own, const struct to_event *ev) {
  struct to_want number = { 0 };
  bool numbered = number_of(own, ev->args, &number);

  TB_TRY(check_context(order, t, own));
  TB_TRY(check_ids(order, t, own, ev->args));
  if (numbered) TB_TRY(check_number(order, t, own, &number));
  TB_TRY(ask_handler(order, t, ev));
  return numbered ? take_number(order, &number) : TB_OK;
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
  step.rc = check_event(order, t, own, out);
  return step;
}

bool to__experiment_want(const struct to_order *order, const struct to_thread *t,
                         struct to_want *out) {
  const struct tw_own_event *own = event_of(order, t);
  uint64_t args[TW_TIMED_ARGS_MAX];

  if (own == NULL || own->seq_arg < 0) return false;
  read_args(t, own->spec.nargs, args);
  return number_of(own, args, out);
}

bool to__experiment_waits(const struct to_order *order, const struct to_thread *t,
                          struct to_want *out) {
  if (event_of(order, t) == NULL) return false;
  if (to__experiment_want(order, t, out) && out->seq > next_number(order, out)) return true;
  *out = (struct to_want){ .kind = TO_WANT_HANDLER };
  return true;
}

/* --- handlers ---------------------------------------------------------------------------------- */

enum to_go_state to_handled_goroutine(const struct to_handled *at, int64_t id) {
  static const uint8_t states[TW_GO_STATUSES] = {
    [TW_GO_RUNNABLE] = TO_GO_RUNNABLE,
    [TW_GO_RUNNING] = TO_GO_RUNNING,
    [TW_GO_SYSCALL] = TO_GO_SYSCALL,
    [TW_GO_WAITING] = TO_GO_WAITING,
  };
  const struct to_g *g = to__g_find(at->order, id);

  return g == NULL ? TO_GO_UNDETERMINED : (enum to_go_state)states[g->status];
}

enum to_proc_state to_handled_proc(const struct to_handled *at, int64_t id) {
  const struct to_p *p = to__p_find(at->order, id);

  if (p == NULL || !p->exists) return TO_PROC_UNDETERMINED;
  return p->status == TW_PROC_IDLE ? TO_PROC_IDLE : TO_PROC_RUNNING;
}

tb_rc to_handled_refuse(const struct to_handled *at, const char *reason) {
  return REFUSE(at->order, at->thread, "%s: %s", to_generation_spec(at->gen, at->ev->type)->name,
                reason);
}
