/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl status: the collector's health, and its streams. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/json.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__StatusReply status_reply;
typedef Tracecollect__V1__StreamStatus stream_status;

/* Prints one object a line: the collector, then each stream. */
static tb_rc print_json(const status_reply *s) {
  status_reply alone = *s;

  alone.n_streams = 0;
  if (!tk_json_print("collector", &alone.base)) return TB_NOMEM;
  for (size_t i = 0; i < s->n_streams; i++)
    if (!tk_json_print("stream", &s->streams[i]->base)) return TB_NOMEM;
  return TB_OK;
}

static void add_row(struct tk_table *table, const stream_status *t, unsigned digits) {
  char size[TK_SIZE_BYTES], last[TC_TIME_BYTES], id[TK_STREAM_TEXT];

  tk_size_format(t->bytes, size);
  tc_time_format(t->last_wall_ns, last);
  tk_table_add(table, "%s", t->state);
  tk_table_add(table, "%s", t->service);
  tk_table_add(table, "%s", t->instance);
  tk_table_add(table, "%s", tk_stream_text(&t->stream, digits, id));
  tk_table_add(table, t->go_version != 0 ? "1.%u" : "-", t->go_version);
  tk_table_add(table, "%" PRIu64, t->acked_seq);
  tk_table_add(table, "%" PRIu64, t->generations);
  tk_table_add(table, "%" PRIu64, t->broken);
  tk_table_add(table, "%" PRIu64, t->lost_generations);
  tk_table_add(table, "%s", size);
  tk_table_add(table, "%" PRIu64, t->events);
  tk_table_add(table, "%s", last);
  tk_table_add(table, "%s", *t->peer != '\0' ? t->peer : "-");
}

static void print_loss(const stream_status *stream) {
  fputs("lost by ", stdout);
  tk_put_plain(stdout, stream->service);
  putchar(' ');
  tk_put_plain(stdout, stream->instance);
  fputs(": ", stdout);
  tk_put_plain(stdout, stream->last_loss);
  putchar('\n');
}

/* digits: of a stream's id, which are enough for --stream. */
static void print_text(const status_reply *s, unsigned digits) {
  char archive[TK_SIZE_BYTES], open[TK_SIZE_BYTES], unused[TK_SIZE_BYTES], started[TC_TIME_BYTES];
  struct tk_table table;

  tk_size_format(s->archive_bytes, archive);
  tk_size_format(s->open_bytes, open);
  tk_size_format(s->disk_free_bytes, unused);
  tc_time_format(s->started_wall_ns, started);
  fputs("tracecollectd ", stdout);
  tk_put_plain(stdout, s->version);
  printf(", since %s, acks are ", started);
  tk_put_plain(stdout, s->level);
  fputs(", health: ", stdout);
  tk_put_plain(stdout, s->health);
  putchar('\n');
  printf("archive: %s in %" PRIu64 " segments", archive, s->archive_segments);
  if (s->open_segments > 0)
    printf(" and %s in %" PRIu64 " still being written", open, s->open_segments);
  printf(", %s free on the disk\n", unused);
  if (s->n_streams == 0) {
    puts("no streams yet");
    return;
  }
  tk_table_init(&table, "STATE,SERVICE,INSTANCE,STREAM,FORMAT,>ACKED,>GENERATIONS,>BROKEN,>LOST,>"
                        "SIZE,>EVENTS,LAST,PEER");
  for (size_t i = 0; i < s->n_streams; i++) add_row(&table, s->streams[i], digits);
  fputc('\n', stdout);
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  for (size_t i = 0; i < s->n_streams; i++)
    if (s->streams[i]->lost_generations > 0 && *s->streams[i]->last_loss != 0)
      print_loss(s->streams[i]);
}

struct status_args {
  struct tk_client_args client;
  struct tk_selector selector;
  bool json;
};

static bool is_selected(const struct tk_selector *s, const stream_status *t) {
  return (s->service == NULL || strcmp(s->service, t->service) == 0) &&
         (s->instance == NULL || strcmp(s->instance, t->instance) == 0) &&
         (!s->has_stream || (t->stream.len == sizeof s->stream &&
                             memcmp(t->stream.data, s->stream, sizeof s->stream) == 0));
}

static int rank_of(const stream_status *t) {
  return strcmp(t->state, "live") == 0 ? 0 : strcmp(t->state, "waiting") == 0 ? 1 : 2;
}

/* Streams that are live come first, of the others those that ended last. */
static int by_state(const void *a, const void *b) {
  const stream_status *x = *(stream_status *const *)a, *y = *(stream_status *const *)b;
  int order = rank_of(x) - rank_of(y);

  if (order == 0 && rank_of(x) < 2) order = strcmp(x->service, y->service);
  if (order == 0 && rank_of(x) < 2) order = strcmp(x->instance, y->instance);
  if (order == 0) order = (x->last_wall_ns < y->last_wall_ns) - (x->last_wall_ns > y->last_wall_ns);
  return order;
}

/* Removes streams that are not selected from the reply, which nobody else uses, and sorts the others. */
static void select_streams(const struct tk_selector *selector, status_reply *reply) {
  size_t n = 0;

  for (size_t i = 0; i < reply->n_streams; i++)
    if (is_selected(selector, reply->streams[i])) reply->streams[n++] = reply->streams[i];
  reply->n_streams = n;
  if (n > 0) qsort(reply->streams, n, sizeof(stream_status *), by_state);
}

static tb_rc ask(struct status_args *args, struct tb_diag *diag) {
  struct tk_client *client;
  status_reply *status;
  unsigned digits = 0;

  TB_TRY(tk_remote_open(&args->client, &args->selector, diag, &client));
  tb_rc rc = tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, diag, &status);
  if (rc == TB_OK) digits = tk_stream_digits(status->streams, status->n_streams);
  if (rc == TB_OK) select_streams(&args->selector, status);
  if (rc == TB_OK && status->n_streams == 0 && tk_selector_names_streams(&args->selector))
    rc = tb_fail(diag, TB_NOTFOUND, "%.190s",
                 tk_remote_no_match(client, &args->selector, "no stream matches"));
  else if (rc == TB_OK && args->json)
    rc = print_json(status);
  else if (rc == TB_OK)
    print_text(status, digits);
  tk_client_close(client);
  return rc;
}

#define AT(member) offsetof(struct status_args, member)
const struct tk_option tk_status_options[] = {
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json),
            "one object a line: the collector, then each stream"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_status(int argc, char **argv) {
  struct status_args args = { 0 };
  struct tb_diag diag;
  int code = tk_options_read_all(argc, argv, tk_status_options, &args);

  if (code != TK_DONE) return code;
  tb_diag_clear(&diag);
  tb_rc rc = ask(&args, &diag);
  return rc == TB_OK ? TK_DONE : tk_remote_fail("status", rc, &diag);
}
