/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/sums.h"

#include <string.h>

#include "base/grow.h"
#include "online/spans/state.h"

enum { WHAT_BITS = 8, ENTRY_BITS = 14, STACK_BITS = 21 };
enum { OWN_REASONS = TO_REASONS_MAX - TO_REASONS };
enum { OWN_AT = TO_SUMS_RESTS, IDLE_AT = OWN_AT + OWN_REASONS, WHATS = IDLE_AT + TO_REASONS_MAX };
_Static_assert(WHAT_BITS + ENTRY_BITS + 2 * STACK_BITS == 64, "a sum's key is a word");
_Static_assert((1 << ENTRY_BITS) == TO_ENTRIES_MAX, "an entry fits");
_Static_assert(WHATS <= 1 << WHAT_BITS, "state and reason fit");
_Static_assert(TO_REASONS_MAX <= 64 && TO_GO_SYSCALL < 8, "TO_SUMS_HOW() tells them apart");

/* Number of reasons of each state. */
static const uint8_t whys[TO_GO_SYSCALL + 1] = {
  [TO_GO_NOT_EXIST] = 1,        [TO_GO_RUNNABLE] = TO_CAUSES,    [TO_GO_RUNNING] = 1,
  [TO_GO_WAITING] = TO_REASONS, [TO_GO_SYSCALL] = TO_CALL_PARTS,
};

static tb_rc add_sum(struct to_span_sums *s, const struct to_span_sum *like, uint32_t parent) {
  struct to_span_sum sum = *like;

  TB_TRY(TB_MEM_GROW(s->mem, s->sum, s->room, s->n));
  TB_TRY(to_windows_series(s->windows, parent, &sum.series));
  s->sum[s->n++] = sum;
  return TB_OK;
}

/* Returns the rest of a state and reason. Reasons that no table has share the rest of OTHER. */
static uint32_t rest_of(uint8_t state, uint8_t why) {
  uint32_t place = state == TO_GO_WAITING && why >= TO_REASONS ? TO_REASON_OTHER : why;

  for (uint8_t before = 0; before < state; before++) place += whys[before];
  return place;
}

static tb_rc add_rests(struct to_span_sums *s) {
  for (uint8_t state = 0; state <= TO_GO_SYSCALL; state++) {
    for (uint8_t why = 0; why < whys[state]; why++) {
      uint32_t *of_why = &s->of_why[s->n];
      TB_TRY(to_windows_series(s->windows, TO_NO_SERIES, of_why));
      TB_TRY(add_sum(s,
                     &(struct to_span_sum){ .entry = TO_ENTRY_OTHER,
                                            .stack = TO_STACK_OTHER,
                                            .by_stack = TO_STACK_OTHER,
                                            .state = state,
                                            .why = why },
                     *of_why));
    }
  }
  return TB_OK;
}

/* Numbers state and reason. Idle waits have own numbers, as rules may change. */
static uint32_t what_of(const struct to_span_sum *sum) {
  if (sum->idle) return IDLE_AT + sum->why;
  bool is_own = sum->state == TO_GO_WAITING && sum->why >= TO_REASONS;
  return is_own ? OWN_AT + (uint32_t)(sum->why - TO_REASONS) : rest_of(sum->state, sum->why);
}

static uint64_t key_of(const struct to_span_sum *sum) {
  uint64_t key = what_of(sum);

  key = key << ENTRY_BITS | sum->entry;
  key = key << STACK_BITS | sum->stack;
  return key << STACK_BITS | sum->by_stack;
}

static bool has_stacks(enum to_go_state state) {
  return state == TO_GO_RUNNABLE || state == TO_GO_WAITING;
}

/* Finds the series of a state and reason, idle or not. */
static tb_rc find_parent(struct to_span_sums *s, const struct to_span_sum *like, uint32_t *out) {
  uint32_t rest = rest_of(like->state, like->why);

  if (like->idle && s->of_idle[rest] == 0)
    TB_TRY(to_windows_series(s->windows, TO_NO_SERIES, &s->of_idle[rest]));
  *out = like->idle ? s->of_idle[rest] : s->of_why[rest];
  return TB_OK;
}

static tb_rc find_sum(struct to_span_sums *s, const struct to_span_sum *like, uint32_t *out) {
  uint64_t key = key_of(like), *place;
  uint32_t parent;
  bool fresh;

  *out = rest_of(like->state, like->why);
  if (s->of[like->state] >= s->sums_max && tb_map_find(&s->by_key, key) == NULL) return TB_OK;
  TB_TRY(find_parent(s, like, &parent));
  TB_TRY(tb_map_put(&s->by_key, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_sum(s, like, parent);
    if (rc != TB_OK) {
      tb_map_remove(&s->by_key, key);
      return rc;
    }
    *place = s->n - 1;
    s->of[like->state]++;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

/* ---- entry functions ---- */

static tb_rc find_plain(struct to_span_sums *s, uint32_t entry, enum to_go_state state,
                        uint32_t *out_series) {
  struct to_span_sum like = { .entry = entry, .state = (uint8_t)state };
  uint32_t sum;

  TB_TRY(find_sum(s, &like, &sum));
  *out_series = s->sum[sum].series;
  return TB_OK;
}

static tb_rc add_entry(struct to_span_sums *s, const struct to_frame *frame) {
  struct to_sums_entry entry = { .frame = frame };
  uint32_t number = (uint32_t)s->entries;

  TB_TRY(TB_MEM_GROW(s->mem, s->entry, s->entries_room, s->entries));
  TB_TRY(find_plain(s, number, TO_GO_RUNNING, &entry.running));
  TB_TRY(find_plain(s, number, TO_GO_SYSCALL, &entry.calling));
  TB_TRY(find_plain(s, number, TO_GO_NOT_EXIST, &entry.lives));
  s->entry[s->entries++] = entry;
  return TB_OK;
}

static tb_rc find_entry(struct to_span_sums *s, uint32_t stack, uint32_t *out) {
  const struct to_callstack *frames = to_stack_table_stack(s->stacks, stack);
  uint64_t *place;
  bool fresh;

  *out = TO_ENTRY_OTHER;
  if (frames == NULL) return TB_OK;
  const struct to_frame *frame = frames->len == 0 ? NULL : frames->frames[frames->len - 1];
  *out = TO_ENTRY_UNKNOWN;
  if (frame == NULL || frame->function.len == 0) return TB_OK;
  *out = TO_ENTRY_OTHER;
  uint64_t key = (uintptr_t)frame->function.data;
  if (s->entries == TO_ENTRIES_MAX && tb_map_find(&s->entry_of, key) == NULL) return TB_OK;
  TB_TRY(tb_map_put(&s->entry_of, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_entry(s, frame);
    if (rc != TB_OK) {
      tb_map_remove(&s->entry_of, key);
      return rc;
    }
    *place = s->entries - 1;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static tb_rc entry_of_stack(struct to_span_sums *s, uint32_t stack, uint32_t *out) {
  while (s->entry_of_stacks <= stack) {
    size_t room = s->entry_of_stacks;
    TB_TRY(TB_MEM_GROW(s->mem, s->entry_of_stack, room, s->entry_of_stacks));
    memset(s->entry_of_stack + s->entry_of_stacks, 0,
           (room - s->entry_of_stacks) * sizeof(*s->entry_of_stack));
    s->entry_of_stacks = room;
  }
  if (s->entry_of_stack[stack] == TO_ENTRY_UNKNOWN)
    TB_TRY(find_entry(s, stack, &s->entry_of_stack[stack]));
  *out = s->entry_of_stack[stack];
  return TB_OK;
}

/* ---- places of creation ---- */

static tb_rc add_site(struct to_span_sums *s, uint32_t stack, bool begins) {
  struct to_sums_site site = { .stack = stack, .begins = begins };

  TB_TRY(TB_MEM_GROW(s->mem, s->site, s->sites_room, s->sites));
  TB_TRY(to_windows_series(s->windows, s->of_creation, &site.created));
  TB_TRY(to_windows_series(s->windows, s->of_life, &site.lives));
  s->site[s->sites++] = site;
  return TB_OK;
}

static tb_rc find_site(struct to_span_sums *s, uint32_t stack, bool begins, uint32_t *out) {
  uint64_t key = (uint64_t)begins << 32 | stack, *place;
  bool fresh;

  *out = TO_SITE_OTHER;
  if (stack == TO_STACK_OTHER) return TB_OK;
  if (s->sites == TO_SITES_MAX && tb_map_find(&s->site_of, key) == NULL) return TB_OK;
  TB_TRY(tb_map_put(&s->site_of, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_site(s, stack, begins);
    if (rc != TB_OK) {
      tb_map_remove(&s->site_of, key);
      return rc;
    }
    *place = s->sites - 1;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static tb_rc init_sites(struct to_span_sums *s) {
  TB_TRY(to_windows_series(s->windows, TO_NO_SERIES, &s->of_creation));
  TB_TRY(to_windows_series(s->windows, TO_NO_SERIES, &s->of_life));
  TB_TRY(add_site(s, TO_STACK_EMPTY, false));
  return add_site(s, TO_STACK_OTHER, false);
}

tb_rc to_span_sums_entry_of(struct to_span_sums *s, const struct to_generation *gen, uint64_t stack,
                            uint32_t *out) {
  uint32_t number;

  *out = TO_ENTRY_UNKNOWN;
  if (stack == 0) return TB_OK;
  TB_TRY(to__stack_number(s->stacks, gen, stack, &number));
  return entry_of_stack(s, number, out);
}

tb_rc to_span_sums_init(struct to_span_sums *s, struct tb_mem *mem, struct to_windows *windows,
                        struct to_stack_table *stacks, struct to_idle *idle,
                        struct to_sums_cache *cache, size_t sums_max) {
  *s = (struct to_span_sums){ .mem = mem,
                              .windows = windows,
                              .stacks = stacks,
                              .idle = idle,
                              .cache = cache,
                              .sums_max = sums_max };
  to_span_sums_turn(s);
  tb_map_init(&s->by_key, mem, tb_seed());
  tb_map_init(&s->entry_of, mem, tb_seed());
  tb_map_init(&s->site_of, mem, tb_seed());
  TB_TRY(add_rests(s));
  TB_TRY(to_windows_series(windows, TO_NO_SERIES, &s->of_range));
  for (unsigned i = 0; i <= TO_ENTRY_OTHER; i++) TB_TRY(add_entry(s, NULL));
  return init_sites(s);
}

void to_span_sums_fini(struct to_span_sums *s) {
  if (s->mem == NULL) return;
  tb_map_fini(&s->by_key);
  tb_map_fini(&s->entry_of);
  tb_map_fini(&s->site_of);
  tb_mem_free(s->mem, s->site, s->sites_room * sizeof(*s->site));
  tb_mem_free(s->mem, s->sum, s->room * sizeof(*s->sum));
  tb_mem_free(s->mem, s->entry, s->entries_room * sizeof(*s->entry));
  tb_mem_free(s->mem, s->entry_of_stack, s->entry_of_stacks * sizeof(*s->entry_of_stack));
  tb_mem_free(s->mem, s->goroutine, s->goroutines * sizeof(*s->goroutine));
  tb_mem_free(s->mem, s->held, s->held_room * sizeof(*s->held));
}

struct to_string to_span_sums_entry(const struct to_span_sums *s, uint32_t entry) {
  const struct to_frame *frame = s->entry[entry].frame;

  return frame == NULL ? (struct to_string){ "", 0 } : frame->function;
}

struct to_string to_span_sums_entry_at(const struct to_span_sums *s, uint32_t slot) {
  uint32_t entry = slot < s->goroutines ? s->goroutine[slot].entry : TO_ENTRY_UNKNOWN;

  return to_span_sums_entry(s, entry);
}

static tb_rc grow(struct to_span_sums *s, uint32_t slot) {
  size_t room = s->goroutines < TO_SUMS_HELD_MAX ? TO_SUMS_HELD_MAX : s->goroutines;
  void *block = s->goroutine;

  while (room <= slot) room *= 2;
  TB_TRY(tb_mem_resize(s->mem, &block, s->goroutines * sizeof(*s->goroutine),
                       room * sizeof(*s->goroutine)));
  s->goroutine = block;
  memset(s->goroutine + s->goroutines, 0, (room - s->goroutines) * sizeof(*s->goroutine));
  s->goroutines = room;
  return TB_OK;
}

tb_rc to_span_sums_begin(struct to_span_sums *s, uint32_t slot) {
  if (slot >= s->goroutines) TB_TRY(grow(s, slot));
  s->goroutine[slot] =
      (struct to_sums_goroutine){ .entry = TO_ENTRY_UNKNOWN, .site = TO_SITE_UNKNOWN };
  s->entry[TO_ENTRY_UNKNOWN].alive++;
  s->site[TO_SITE_UNKNOWN].alive++;
  return TB_OK;
}

static tb_rc site_of(struct to_span_sums *s, const struct to_generation *gen, uint64_t stack,
                     bool begins, uint32_t *out) {
  uint32_t number;

  *out = TO_SITE_UNKNOWN;
  if (stack == 0) return TB_OK;
  TB_TRY(to__stack_number(s->stacks, gen, stack, &number));
  return number == TO_STACK_EMPTY ? TB_OK : find_site(s, number, begins, out);
}

static tb_rc set_site(struct to_span_sums *s, const struct to_generation *gen, uint32_t slot,
                      uint64_t stack, uint64_t begins) {
  uint32_t site;

  TB_TRY(site_of(s, gen, stack, false, &site));
  if (site == TO_SITE_UNKNOWN) TB_TRY(site_of(s, gen, begins, true, &site));
  s->site[s->goroutine[slot].site].alive--;
  s->goroutine[slot].site = site;
  s->site[site].alive++;
  return TB_OK;
}

static struct to_sums_goroutine goroutine_of(const struct to_span_sums *s, uint32_t entry,
                                             uint32_t site) {
  return (struct to_sums_goroutine){ .entry = entry,
                                     .running = s->entry[entry].running,
                                     .calling = s->entry[entry].calling,
                                     .site = site };
}

/* Many goroutines are created at a place: all but the first find their sums here. */
tb_rc to_span_sums_create(struct to_span_sums *s, const struct to_generation *gen, uint32_t slot,
                          uint64_t life, uint64_t stack, uint64_t begins, to_ns now) {
  struct to_sums_recent_birth *recent = &s->recent_birth[(stack + begins) % TO_SUMS_RECENT_BIRTHS];
  bool is_recent = recent->stack == stack && recent->begins == begins &&
                   recent->epoch == s->stacks->epoch && slot < s->goroutines;

  if (TB_LIKELY(is_recent)) {
    s->goroutine[slot] = goroutine_of(s, recent->entry, recent->site);
    s->entry[recent->entry].alive++;
    s->site[recent->site].alive++;
  } else {
    TB_TRY(to_span_sums_begin(s, slot));
    TB_TRY(set_site(s, gen, slot, stack, begins));
    TB_TRY(to_span_sums_meet(s, gen, slot, life, begins));
    if (s->goroutine[slot].entry != TO_ENTRY_UNKNOWN)
      *recent = (struct to_sums_recent_birth){ .stack = stack,
                                               .begins = begins,
                                               .epoch = s->stacks->epoch,
                                               .entry = s->goroutine[slot].entry,
                                               .site = s->goroutine[slot].site };
  }
  to_windows_sum(s->windows, s->site[s->goroutine[slot].site].created, now, now, 0, false);
  return TB_OK;
}

tb_rc to_span_sums_end(struct to_span_sums *s, uint32_t slot, to_ns from, to_ns until,
                       bool from_known) {
  struct to_sums_entry *entry = &s->entry[s->goroutine[slot].entry];
  struct to_sums_site *site = &s->site[s->goroutine[slot].site];

  entry->alive--;
  site->alive--;
  if (TB_UNLIKELY(!from_known)) {
    to_windows_sum(s->windows, entry->lives, from, until, 0, true);
    return to_windows_add(s->windows, site->lives, from, until, 0, true);
  }
  uint64_t ns = (uint64_t)until - (uint64_t)from;
  to_windows_sum_length(s->windows, entry->lives, ns);
  if (TB_LIKELY(to_windows_add_length(s->windows, site->lives, ns))) return TB_OK;
  return to_windows_add(s->windows, site->lives, from, until, 0, false);
}

void to_span_sums_idle_changed(struct to_span_sums *s) {
  to_span_sums_turn(s);
}

void to_span_sums_clear(struct to_span_sums *s) {
  for (size_t i = 0; i < s->entries; i++) s->entry[i].alive = 0;
  for (size_t i = 0; i < s->sites; i++) s->site[i].alive = 0;
}

static uint8_t why_of(const struct to_span *span) {
  if (span->kind == TO_SPAN_SYSCALL) return span->cause;
  if (span->state == TO_GO_RUNNABLE) return span->cause;
  return span->state == TO_GO_WAITING ? span->reason : 0;
}

static enum to_go_state state_of(const struct to_span *span) {
  return span->kind == TO_SPAN_SYSCALL ? TO_GO_SYSCALL : (enum to_go_state)span->state;
}

static tb_rc find_of_entry(struct to_span_sums *s, const struct to_generation *gen,
                           const struct to_span *span, uint32_t entry, uint32_t *out) {
  struct to_span_sum like = { .entry = entry, .state = state_of(span), .why = why_of(span) };

  if (has_stacks((enum to_go_state)like.state)) {
    TB_TRY(to__stack_number(s->stacks, gen, span->stack, &like.stack));
    if (to_sum_has_waker(span->state, span->cause))
      TB_TRY(to__stack_number(s->stacks, gen, span->by_stack, &like.by_stack));
    if (like.state == TO_GO_WAITING && s->idle != NULL)
      TB_TRY(
          to_idle_ask_in(s->idle, like.stack, like.why, to_span_sums_entry(s, entry), &like.idle));
  }
  return find_sum(s, &like, out);
}

tb_rc to_span_sums_find(struct to_span_sums *s, const struct to_generation *gen,
                        const struct to_span *span, uint32_t *out) {
  return find_of_entry(s, gen, span, s->goroutine[span->slot].entry, out);
}

static tb_rc count_span(struct to_span_sums *s, const struct to_generation *gen,
                        const struct to_span *span, uint32_t entry) {
  enum to_go_state state = state_of(span);
  uint32_t sum;

  TB_TRY(find_of_entry(s, gen, span, entry, &sum));
  uint32_t series = s->sum[sum].series;
  if (!has_stacks(state)) {
    to_windows_sum(s->windows, series, span->from, span->until, 0, !span->from_known);
    return TB_OK;
  }
  bool may_get_entry =
      entry == TO_ENTRY_UNKNOWN && span->stack != 0; /* the next span must ask again */
  if (may_get_entry)
    return to_windows_add(s->windows, series, span->from, span->until, 0, !span->from_known);
  uint64_t what = to_sums_what(s, entry, TO_SUMS_HOW(state, why_of(span)));
  *to_sums_recent(s, what, span->stack, span->by_stack) =
      (struct to_sums_recent){ .stack = span->stack,
                               .by_stack = span->by_stack,
                               .what = what,
                               .series = series,
                               .idle = s->sum[sum].idle };
  return to_windows_add(s->windows, series, span->from, span->until, 0, !span->from_known);
}

/* ---- ranges ---- */

bool to_sums_range_of(unsigned kind, enum to_sums_range *out) {
  switch ((enum to_range_kind)kind) {
  case TO_RANGE_GC_MARK_ASSIST: *out = TO_SUMS_ASSIST; return true;
  case TO_RANGE_GC_SWEEP: *out = TO_SUMS_SWEEP; return true;
  case TO_RANGE_STW: *out = TO_SUMS_STOP; return true;
  default: return false;
  }
}

static tb_rc count_range(struct to_span_sums *s, const struct to_span *range, uint32_t entry) {
  enum to_sums_range kind;
  uint32_t series;

  if (!to_sums_range_of(range->state, &kind)) return TB_OK;
  uint32_t *place = &s->entry[entry].range[kind];
  if (*place == 0) {
    TB_TRY(to_windows_series(s->windows, s->of_range, &series));
    *place = series + 1;
  }
  to_windows_sum(s->windows, *place - 1, range->from, range->until, 0, !range->from_known);
  return TB_OK;
}

/* ---- spans whose entry is not yet known ---- */

/* Counts held spans: those of one life, or all (life 0). */
static tb_rc count_held(struct to_span_sums *s, uint64_t life, uint32_t entry) {
  size_t kept = 0, n = s->n_held;
  tb_rc rc = TB_OK;

  for (size_t i = 0; i < n; i++) {
    struct to_span span = s->held[i];
    if (life != 0 && span.life != life)
      s->held[kept++] = span;
    else if (rc == TB_OK)
      rc = span.kind == TO_SPAN_RANGE ? count_range(s, &span, entry)
                                      : count_span(s, NULL, &span, entry);
  }
  s->n_held = kept;
  return rc;
}

tb_rc to_span_sums_settle(struct to_span_sums *s, uint64_t life) {
  return s->n_held == 0 ? TB_OK : count_held(s, life, TO_ENTRY_UNKNOWN);
}

/* Holds a span, with numbers for its stacks. */
static tb_rc hold_span(struct to_span_sums *s, const struct to_generation *gen,
                       const struct to_span *span) {
  uint32_t own, waker;

  TB_TRY(to__stack_number(s->stacks, gen, span->stack, &own));
  TB_TRY(to__stack_number(s->stacks, gen, span->by_stack, &waker));
  if (s->n_held == TO_SUMS_HELD_MAX) TB_TRY(count_held(s, s->held[0].life, TO_ENTRY_UNKNOWN));
  TB_TRY(TB_MEM_GROW(s->mem, s->held, s->held_room, s->n_held));
  s->held[s->n_held] = *span;
  if (span->stack != 0) s->held[s->n_held].stack = TO_STACK_KEPT | own;
  s->held[s->n_held].by_stack = TO_STACK_KEPT | waker;
  s->held[s->n_held++].more = NULL;
  return TB_OK;
}

/* Holds one range per kind, as a goroutine may sweep often before its first stack. */
static tb_rc hold_range(struct to_span_sums *s, const struct to_span *range) {
  for (struct to_span *held = s->held; held < s->held + s->n_held; held++) {
    if (held->kind != TO_SPAN_RANGE || held->life != range->life || held->state != range->state)
      continue;
    to_ns so_far = held->until - held->from;
    held->until = range->until;
    held->from = range->from - so_far;
    return TB_OK;
  }
  return hold_span(s, NULL, range);
}

tb_rc to_span_sums_range(struct to_span_sums *s, const struct to_span *range) {
  uint32_t entry = s->goroutine[range->slot].entry;

  return entry == TO_ENTRY_UNKNOWN ? hold_range(s, range) : count_range(s, range, entry);
}

/* Sets the goroutine's entry from its first stack whose outermost frame has a name, as Go's summaries do. (For an interrupted
 * goroutine, Go 1.22 to 1.26 may write a single frame without a name.) */
tb_rc to_span_sums_meet(struct to_span_sums *s, const struct to_generation *gen, uint32_t slot,
                        uint64_t life, uint64_t stack) {
  struct to_sums_goroutine *g = &s->goroutine[slot];
  uint32_t number, entry;

  if (g->entry != TO_ENTRY_UNKNOWN || stack == 0) return TB_OK;
  TB_TRY(to__stack_number(s->stacks, gen, stack, &number));
  TB_TRY(entry_of_stack(s, number, &entry));
  if (TB_UNLIKELY(entry == TO_ENTRY_UNKNOWN)) return TB_OK;
  *g = goroutine_of(s, entry, g->site);
  s->entry[TO_ENTRY_UNKNOWN].alive--;
  s->entry[entry].alive++;
  return s->n_held > 0 ? count_held(s, life, entry) : TB_OK;
}

/* Counts a span whose entry became known with its own stack. */
static bool add_with_entry(struct to_span_sums *s, const struct to_span *span) {
  enum to_go_state state = state_of(span);
  uint64_t ns = (uint64_t)span->until - (uint64_t)span->from;

  if (span->kind == TO_SPAN_SYSCALL || !span->from_known) return false;
  if (has_stacks(state))
    return to_span_sums_add(s, span->slot, TO_SUMS_HOW(state, why_of(span)), span->stack,
                            span->by_stack, ns);
  return to_span_sums_add_plain(s, span->slot, state, ns);
}

tb_rc to_span_sums_take(struct to_span_sums *s, const struct to_generation *gen,
                        const struct to_span *span) {
  uint64_t stack = span->stack != 0 ? span->stack : span->end_stack;

  if (s->goroutine[span->slot].entry == TO_ENTRY_UNKNOWN) {
    if (stack == 0) return hold_span(s, gen, span);
    TB_TRY(to_span_sums_meet(s, gen, span->slot, span->life, stack));
    if (s->goroutine[span->slot].entry == TO_ENTRY_UNKNOWN) return hold_span(s, gen, span);
    if (add_with_entry(s, span)) return TB_OK;
  }
  return count_span(s, gen, span, s->goroutine[span->slot].entry);
}

const struct to_span_sum *to_span_sums_next(const struct to_span_sums *s,
                                            const struct to_view *view, enum to_go_state state,
                                            const struct to_span_sum *sum) {
  for (sum = sum == NULL ? s->sum : sum + 1; sum < s->sum + s->n; sum++)
    if (sum->state == state && to_view_cell(view, sum->series) != NULL) return sum;
  return NULL;
}
