/* SPDX-License-Identifier: Apache-2.0 */
/* Reads requests and writes answers as messages of proto/archive.proto, in JSON or protobuf. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text/hex.h"
#include "collector/http/private.h"
#include "config/times.h"
#include "proto/json.h"
#include "proto/json_read.h"
#include "proto/query.h"
#include "proto/unpack.h"

enum { QUESTION_MEMORY_MAX = 1 << 20, ID_BYTES = 8 };

/* --- requests ---------------------------------------------------------------------------------- */

static tb_rc moment(const char *text, struct tb_diag *diag, uint64_t *out_wall_ns) {
  return tc_time_parse(text, tc_wall_ns(), diag, out_wall_ns);
}

static tb_rc read_parameters(const struct tp_route *route, char *query, struct tb_arena *arena,
                             struct tb_diag *diag, ProtobufCMessage **out) {
  const struct tp_times times = { moment, tc_span_parse };
  ProtobufCMessage *message;

  TB_TRY(tb_arena_alloc(arena, route->ask->sizeof_message, &message));
  protobuf_c_message_init(route->ask, message);
  TB_TRY(tp_query_read(route, query, &times, arena, diag, message));
  *out = message;
  return TB_OK;
}

static tb_rc read_body(const struct tc__http_conn *c, struct tb_arena *arena, struct tb_diag *diag,
                       ProtobufCMessage **out) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);

  if (tc__body_type_of(&c->head.request) == TC__BODY_JSON)
    return tp_json_read(c->route->ask, c->body, c->body_len, arena, diag, out);
  *out = protobuf_c_message_unpack(c->route->ask, &allocator, c->body_len, c->body);
  if (*out != NULL) return TB_OK;
  return arena->is_short ? TB_NOMEM
                         : tb_fail(diag, TB_PROTOCOL, "the body is not a %s", c->route->ask->name);
}

static tb_rc read_question(struct tc__http_conn *c, struct tb_diag *diag,
                           struct tc__http_question *q) {
  tb_diag_clear(diag);
  tb_mem_init(&q->mem, tb_mem_libc, NULL, QUESTION_MEMORY_MAX);
  tb_arena_init(&q->arena, &q->mem, 4 << 10);
  tb_rc rc = c->route->method == TP_GET
                 ? read_parameters(c->route, c->head.request.query, &q->arena, diag, &q->message)
                 : read_body(c, &q->arena, diag, &q->message);
  if (rc != TB_OK) tc__question_fini(q);
  return rc;
}

bool tc__question_read(struct tc__http_conn *c, struct tc__http_question *q) {
  struct tb_diag diag;
  tb_rc rc = read_question(c, &diag, q);

  if (rc != TB_OK) tc__conn_fail_rc(c, rc, diag.text);
  return rc == TB_OK;
}

bool tc__job_question(struct tc__http_job *job, struct tc__http_question *q) {
  struct tb_diag diag;
  tb_rc rc = read_question(job->conn, &diag, q);

  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
  return rc == TB_OK;
}

void tc__question_fini(struct tc__http_question *q) {
  tb_arena_fini(&q->arena);
}

/* Parses a copy of the query: a worker parses it again. */
/* Settled lists, sums of streams, and sums of kept reports. */
static bool takes_time(enum tp_route_id route, const ProtobufCMessage *ask) {
  switch (route) {
  case TP_ROUTE_SEGMENTS: return ((const Tracecollect__V1__ListRequest *)ask)->settle;
  case TP_ROUTE_HISTORY: return ((const Tracecollect__V1__HistoryRequest *)ask)->sum;
  case TP_ROUTE_REPORT: {
    const Tracecollect__V1__ReportRequest *of = (const Tracecollect__V1__ReportRequest *)ask;
    return *of->service != '\0' && *of->instance == '\0' && of->stream.len == 0;
  }
  default: return false;
  }
}

bool tc__asks_for_time(const struct tc__http_conn *c) {
  char query[TC_HTTP_URL_MAX + 1];
  struct tb_arena arena;
  ProtobufCMessage *ask;
  struct tb_diag diag;
  struct tb_mem mem;

  if (c->route->method != TP_GET) return false;
  tb_diag_clear(&diag);
  tb_mem_init(&mem, tb_mem_libc, NULL, QUESTION_MEMORY_MAX);
  tb_arena_init(&arena, &mem, 4 << 10);
  strcpy(query, c->head.request.query);
  bool takes = read_parameters(c->route, query, &arena, &diag, &ask) == TB_OK &&
               takes_time(c->route->id, ask);
  tb_arena_fini(&arena);
  return takes;
}

/* --- ids ----------------------------------------------------------------------------------------- */

bool tc__read_id(const struct tc__http_conn *c, uint64_t *out) {
  const char *hex = tp_route_rest(c->route, c->head.request.path);
  unsigned char bytes[ID_BYTES];

  if (strlen(hex) != TC__ID_HEX || !tb_unhex(hex, bytes, sizeof bytes)) return false;
  *out = 0;
  for (size_t i = 0; i < sizeof bytes; i++) *out = *out << 8 | bytes[i];
  return true;
}

void tc__write_id(uint64_t id, char out[TC__ID_HEX + 1]) {
  snprintf(out, TC__ID_HEX + 1, "%016" PRIx64, id);
}

/* --- answers ------------------------------------------------------------------------------------ */

void tc__put_message(struct tb_buf *out, bool packed, const ProtobufCMessage *message) {
  if (!packed) {
    tp_json_message(out, message);
    tb_buf_byte(out, '\n');
    return;
  }
  size_t n = protobuf_c_message_get_packed_size(message);
  if (tb_buf_reserve(out, n) != TB_OK) return;
  protobuf_c_message_pack(message, out->data + out->len);
  out->len += n;
}

void tc__answer_type(struct tc__http_answer *a, bool packed, const ProtobufCMessageDescriptor *of) {
  a->type = "application/json";
  a->varies = true;
  if (!packed) return;
  snprintf(a->message_type, sizeof a->message_type, "application/protobuf; proto=%s", of->name);
  a->type = a->message_type;
}

void tc__answer_put(struct tc__http_answer *a, bool packed, const ProtobufCMessage *message) {
  tc__answer_type(a, packed, message->descriptor);
  tc__put_message(&a->body, packed, message);
}

bool tc__wants_protobuf(const struct tc__http_conn *c) {
  return tc_http_wants_protobuf(c->head.request.accept);
}

void tc__job_say(struct tc__http_job *job, tb_rc rc, const struct tb_diag *diag,
                 const ProtobufCMessage *reply) {
  if (rc == TB_OK)
    tc__answer_put(&job->answer, tc__wants_protobuf(job->conn), reply);
  else
    tc__answer_fail_rc(&job->answer, rc, diag->text);
}
