/* SPDX-License-Identifier: Apache-2.0 */
/* Stored reports of the selected streams, sorted by stream id, then by time. An answer has about a megabyte, or the sums of
 * some thousand reports; the next request names the place where it ended. */
#include <string.h>

#include "collector/history/history.h"
#include "collector/query/private.h"
#include "pack/sum.h"
#include "proto/get.h"
#include "proto/unpack.h"

enum { ANSWER_BYTES = 1 << 20, CHUNK_BYTES = 64 << 10, REPLY_REPORTS = 1, REPORT_KIND = 4 };
enum { SUM_RECORDS = 2000, SUM_BYTES = 8 << 20 }; /* one answer adds up at most so much */

typedef Tracecollect__V1__StreamReport stream_report;

struct reports { /* a list in the session's arena */
  struct reports *next;
  stream_report *report;
};

struct collecting {
  struct tc_query_session *s;
  const Tracecollect__V1__HistoryRequest *ask;
  Tracecollect__V1__HistoryReply *reply;
  struct tb_arena scratch; /* memory for one report */
  struct reports *first, **end;
  size_t bytes;
  /* Sums of this stream, and of all streams of a service; zeroed: none yet. */
  struct tp_sum sum[TO_ANALYSIS_KINDS], of_all[TO_ANALYSIS_KINDS];
  bool is_of_service;
  uint64_t summed, last_ns;              /* records, and the end of the last one */
  bool is_begun;                         /* ask->after_ns applies to this stream */
  unsigned char stream[TC_STREAM_BYTES]; /* the stream that is being read */
  struct tb_diag *diag;
};

/* ---- a report ---- */

static bool is_kind(ProtobufCBinaryData packed, const char *name) {
  struct tp_field field;

  while (tp_next_field(&packed, &field))
    if (field.number == REPORT_KIND)
      return field.bytes.len == strlen(name) &&
             memcmp(field.bytes.data, name, field.bytes.len) == 0;
  return false;
}

static bool is_wanted(const Tracecollect__V1__HistoryRequest *ask, ProtobufCBinaryData packed) {
  return ask->kind[0] == '\0' || is_kind(packed, ask->kind);
}

static bool has_stacks(const Tracecollect__V1__TableSchema *table) {
  for (size_t i = 0; i < table->n_columns; i++)
    if (table->columns[i]->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK) return true;
  return false;
}

/* Removes all tables except the one of that name. */
static void leave_out_tables(Tracecollect__V1__Report *report, const char *name) {
  Tracecollect__V1__ReportSchema *schema = report->schema;
  size_t tables = 0;
  bool needs_stacks = false;

  for (size_t i = 0; schema != NULL && i < schema->n_tables && i < report->n_tables; i++) {
    if (strcmp(schema->tables[i]->name, name) != 0) continue;
    needs_stacks = has_stacks(schema->tables[i]);
    schema->tables[0] = schema->tables[i];
    report->tables[0] = report->tables[i];
    tables = 1;
  }
  report->n_tables = tables;
  if (schema != NULL) schema->n_tables = tables;
  if (!needs_stacks) report->n_stacks = report->n_frames = 0;
}

/* *out NULL: the report is of another version and is left out. */
static tb_rc unpack_report(struct collecting *c, const ProtobufCBinaryData *packed,
                           stream_report **out) {
  struct tb_arena *arena = c->ask->figures_only ? &c->scratch : &c->s->arena;
  ProtobufCAllocator allocator = tp_arena_allocator(arena);
  void *copy;

  *out = tracecollect__v1__stream_report__unpack(&allocator, packed->len, packed->data);
  if (*out == NULL) return arena->is_short ? TB_NOMEM : TB_OK;
  if (!c->ask->figures_only) return TB_OK;
  if ((*out)->report != NULL) leave_out_tables((*out)->report, c->ask->table);
  tb_rc rc = tc__query_move_in(&c->s->arena, &(*out)->base, &copy);
  tb_arena_reset(&c->scratch);
  if (rc == TB_OK) *out = copy;
  return rc;
}

static tb_rc put_report(struct collecting *c, stream_report *report) {
  struct reports *item;

  TB_TRY(tb_arena_alloc(&c->s->arena, sizeof *item, &item));
  *item = (struct reports){ .report = report };
  *c->end = item;
  c->end = &item->next;
  c->reply->n_reports++;
  c->bytes += tracecollect__v1__stream_report__get_packed_size(report);
  return TB_OK;
}

static tb_rc add_report(struct collecting *c, const ProtobufCBinaryData *packed) {
  stream_report *report;

  TB_TRY(unpack_report(c, packed, &report));
  return report != NULL ? put_report(c, report) : TB_OK;
}

/* ---- sums ---- */

static size_t room_of(const struct collecting *c) {
  return c->ask->kind[0] != '\0' ? SUM_BYTES : SUM_BYTES / TO_ANALYSIS_KINDS;
}

static tb_rc add_to_sum(struct collecting *c, const ProtobufCBinaryData *packed) {
  stream_report *part;
  unsigned k = 0;

  while (k < TO_ANALYSIS_KINDS && !is_kind(*packed, to_analysis_name((enum to_analysis_kind)k)))
    k++;
  if (k == TO_ANALYSIS_KINDS) return TB_OK; /* another version has this kind */
  struct tp_sum *sum = &c->sum[k];
  if (sum->merge == NULL) tp_sum_init(sum, &c->s->mem, tp_merge_stretches, room_of(c));
  TB_TRY(tp_sum_add(sum, packed->data, packed->len, &part));
  if (c->ask->figures_only && part->report != NULL) leave_out_tables(part->report, c->ask->table);
  return TB_OK;
}

static tb_rc put_sums(struct collecting *c) {
  stream_report *report;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    if (c->sum[k].parts == 0) continue;
    TB_TRY(tp_sum_take(&c->sum[k], &c->s->arena, &report));
    TB_TRY(put_report(c, report));
    if (!c->is_of_service) continue;
    if (c->of_all[k].merge == NULL) tp_sum_init(&c->of_all[k], &c->s->mem, tp_merge, room_of(c));
    TB_TRY(tp_sum_add_report(&c->of_all[k], report));
  }
  return TB_OK;
}

/* Puts the sums of several streams before them. */
static tb_rc put_sums_of_all(struct collecting *c) {
  struct reports *streams = c->first;
  stream_report *report;

  c->end = &c->first;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    if (c->of_all[k].parts < 2) continue;
    TB_TRY(tp_sum_take(&c->of_all[k], &c->s->arena, &report));
    TB_TRY(put_report(c, report));
  }
  *c->end = streams;
  return TB_OK;
}

/* ---- a record, a stream ---- */

static tb_rc set_place(struct collecting *c, uint64_t until_ns) {
  c->reply->more = true;
  c->reply->after_ns = until_ns;
  c->reply->after_stream.len = sizeof c->stream;
  return tb_arena_copy(&c->s->arena, c->stream, sizeof c->stream, &c->reply->after_stream.data);
}

static bool is_full(const struct collecting *c) {
  return c->bytes >= ANSWER_BYTES || c->summed >= SUM_RECORDS;
}

/* TB_END: the answer is large enough. */
static tb_rc take_record(void *self, const struct tc_report_record *record) {
  struct collecting *c = self;
  ProtobufCBinaryData rest = { record->len, (uint8_t *)(uintptr_t)record->reply };
  struct tp_field field;

  if (c->is_begun && record->until_ns <= c->ask->after_ns) return TB_OK;
  if (tc__query_is_stopping(c->s->query)) return TB_IO;
  while (tp_next_field(&rest, &field))
    if (field.number == REPLY_REPORTS && is_wanted(c->ask, field.bytes))
      TB_TRY(c->ask->sum ? add_to_sum(c, &field.bytes) : add_report(c, &field.bytes));
  c->last_ns = record->until_ns;
  c->summed += c->ask->sum;
  return is_full(c) ? TB_END : TB_OK;
}

static tb_rc take_stream(void *self, const struct tc_stream_row *row) {
  struct collecting *c = self;
  const Tracecollect__V1__Selector *selector = c->ask->selector;
  const ProtobufCBinaryData *after = &c->ask->after_stream;
  uint64_t from_ns = selector != NULL ? selector->since_wall_ns : 0,
           until_ns = selector != NULL && selector->until_wall_ns != 0 ? selector->until_wall_ns
                                                                       : UINT64_MAX,
           damaged;
  int order = after->len != 0 ? memcmp(row->stream, after->data, after->len) : 1;

  if (order < 0) return TB_OK;
  c->is_begun = order == 0;
  if (c->is_begun && from_ns < c->ask->after_ns) from_ns = c->ask->after_ns;
  memcpy(c->stream, row->stream, sizeof c->stream);
  tb_rc rc = tc_history_read(c->s->query->env.kept, row->stream, from_ns, until_ns, c, take_record,
                             &damaged, c->diag);
  c->reply->damaged += damaged;
  if (rc != TB_OK && rc != TB_END) return rc;
  TB_TRY(put_sums(c));
  if (!is_full(c)) return TB_OK;
  TB_TRY(set_place(c, c->last_ns));
  return TB_END;
}

/* ---- an answer ---- */

static tb_rc put_list(struct collecting *c) {
  size_t n = 0;

  TB_TRY(tb_arena_alloc(&c->s->arena, (c->reply->n_reports + 1) * sizeof *c->reply->reports,
                        &c->reply->reports));
  for (const struct reports *item = c->first; item != NULL; item = item->next)
    c->reply->reports[n++] = item->report;
  return TB_OK;
}

static tb_rc read_select(const Tracecollect__V1__HistoryRequest *ask, struct tb_diag *diag,
                         struct tc_select *out) {
  const Tracecollect__V1__Selector *selector = ask->selector;

  *out = (struct tc_select){ 0 };
  if (ask->after_stream.len != 0 && ask->after_stream.len != TC_STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  if (selector == NULL) return TB_OK;
  if (selector->stream.len != 0 && selector->stream.len != TC_STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  if (selector->until_wall_ns != 0 && selector->since_wall_ns > selector->until_wall_ns)
    return tb_fail(diag, TB_PROTOCOL, "since is after until");
  out->service = selector->service;
  out->instance = selector->instance;
  out->stream = selector->stream.len != 0 ? selector->stream.data : NULL;
  return TB_OK;
}

static bool is_of_service(const struct tc_select *select) {
  return select->service != NULL && *select->service != '\0' && select->stream == NULL;
}

static tb_rc answer_history(struct tc_query_session *s, const Tracecollect__V1__HistoryRequest *ask,
                            struct tb_diag *diag, Tracecollect__V1__HistoryReply **out) {
  struct collecting c = { .s = s, .ask = ask, .diag = diag };
  struct tc_select select;

  if (s->query->env.kept == NULL)
    return tb_fail(diag, TB_UNSUPPORTED, "this collector keeps no reports");
  TB_TRY(read_select(ask, diag, &select));
  c.end = &c.first;
  c.is_of_service = ask->sum && ask->after_stream.len == 0 && is_of_service(&select);
  TB_TRY(tb_arena_alloc(&s->arena, sizeof *c.reply, &c.reply));
  tracecollect__v1__history_reply__init(c.reply);
  TB_TRY(tc__query_catalog(s, diag));
  tb_arena_init(&c.scratch, &s->mem, CHUNK_BYTES);
  tb_rc rc = tc_catalog_streams(s->catalog, &select, take_stream, &c, diag);
  tb_arena_fini(&c.scratch);
  if (rc == TB_OK && c.is_of_service) rc = put_sums_of_all(&c);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    tp_sum_fini(&c.sum[k]);
    tp_sum_fini(&c.of_all[k]);
  }
  if (rc != TB_OK && rc != TB_END) return rc;
  *out = c.reply;
  return put_list(&c);
}

TC__QUESTION(history, History)
