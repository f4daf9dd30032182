/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of the loop takes one event: read its arguments, ask its rule, look at the thread's next
 * event, write what the step staged. In the long run most steps stay on the thread at the root of the
 * frontier: as long as its next event is not later than `second` nothing moves.
 *
 * The steps and their errors come in the order of Go's reader: the rule, then the thread's next event (a
 * fault there swallows this one), then the heap, then delivery. */
#include "online/order.h"

#include "online/cursor.h"
#include "online/frontier.h"
#include "online/rules_gc.h"
#include "online/rules_go.h"
#include "online/rules_proc.h"
#include "online/rules_user.h"

enum { FUEL_PER_EVENT = 64, FUEL_DEFAULT = 1000000 };

/* events.def once more: number of arguments, and which of them are stack and string ids. */
#define IS_STACK_VALUE              0
#define IS_STACK_M                  0
#define IS_STACK_P                  0
#define IS_STACK_G                  0
#define IS_STACK_SEQ                0
#define IS_STACK_TASK               0
#define IS_STACK_PSTATUS            0
#define IS_STACK_GSTATUS            0
#define IS_STACK_STRING             0
#define IS_STACK_STACK              1
#define IS_STRING_VALUE             0
#define IS_STRING_M                 0
#define IS_STRING_P                 0
#define IS_STRING_G                 0
#define IS_STRING_SEQ               0
#define IS_STRING_TASK              0
#define IS_STRING_PSTATUS           0
#define IS_STRING_GSTATUS           0
#define IS_STRING_STACK             0
#define IS_STRING_STRING            1
#define BITS(none, a, b, c, d, ...) ((a) | (b) << 1 | (c) << 2 | (d) << 3)

#define A(type, label) 1
#define TW_EV(num, ID, name, since, kind, opens, ...)                                              \
  NARGS_##ID = sizeof((char[]){ 0, __VA_ARGS__ }) - 1,
enum {
#include "wire/events.def"
};
#undef TW_EV
#undef A
#define A(type, label) IS_STACK_##type
#define TW_EV(num, ID, name, since, kind, opens, ...)                                              \
  STACKS_##ID = BITS(0 __VA_OPT__(, ) __VA_ARGS__, 0, 0, 0, 0, 0),
enum {
#include "wire/events.def"
};
#undef TW_EV
#undef A
#define A(type, label) IS_STRING_##type
#define TW_EV(num, ID, name, since, kind, opens, ...)                                              \
  STRINGS_##ID = BITS(0 __VA_OPT__(, ) __VA_ARGS__, 0, 0, 0, 0, 0),
enum {
#include "wire/events.def"
};
#undef TW_EV
#undef A

void to__place(struct to_order *order, const struct to_thread *t) {
  tb_diag_place(order->diag, order->gen_number, t->id, to__cursor_offset(order, t));
}

/* Rare, so a walk over all threads. */
tb_rc to__proc_holder(struct to_order *o, const struct to_thread *t, const struct to_p *p,
                      struct to_thread **out) {
  uint64_t id, value;

  for (size_t i = 0; tb_map_next(&o->threads, &i, &id, &value);) {
    struct to_thread *holder = (struct to_thread *)(uintptr_t)value;
    if (!holder->exists || holder->p != p) continue;
    *out = holder;
    return TB_OK;
  }
  to__place(o, t);
  return tb_fail(o->diag, TB_BROKEN, "proc %" PRId64 " is about to be stolen, but no thread has it",
                 p->id);
}

tb_rc to__order_new(struct tb_mem *mem, uint64_t fuel_tries, struct to_event_sink sink,
                    struct tb_diag *diag, struct to_order **out) {
  void *block;

  TB_TRY(tb_mem_take(mem, sizeof(struct to_order), &block));
  struct to_order *order = block;
  to__state_init(order, mem, (uintptr_t)order); /* where it lies is the secret of its hash tables */
  order->sink = sink;
  order->diag = diag;
  order->fuel_tries = fuel_tries == 0 ? FUEL_DEFAULT : fuel_tries;
  for (unsigned type = 0; type < 256; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    order->arg_counts[type] = tw_spec_has_dt(spec) ? spec->nargs : TO_NO_TIMED_EVENT;
  }
  *out = order;
  return TB_OK;
}

void to__order_free(struct to_order *order) {
  if (order == NULL) return;
  to__state_fini(order);
  tb_mem_give(order->mem, order, sizeof *order);
}

void to__order_clear(struct to_order *order) {
  to__state_clear(order);
  order->gen = NULL;
  order->sample = order->samples_end = NULL;
  order->last_time = 0;
  order->out_len = 0;
}

uint64_t to__order_events(const struct to_order *order) {
  return order->events;
}

static tb_rc deliver(struct to_order *order) {
  unsigned n = order->out_len;

  if (n == 0) return TB_OK;
  order->out_len = 0;
  order->events += n;
  TB_TRY(order->sink.events(order->sink.self, order->gen, order->out, n));
  return order->gen == NULL ? TB_OK : order->gen->frames_rc;
}

/* The next n events at the end of out are good: gives them their final times. */
TO_HOT void commit(struct to_order *order, unsigned n) {
  struct to_event *ev = &order->out[order->out_len];
  to_ns last = order->last_time;

  order->out_len += n;
  for (; n > 0; n--, ev++) {
    if (TB_UNLIKELY(ev->time <= last)) ev->time = (to_ns)((uint64_t)last + 1);
    last = ev->time;
  }
  order->last_time = last;
}

static void put_event(struct to_order *order, const struct to_event *ev) {
  order->out[order->out_len] = *ev;
  commit(order, 1);
}

static void put_sync(struct to_order *order, to_ns time) {
  put_event(order, &(struct to_event){ .time = time,
                                       .m = TO_NONE,
                                       .p = TO_NONE,
                                       .g = TO_NONE,
                                       .args = { ++order->syncs },
                                       .type = TW_EV_SYNC });
}

tb_rc to__order_last_sync(struct to_order *order) {
  order->gen = NULL;
  put_sync(order, order->last_time);
  return deliver(order);
}

static void set_clock(struct to_order *order, double ns_per_tick) {
  uint64_t whole = ns_per_tick >= 1 && ns_per_tick < 1e9 ? (uint64_t)ns_per_tick : 0;

  order->ns_per_tick = ns_per_tick;
  order->ticks_whole = (double)whole == ns_per_tick ? whole : 0;
  /* Products below 2^53 are exact in either arithmetic. */
  order->ticks_exact_end = order->ticks_whole == 0 ? 0 : (UINT64_C(1) << 53) / order->ticks_whole;
}

static tb_rc open_lane(struct to_order *order, const struct to_lane *lane) {
  struct to_thread *t = &order->nobody;

  if (lane->thread != TO_NONE) TB_TRY(to__thread_claim(order, lane->thread, &t));
  tb_rc rc = to__cursor_begin(order, t, lane);
  if (rc == TB_OK) to__frontier_add(order, t);
  return rc == TB_END ? TB_OK : rc;
}

tb_rc to__order_begin(struct to_order *order, struct to_generation *gen) {
  const struct to_lane *lanes = gen->lanes.items;

  order->gen = gen;
  order->gen_number = gen->number;
  order->sample = gen->sample_times.items;
  order->samples_end = order->sample + gen->sample_times.count;
  set_clock(order, gen->ns_per_tick);
  if (gen->lanes.count > order->frontier_cap) {
    void *frontier = order->frontier;
    TB_TRY(tb_mem_resize(order->mem, &frontier, order->frontier_cap * sizeof *order->frontier,
                         gen->lanes.count * sizeof *order->frontier));
    order->frontier = frontier;
    order->frontier_cap = gen->lanes.count;
  }
  for (size_t i = 0; i < gen->lanes.count; i++) TB_TRY(open_lane(order, &lanes[i]));
  if (order->first_gen == 0 && order->frontier_len > 0) order->first_gen = gen->number;
  put_sync(order, ticks_to_ns(order, gen->time_min));
  return TB_OK;
}

static tb_rc bad_id(struct to_order *order, const struct to_thread *t, uint8_t type,
                    const char *what, uint64_t id) {
  to__place(order, t);
  return tb_fail(order->diag, TB_BROKEN,
                 "%s names %s %" PRIu64 ", which the generation does not have", tw_spec(type)->name,
                 what, id);
}

/* Go's reader looks at ids last; as a bad one and a bad next event both swallow this event, it may as
 * well be done while the arguments are at hand. */
TO_HOT tb_rc check_id(struct to_order *order, const struct to_step *s, unsigned i, bool stack,
                      bool string) {
  if (stack && TB_UNLIKELY(!to__ids_has(&order->gen->stack_ids, s->arg[i])))
    return bad_id(order, s->t, s->type, "stack", s->arg[i]);
  if (string && TB_UNLIKELY(!to__ids_has(&order->gen->string_ids, s->arg[i])))
    return bad_id(order, s->t, s->type, "string", s->arg[i]);
  return TB_OK;
}

TO_HOT void move_on(struct to_order *order, size_t place, struct to_thread *t, bool ended) {
  if (TB_UNLIKELY(ended)) {
    to__frontier_remove(order, place);
  } else if (TB_LIKELY(place == 0)) {
    if (t->time <= order->second)
      order->frontier[0].time = t->time;
    else
      frontier_root_later(order, t->time);
  } else {
    to__frontier_update(order, place);
  }
}

#define READ_ARG(i, ID)                                                                            \
  if (NARGS_##ID > (i))                                                                            \
    pos = read_whole(pos, &s.arg[i]);                                                              \
  else                                                                                             \
    s.arg[i] = 0
#define CHECK_ARG(i, ID)                                                                           \
  TB_TRY(check_id(order, &s, (i), STACKS_##ID >> (i)&1, STRINGS_##ID >> (i)&1))

/* One event of the thread at this place. TB_AGAIN: it comes too early, nothing has changed. */
TO_HOT tb_rc advance(struct to_order *order, size_t place) {
  struct to_thread *t = to__frontier_at(order, place);
  const unsigned char *pos = t->args;
  struct to_step s;

  s.t = t;
  s.time = t->time;
  s.type = t->type;
  s.out = &order->out[order->out_len];
  s.staged = 0;
  t->exists = true;
  switch (t->type) {
#define CTX(m, p, g)  m, p, g
#define RULE(ID, ...) RULE_(ID, __VA_ARGS__)
#define RULE_(ID, am, ap, ag, ready, tm, tp, tg, apply)                                            \
  case TW_EV_##ID:                                                                                 \
    s.type = TW_EV_##ID;                                                                           \
    READ_ARG(0, ID);                                                                               \
    READ_ARG(1, ID);                                                                               \
    READ_ARG(2, ID);                                                                               \
    READ_ARG(3, ID);                                                                               \
    TB_TRY(check_need(order, &s, am, ap, ag));                                                     \
    TB_TRY(ready(order, &s));                                                                      \
    TB_TRY(check_need(order, &s, tm, tp, tg));                                                     \
    TB_TRY(apply(order, &s));                                                                      \
    CHECK_ARG(0, ID);                                                                              \
    CHECK_ARG(1, ID);                                                                              \
    CHECK_ARG(2, ID);                                                                              \
    CHECK_ARG(3, ID);                                                                              \
    break;
#include "online/rules.def"
#undef RULE
#undef RULE_
#undef CTX
  default: return TO_REFUSE(order, &s, "event type %u has no place here", t->type);
  }
  tb_rc next = cursor_next(order, t, pos);
  if (TB_UNLIKELY(next != TB_OK && next != TB_END)) return next;
  move_on(order, place, t, next == TB_END);
  commit(order, s.staged);
  return TB_OK;
}

static __attribute__((noinline)) tb_rc try_at(struct to_order *order, size_t place) {
  return advance(order, place);
}

/* The earliest event cannot go: the others are tried by time. */
static __attribute__((noinline)) tb_rc advance_another(struct to_order *order) {
  size_t n = order->frontier_len;

  to__frontier_sort(order);
  order->tries_failed += n; /* sorting is work, too */
  if (order->tries_failed / FUEL_PER_EVENT > order->events + order->fuel_tries / FUEL_PER_EVENT) {
    tb_diag_place(order->diag, order->gen_number, TB_NO_THREAD, TB_NO_OFFSET);
    return tb_fail(order->diag, TB_FUEL,
                   "too many attempts to find an event that fits (%" PRIu64 ")",
                   order->tries_failed);
  }
  for (size_t place = 1; place < n; place++) {
    tb_rc rc = try_at(order, place);
    if (rc != TB_AGAIN) return rc;
  }
  const struct to_step s = { .t = to__frontier_at(order, 0) };
  return TO_REFUSE(order, &s, "no thread can go on: %zu wait for each other, the first with %s", n,
                   tw_spec(s.t->type)->name);
}

static void take_sample(struct to_order *order) {
  const struct to_sample *sample = order->sample->value;

  put_event(order, &(struct to_event){ .time = order->sample->time,
                                       .m = sample->m,
                                       .p = sample->p,
                                       .g = sample->g,
                                       .args = { sample->stack },
                                       .type = TW_EV_CPU_SAMPLE });
  order->sample++;
}

static bool sample_is_next(const struct to_order *order) {
  return order->sample != order->samples_end &&
         (order->frontier_len == 0 || order->sample->time < order->frontier[0].time);
}

tb_rc to__order_run(struct to_order *order, unsigned events_max) {
  uint64_t stop = order->events + events_max;
  tb_rc rc = TB_OK;

  while (rc == TB_OK && (order->frontier_len > 0 || order->sample != order->samples_end)) {
    if (TB_UNLIKELY(order->out_len > TO_SLICE - TO_STEP_EVENTS_MAX)) {
      TB_TRY(deliver(order));
      if (order->events >= stop) return TB_AGAIN;
    }
    if (TB_UNLIKELY(sample_is_next(order))) {
      take_sample(order);
      continue;
    }
    rc = advance(order, 0);
    if (TB_UNLIKELY(rc == TB_AGAIN)) rc = advance_another(order);
  }
  tb_rc delivered = deliver(order); /* what came before a fault, too */
  return rc != TB_OK ? rc : delivered;
}
