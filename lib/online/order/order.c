/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of the loop handles one event: reads its arguments, applies its rule, reads the thread's next
 * event, and commits the staged output. Most steps stay on the thread at the root of the frontier: while
 * its next event is not later than `turn_end`, the heap does not change.
 *
 * An event costs some 98 instructions if threads keep their turn (a network server), 122 if they change at
 * every other event (channels), 140 if goroutines live for an event or two: 42 to read it and look ahead,
 * 27 the record, 12 its goroutine, 16 its rule, 8 the step; 30 a change of thread, 50 a goroutine's begin and
 * end. At four to five instructions a cycle the rest is mispredicted branches: with alternating threads,
 * callgrind's simple predictor misses four of five jumps to a rule. Changing threads without a branch does not help:
 * every event then waits for the previous comparison, and takes a fifth longer.
 *
 * Steps and errors are in the order of Go's reader: the rule, then the thread's next event (a fault there
 * swallows this one), then the heap, then delivery. */
#include "online/order/order.h"

#include "base/cpu.h"
#include "online/order/cursor.h"
#include "online/order/experiment.h"
#include "online/order/frontier.h"
#include "online/order/parked.h"
#include "online/order/rules_gc.h"
#include "online/order/rules_go.h"
#include "online/order/rules_proc.h"
#include "online/order/rules_user.h"

/* In real traces it is rare that no thread of the frontier can continue: once in dozens of files. */
enum { EXACT_PER_EVENT = 64, EXACT_MORE = 4000000, FUEL_PER_EVENT = 64, FUEL_DEFAULT = 1000000 };
enum { RUN_TRIES_PER_EVENT = 8 }; /* to__order_run() returns after so many failed attempts */

/* From events.def: the number of arguments, and bit masks of the stack ids and string ids among them. */
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

tb_rc to__misannotated(struct to_order *order, const struct to_thread *t, const char *text) {
  bool goes_on = order->past_annotations;
  struct tb_diag *diag = goes_on ? &order->misannotated : order->diag;

  tb_diag_place(diag, order->gen_number, t->id, to__cursor_offset(order, t));
  tb_rc rc = tb_fail(diag, TB_BROKEN, "%s", text);
  return goes_on ? TB_OK : rc;
}

/* Returns true if used is within an allowance that grows with the delivered events. */
static bool within(const struct to_order *order, uint64_t used, unsigned per_event, uint64_t more) {
  return used / per_event <= order->events + more / per_event;
}

static tb_rc check_fuel(struct to_order *order) {
  if (within(order, order->parked.tries, FUEL_PER_EVENT, order->limits.fuel_tries)) return TB_OK;
  tb_diag_place(order->diag, order->gen_number, TB_NO_THREAD, TB_NO_OFFSET);
  return tb_fail(order->diag, TB_FUEL, "too many attempts to find an event that fits (%" PRIu64 ")",
                 order->parked.tries);
}

/* Finds the thread that holds p: usually the last that took it. Only if several threads claim p, all are searched. */
tb_rc to__proc_holder(struct to_order *o, const struct to_thread *t, struct to_p *p,
                      struct to_thread **out) {
  struct to_thread *holder = p->holder;
  uint64_t id, value;

  if (holder != NULL && holder->exists && holder->p == p) {
    *out = holder;
    return TB_OK;
  }
  o->parked.tries += o->threads.slots;
  TB_TRY(check_fuel(o));
  for (size_t i = 0; tb_map_next(&o->threads, &i, &id, &value);) {
    holder = (struct to_thread *)(uintptr_t)value;
    if (!holder->exists || holder->p != p) continue;
    *out = p->holder = holder;
    return TB_OK;
  }
  to__place(o, t);
  return tb_fail(o->diag, TB_BROKEN, "proc %" PRId64 " is about to be stolen, but no thread has it",
                 p->id);
}

tb_rc to__order_new(struct tb_mem *mem, const struct to_limits *limits, struct to_event_sink sink,
                    struct tb_diag *diag, struct to_order **out) {
  struct to_order *order;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_order), &order));
  to__state_init(order, mem);
  order->sink = sink;
  order->diag = diag;
  tb_diag_clear(&order->misannotated);
  order->sample_time = INT64_MAX;
  order->written.next = order->out;
  order->pext = tb_cpu_deposits();
  order->limits = *limits;
  if (order->limits.fuel_tries == 0) order->limits.fuel_tries = FUEL_DEFAULT;
  for (unsigned type = 0; type < 256; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    bool timed = tw_spec_has_dt(spec);
    order->arg_counts[type] = timed ? spec->nargs : TO_NO_TIMED_EVENT;
    order->longer_end[type] = timed ? (uint8_t)(8 + 1 - spec->nargs) : 0;
  }
  *out = order;
  return TB_OK;
}

void to__order_plain(struct to_order *order) {
  order->pext = false;
}

void to__order_past_annotations(struct to_order *order) {
  order->past_annotations = true;
}

struct tb_diag *to__order_misannotated(struct to_order *order) {
  return &order->misannotated;
}

tb_rc to__order_handle(struct to_order *order, const struct to_handler *handler) {
  if (order->n_handlers == TO_HANDLERS_MAX) return TB_BUDGET;
  order->handlers[order->n_handlers++] = *handler;
  return TB_OK;
}

void to__order_free(struct to_order *order) {
  if (order == NULL) return;
  to__frontier_fini(order);
  to__state_fini(order);
  tb_mem_free(order->mem, order, sizeof *order);
}

void to__order_clear(struct to_order *order) {
  to__state_clear(order);
  order->gen = NULL;
  order->sample = order->samples_end = NULL;
  order->sample_time = INT64_MAX;
  order->written.last = 0;
  order->written.next = order->out;
}

uint64_t to__order_events(const struct to_order *order) {
  return order->events;
}

uint64_t to__order_lone_region_ends(const struct to_order *order) {
  return order->lone_region_ends;
}

uint64_t to__order_written(const struct to_order *order) {
  return order->events - order->added;
}

static tb_rc deliver(struct to_order *order) {
  size_t n = (size_t)(order->written.next - order->out);

  if (n == 0) return TB_OK;
  order->written.next = order->out;
  order->events += n;
  TB_TRY(order->sink.events(order->sink.self, order->gen, order->out, n));
  return order->gen == NULL ? TB_OK : order->gen->frames_rc;
}

static void put_event(struct to_order *order, struct to_event event) {
  if (event.time <= order->written.last) event.time = (to_ns)((uint64_t)order->written.last + 1);
  order->written.last = event.time;
  *order->written.next++ = event;
}

static void put_sync(struct to_order *order, to_ns time) {
  order->added++;
  put_event(order, (struct to_event){ .time = time,
                                      .m = TO_NONE,
                                      .p = TO_NONE,
                                      .g = TO_NONE,
                                      .args = { ++order->syncs },
                                      .type = TW_EV_SYNC });
}

tb_rc to__order_last_sync(struct to_order *order) {
  order->gen = NULL;
  put_sync(order, order->written.last);
  return deliver(order);
}

static void set_clock(struct to_order *order, double ns_per_tick) {
  uint64_t whole = ns_per_tick >= 1 && ns_per_tick < 1e9 ? (uint64_t)ns_per_tick : 0;

  order->ns_per_tick = ns_per_tick;
  order->ticks_whole = (double)whole == ns_per_tick ? whole : 0;
  /* Products below 2^53 are exact in either arithmetic. */
  order->ticks_exact_end = order->ticks_whole == 0 ? 0 : (UINT64_C(1) << 53) / order->ticks_whole;
}

static void set_sample_time(struct to_order *order) {
  order->sample_time = order->sample == order->samples_end ? INT64_MAX : order->sample->time;
  frontier_turn(order);
}

static tb_rc open_lane(struct to_order *order, const struct to_thread_batches *batches) {
  struct to_thread *t = &order->no_thread;

  if (batches->thread != TO_NONE) TB_TRY(to__thread_claim(order, batches->thread, &t));
  tb_rc rc = to__cursor_begin(order, t, batches);
  if (rc == TB_OK) to__frontier_add(order, t);
  return rc == TB_END ? TB_OK : rc;
}

tb_rc to__order_begin(struct to_order *order, struct to_generation *gen) {
  const struct to_thread_batches *threads = gen->threads.items;

  order->gen = gen;
  order->gen_number = gen->number;
  order->gen_count++;
  order->stack_ids_end = gen->stack_ids.all_below;
  order->string_ids_end = gen->string_ids.all_below;
  order->sample = gen->sample_times.items;
  order->samples_end = order->sample + gen->sample_times.count;
  set_clock(order, gen->ns_per_tick);
  to__experiment_begin(order, gen);
  TB_TRY(to__frontier_reserve(order, gen->threads.count));
  set_sample_time(order);
  for (size_t i = 0; i < gen->threads.count; i++) TB_TRY(open_lane(order, &threads[i]));
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

/* Go's reader checks ids last. A bad id and a bad next event both swallow this event, so the ids can be
 * checked here, where the arguments are in registers. */
TO_HOT tb_rc check_id(struct to_order *order, const struct to_step *s, unsigned i, bool stack,
                      bool string) {
  if (stack && TB_UNLIKELY(s->arg[i] >= order->stack_ids_end) &&
      !to__ids_has(&order->gen->stack_ids, s->arg[i]))
    return bad_id(order, s->t, s->type, "stack", s->arg[i]);
  if (string && TB_UNLIKELY(s->arg[i] >= order->string_ids_end) &&
      !to__ids_has(&order->gen->string_ids, s->arg[i]))
    return bad_id(order, s->t, s->type, "string", s->arg[i]);
  return TB_OK;
}

#define READ_ARG(i, ID)                                                                            \
  if (NARGS_##ID > (i))                                                                            \
    pos = read_whole(pos, &s.arg[i], pext);                                                        \
  else                                                                                             \
    s.arg[i] = 0
#define CHECK_ARG(i, ID)                                                                           \
  TB_TRY(check_id(order, &s, (i), STACKS_##ID >> (i)&1, STRINGS_##ID >> (i)&1))

/* Handles the thread's event and reads its next one. Returns TB_AGAIN if the event is too early: then nothing has changed.
 * Returns TB_END if it was the thread's last event. */
TO_HOT tb_rc step(struct to_order *order, struct to_thread *t, struct to_ahead *ahead,
                  struct to_written *written, bool pext) {
  const unsigned char *pos = ahead->args;
  struct to_step s;

  s.t = t;
  s.time = ahead->time;
  s.last = written->last;
  s.type = (uint8_t)ahead->type;
  s.out = written->next;
  switch (ahead->type) {
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
#include "online/order/rules.def"
#undef RULE
#undef RULE_
#undef CTX
  case TW_EV_CLOCK_SNAPSHOT: return TO_REFUSE(order, &s, "%s has no place here", TO_NAME(&s));
  case TW_OWN_EVENT_FIRST ... UINT8_MAX: {
    struct to_own_step own = to__experiment_step(order, t, s.time, s.last, s.out);
    TB_TRY(own.rc);
    pos = own.pos;
    s.last = s.out->time;
    s.out++;
    break;
  }
  default: __builtin_unreachable(); /* the cursor refuses other types */
  }
  tb_rc rc = cursor_next(order, t, pos, ahead, pext);
  if (TB_UNLIKELY(rc != TB_OK && rc != TB_END)) {
    order->added -= (uint64_t)(s.out - written->next - 1); /* not delivered */
    return rc;
  }
  *written = (struct to_written){ s.out, s.last };
  return rc;
}

static bool has_room(const struct to_order *order, const struct to_event *next) {
  return next <= order->out + TO_SLICE - TO_STEP_EVENTS_MAX;
}

/* Steps the thread at the root of the frontier again and again, until the slice is full, a CPU sample is due or a
 * step does not return TB_OK. The state of the thread and of the slice stays in registers. */
TO_HOT tb_rc take_turns(struct to_order *order, bool pext) {
  struct to_thread *t = to__frontier_at(order, 0);
  struct to_written written = order->written;
  struct to_ahead ahead = ahead_of(t);
  tb_rc rc;

  t->exists = true;
  for (;;) {
    rc = step(order, t, &ahead, &written, pext);
    if (TB_UNLIKELY(rc != TB_OK)) break;
    if (ahead.time > order->turn_end) {
      leave_ahead(t, &ahead);
      if (TB_UNLIKELY(ahead.time > order->sample_time)) {
        to__frontier_update(order, 0);
        t = to__frontier_at(order, 0);
        ahead = ahead_of(t);
        break;
      }
      t = frontier_root_later(order, t, ahead.time);
      ahead = ahead_of(t);
      t->exists = true;
    }
    if (TB_UNLIKELY(!has_room(order, written.next))) break;
  }
  order->written = written;
  leave_ahead(t, &ahead);
  if (rc == TB_OK || rc == TB_AGAIN) order->frontier[0].time = t->time; /* it may have changed */
  if (rc != TB_END) return rc;
  to__frontier_remove(order, 0);
  return TB_OK;
}

static __attribute__((noinline)) tb_rc try_at(struct to_order *order, size_t place) {
  struct to_thread *t = to__frontier_at(order, place);

  struct to_ahead ahead = ahead_of(t);

  t->exists = true;
  tb_rc rc = step(order, t, &ahead, &order->written, false);
  leave_ahead(t, &ahead);
  if (rc == TB_OK) to__frontier_update(order, place);
  if (rc != TB_END) return rc;
  to__frontier_remove(order, place);
  return TB_OK;
}

static tb_rc nobody_can_go_on(struct to_order *order, struct to_thread *first, size_t n) {
  const struct to_step s = { .t = first };

  return TO_REFUSE(order, &s, "no thread can go on: %zu wait for each other, the first with %s", n,
                   to_generation_spec(order->gen, first->type)->name);
}

static bool stays_exact(const struct to_order *order) {
  uint64_t max = order->limits.exact_tries;

  return max > 0 ? order->exact_tries <= max
                 : within(order, order->exact_tries, EXACT_PER_EVENT, EXACT_MORE);
}

/* The earliest event is too early: tries the other threads by time. */
static __attribute__((noinline)) tb_rc advance_another(struct to_order *order) {
  size_t n = order->frontier_len;

  order->exact_tries += n / 2; /* sorting two threads takes as long as trying one */
  if (!stays_exact(order)) return to__park(order);
  to__frontier_sort(order);
  for (size_t place = 1; place < n; place++) {
    order->exact_tries++;
    tb_rc rc = try_at(order, place);
    if (rc != TB_AGAIN) return rc;
  }
  return nobody_can_go_on(order, to__frontier_at(order, 0), n);
}

/* Makes one step while some threads are parked, and wakes the threads that it unblocks. */
static __attribute__((noinline)) tb_rc advance_among_parked(struct to_order *order) {
  struct to_thread *first = to__parked_first(order), *t = to__frontier_at(order, 0);

  if (t == NULL) return nobody_can_go_on(order, first, order->parked.count);
  TB_TRY(check_fuel(order));
  struct to_touched touched = to__touched_by(order, t);
  tb_rc rc = try_at(order, 0);
  if (rc == TB_AGAIN) return to__park(order);
  if (rc == TB_OK) to__parked_wake(order, &touched);
  return rc;
}

static void take_sample(struct to_order *order) {
  const struct to_sample *sample = order->sample->value;

  put_event(order, (struct to_event){ .time = order->sample->time,
                                      .m = sample->m,
                                      .p = sample->p,
                                      .g = sample->g,
                                      .args = { sample->stack },
                                      .type = TW_EV_CPU_SAMPLE });
  order->sample++;
  set_sample_time(order);
}

/* Returns the time of the earliest event. INT64_MAX: none is left, since frontier[0] of an empty frontier has that time. */
static to_ns first_time(const struct to_order *order) {
  to_ns first = order->frontier[0].time;

  if (TB_LIKELY(order->parked.count == 0)) return first;
  return to__parked_first(order)->time < first ? to__parked_first(order)->time : first;
}

TO_HOT tb_rc run_loop(struct to_order *order, unsigned events_max, bool pext) {
  uint64_t stop = order->events + events_max;
  uint64_t tries_stop = order->exact_tries + RUN_TRIES_PER_EVENT * (uint64_t)events_max;
  tb_rc rc = TB_OK;

  while (rc == TB_OK) {
    if (TB_UNLIKELY(!has_room(order, order->written.next))) {
      TB_TRY(deliver(order));
      if (order->events >= stop) return TB_AGAIN;
    }
    if (TB_UNLIKELY(order->sample_time < first_time(order))) {
      take_sample(order);
    } else if (TB_UNLIKELY(order->parked.count > 0)) {
      rc = advance_among_parked(order);
    } else if (TB_UNLIKELY(order->frontier_len == 0)) {
      if (order->sample == order->samples_end) break;
      take_sample(order);
    } else {
      rc = take_turns(order, pext);
      if (TB_LIKELY(rc != TB_AGAIN)) continue;
      rc = advance_another(order);
      if (rc == TB_OK && order->exact_tries >= tries_stop) {
        TB_TRY(deliver(order));
        return TB_AGAIN;
      }
    }
  }
  tb_rc delivered = deliver(order); /* events before a fault, too */
  return rc != TB_OK ? rc : delivered;
}

/* The loop is compiled twice: with the instruction pext reading a number takes half as long. */
tb_rc to__order_run(struct to_order *order, unsigned events_max) {
  return order->pext ? run_loop(order, events_max, true) : run_loop(order, events_max, false);
}
