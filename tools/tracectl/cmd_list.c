/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl list: the archive's segments by traced time, newest last. All pages are collected first, packed: some
 * 300 bytes a segment. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__SegmentInfo segment_info;

/* A segment's sort keys, and its packed message. */
struct item {
  uint64_t id, began_ns, arrived_ns, bytes, events;
  char *service; /* service, instance and packed message in one block */
  const char *instance;
  const unsigned char *packed;
  size_t len;
};

typedef int item_order(const void *a, const void *b);

struct list_args {
  struct tk_client_args client;
  struct tk_selector selector;
  unsigned order;
  unsigned most; /* 0: all */
  bool json, arrival;
};

struct listing {
  const struct list_args *args;
  struct item *items;
  size_t n, room;
};

static int compare(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

static int by_time(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  int order = compare(x->began_ns, y->began_ns);

  return order != 0 ? order : compare(x->id, y->id);
}

static int by_arrival(const void *a, const void *b) {
  int order = compare(((const struct item *)a)->arrived_ns, ((const struct item *)b)->arrived_ns);

  return order != 0 ? order : by_time(a, b);
}

static int by_size(const void *a, const void *b) {
  int order = compare(((const struct item *)a)->bytes, ((const struct item *)b)->bytes);

  return order != 0 ? order : by_time(a, b);
}

static int by_events(const void *a, const void *b) {
  int order = compare(((const struct item *)a)->events, ((const struct item *)b)->events);

  return order != 0 ? order : by_time(a, b);
}

static int by_service(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  int order = strcmp(x->service, y->service);

  if (order == 0) order = strcmp(x->instance, y->instance);
  return order != 0 ? order : by_time(a, b);
}

/* In the order of the words of --sort. */
static item_order *const orders[] = { by_time, by_arrival, by_size, by_events, by_service };

static bool fill_item(const segment_info *s, struct item *out) {
  size_t service = strlen(s->service) + 1, instance = strlen(s->instance) + 1;
  size_t len = tracecollect__v1__segment_info__get_packed_size(s);
  char *block = malloc(service + instance + len);

  if (block == NULL) return false;
  memcpy(block, s->service, service);
  memcpy(block + service, s->instance, instance);
  unsigned char *packed = (unsigned char *)block + service + instance;
  tracecollect__v1__segment_info__pack(s, packed);
  *out = (struct item){ s->id,           s->first_wall_ns, s->first_arrival_ns,
                        s->bytes,        s->events,        block,
                        block + service, packed,           len };
  return true;
}

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct listing *to = self;
  bool enough_comes_first = to->args->most != 0 && page->newest_first;

  for (size_t i = 0; i < page->n_segments; i++) {
    TB_TRY(TB_GROW(to->items, to->room, to->n));
    if (!fill_item(page->segments[i], &to->items[to->n])) return TB_NOMEM;
    if (++to->n == to->args->most && enough_comes_first) return TB_END;
  }
  return TB_OK;
}

static void add_time(struct tk_table *table, uint64_t wall_ns, bool estimated) {
  char text[TC_TIME_BYTES];

  tc_time_format(wall_ns, text);
  tk_table_add(table, "%s%s", estimated && wall_ns != 0 ? "~" : "", text);
}

static void add_row(struct tk_table *table, const segment_info *s, bool arrival) {
  char size[TK_SIZE_BYTES];

  tk_size_format(s->bytes, size);
  tk_table_add(table, "%" PRIu64, s->id);
  tk_table_add(table, "%s", s->service);
  tk_table_add(table, "%s", s->instance);
  if (s->first_gen == s->last_gen)
    tk_table_add(table, "%" PRIu64, s->first_gen);
  else
    tk_table_add(table, "%" PRIu64 "..%" PRIu64, s->first_gen, s->last_gen);
  tk_table_add(table, "%s", size);
  tk_table_add(table, "%" PRIu64, s->events);
  add_time(table, s->first_wall_ns, s->wall_estimated);
  if (arrival) add_time(table, s->first_arrival_ns, false);
  tk_table_add(table, s->go_version != 0 ? "1.%u" : "-", s->go_version);
  bool kept = *s->kept_by != '\0';
  tk_table_add(table, "%s%s%s%s%s%s%s%s", s->expired ? "expired" : s->analysis,
               *s->reason != '\0' && !s->expired ? ": " : "", s->expired ? "" : s->reason,
               s->open ? " (still written)" : "", kept ? " (kept by " : "", s->kept_by,
               kept ? ")" : "", s->unsafe_experiment ? " (experiment Go's tools cannot read)" : "");
}

static tb_rc print_item(const struct list_args *args, struct tk_table *table,
                        const struct item *item) {
  segment_info *s = tracecollect__v1__segment_info__unpack(NULL, item->len, item->packed);
  bool printed = s != NULL;

  if (printed && args->json)
    printed = tk_json_print(NULL, &s->base);
  else if (printed)
    add_row(table, s, args->arrival);
  if (s != NULL) tracecollect__v1__segment_info__free_unpacked(s, NULL);
  return printed ? TB_OK : TB_NOMEM;
}

static tb_rc print_all(struct listing *listing, struct tk_client *client, struct tb_diag *diag) {
  const struct list_args *args = listing->args;
  size_t n = listing->n, first;
  struct tk_table table;
  tb_rc rc = TB_OK;

  if (n > 0) qsort(listing->items, n, sizeof *listing->items, by_time);
  first = args->most != 0 && n > args->most ? n - args->most : 0;
  if (n > 0) qsort(listing->items + first, n - first, sizeof *listing->items, orders[args->order]);
  tk_table_init(&table, args->arrival
                            ? ">ID,SERVICE,INSTANCE,>GENERATION,>SIZE,>EVENTS,FIRST,ARRIVED,"
                              "FORMAT,ANALYSIS"
                            : ">ID,SERVICE,INSTANCE,>GENERATION,>SIZE,>EVENTS,FIRST,FORMAT,"
                              "ANALYSIS");
  for (size_t i = first; rc == TB_OK && i < n; i++)
    rc = print_item(args, &table, &listing->items[i]);
  if (rc == TB_OK && n == 0) rc = tk_remote_check_names(client, &args->selector, diag);
  if (rc == TB_OK && n == 0 && !args->json) tk_note("list", "no segments");
  if (rc == TB_OK && n > 0 && !args->json) tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  return rc;
}

static tb_rc ask(struct list_args *args, struct tb_diag *diag) {
  const struct tk_list_ask list = { .selector = &args->selector,
                                    .settle = true,
                                    .newest_first = args->most != 0,
                                    .limit = args->most };
  struct listing listing = { .args = args };
  struct tk_client *client;

  TB_TRY(tk_remote_open(&args->client, &args->selector, diag, &client));
  tb_rc rc = tk_remote_list(client, &list, take_page, &listing, diag);
  if (rc == TB_OK || rc == TB_END) rc = print_all(&listing, client, diag);
  for (size_t i = 0; i < listing.n; i++) free(listing.items[i].service);
  free(listing.items);
  tk_client_close(client);
  return rc;
}

#define AT(member) offsetof(struct list_args, member)
const struct tk_option tk_list_options[] = {
  TK_GROUP(tk_selector_options, AT(selector)),
  TK_OPTION(0, "top", "N", tk_read_number, AT(most), "only the newest N of them (default 0: all)"),
  TK_OPTION(0, "sort", "time|arrival|size|events|service", tk_read_word, AT(order),
            "the order; default: time, the newest last"),
  TK_OPTION(0, "arrival", NULL, tk_read_flag, AT(arrival),
            "one more column: when the collector received it"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one object a line"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_list(int argc, char **argv) {
  struct list_args args = { 0 };
  struct tb_diag diag;
  int code = tk_options_read_all(argc, argv, tk_list_options, &args);

  if (code != TK_DONE) return code;
  tb_diag_clear(&diag);
  tb_rc rc = tk_selector_check(&args.selector, &diag);
  if (rc == TB_OK) rc = ask(&args, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("list", rc, &diag);
}
