/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that were kept: of the streams that are asked for, in the catalog's order, and of each in the order of time. An answer has about
 * a megabyte; the next question says where it ended. */
#include <string.h>

#include "collector/history/history.h"
#include "collector/query/private.h"
#include "proto/unpack.h"

enum { ANSWER_BYTES = 1 << 20 };

typedef Tracecollect__V1__StreamReport report;

struct reports { /* a list in the arena */
  struct reports *next;
  report *report;
};

struct collecting {
  struct tc__worker *w;
  const Tracecollect__V1__HistoryRequest *ask;
  Tracecollect__V1__HistoryReply *reply;
  struct reports *first, **end;
  size_t bytes;
  bool is_behind;                       /* what came before is passed over */
  unsigned char stream[TC_STREAM_BYTES]; /* that is read */
  struct tb_diag *diag;
};

static bool is_wanted(const struct collecting *c, const report *r) {
  return c->ask->kind[0] == '\0' || strcmp(c->ask->kind, r->kind) == 0;
}

static tb_rc add(struct collecting *c, report *r) {
  struct reports *item;

  TB_TRY(tb_arena_take(&c->w->arena, sizeof *item, &item));
  *item = (struct reports){ .report = r };
  *c->end = item;
  c->end = &item->next;
  c->reply->n_reports++;
  c->bytes += tracecollect__v1__stream_report__get_packed_size(r);
  return TB_OK;
}

static tb_rc say_more(struct collecting *c, uint64_t until_ns) {
  c->reply->more = true;
  c->reply->after_ns = until_ns;
  c->reply->after_stream.len = sizeof c->stream;
  return tb_arena_copy(&c->w->arena, c->stream, sizeof c->stream, &c->reply->after_stream.data);
}

/* TB_END: the answer is large enough. */
static tb_rc take_record(void *self, const struct tc_report_record *record) {
  struct collecting *c = self;
  ProtobufCAllocator allocator = tp_arena_allocator(&c->w->arena);

  if (c->is_behind && record->until_ns <= c->ask->after_ns) return TB_OK;
  Tracecollect__V1__ReportReply *kept =
      tracecollect__v1__report_reply__unpack(&allocator, record->len, record->reply);
  if (kept == NULL) return TB_OK; /* of another version */
  for (size_t i = 0; i < kept->n_reports; i++)
    if (is_wanted(c, kept->reports[i])) TB_TRY(add(c, kept->reports[i]));
  if (c->bytes < ANSWER_BYTES) return TB_OK;
  TB_TRY(say_more(c, record->until_ns));
  return TB_END;
}

static tb_rc take_stream(void *self, const struct tc_stream_row *row) {
  const Tracecollect__V1__Selector *selector = ((struct collecting *)self)->ask->selector;
  struct collecting *c = self;
  const ProtobufCBinaryData *after = &c->ask->after_stream;
  uint64_t until_ns = selector->until_wall_ns != 0 ? selector->until_wall_ns : UINT64_MAX;
  int order = after->len == sizeof row->stream ? memcmp(row->stream, after->data, after->len) : 1;

  if (order < 0) return TB_OK;
  c->is_behind = order == 0;
  memcpy(c->stream, row->stream, sizeof c->stream);
  return tc_history_read(c->w->archive->env.kept, row->stream, selector->since_wall_ns, until_ns, c,
                         take_record, c->diag);
}

static tb_rc put_list(struct collecting *c) {
  report **list;
  size_t n = 0;

  TB_TRY(tb_arena_take(&c->w->arena, (c->reply->n_reports + 1) * sizeof *list, &list));
  for (const struct reports *item = c->first; item != NULL; item = item->next)
    list[n++] = item->report;
  c->reply->reports = list;
  return TB_OK;
}

tb_rc tc__archive_history(struct tc__worker *w, const struct tc_select *select,
                          const Tracecollect__V1__HistoryRequest *ask, struct tb_diag *diag,
                          Tracecollect__V1__HistoryReply **out) {
  struct collecting c = { .w = w, .ask = ask, .diag = diag };

  if (w->archive->env.kept == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector keeps no reports");
  c.end = &c.first;
  TB_TRY(tb_arena_take(&w->arena, sizeof *c.reply, &c.reply));
  tracecollect__v1__history_reply__init(c.reply);
  TB_TRY(tc__archive_catalog(w, diag));
  tb_rc rc = tc_catalog_streams(w->catalog, select, take_stream, &c, diag);
  if (rc == TB_END) rc = TB_OK;
  if (rc == TB_OK) rc = put_list(&c);
  *out = c.reply;
  return rc;
}
