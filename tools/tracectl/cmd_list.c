/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl list: the archive's segments, in order of stream and generation. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/tracectl/json.h"
#include "tools/tracectl/options.h"
#include "tools/tracectl/remote.h"
#include "tools/tracectl/table.h"
#include "collector/times.h"
#include "tools/tracectl/tracectl.h"

typedef Tracecollect__V1__SegmentInfo segment_info;

struct listing {
  bool json;
  struct tk_table table;
  size_t segments;
};

static void add_row(struct tk_table *table, const segment_info *s) {
  char size[TK_SIZE_BYTES], first[TC_TIME_BYTES];

  tk_size_format(s->bytes, size);
  tc_time_format(s->first_wall_ns, first);
  tk_table_add(table, "%" PRIu64, s->id);
  tk_table_add(table, "%s", s->service);
  tk_table_add(table, "%s", s->instance);
  if (s->first_gen == s->last_gen)
    tk_table_add(table, "%" PRIu64, s->first_gen);
  else
    tk_table_add(table, "%" PRIu64 "..%" PRIu64, s->first_gen, s->last_gen);
  tk_table_add(table, "%s", size);
  tk_table_add(table, "%" PRIu64, s->events);
  tk_table_add(table, "%s", first);
  tk_table_add(table, s->go_version != 0 ? "1.%u" : "-", s->go_version);
  tk_table_add(table, "%s%s%s%s", s->expired ? "expired" : s->analysis,
               *s->reason != '\0' && !s->expired ? ": " : "", s->expired ? "" : s->reason,
               s->unsafe_experiment ? " (experiment Go's tools cannot read)" : "");
}

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct listing *to = self;

  for (size_t i = 0; i < page->n_segments; i++) {
    if (!to->json)
      add_row(&to->table, page->segments[i]);
    else if (!tk_json_print(NULL, &page->segments[i]->base))
      return TB_NOMEM;
  }
  to->segments += page->n_segments;
  return TB_OK;
}

static tb_rc ask(const struct tk_client_args *args, const struct tk_selector *selector, bool json,
                 struct tb_diag *diag) {
  const struct tk_list_ask list = { .selector = selector, .settle = true };
  struct listing listing = { .json = json };
  struct tk_client *client;

  TB_TRY(tk_client_open(args, diag, &client));
  tk_table_init(&listing.table, ">ID,SERVICE,INSTANCE,>GENERATION,>SIZE,>EVENTS,FIRST,GO,ANALYSIS");
  tb_rc rc = tk_remote_list(client, &list, take_page, &listing, diag);
  if (rc == TB_OK && !json) {
    if (listing.segments != 0)
      tk_table_print(&listing.table, stdout, false);
    else
      fprintf(stderr, "tracectl list: %s\n",
              tk_remote_no_match(client, selector, "no segments"));
  }
  tk_table_fini(&listing.table);
  tk_client_close(client);
  return rc;
}

int tk_cmd_list(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' }, TK_SELECTOR_OPTIONS, TK_CLIENT_OPTIONS, { 0 }
  };
  struct tk_client_args args = { 0 };
  struct tk_selector selector = { 0 };
  struct tb_diag diag;
  bool json = false;
  tb_rc rc = TB_OK;

  tb_diag_clear(&diag);
  for (int c; rc == TB_OK && (c = tk_option_next(argc, argv, "", options)) != -1;) {
    if (c == 'j')
      json = true;
    else if (c == '?')
      return tk_usage_hint("list");
    else
      rc = tk_remote_option(&args, &selector, c, optarg, &diag);
  }
  if (rc == TB_OK && optind < argc)
    rc = tb_fail(&diag, TB_BROKEN, "\"%.80s\" has no place here", argv[optind]);
  if (rc == TB_OK) rc = tk_selector_check(&selector, &diag);
  if (rc == TB_OK) rc = ask(&args, &selector, json, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("list", rc, &diag);
}
