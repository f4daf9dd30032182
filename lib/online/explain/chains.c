/* SPDX-License-Identifier: Apache-2.0 */
/* A goroutine waits for at most one other: a walk ends at one without a wait, at a known chain, or in a cycle. */
#include "online/explain/chains.h"

#include <string.h>

#include "online/explain/lock_holders.h"
#include "online/spans/state.h"

#define REASON(ID) (UINT32_C(1) << TO_REASON_##ID)
static const uint64_t for_a_lock = REASON(SYNC) | REASON(CHAN_SEND);

const char *to_link_name(enum to_link link) {
  static const char *const names[TO_LINKS] = { "", "exact", "inferred", "guessed" };
  return names[link];
}

const char *to_chain_end_name(enum to_chain_end end) {
  static const char *const names[TO_CHAIN_ENDS] = { "runs",     "runnable", "system call", "idle",
                                                    "no waker", "gone",     "cycle" };
  return names[end];
}

struct finder {
  const struct to_chains_ask *ask;
  struct to_chains *out;
  uint32_t *path; /* slots of this walk */
  size_t n;
  uint32_t walk;
};

/* ---- links ---- */

/* Returns the slot of a goroutine; 0: it has ended, or there is none. */
static uint32_t slot_of_waker(const struct to_spans *s, uint64_t waker) {
  uint32_t slot = (uint32_t)(waker >> 32);

  if (slot == 0 || slot >= s->slots_end) return 0;
  return (uint32_t)s->lives[slot].life == (uint32_t)waker && s->lives[slot].life != 0 ? slot : 0;
}

/* Returns NULL if the lock's holder is unknown. */
static const struct to_held_lock *find_held(const struct to_chains *c, uint32_t lock) {
  size_t begin = 0, end = c->n_held;

  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (c->held[middle].lock < lock)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < c->n_held && c->held[begin].lock == lock ? &c->held[begin] : NULL;
}

static void set_next(struct to_chain *chain, uint32_t next, enum to_link link) {
  chain->next = next;
  chain->link = (uint8_t)link;
}

/* Links a wait to a goroutine that ended such waits. Without a link, the chain ends: NO_WAKER or GONE. */
static void link_by_wakers(const struct finder *f, uint32_t slot, struct to_chain *chain) {
  const struct to_spans *s = f->ask->spans;
  bool has_more;
  const uint64_t *own = to_wakers_own(s->wakers, slot, chain->stack, &has_more);
  uint64_t of_stack = to_wakers_of_stack(s->wakers, chain->stack);

  chain->end = TO_CHAIN_NO_WAKER;
  if (own != NULL) {
    set_next(chain, slot_of_waker(s, own[0]), TO_LINK_OWN);
    if (chain->next == 0) set_next(chain, slot_of_waker(s, own[1]), TO_LINK_OWN);
  }
  if (chain->next == 0 && of_stack != 0) {
    set_next(chain, slot_of_waker(s, of_stack), TO_LINK_OTHERS);
    if (chain->next == slot)
      set_next(chain, 0, TO_LINK_NONE); /* a goroutine cannot end its own wait */
  }
  if (chain->next != 0) return;
  chain->link = TO_LINK_NONE;
  if (own != NULL || (of_stack != 0 && slot_of_waker(s, of_stack) == 0)) chain->end = TO_CHAIN_GONE;
}

static tb_rc find_link(struct finder *f, uint32_t slot, struct to_chain *chain) {
  const struct to_life *g = &f->ask->spans->lives[slot];
  const struct to_held_lock *held;
  bool has_wakers = (f->ask->reasons >> g->reason & 1) != 0;

  *chain = (struct to_chain){ .length = 1, .last = slot, .end = TO_CHAIN_NO_WAKER };
  if (has_wakers)
    chain->stack = g->queue;
  else
    TB_TRY(to_spans_stack(f->ask->spans, f->ask->gen, g->stack, &chain->stack));
  held = g->lock > TO_LOCK_OTHER ? find_held(f->out, g->lock) : NULL;
  if (held != NULL && held->is_found)
    set_next(chain, held->slot, TO_LINK_EXACT);
  else if (has_wakers)
    link_by_wakers(f, slot, chain);
  return TB_OK;
}

/* ---- the walk ---- */

/* Sets *out_is_end if the goroutine ends the chain: it does not wait, or waits for work. */
static tb_rc check_end(const struct finder *f, uint32_t slot, const struct to_chain *chain,
                       bool *out_is_end, enum to_chain_end *out_end) {
  const struct to_life *g = &f->ask->spans->lives[slot];

  *out_is_end = true;
  switch (g->state) {
  case TO_GO_RUNNING: *out_end = TO_CHAIN_RUNS; return TB_OK;
  case TO_GO_RUNNABLE: *out_end = TO_CHAIN_RUNNABLE; return TB_OK;
  case TO_GO_SYSCALL: *out_end = TO_CHAIN_CALL; return TB_OK;
  default: *out_end = TO_CHAIN_IDLE;
  }
  struct to_string entry = { 0 };
  if (f->ask->spans->sums != NULL) entry = to_span_sums_entry_at(f->ask->spans->sums, slot);
  return to_idle_ask_in(f->ask->idle, chain->stack, g->reason, entry, out_is_end);
}

static uint32_t first_of(const struct finder *f, uint32_t slot) {
  const struct to_life *lives = f->ask->spans->lives;
  uint32_t first = slot;

  for (uint32_t at = f->out->of_slot[slot].next; at != slot; at = f->out->of_slot[at].next)
    if (lives[at].id < lives[first].id) first = at;
  return first;
}

/* Records the cycle that begins at path[from]. */
static void close_cycle(struct finder *f, size_t from) {
  const struct to_life *lives = f->ask->spans->lives;
  struct to_chains *c = f->out;
  struct to_cycle cycle = { .length = (uint32_t)(f->n - from), .newest = INT64_MIN };
  uint32_t number = c->cycles < TO_CYCLES_MAX ? (uint32_t)c->cycles + 1 : 0;

  for (size_t i = from; i < f->n; i++) {
    to_ns since = lives[f->path[i]].since;
    struct to_chain *chain = &c->of_slot[f->path[i]];
    if (since > cycle.newest) cycle.newest = since;
    chain->length = cycle.length;
    chain->last = f->path[i];
    chain->end = TO_CHAIN_CYCLE;
    chain->cycle = number;
  }
  f->n = from;
  c->cycles_total++;
  if (number == 0) return;
  cycle.first = first_of(f, f->path[from]);
  c->cycle[c->cycles++] = cycle;
}

/* Completes the chains of the path, which leads to this slot. end: what its goroutine does, if it has no chain. */
static void unwind(struct finder *f, uint32_t slot, enum to_chain_end end, bool has_chain) {
  const struct to_chain tail =
      has_chain ? f->out->of_slot[slot] : (struct to_chain){ .last = slot, .end = (uint8_t)end };
  uint32_t length = tail.length;

  while (f->n > 0) {
    struct to_chain *chain = &f->out->of_slot[f->path[--f->n]];
    chain->length = ++length;
    chain->last = tail.last;
    chain->end = tail.end;
    chain->cycle = tail.cycle;
  }
}

/* Adds a goroutine to the walk. Sets *out_next to the next one; 0: the walk ends here. */
static tb_rc step(struct finder *f, uint32_t slot, uint32_t *out_next) {
  struct to_chain *chain = &f->out->of_slot[slot];
  enum to_chain_end end;
  bool is_end;

  *out_next = 0;
  if (f->ask->spans->lives[slot].state == TO_GO_WAITING) TB_TRY(find_link(f, slot, chain));
  TB_TRY(check_end(f, slot, chain, &is_end, &end));
  if (is_end) {
    chain->length = 0;
    unwind(f, slot, end, false);
  } else if (chain->next == 0) {
    unwind(f, slot, (enum to_chain_end)chain->end, true);
  } else {
    chain->path = f->walk;
    f->path[f->n++] = slot;
    *out_next = chain->next;
  }
  return TB_OK;
}

static tb_rc find_chain(struct finder *f, uint32_t slot) {
  const struct to_chain *chains = f->out->of_slot;
  size_t from = 0;

  f->walk++;
  f->n = 0;
  while (chains[slot].length == 0) {
    uint32_t next;
    TB_TRY(step(f, slot, &next));
    if (next == 0) return TB_OK;
    slot = next;
  }
  if (chains[slot].path == f->walk) { /* a cycle */
    while (f->path[from] != slot) from++;
    close_cycle(f, from);
  }
  unwind(f, slot, TO_CHAIN_CYCLE, true); /* the rest leads to the cycle, or to an earlier walk */
  return TB_OK;
}

/* ---- suspects ---- */

/* Returns true if the goroutine has ended, or waits in a chain that leads into the cycle. */
static bool is_stuck(const struct finder *f, uint64_t waker, uint32_t cycle) {
  uint32_t slot = slot_of_waker(f->ask->spans, waker);

  if (slot == 0) return true;
  if (f->ask->spans->lives[slot].state != TO_GO_WAITING) return false;
  const struct to_chain *chain = &f->out->of_slot[slot];
  return chain->length > 0 && chain->end == TO_CHAIN_CYCLE && chain->cycle == cycle;
}

/* Returns true if only the cycle itself can end this wait, provided that the wait began before *out_since. */
static bool is_bound(const struct finder *f, uint32_t slot, uint32_t cycle, to_ns *out_since) {
  const struct to_chain *chain = &f->out->of_slot[slot];

  *out_since = f->ask->quiet_since;
  if (chain->link == TO_LINK_EXACT) return true;
  if (chain->link != TO_LINK_OWN) return false;
  if ((for_a_lock >> f->ask->spans->lives[slot].reason & 1) == 0) return false;
  bool has_more;
  const uint64_t *own = to_wakers_own(f->ask->spans->wakers, slot, chain->stack, &has_more);
  if (has_more) *out_since = f->ask->long_since;
  for (unsigned i = 0; i < TO_OWN_WAKERS; i++)
    if (own[i] != 0 && !is_stuck(f, own[i], cycle)) return false;
  return true;
}

static bool is_suspect(const struct finder *f, uint32_t number) {
  const struct to_cycle *cycle = &f->out->cycle[number - 1];
  uint32_t slot = cycle->first;

  for (uint32_t i = 0; i < cycle->length; i++, slot = f->out->of_slot[slot].next) {
    to_ns since;
    if (!is_bound(f, slot, number, &since) || cycle->newest >= since) return false;
  }
  return true;
}

static tb_rc take_arrays(struct finder *f, struct tb_arena *arena) {
  struct to_chains *c = f->out;
  size_t slots = f->ask->spans->slots_end;

  c->spans = f->ask->spans;
  c->gen = f->ask->gen;
  c->slots = slots;
  TB_TRY(tb_arena_alloc(arena, slots * sizeof *c->of_slot, &c->of_slot));
  memset(c->of_slot, 0, slots * sizeof *c->of_slot);
  TB_TRY(tb_arena_alloc(arena, slots * sizeof *f->path, &f->path));
  TB_TRY(tb_arena_alloc(arena, TO_CYCLES_MAX * sizeof *c->cycle, &c->cycle));
  return to_lock_holders(f->ask->spans, arena, &c->held, &c->n_held);
}

static bool waits_long(const struct to_chains_ask *ask, uint32_t slot) {
  const struct to_life *g = &ask->spans->lives[slot];

  return g->life != 0 && g->state == TO_GO_WAITING && (ask->begins >> g->reason & 1) != 0 &&
         ask->spans->now - g->since > ask->longer_than;
}

tb_rc to_chains_find(const struct to_chains_ask *ask, struct tb_arena *arena,
                     struct to_chains *out) {
  struct finder f = { .ask = ask, .out = out };

  for (uint32_t slot = 1; slot < ask->spans->slots_end; slot++) {
    if (!waits_long(ask, slot)) continue;
    if (out->of_slot == NULL) TB_TRY(take_arrays(&f, arena)); /* most streams have no chain */
    TB_TRY(find_chain(&f, slot));
  }
  for (uint32_t i = 1; i <= out->cycles; i++) out->cycle[i - 1].is_suspect = is_suspect(&f, i);
  return TB_OK;
}
