/* SPDX-License-Identifier: Apache-2.0 */
#include "online/state.h"

#include <string.h>

void to__state_init(struct to_order *order, struct tb_mem *mem, uint64_t seed) {
  order->mem = mem;
  tb_map_init(&order->pages, mem, seed);
  tb_map_init(&order->procs, mem, seed);
  tb_map_init(&order->threads, mem, seed);
  tb_map_init(&order->tasks, mem, seed);
  to__names_init(&order->names, mem, seed);
  to__state_clear(order);
}

static void drop_ranges(struct to_order *order, struct to_ranges *ranges) {
  tb_mem_give(order->mem, ranges->items, ranges->cap * sizeof *ranges->items);
  *ranges = (struct to_ranges){ 0 };
}

void to__region_drop(struct to_order *order, struct to_g *g) {
  struct to_region *top = g->regions;

  g->regions = top->below;
  to__name_let_go(&order->names, top->name);
  tb_mem_give(order->mem, top, sizeof *top);
}

static void drop_regions(struct to_order *order, struct to_g *g) {
  while (g->regions != NULL) to__region_drop(order, g);
}

static void drop_task(struct to_order *order, struct to_task *task) {
  to__name_let_go(&order->names, task->name);
  tb_mem_give(order->mem, task, sizeof *task);
}

void to__task_drop(struct to_order *order, uint64_t id) {
  const uint64_t *found = tb_map_find(&order->tasks, id);

  drop_task(order, (struct to_task *)(uintptr_t)*found);
  tb_map_remove(&order->tasks, id);
}

static void drop_g(struct to_order *order, struct to_g *g) {
  if (g == NULL) return;
  drop_regions(order, g);
  drop_ranges(order, &g->ranges);
  tb_mem_give(order->mem, g, sizeof *g);
}

static void drop_page(struct to_order *order, struct to_g_page *page) {
  for (int i = 0; i < TO_PAGE_GS; i++) drop_g(order, page->gs[i]);
  tb_mem_give(order->mem, page, sizeof *page);
}

void to__state_clear(struct to_order *order) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(&order->pages, &i, &key, &value);)
    drop_page(order, (struct to_g_page *)(uintptr_t)value);
  for (size_t i = 0; tb_map_next(&order->procs, &i, &key, &value);) {
    struct to_p *p = (struct to_p *)(uintptr_t)value;
    drop_ranges(order, &p->ranges);
    tb_mem_give(order->mem, p, sizeof *p);
  }
  for (size_t i = 0; tb_map_next(&order->threads, &i, &key, &value);)
    tb_mem_give(order->mem, (void *)(uintptr_t)value, sizeof(struct to_thread));
  for (size_t i = 0; tb_map_next(&order->tasks, &i, &key, &value);)
    drop_task(order, (struct to_task *)(uintptr_t)value);
  tb_map_clear(&order->pages);
  tb_map_clear(&order->procs);
  tb_map_clear(&order->threads);
  tb_map_clear(&order->tasks);
  drop_regions(order, &order->no_g);
  drop_ranges(order, &order->no_g.ranges);
  drop_ranges(order, &order->no_p.ranges);
  order->no_g = (struct to_g){ .id = TO_NONE };
  order->no_p = (struct to_p){ .id = TO_NONE };
  order->nobody = (struct to_thread){
    .id = TO_NONE, .nobody = true, .exists = true, .g = &order->no_g, .p = &order->no_p
  };
  order->no_g.bound = 1;
  memset(order->recent_pages, 0, sizeof order->recent_pages);
  memset(order->near_procs, 0, sizeof order->near_procs);
  order->gc = TO_GC_UNDETERMINED;
  order->gc_seq = 0;
  order->first_gen = 0;
  order->frontier_len = 0;
}

void to__state_fini(struct to_order *order) {
  if (order->mem == NULL) return;
  to__state_clear(order);
  tb_map_fini(&order->pages);
  tb_map_fini(&order->procs);
  tb_map_fini(&order->threads);
  tb_map_fini(&order->tasks);
  to__names_fini(&order->names);
  while (order->spare_gs != NULL) {
    struct to_g *spare = order->spare_gs;
    order->spare_gs = spare->spare_below;
    tb_mem_give(order->mem, spare, sizeof *spare);
  }
  tb_mem_give(order->mem, order->spare_page,
              order->spare_page == NULL ? 0 : sizeof *order->spare_page);
  tb_mem_give(order->mem, order->frontier, order->frontier_cap * sizeof *order->frontier);
}

static struct to_g_page *find_page(struct to_order *order, uint64_t number) {
  const uint64_t *found = tb_map_find(&order->pages, number);

  if (found == NULL) return NULL;
  struct to_g_page *page = (struct to_g_page *)(uintptr_t)*found;
  order->recent_pages[number % TO_PAGE_RECENT] = page;
  return page;
}

struct to_g *to__g_find_far(struct to_order *order, int64_t id) {
  if (id == TO_NONE) return order->no_g.exists ? &order->no_g : NULL;
  struct to_g_page *page = find_page(order, (uint64_t)id / TO_PAGE_GS);
  if (page == NULL) return NULL;
  struct to_g *g = page->gs[(uint64_t)id % TO_PAGE_GS];
  return g != NULL && g->exists ? g : NULL;
}

static tb_rc make_page(struct to_order *order, uint64_t number, struct to_g_page **out) {
  uint64_t *value;
  void *block = order->spare_page;

  if (block == NULL) TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof **out));
  order->spare_page = block; /* until the map has taken it */
  TB_TRY(tb_map_put(&order->pages, number, &value, NULL));
  order->spare_page = NULL;
  *value = (uintptr_t)block;
  struct to_g_page *page = block;
  memset(page, 0, sizeof *page);
  page->number = number;
  order->recent_pages[number % TO_PAGE_RECENT] = page;
  *out = page;
  return TB_OK;
}

static tb_rc take_g(struct to_order *order, int64_t id, struct to_g **out) {
  struct to_g *g = order->spare_gs;
  void *block = NULL;

  if (g != NULL) {
    order->spare_gs = g->spare_below;
    order->spare_gs_count--;
  } else {
    TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof *g));
    g = block;
  }
  *g = (struct to_g){ .id = id };
  *out = g;
  return TB_OK;
}

static void give_g(struct to_order *order, struct to_g *g) {
  drop_ranges(order, &g->ranges);
  if (order->spare_gs_count >= TO_SPARE_GS_MAX) {
    tb_mem_give(order->mem, g, sizeof *g);
    return;
  }
  g->spare_below = order->spare_gs;
  order->spare_gs = g;
  order->spare_gs_count++;
}

static struct to_g_page *page_of(struct to_order *order, int64_t id) {
  uint64_t number = (uint64_t)id / TO_PAGE_GS;
  struct to_g_page *page = order->recent_pages[number % TO_PAGE_RECENT];

  return page != NULL && page->number == number ? page : find_page(order, number);
}

static void drop_empty_page(struct to_order *order, struct to_g_page *page) {
  struct to_g_page **recent = &order->recent_pages[page->number % TO_PAGE_RECENT];

  if (*recent == page) *recent = NULL;
  tb_map_remove(&order->pages, page->number);
  if (order->spare_page == NULL)
    order->spare_page = page;
  else
    tb_mem_give(order->mem, page, sizeof *page);
}

tb_rc to__g_claim(struct to_order *order, int64_t id, struct to_g **out) {
  if (id == TO_NONE) {
    *out = &order->no_g;
    return TB_OK;
  }
  struct to_g_page *page = page_of(order, id);
  if (page == NULL) TB_TRY(make_page(order, (uint64_t)id / TO_PAGE_GS, &page));
  struct to_g **place = &page->gs[(uint64_t)id % TO_PAGE_GS];
  if (*place == NULL) {
    TB_TRY(take_g(order, id, place));
    page->used++;
  }
  *out = *place;
  return TB_OK;
}

void to__g_begin(struct to_order *order, struct to_g *g, uint8_t status) {
  g->exists = true;
  g->status = status;
  g->seq_gen = order->gen_number;
  g->seq = 0;
}

void to__g_unused(struct to_order *order, struct to_g *g) {
  if (g == &order->no_g) return;
  struct to_g_page *page = page_of(order, g->id);
  page->gs[(uint64_t)g->id % TO_PAGE_GS] = NULL;
  give_g(order, g);
  if (--page->used == 0) drop_empty_page(order, page);
}

void to__g_end(struct to_order *order, struct to_g *g) {
  drop_regions(order, g);
  g->ranges.count = 0;
  g->exists = false;
  if (g->bound == 0) to__g_unused(order, g);
}

struct to_p *to__p_find_far(struct to_order *order, int64_t id) {
  if (id == TO_NONE) return order->no_p.exists ? &order->no_p : NULL;
  const uint64_t *found = tb_map_find(&order->procs, (uint64_t)id);
  return found == NULL ? NULL : (struct to_p *)(uintptr_t)*found;
}

tb_rc to__p_begin(struct to_order *order, int64_t id, uint8_t status, struct to_p **out) {
  struct to_p *p = &order->no_p;

  if (id != TO_NONE) {
    void *block;
    uint64_t *value;
    TB_TRY(tb_mem_take(order->mem, sizeof *p, &block));
    tb_rc rc = tb_map_put(&order->procs, (uint64_t)id, &value, NULL);
    if (rc != TB_OK) {
      tb_mem_give(order->mem, block, sizeof *p);
      return rc;
    }
    p = block;
    *value = (uintptr_t)p;
    p->id = id;
    if ((uint64_t)id < TO_PROCS_NEAR) order->near_procs[id] = p;
  }
  p->exists = true;
  p->status = status;
  *out = p;
  return TB_OK;
}

struct to_thread *to__thread_find(struct to_order *order, int64_t id) {
  const uint64_t *found = tb_map_find(&order->threads, (uint64_t)id);

  return found == NULL ? NULL : (struct to_thread *)(uintptr_t)*found;
}

tb_rc to__thread_claim(struct to_order *order, int64_t id, struct to_thread **out) {
  struct to_thread *t = to__thread_find(order, id);

  if (t == NULL) {
    void *block;
    uint64_t *value;
    TB_TRY(tb_mem_take(order->mem, sizeof *t, &block));
    tb_rc rc = tb_map_put(&order->threads, (uint64_t)id, &value, NULL);
    if (rc != TB_OK) {
      tb_mem_give(order->mem, block, sizeof *t);
      return rc;
    }
    t = block;
    *value = (uintptr_t)t;
    t->id = id;
    t->g = &order->no_g;
    t->p = &order->no_p;
    order->no_g.bound++;
  }
  *out = t;
  return TB_OK;
}

bool to__has_range(const struct to_ranges *ranges, uint8_t type, uint64_t text) {
  for (uint32_t i = 0; i < ranges->count; i++)
    if (ranges->items[i].type == type && ranges->items[i].text == text) return true;
  return false;
}

tb_rc to__begin_range(struct to_order *order, struct to_ranges *ranges, uint8_t type,
                      uint64_t text) {
  if (ranges->count == ranges->cap) {
    uint32_t cap = ranges->cap == 0 ? 2 : ranges->cap * 2;
    void *items = ranges->items;
    TB_TRY(tb_mem_resize(order->mem, &items, ranges->cap * sizeof *ranges->items,
                         cap * sizeof *ranges->items));
    ranges->items = items;
    ranges->cap = cap;
  }
  ranges->items[ranges->count++] = (struct to_range){ .text = text, .type = type };
  return TB_OK;
}

bool to__end_range(struct to_ranges *ranges, uint8_t type, uint64_t *out_text) {
  for (uint32_t i = 0; i < ranges->count; i++) {
    if (ranges->items[i].type != type) continue;
    *out_text = ranges->items[i].text;
    /* The last one takes its place: which of several STW ranges ends next depends on it. */
    ranges->items[i] = ranges->items[--ranges->count];
    return true;
  }
  return false;
}

tb_rc to__region_add(struct to_order *order, struct to_g *g, uint64_t task, struct to_string name) {
  void *block = NULL;

  TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof(struct to_region)));
  struct to_region *region = block;
  tb_rc rc = to__name_hold(&order->names, name, &region->name);
  if (rc != TB_OK) {
    tb_mem_give(order->mem, region, sizeof *region);
    return rc;
  }
  region->task = task;
  region->below = g->regions;
  g->regions = region;
  return TB_OK;
}

tb_rc to__task_add(struct to_order *order, uint64_t id, uint64_t parent, struct to_string name) {
  void *block = NULL;
  uint64_t *place;

  TB_TRY(tb_mem_resize(order->mem, &block, 0, sizeof(struct to_task)));
  struct to_task *task = block;
  tb_rc rc = to__name_hold(&order->names, name, &task->name);
  if (rc != TB_OK) {
    tb_mem_give(order->mem, task, sizeof *task);
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
