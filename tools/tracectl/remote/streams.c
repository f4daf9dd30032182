/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/streams.h"

#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/remote/names.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/table.h"
#include "tools/tracectl/term/tracectl.h"

enum { SHOWN = 10 };

typedef Tracecollect__V1__StreamStatus stream_status;
typedef Tracecollect__V1__StreamReport stream_report;

struct listing {
  const Tracecollect__V1__StatusReply *status;
  const struct tk_selector *selector;
  const stream_report *sum;
  unsigned digits;
};

static bool is_same(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b) {
  return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool is_in(const struct listing *l, const stream_status *s) {
  for (size_t i = 0; i < l->sum->n_streams; i++)
    if (is_same(&l->sum->streams[i], &s->stream)) return true;
  return l->sum->instances == 0 && is_same(&l->sum->stream, &s->stream);
}

static bool is_selected(const struct listing *l, const stream_status *s) {
  const struct tk_selector *which = l->selector;

  return strcmp(s->service, which->service) == 0 &&
         (which->instance == NULL || strcmp(s->instance, which->instance) == 0);
}

static size_t count(const struct listing *l, bool in) {
  size_t n = 0;

  for (size_t i = 0; i < l->status->n_streams; i++)
    n += is_selected(l, l->status->streams[i]) && is_in(l, l->status->streams[i]) == in;
  return n;
}

static void add_row(struct tk_table *table, const stream_status *s, unsigned digits) {
  char id[TK_STREAM_TEXT], until[TC_TIME_BYTES];

  tc_time_format(s->newest_wall_ns, until);
  tk_table_add(table, "  %s", tk_stream_text(&s->stream, digits, id));
  tk_table_add(table, "%s", s->instance);
  tk_table_add(table, "%s", s->state);
  tk_table_add(table, "%s", until);
}

static void print_rows(const struct listing *l, bool in, size_t n) {
  struct tk_table table;
  size_t shown = 0;

  tk_table_init(&table, "  STREAM,INSTANCE,STATE,UNTIL (BY ITS OWN CLOCK)");
  for (size_t i = l->status->n_streams; i-- > 0 && shown < SHOWN;) {
    const stream_status *s = l->status->streams[i];
    if (!is_selected(l, s) || is_in(l, s) != in) continue;
    add_row(&table, s, l->digits);
    shown++;
  }
  tk_table_print(&table, stdout, false);
  tk_table_fini(&table);
  if (n > shown) printf("  and %zu more: 'tracectl status' has them\n", n - shown);
}

static void print(const struct listing *l) {
  size_t in = count(l, true), out = count(l, false);

  if (in + out < 2) return;
  if (in > 1) {
    printf("\n%zu streams are added up; --each shows each of them, --stream ID one:\n", in);
    print_rows(l, true, in);
  }
  if (out == 0) return;
  printf("\n%zu more stream%s of ", out, tk_plural(out));
  tk_put_plain(stdout, l->selector->service);
  printf(" %s not in it, ended, silent in the window or without figures; --each shows those whose "
         "figures are left, "
         "--stream "
         "ID one:\n",
         out == 1 ? "is" : "are");
  print_rows(l, false, out);
}

void tk_streams_print(struct tk_client *client, const struct tk_selector *selector,
                      const stream_report *sum) {
  struct listing l = { .selector = selector, .sum = sum };
  Tracecollect__V1__StatusReply *status;
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  if (tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, &ignored, &status) != TB_OK) return;
  l.status = status;
  l.digits = tk_stream_digits(status->streams, status->n_streams);
  print(&l);
}
