/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of any input that the reader accepts. Each transition is also recorded here, by goroutine id. The spans of a
 * life are these transitions, each beginning where the last one ended; pieces fill their call; each life has its own
 * number; stacks and names can be read; every event that ends something makes one span; an epoch leaves nothing open,
 * and cuts what was open; a client that asks for fewer kinds gets the same spans of them; all memory is released. */
#include <string.h>

#include "base/crc32c.h"
#include "base/map.h"
#include "fuzz/fuzz.h"
#include "fuzz/read_trace.h"
#include "fuzz/trace_budget.h"
#include "online/event/view.h"
#include "online/spans/spans.h"
#include "online/trace/reader.h"

enum {
  MEMORY_MAX = 64 << 20,
  OWN_MEMORY_MAX = 512 << 20,
  FUEL = 100000,
  STATED_MAX = 1024,
  ASKED_MAX = 32
};

/* A goroutine according to the transitions so far. */
struct told {
  uint64_t birth; /* counts the goroutines of the stream */
  to_ns since;
  uint8_t state;
};

/* A life according to the spans so far. */
struct seen {
  uint64_t birth;                 /* birth of its goroutine in struct told */
  to_ns from, until;              /* begin and end of all its states */
  to_ns pieces_from, piece_until; /* pieces of the open call */
  bool states, pieces, closes, lost_p, over;
};

/* A state that has ended: its span is due. */
struct stated {
  int64_t id;
  uint64_t birth;
  to_ns from, until;
  uint8_t state;
};

struct checker {
  struct to_spans *all, *few;
  struct tb_mem own;
  struct tb_map told, seen; /* by goroutine id; by life */
  struct tb_map lives;      /* life by birth */
  struct stated stated[STATED_MAX];
  size_t next_stated, n_stated, closing;
  size_t ended[TO_SPAN_KINDS], came[TO_SPAN_KINDS]; /* ends in events, and spans, of each kind */
  uint64_t births, hash_all, hash_few, goroutines;
  uint64_t spans, sum; /* spans that are open or were cut, which have no order */
  size_t stacks_max;
  uint32_t few_wanted;
  unsigned asked;
  to_ns began, now;
  bool heard;
  bool behind; /* memory ran out: spans are missing in this epoch */
  bool parted; /* only one of the two ran out: from then on their numbers of lives differ */
  const struct to_generation *gen; /* of the stacks of open spans */
};

static void mix(uint64_t *hash, uint64_t value) {
  *hash = (*hash ^ value) * UINT64_C(0x100000001b3);
}

static void mix_text(uint64_t *hash, struct to_string text) {
  FUZZ_CHECK(text.len <= TW_STRING_BYTES_MAX);
  mix(hash, text.len);
  for (size_t i = 0; i < text.len; i++) mix(hash, (unsigned char)text.data[i]);
}

static void mix_span(uint64_t *hash, const struct to_span *span) {
  const uint64_t fields[] = { (uint64_t)span->from,
                              (uint64_t)span->until,
                              (uint64_t)span->id,
                              span->life,
                              span->by_life,
                              (uint64_t)span->by,
                              (uint64_t)span->thread,
                              (uint64_t)span->proc,
                              (uint64_t)span->by_thread,
                              span->kind,
                              span->state,
                              span->reason,
                              span->cause,
                              span->from_known,
                              span->until_known };
  struct to_span_more more = { 0 }; /* equals no struct */

  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) mix(hash, fields[i]);
  if (span->more != NULL) more = *span->more;
  mix_text(hash, more.name);
  if (span->kind != TO_SPAN_REGION)
    mix_text(hash, more.text); /* its task's type, if tasks are wanted */
  mix(hash, more.value);
  mix(hash, more.parent);
}

/* Adds the span to the checksum, and so reads every byte of its texts. */
static void add_to_sum(struct checker *c, const struct to_span *span) {
  uint64_t hash = 0;

  mix_span(&hash, span);
  c->sum += hash;
  c->spans++;
}

/* ---- what the transitions say ---- */

static struct told *tell(struct checker *c, int64_t id, bool *fresh) {
  struct told *told;

  FUZZ_CHECK(tb_map_claim(&c->told, (uint64_t)id, sizeof *told, &told, fresh) == TB_OK);
  return told;
}

static void forget(struct checker *c, int64_t id) {
  tb_mem_free(&c->own, tb_map_at(&c->told, (uint64_t)id), sizeof(struct told));
  tb_map_remove(&c->told, (uint64_t)id);
}

/* The kind of the span that the event ends, unless it is one of a goroutine, a P or a thread. */
static unsigned ends_kind(const struct to_event *ev) {
  switch (to_event_kind(ev)) {
  case TO_KIND_RANGE_END: return TO_SPAN_RANGE;
  case TO_KIND_TASK_END: return TO_SPAN_TASK;
  case TO_KIND_REGION_END: return TO_SPAN_REGION;
  case TO_KIND_LOG: return TO_SPAN_LOG;
  case TO_KIND_STACK_SAMPLE: return TO_SPAN_SAMPLE;
  case TO_KIND_METRIC: return TO_SPAN_METRIC;
  default: return TO_SPAN_KINDS;
  }
}

static void expect(struct checker *c, const struct to_event *ev) {
  unsigned kind = ends_kind(ev);
  struct to_transition tr;
  bool fresh;

  if (kind < TO_SPAN_KINDS) c->ended[kind]++;
  if (to_event_kind(ev) != TO_KIND_TRANSITION) return;
  to_event_transition(ev, &tr);
  if (tr.resource != TO_RESOURCE_GOROUTINE) return;
  struct told *told = tell(c, tr.id, &fresh);
  if (fresh)
    *told = (struct told){ .birth = ++c->births,
                           .since = tr.from == TO_GO_NOT_EXIST ? ev->time : c->began,
                           .state = tr.to };
  if (fresh || told->state == tr.to) return;
  FUZZ_CHECK(c->n_stated < STATED_MAX && tr.from == told->state);
  c->stated[c->n_stated++] =
      (struct stated){ tr.id, told->birth, told->since, ev->time, told->state };
  told->since = ev->time;
  told->state = tr.to;
  if (tr.to != TO_GO_NOT_EXIST) return;
  forget(c, tr.id);
  c->ended[TO_SPAN_LIFE]++;
}

/* ---- what the spans say ---- */

static void check_stack(const struct checker *c, const struct to_generation *gen, uint64_t stack) {
  const struct to_callstack *frames;
  uint32_t number;

  if (to_spans_stack(c->all, gen, stack, &number) != TB_OK) return; /* no memory */
  FUZZ_CHECK(number < c->stacks_max + 2);
  frames = to_spans_callstack(c->all, number);
  FUZZ_CHECK((frames == NULL) == (number == TO_STACK_OTHER));
  for (size_t i = 0; frames != NULL && i < frames->len; i++)
    FUZZ_CHECK(frames->frames[i]->function.len <= TW_STRING_BYTES_MAX);
}

static void check_span(const struct checker *c, const struct to_generation *gen,
                       const struct to_span *span) {
  FUZZ_CHECK(span->kind < TO_SPAN_KINDS && span->from <= span->until);
  FUZZ_CHECK(span->from >= c->began && span->until <= c->now);
  check_stack(c, gen, span->stack);
  check_stack(c, gen, span->end_stack);
  check_stack(c, gen, span->by_stack);
}

/* Checks that each life is one goroutine, and each goroutine one life. */
static struct seen *see(struct checker *c, uint64_t life, uint64_t birth) {
  struct seen *seen;
  uint64_t *of;
  bool fresh;

  FUZZ_CHECK(life != 0);
  FUZZ_CHECK(tb_map_claim(&c->seen, life, sizeof *seen, &seen, &fresh) == TB_OK);
  if (birth != 0) {
    FUZZ_CHECK(tb_map_put(&c->lives, birth, &of, NULL) == TB_OK);
    FUZZ_CHECK(*of == 0 || *of == life);
    FUZZ_CHECK(seen->birth == 0 || seen->birth == birth);
    *of = life;
    seen->birth = birth;
  }
  FUZZ_CHECK(!seen->over);
  return seen;
}

/* Adds a state, and checks that it begins where the previous one ended. */
static void add_state(struct seen *seen, const struct to_span *span) {
  FUZZ_CHECK(!seen->closes);
  if (seen->states) FUZZ_CHECK(span->from == seen->until);
  if (!seen->states) seen->from = span->from;
  if (seen->pieces) FUZZ_CHECK(span->state == TO_GO_SYSCALL && span->from == seen->pieces_from);
  seen->states = true;
  seen->until = span->until;
}

static void add_goroutine(struct checker *c, const struct to_span *span) {
  FUZZ_CHECK(c->next_stated < c->n_stated);
  const struct stated *due = &c->stated[c->next_stated++];
  struct seen *seen = see(c, span->life, due->birth);

  FUZZ_CHECK(span->id == due->id && span->state == due->state);
  FUZZ_CHECK(span->from == due->from && span->until == due->until);
  add_state(seen, span);
  if (span->state != TO_GO_SYSCALL) return;
  if (!seen->pieces) seen->pieces_from = seen->piece_until = span->from;
  seen->closes = true;
  c->closing++;
}

/* Adds a piece of a system call; a piece that ends before its call has lost its P. */
static void add_piece(struct checker *c, const struct to_span *span) {
  struct seen *seen = see(c, span->life, 0);

  if (!seen->pieces && !seen->closes) {
    if (seen->states) FUZZ_CHECK(span->from == seen->until);
    seen->pieces_from = seen->piece_until = span->from;
  }
  FUZZ_CHECK(span->from == seen->piece_until);
  FUZZ_CHECK(span->state == 1 ? !seen->lost_p : seen->closes);
  seen->piece_until = span->until;
  seen->pieces = seen->lost_p = true;
  if (!seen->closes) return;
  FUZZ_CHECK(span->until == seen->until);
  seen->closes = seen->pieces = seen->lost_p = false;
  c->closing--;
}

static void add_life(struct checker *c, const struct to_span *span) {
  struct seen *seen = see(c, span->life, 0);

  FUZZ_CHECK(seen->states && !seen->pieces && !seen->closes);
  FUZZ_CHECK(span->from == seen->from && span->until == seen->until);
  seen->over = true;
}

static bool few_wants(const struct checker *c, const struct to_span *span) {
  if (span->kind == TO_SPAN_GOROUTINE && (c->few_wanted >> (16 + span->state) & 1) != 0)
    return true;
  return (c->few_wanted >> span->kind & 1) != 0;
}

static tb_rc take_all(void *self, const struct to_generation *gen, const struct to_span *spans,
                      size_t n) {
  struct checker *c = self;

  FUZZ_CHECK(n > 0 && n <= TO_SPANS_SLICE);
  for (const struct to_span *span = spans; span < spans + n; span++) {
    check_span(c, gen, span);
    FUZZ_CHECK(!span->open);
    if (gen == NULL) { /* after a hole: the span was cut */
      add_to_sum(c, span);
      continue;
    }
    if (few_wants(c, span)) mix_span(&c->hash_all, span);
    if (c->behind) continue;
    if (span->until_known) c->came[span->kind]++; /* otherwise the goroutine's end has cut it */
    if (span->kind == TO_SPAN_GOROUTINE) add_goroutine(c, span);
    if (span->kind == TO_SPAN_SYSCALL) add_piece(c, span);
    if (span->kind == TO_SPAN_LIFE) add_life(c, span);
  }
  return TB_OK;
}

static tb_rc take_few(void *self, const struct to_generation *gen, const struct to_span *spans,
                      size_t n) {
  struct checker *c = self;

  for (size_t i = 0; i < n && gen != NULL; i++) mix_span(&c->hash_few, &spans[i]);
  return TB_OK;
}

/* ---- what is open ---- */

static bool is_range_of_goroutine(const struct to_span *span) {
  return span->kind == TO_SPAN_RANGE &&
         to_range_info((enum to_range_kind)span->state)->scope == TO_RESOURCE_GOROUTINE;
}

static tb_rc look_at_open(void *self, const struct to_span *span) {
  struct checker *c = self;

  FUZZ_CHECK(span->open && !span->until_known && span->until == c->now);
  check_span(c, c->gen, span);
  add_to_sum(c, span);
  if (c->behind) return TB_OK;
  const struct seen *seen = tb_map_at(&c->seen, span->life);
  if (seen != NULL && span->kind <= TO_SPAN_LIFE) FUZZ_CHECK(!seen->over && !seen->closes);
  if (span->kind == TO_SPAN_SYSCALL && seen != NULL && seen->pieces)
    FUZZ_CHECK(span->from == seen->piece_until && span->state == 0);
  if (span->kind == TO_SPAN_LIFE && seen != NULL && seen->states)
    FUZZ_CHECK(span->from == seen->from);
  const struct told *told = tb_map_at(&c->told, (uint64_t)span->id);
  if (span->kind == TO_SPAN_REGION || is_range_of_goroutine(span)) FUZZ_CHECK(told != NULL);
  if (span->kind != TO_SPAN_GOROUTINE) return TB_OK;
  FUZZ_CHECK(told != NULL && told->state == span->state && told->since == span->from);
  if (seen != NULL && seen->states)
    FUZZ_CHECK(span->from == seen->until && seen->birth == told->birth);
  c->goroutines++;
  return TB_OK;
}

static uint64_t ask_open(struct checker *c, const struct to_generation *gen) {
  c->gen = gen;
  c->goroutines = c->spans = c->sum = 0;
  FUZZ_CHECK(to_spans_open(c->all, look_at_open, c) == TB_OK);
  if (!c->behind) FUZZ_CHECK(c->goroutines == c->told.count);
  return c->spans;
}

/* ---- the stream ---- */

static tb_rc take_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct checker *c = self;

  if (!c->heard) c->began = events->time;
  c->heard = true;
  c->now = events[n - 1].time;
  c->next_stated = c->n_stated = 0;
  memset(c->ended, 0, sizeof c->ended);
  memset(c->came, 0, sizeof c->came);
  for (size_t i = 0; i < n; i++) expect(c, &events[i]);
  tb_rc rc = to_spans_events(c->all, gen, events, n);
  c->parted |= to_spans_events(c->few, gen, events, n) != TB_OK || rc != TB_OK;
  c->behind |= rc != TB_OK;
  if (c->behind) return rc;
  FUZZ_CHECK(c->next_stated == c->n_stated && c->closing == 0);
  for (unsigned kind = TO_SPAN_LIFE; kind < TO_SPAN_KINDS; kind++)
    if (kind != TO_SPAN_PROC && kind != TO_SPAN_THREAD) FUZZ_CHECK(c->ended[kind] == c->came[kind]);
  FUZZ_CHECK(c->parted || c->hash_all == c->hash_few);
  FUZZ_CHECK(to_spans_now(c->all) == c->now);
  if (c->asked < ASKED_MAX && n % 16 == 0) c->asked++, ask_open(c, gen);
  return TB_OK;
}

static tb_rc end_generation(void *self, const struct to_generation *gen) {
  struct checker *c = self;
  tb_rc rc = to_spans_generation_ends(c->all, gen);

  if (to_spans_generation_ends(c->few, gen) != TB_OK) c->parted = true;
  if (rc == TB_OK && c->asked < ASKED_MAX) c->asked++, ask_open(c, NULL);
  return rc;
}

static void drop(struct checker *c, struct tb_map *map, size_t bytes) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(map, &i, &key, &value);)
    tb_mem_free(&c->own, (void *)(uintptr_t)value, bytes);
  tb_map_clear(map);
}

/* The earlier lives have been cut. Their numbers must not be used again. */
static void begin_epoch(struct checker *c) {
  uint64_t open = ask_open(c, NULL), sum = c->sum, life, value;

  c->spans = c->sum = 0;
  FUZZ_CHECK(to_spans_epoch(c->all) == TB_OK && c->spans == open && c->sum == sum);
  FUZZ_CHECK(to_spans_epoch(c->few) == TB_OK);
  drop(c, &c->told, sizeof(struct told));
  for (size_t i = 0; tb_map_next(&c->seen, &i, &life, &value);)
    ((struct seen *)(uintptr_t)value)->over = true;
  c->hash_all = c->hash_few = c->closing = 0;
  c->heard = c->behind = false;
  FUZZ_CHECK(ask_open(c, NULL) == 0);
}

static void check_trace(struct checker *c, const uint8_t *data, size_t size) {
  const struct to_limits limits = { .fuel_tries = FUEL };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  c->stacks_max = 4 + size % 40;
  const struct to_spans_config all = { .wanted = TO_WANT_ALL, .stacks_max = c->stacks_max },
                               few = { .wanted = c->few_wanted };
  FUZZ_CHECK(to_spans_new(&mem, &all, (struct to_span_sink){ c, take_all }, &c->all) == TB_OK);
  FUZZ_CHECK(to_spans_new(&c->own, &few, (struct to_span_sink){ c, take_few }, &c->few) == TB_OK);
  FUZZ_CHECK(to_reader_new(&mem, &limits, TO_READER_BYTES_STAY,
                           (struct to_event_sink){ c, take_events }, &diag, &reader) == TB_OK);
  to_reader_on_end(reader, c, end_generation);
  tt_tighten(&mem, size);
  /* Fed a second time as the same stream's next file, after a gap. */
  for (int file = 0; file < 2; file++) {
    (void)tt_read_trace(reader, data, size, size);
    begin_epoch(c);
    FUZZ_CHECK(to_reader_begin(reader) == TB_OK);
    to_reader_epoch(reader);
    tb_diag_clear(&diag);
  }
  to_reader_free(reader);
  to_spans_free(c->all);
  to_spans_free(c->few);
  FUZZ_CHECK(mem.bytes == 0);
}

/* The checksum chooses the kinds that the second object requests: all, or a quarter of them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct checker c;
  uint32_t bits = tb_crc32c(0, data, size);

  c = (struct checker){ .few_wanted = bits % 8 == 0 ? TO_WANT_ALL : bits & bits >> 7 };
  tb_mem_init(&c.own, tb_mem_libc, NULL, OWN_MEMORY_MAX);
  tb_map_init(&c.told, &c.own, tb_seed());
  tb_map_init(&c.seen, &c.own, tb_seed());
  tb_map_init(&c.lives, &c.own, tb_seed());
  check_trace(&c, data, size);
  drop(&c, &c.told, sizeof(struct told));
  drop(&c, &c.seen, sizeof(struct seen));
  tb_map_fini(&c.told);
  tb_map_fini(&c.seen);
  tb_map_fini(&c.lives);
  FUZZ_CHECK(c.own.bytes == 0);
  return 0;
}
