/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/parked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RANGES_FEW = 8 };

void to__state_init(struct to_order *order, struct tb_mem *mem) {
  uint64_t seed = tb_seed();

  order->mem = mem;
  tb_map_init(&order->procs, mem, seed);
  tb_map_init(&order->threads, mem, seed);
  tb_map_init(&order->tasks, mem, seed);
  for (unsigned i = 0; i < TW_SEQUENCES_MAX; i++) tb_map_init(&order->sequences[i], mem, seed);
  to__names_init(&order->names, mem);
  to__parked_init(&order->parked, mem);
  to__state_clear(order);
}

static void drop_ranges(struct to_order *order, struct to_ranges *ranges) {
  tb_mem_free(order->mem, ranges->items, ranges->cap * sizeof *ranges->items);
  if (ranges->texts != NULL) {
    tb_map_fini(ranges->texts);
    tb_mem_free(order->mem, ranges->texts, sizeof *ranges->texts);
  }
  *ranges = (struct to_ranges){ 0 };
}

void to__region_drop(struct to_order *order, struct to_g *g) {
  struct to_region *top = g->more->regions;

  g->more->regions = top->below;
  to__name_release(&order->names, top->name);
  tb_mem_free(order->mem, top, sizeof *top);
}

void to__g_drop_more(struct to_order *order, struct to_g *g) {
  if (g->more == NULL) return;
  while (g->more->regions != NULL) to__region_drop(order, g);
  drop_ranges(order, &g->more->ranges);
  tb_mem_free(order->mem, g->more, sizeof *g->more);
  g->more = NULL;
}

static void drop_task(struct to_order *order, struct to_task *task) {
  to__name_release(&order->names, task->name);
  tb_mem_free(order->mem, task, sizeof *task);
}

void to__task_drop(struct to_order *order, uint64_t id) {
  const uint64_t *found = tb_map_find(&order->tasks, id);

  drop_task(order, (struct to_task *)(uintptr_t)*found);
  tb_map_remove(&order->tasks, id);
}

static void drop_goroutines(struct to_order *order) {
  struct to_goroutines *gs = &order->goroutines;
  size_t from = 0;

  for (struct to_g *g; (g = to__goroutines_any(gs, &from)) != NULL;) {
    to__g_drop_more(order, g);
    to__goroutines_remove(gs, g);
  }
  to__g_drop_more(order, &order->no_g);
  to__goroutines_fini(gs);
}

/* Releases everything but the tables themselves. */
static void drop_all(struct to_order *order) {
  uint64_t key, value;

  drop_goroutines(order);
  for (size_t i = 0; tb_map_next(&order->procs, &i, &key, &value);) {
    struct to_p *p = (struct to_p *)(uintptr_t)value;
    tb_mem_free(order->mem, p, sizeof *p);
  }
  for (size_t i = 0; tb_map_next(&order->threads, &i, &key, &value);)
    tb_mem_free(order->mem, (void *)(uintptr_t)value, sizeof(struct to_thread));
  for (size_t i = 0; tb_map_next(&order->tasks, &i, &key, &value);)
    drop_task(order, (struct to_task *)(uintptr_t)value);
}

void to__state_clear(struct to_order *order) {
  drop_all(order);
  to__goroutines_init(&order->goroutines, order->mem);
  tb_map_clear(&order->procs);
  tb_map_clear(&order->threads);
  tb_map_clear(&order->tasks);
  for (unsigned i = 0; i < TW_SEQUENCES_MAX; i++) tb_map_clear(&order->sequences[i]);
  order->no_g = (struct to_g){ .id = TO_NONE, .status = TO_G_GONE };
  order->no_p = (struct to_p){ .id = TO_NONE };
  order->no_thread =
      (struct to_thread){ .id = TO_NONE, .exists = true, .g = &order->no_g, .p = &order->no_p };
  memset(order->near_procs, 0, sizeof order->near_procs);
  order->gc = TO_GC_UNDETERMINED;
  order->gc_seq = 0;
  order->first_gen = 0;
  order->frontier_len = 0;
  to__parked_clear(&order->parked);
}

void to__state_fini(struct to_order *order) {
  if (order->mem == NULL) return;
  drop_all(order);
  tb_map_fini(&order->procs);
  tb_map_fini(&order->threads);
  tb_map_fini(&order->tasks);
  for (unsigned i = 0; i < TW_SEQUENCES_MAX; i++) tb_map_fini(&order->sequences[i]);
  to__names_fini(&order->names);
  to__parked_fini(&order->parked);
}

/* Id -1 is not in the table: it is no_g. */
struct to_g *to__g_look_far(struct to_order *order, int64_t id) {
  return id == TO_NONE ? &order->no_g : NULL;
}

tb_rc to__g_more(struct to_order *order, struct to_g *g, struct to_g_more **out) {
  if (g->more == NULL) TB_TRY(tb_mem_alloc(order->mem, sizeof *g->more, &g->more));
  *out = g->more;
  return TB_OK;
}

struct to_p *to__p_find_far(struct to_order *order, int64_t id) {
  if (id == TO_NONE) return order->no_p.exists ? &order->no_p : NULL;
  return tb_map_at(&order->procs, (uint64_t)id);
}

tb_rc to__p_begin(struct to_order *order, int64_t id, uint8_t status, struct to_p **out) {
  struct to_p *p = &order->no_p;
  bool fresh;

  if (id != TO_NONE) {
    TB_TRY(tb_map_claim(&order->procs, (uint64_t)id, sizeof *p, &p, &fresh));
    p->id = id;
    if ((uint64_t)id < TO_PROCS_NEAR) order->near_procs[id] = p;
  }
  p->exists = true;
  p->status = status;
  *out = p;
  return TB_OK;
}

struct to_thread *to__thread_find(struct to_order *order, int64_t id) {
  return tb_map_at(&order->threads, (uint64_t)id);
}

tb_rc to__thread_claim(struct to_order *order, int64_t id, struct to_thread **out) {
  struct to_thread *t;
  bool fresh;

  TB_TRY(tb_map_claim(&order->threads, (uint64_t)id, sizeof *t, &t, &fresh));
  if (fresh) {
    t->id = id;
    t->has = TO_HAS_M;
    t->g = &order->no_g;
    t->p = &order->no_p;
  }
  *out = t;
  return TB_OK;
}

bool to__has_range(const struct to_ranges *ranges, uint8_t type, uint64_t text) {
  if (type != TW_EV_STW_BEGIN)
    return ranges->assist != 0 && ranges->items[ranges->assist - 1].type == type;
  if (ranges->texts != NULL) return tb_map_find(ranges->texts, text) != NULL;
  for (uint32_t i = 0; i < ranges->count; i++)
    if (ranges->items[i].type == type && ranges->items[i].text == text) return true;
  return false;
}

/* Builds the map of texts, when there are many ranges. */
static tb_rc list_texts(struct to_order *order, struct to_ranges *ranges) {
  struct tb_map *texts;
  tb_rc rc = TB_OK;

  TB_TRY(tb_mem_alloc(order->mem, sizeof *texts, &texts));
  tb_map_init(texts, order->mem, tb_seed());
  for (uint32_t i = 0; i < ranges->count && rc == TB_OK; i++) {
    uint64_t *place;
    if (ranges->items[i].type == TW_EV_STW_BEGIN)
      rc = tb_map_put(texts, ranges->items[i].text, &place, NULL);
  }
  if (rc == TB_OK) {
    ranges->texts = texts;
    return TB_OK;
  }
  tb_map_fini(texts);
  tb_mem_free(order->mem, texts, sizeof *texts);
  return rc;
}

tb_rc to__begin_range(struct to_order *order, struct to_ranges *ranges, uint8_t type,
                      uint64_t text) {
  bool is_stop = type == TW_EV_STW_BEGIN;
  uint64_t *place;

  if (ranges->count == ranges->cap) {
    uint32_t cap = ranges->cap == 0 ? 2 : ranges->cap * 2;
    void *items = ranges->items;
    TB_TRY(tb_mem_resize(order->mem, &items, ranges->cap * sizeof *ranges->items,
                         cap * sizeof *ranges->items));
    ranges->items = items;
    ranges->cap = cap;
  }
  if (ranges->count >= RANGES_FEW && ranges->texts == NULL) TB_TRY(list_texts(order, ranges));
  if (is_stop && ranges->texts != NULL) TB_TRY(tb_map_put(ranges->texts, text, &place, NULL));
  ranges->items[ranges->count++] = (struct to_range){ .text = text, .type = type };
  if (!is_stop) ranges->assist = ranges->count;
  return TB_OK;
}

/* Ends the first range of this type, as Go's reader does. Before the first stop there can only be the assist. */
bool to__end_range(struct to_ranges *ranges, uint8_t type, uint64_t *out_text) {
  bool is_stop = type == TW_EV_STW_BEGIN;
  uint32_t i = is_stop ? ranges->assist == 1 : ranges->assist - 1;

  if (i >= ranges->count || ranges->items[i].type != type) return false;
  *out_text = ranges->items[i].text;
  if (is_stop && ranges->texts != NULL) (void)tb_map_remove(ranges->texts, *out_text);
  if (!is_stop) ranges->assist = 0;
  /* The last range takes the place of the removed one, as in Go's reader: that decides which of several STW ranges ends next. */
  if (ranges->assist == ranges->count) ranges->assist = i + 1;
  ranges->items[i] = ranges->items[--ranges->count];
  return true;
}

tb_rc to__region_add(struct to_order *order, struct to_g *g, uint64_t task, struct to_string name) {
  struct to_g_more *more;
  void *block = NULL;

  TB_TRY(to__g_more(order, g, &more));
  TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof(struct to_region)));
  struct to_region *region = block;
  tb_rc rc = to__name_hold(&order->names, name, &region->name);
  if (rc != TB_OK) {
    tb_mem_free(order->mem, region, sizeof *region);
    return rc;
  }
  region->task = task;
  region->below = more->regions;
  more->regions = region;
  return TB_OK;
}

enum { NAME_SHOWN = 36, ALIKE_SHOWN = 12 }; /* bytes of a name in a message */

/* Shows the part of the names that differs: skips a long common beginning. */
static const char *shown_from(struct to_string a, struct to_string b, size_t *out_from) {
  size_t alike = 0;

  while (alike < a.len && alike < b.len && a.data[alike] == b.data[alike]) alike++;
  bool is_far = alike >= NAME_SHOWN && (alike < a.len || alike < b.len);
  *out_from = is_far ? alike - ALIKE_SHOWN : 0;
  return is_far ? "..." : "";
}

static int shown_bytes(struct to_string name, size_t from) {
  return (int)(name.len - from < NAME_SHOWN ? name.len - from : NAME_SHOWN);
}

tb_rc to__region_misnested(struct to_order *order, const struct to_thread *t, uint64_t task,
                           struct to_string name) {
  struct to_g *g = t->g;
  const struct to_region *top = g->more->regions;
  struct to_string innermost = { top->name->text, top->name->len };
  char text[256];
  size_t from;
  const char *cut = shown_from(name, innermost, &from);

  (void)snprintf(text, sizeof text,
                 "goroutine %" PRId64 " ends region \"%s%.*s\" of task %" PRIu64
                 ", but its innermost is \"%s%.*s\" of task %" PRIu64,
                 g->id, cut, shown_bytes(name, from), name.data + from, task, cut,
                 shown_bytes(innermost, from), innermost.data + from, top->task);
  TB_TRY(to__misannotated(order, t, text));
  while (g->more->regions != NULL) to__region_drop(order, g);
  g->more->dropped_regions = true;
  return TB_OK;
}

tb_rc to__task_again(struct to_order *order, const struct to_thread *t, uint64_t id) {
  char text[64];

  (void)snprintf(text, sizeof text, "task %" PRIu64 " begins twice", id);
  TB_TRY(to__misannotated(order, t, text));
  to__task_drop(order, id);
  return TB_OK;
}

tb_rc to__task_add(struct to_order *order, uint64_t id, uint64_t parent, struct to_string name) {
  void *block = NULL;
  uint64_t *place;

  TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof(struct to_task)));
  struct to_task *task = block;
  tb_rc rc = to__name_hold(&order->names, name, &task->name);
  if (rc != TB_OK) {
    tb_mem_free(order->mem, task, sizeof *task);
    return rc;
  }
  task->parent = parent;
  rc = tb_map_put(&order->tasks, id, &place, NULL);
  if (rc != TB_OK) {
    drop_task(order, task);
    return rc;
  }
  *place = (uintptr_t)task;
  return TB_OK;
}
