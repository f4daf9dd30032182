/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/parked.h"

#include "online/order/experiment.h"
#include "online/order/frontier.h"
#include "wire/varint.h"

void to__parked_init(struct to_parked *parked, struct tb_mem *mem) {
  *parked = (struct to_parked){ .mem = mem };
  tb_map_init(&parked->waiting, mem, tb_seed());
}

void to__parked_fini(struct to_parked *parked) {
  if (parked->mem == NULL) return;
  tb_mem_free(parked->mem, parked->heap, parked->cap * sizeof *parked->heap);
  tb_map_fini(&parked->waiting);
  *parked = (struct to_parked){ 0 };
}

void to__parked_clear(struct to_parked *parked) {
  tb_map_clear(&parked->waiting);
  parked->count = 0;
}

/* A min-heap by time. Each thread stores its place, because any of them may be woken. */

static void place(struct to_parked *parked, struct to_thread *t, size_t at) {
  parked->heap[at] = t;
  t->parked_place = at;
}

static void rise(struct to_parked *parked, struct to_thread *t, size_t at) {
  for (; at > 0 && parked->heap[(at - 1) / 2]->time > t->time; at = (at - 1) / 2)
    place(parked, parked->heap[(at - 1) / 2], at);
  place(parked, t, at);
}

static void fall(struct to_parked *parked, struct to_thread *t, size_t at) {
  for (size_t child; (child = 2 * at + 1) < parked->count; at = child) {
    if (child + 1 < parked->count && parked->heap[child + 1]->time < parked->heap[child]->time)
      child++;
    if (parked->heap[child]->time >= t->time) break;
    place(parked, parked->heap[child], at);
  }
  rise(parked, t, at);
}

static void leave(struct to_parked *parked, const struct to_thread *t) {
  struct to_thread *last = parked->heap[--parked->count];

  if (last != t) fall(parked, last, t->parked_place);
}

static uint64_t key_of(const struct to_want *want) {
  return ((want->id * UINT64_C(0x9E3779B97F4A7C15)) ^ (want->seq << 3)) + want->kind;
}

static bool same(const struct to_want *a, const struct to_want *b) {
  return a->kind == b->kind && a->id == b->id && a->seq == b->seq;
}

/* Returns the reason why this thread's next event, just tried, has to wait. */
static struct to_want want_of(const struct to_order *order, const struct to_thread *t) {
  struct to_want own;
  uint64_t id = 0, seq = 0;

  if (to__experiment_waits(order, t, &own)) return own;
  int used = tw_varint_read(t->args, t->end, &id);

  (void)tw_varint_read(t->args + used, t->end,
                       &seq); /* meaningless if there is only one argument */
  switch (t->type) {
  case TW_EV_GO_START: return (struct to_want){ id, seq, TO_WANT_G_RUNNABLE };
  case TW_EV_GO_UNBLOCK:
  case TW_EV_GO_SWITCH:
  case TW_EV_GO_SWITCH_DESTROY: return (struct to_want){ id, seq, TO_WANT_G_WAITING };
  case TW_EV_PROC_STEAL: return (struct to_want){ id, seq, TO_WANT_P_IN_SYSCALL };
  case TW_EV_PROC_START:
    if (t->has & TO_HAS_P) return (struct to_want){ (uint64_t)t->id, 0, TO_WANT_OWN_P_GONE };
    return (struct to_want){ id, seq, TO_WANT_P_IDLE };
  case TW_EV_GO_SYSCALL_END_BLOCKED:
    return (struct to_want){ (uint64_t)t->p->id, 0, TO_WANT_P_OUT_OF_SYSCALL };
  default: return (struct to_want){ 0, id, TO_WANT_GC }; /* begins and ends of a cycle */
  }
}

static tb_rc reserve(struct to_parked *parked, size_t threads) {
  void *heap = parked->heap;

  if (parked->cap >= threads) return TB_OK;
  TB_TRY(tb_mem_resize(parked->mem, &heap, parked->cap * sizeof *parked->heap,
                       threads * sizeof *parked->heap));
  parked->heap = heap;
  parked->cap = threads;
  return TB_OK;
}

tb_rc to__park(struct to_order *order) {
  struct to_parked *parked = &order->parked;
  struct to_thread *t = to__frontier_at(order, 0);
  uint64_t *first;

  TB_TRY(reserve(parked, order->frontier_cap));
  t->want = want_of(order, t);
  TB_TRY(tb_map_put(&parked->waiting, key_of(&t->want), &first, NULL));
  t->next_waiting = (struct to_thread *)(uintptr_t)*first;
  *first = (uintptr_t)t;
  to__frontier_remove(order, 0);
  rise(parked, t, parked->count++);
  parked->tries++;
  return TB_OK;
}

static void unpark(struct to_order *order, struct to_thread **link) {
  struct to_thread *t = *link;

  *link = t->next_waiting;
  leave(&order->parked, t);
  to__frontier_add(order, t);
}

/* Wakes the earliest thread that waits for want, or all of them if they can share it. */
static void wake(struct to_order *order, struct to_want want, bool all) {
  struct to_parked *parked = &order->parked;
  uint64_t key = key_of(&want), *first = tb_map_find(&parked->waiting, key);

  if (first == NULL) return;
  struct to_thread *head = (struct to_thread *)(uintptr_t)*first, **earliest = NULL;
  for (struct to_thread **link = &head; *link != NULL; parked->tries++) {
    struct to_thread **next = &(*link)->next_waiting;
    if (same(&(*link)->want, &want)) {
      if (all) {
        unpark(order, link);
        continue;
      }
      if (earliest == NULL || (*link)->time < (*earliest)->time) earliest = link;
    }
    link = next;
  }
  if (earliest != NULL) unpark(order, earliest);
  if (head == NULL)
    tb_map_remove(&parked->waiting, key);
  else
    *first = (uintptr_t)head;
}

struct to_touched to__touched_by(const struct to_order *order, const struct to_thread *t) {
  struct to_touched touched = {
    { t->g->id, TO_NONE }, { t->p->id, TO_NONE }, TO_NONE, false, { 0 }
  };
  const struct tw_arg *arg = &tw_specs[t->type].args[0];
  uint64_t id = 0, seq = 0, thread = 0;
  const unsigned char *pos = t->args;

  touched.in_sequence = to__experiment_want(order, t, &touched.number);
  if (order->arg_counts[t->type] == 0) return touched;
  pos += tw_varint_read(pos, t->end, &id);
  if (arg->type == TW_ARG_G) touched.g[1] = (int64_t)id;
  if (arg->type == TW_ARG_P) touched.p[1] = (int64_t)id;
  if (t->type != TW_EV_PROC_STEAL) return touched;
  pos += tw_varint_read(pos, t->end, &seq);
  (void)tw_varint_read(pos, t->end, &thread);
  touched.thread = (int64_t)thread;
  return touched;
}

static void wake_for_g(struct to_order *order, int64_t id) {
  const struct to_g *g = to__g_find(order, id);

  if (g == NULL || g->seq_gen != order->gen_count) return;
  if (g->status == TW_GO_RUNNABLE)
    wake(order, (struct to_want){ (uint64_t)id, g->seq + 1, TO_WANT_G_RUNNABLE }, false);
  if (g->status == TW_GO_WAITING)
    wake(order, (struct to_want){ (uint64_t)id, g->seq + 1, TO_WANT_G_WAITING }, false);
}

static void wake_for_p(struct to_order *order, int64_t id) {
  const struct to_p *p = to__p_find(order, id);

  if (p == NULL) return;
  if (p->status != TW_PROC_SYSCALL)
    wake(order, (struct to_want){ (uint64_t)id, 0, TO_WANT_P_OUT_OF_SYSCALL }, true);
  if (p->seq_gen != order->gen_number) return;
  if (p->status == TW_PROC_IDLE)
    wake(order, (struct to_want){ (uint64_t)id, p->seq + 1, TO_WANT_P_IDLE }, false);
  if (p->status == TW_PROC_SYSCALL || p->status == TW_PROC_SYSCALL_ABANDONED)
    wake(order, (struct to_want){ (uint64_t)id, p->seq + 1, TO_WANT_P_IN_SYSCALL }, false);
}

void to__parked_wake(struct to_order *order, const struct to_touched *touched) {
  for (int i = 0; i < 2 && order->parked.count > 0; i++) {
    wake_for_g(order, touched->g[i]);
    wake_for_p(order, touched->p[i]);
  }
  if (touched->in_sequence) {
    const struct to_want *had = &touched->number;
    wake(order, (struct to_want){ had->id, had->seq + 1, had->kind }, false);
  }
  wake(order, (struct to_want){ (uint64_t)touched->thread, 0, TO_WANT_OWN_P_GONE }, true);
  wake(order, (struct to_want){ 0, order->gc_seq + 1, TO_WANT_GC }, true);
  if (order->n_handlers > 0) wake(order, (struct to_want){ .kind = TO_WANT_HANDLER }, true);
}
