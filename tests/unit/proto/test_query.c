/* SPDX-License-Identifier: Apache-2.0 */
/* The routes' table, and parameters as messages: reading returns what was written. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/archive.pb-c.h"
#include "proto/json.h"
#include "proto/query.h"

/* --- routes ------------------------------------------------------------------------------------ */

static enum tp_route_id found(enum tp_method method, const char *path) {
  unsigned allowed;
  const struct tp_route *route = tp_route_find(method, path, &allowed);

  return route != NULL ? route->id : TP_ROUTES;
}

Test(route, a_path_is_whole_or_begins_a_route) {
  unsigned allowed;

  cr_expect_eq(found(TP_GET, "/api/v1/segments"), TP_ROUTE_SEGMENTS);
  cr_expect_eq(found(TP_GET, "/api/v1/segments/12"), TP_ROUTE_SEGMENT);
  cr_expect_eq(found(TP_GET, "/api/v1/report/all"), TP_ROUTE_REPORT);
  cr_expect_eq(found(TP_GET, "/api/v1/reports"), TP_ROUTE_REPORTS);
  cr_expect_eq(found(TP_GET, "/api/v1/segmentsx"), TP_ROUTE_PAGE);
  cr_expect_eq(found(TP_GET, "/"), TP_ROUTE_PAGE);
  cr_expect_eq(found(TP_POST, "/api/v1/triggers"), TP_ROUTE_TRIGGER_ADD);
  cr_expect_eq(found(TP_DELETE, "/api/v1/triggers/a"), TP_ROUTE_TRIGGER_REMOVE);
  cr_expect_str_eq(tp_route_rest(&tp_routes[TP_ROUTE_SEGMENT], "/api/v1/segments/12"), "12");
  cr_expect_str_eq(tp_route_rest(&tp_routes[TP_ROUTE_SEGMENTS], "/api/v1/segments"), "");

  cr_expect_null(tp_route_find(TP_PUT, "/api/v1/triggers", &allowed));
  cr_expect_eq(allowed, 1u << TP_GET | 1u << TP_POST);
  cr_expect_null(tp_route_find(TP_POST, "/api/v1/jobs/1", &allowed));
  cr_expect_eq(allowed, 1u << TP_GET | 1u << TP_DELETE);
  cr_expect_null(tp_route_find(TP_GET, "nowhere", &allowed));
  cr_expect_eq(allowed, 0u);
}

Test(route, every_row_can_be_found_and_every_parameter_has_its_field) {
  for (size_t i = 0; i < TP_ROUTES; i++) {
    const struct tp_route *r = &tp_routes[i];
    char path[80];

    snprintf(path, sizeof path, "%s%s", r->path, r->below != NULL ? "x" : "");
    cr_expect_eq(found(r->method, path), r->id, "%s", path);
    cr_expect(r->about[0] != '\0' && r->id == i);
  }
  for (size_t i = 0; i < tp_params_count; i++) {
    const struct tp_param *p = &tp_params[i];
    const ProtobufCMessageDescriptor *of = tp_routes[p->route].ask;
    const char *name = p->field, *dot = strchr(name, '.');
    char outer[32];

    cr_assert_not_null(of, "%s", p->name);
    cr_expect_eq(tp_routes[p->route].method, TP_GET);
    if (dot != NULL) {
      snprintf(outer, sizeof outer, "%.*s", (int)(dot - name), name);
      of = protobuf_c_message_descriptor_get_field_by_name(of, outer)->descriptor;
      name = dot + 1;
    }
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(of, name);
    cr_assert_not_null(f, "%s", p->field);
    bool is_text = p->type == TP_PARAM_TEXT || p->type == TP_PARAM_WORD;
    cr_expect_eq(f->type == PROTOBUF_C_TYPE_STRING, is_text, "%s", p->field);
    cr_expect_eq(f->type == PROTOBUF_C_TYPE_BYTES, p->type == TP_PARAM_STREAM, "%s", p->field);
    cr_expect_eq(f->type == PROTOBUF_C_TYPE_BOOL, p->type == TP_PARAM_FLAG, "%s", p->field);
    if (f->type == PROTOBUF_C_TYPE_UINT32 && p->type == TP_PARAM_NUMBER)
      cr_expect_leq(p->max, UINT32_MAX);
  }
}

/* --- parameters -------------------------------------------------------------------------------- */

static tb_rc parse_moment(const char *text, struct tb_diag *diag, uint64_t *out) {
  uint64_t s, ns;

  if (sscanf(text, "@%" SCNu64 ".%9" SCNu64, &s, &ns) != 2)
    return tb_fail(diag, TB_BROKEN, "no moment");
  *out = s * UINT64_C(1000000000) + ns;
  return TB_OK;
}

static tb_rc parse_span(const char *text, struct tb_diag *diag, uint64_t *out) {
  char unit[4];

  if (sscanf(text, "%" SCNu64 "%3s", out, unit) != 2) return tb_fail(diag, TB_BROKEN, "no span");
  if (strcmp(unit, "ms") == 0) *out *= 1000000;
  if (strcmp(unit, "s") == 0) *out *= UINT64_C(1000000000);
  return TB_OK;
}

static const struct tp_times times = { parse_moment, parse_span };

struct scene {
  struct tb_mem mem;
  struct tb_arena arena;
  struct tb_buf text;
  struct tb_diag diag;
};

static void scene_init(struct scene *s) {
  tb_mem_init(&s->mem, tb_mem_libc, NULL, 1 << 20);
  tb_arena_init(&s->arena, &s->mem, 4 << 10);
  tb_buf_init(&s->text, &s->mem);
  tb_diag_clear(&s->diag);
}

static void scene_fini(struct scene *s) {
  tb_buf_fini(&s->text);
  tb_arena_fini(&s->arena);
  cr_expect_eq(s->mem.bytes, 0u);
}

static void *message_new(struct scene *s, const ProtobufCMessageDescriptor *of) {
  void *message;

  cr_assert_eq(tb_arena_alloc(&s->arena, of->sizeof_message, &message), TB_OK);
  protobuf_c_message_init(of, message);
  return message;
}

static tb_rc read_text(struct scene *s, enum tp_route_id id, const char *text, void *out_message) {
  char *query;

  tb_diag_clear(&s->diag);
  cr_assert_eq(tb_arena_copy(&s->arena, text, strlen(text) + 1, &query), TB_OK);
  *(void **)out_message = message_new(s, tp_routes[id].ask);
  return tp_query_read(&tp_routes[id], query, &times, &s->arena, &s->diag,
                       *(ProtobufCMessage **)out_message);
}

static unsigned long seed;

static uint64_t chance(void) {
  seed = seed * 6364136223846793005 + 1442695040888963407;
  return seed >> 20;
}

/* Writes a query that contains each parameter at random, with random values: the result of
 * reading it is a message that may be asked. */
static void write_at_random(struct tb_buf *out, enum tp_route_id id) {
  const char *between = "";

  for (size_t i = 0; i < tp_params_count; i++) {
    const struct tp_param *p = &tp_params[i];
    const char *words = p->words;

    if (p->route != id || (!p->is_needed && chance() % 2 == 0)) continue;
    tb_buf_printf(out, "%s%s=", between, p->name);
    between = "&";
    switch (p->type) {
    case TP_PARAM_TEXT:
      for (uint64_t n = chance() % 20; n > 0; n--)
        tb_buf_printf(out, "%%%02x", (unsigned)(1 + chance() % 255));
      break;
    case TP_PARAM_STREAM:
      tb_buf_printf(out, "%016" PRIx64 "%016" PRIx64, chance(), chance());
      break;
    case TP_PARAM_TIME: tb_buf_printf(out, "@%" PRIu64 ".%09u", chance() % 9999999999, 7u); break;
    case TP_PARAM_SPAN: tb_buf_printf(out, "%" PRIu64 "ms", 1 + chance() % 20000); break;
    case TP_PARAM_WORD:
      for (uint64_t n = chance() % 2; n > 0; n--) words = strchr(words, ' ') + 1;
      tb_buf_add(out, words, strcspn(words, " "));
      break;
    default: {
      uint64_t width = p->max - p->min;
      tb_buf_printf(out, "%" PRIu64,
                    p->min + (width == UINT64_MAX ? chance() : chance() % (width + 1)));
    }
    }
  }
  tb_buf_byte(out, '\0');
}

Test(query, what_is_written_is_read_back) {
  struct scene s;

  scene_init(&s);
  for (enum tp_route_id id = 0; id < TP_ROUTES; id++) {
    const struct tp_route *route = &tp_routes[id];

    for (seed = 1; route->method == TP_GET && route->ask != NULL && seed < 1000; seed++) {
      unsigned long kept = seed;
      ProtobufCMessage *first, *again;
      struct tb_buf json[2];

      tb_buf_clear(&s.text);
      write_at_random(&s.text, id);
      cr_assert_eq(read_text(&s, id, (char *)s.text.data, &first), TB_OK, "%s?%s: %s", route->path,
                   (char *)s.text.data, s.diag.text);
      tb_buf_clear(&s.text);
      tp_query_write(route, first, &s.text);
      tb_buf_byte(&s.text, '\0');
      cr_assert_eq(read_text(&s, id, (char *)s.text.data, &again), TB_OK, "%s?%s: %s", route->path,
                   (char *)s.text.data, s.diag.text);
      for (int i = 0; i < 2; i++) {
        tb_buf_init(&json[i], &s.mem);
        tp_json_message(&json[i], i == 0 ? first : again);
        tb_buf_byte(&json[i], '\0');
      }
      cr_assert_str_eq((char *)json[0].data, (char *)json[1].data);
      for (int i = 0; i < 2; i++) tb_buf_fini(&json[i]);
      tb_arena_reset(&s.arena);
      seed = kept;
    }
  }
  scene_fini(&s);
}

Test(query, what_is_not_given_is_the_default_and_is_not_written) {
  Tracecollect__V1__ListRequest *list;
  Tracecollect__V1__ReportRequest *report;
  Tracecollect__V1__NextRequest *next;
  Tracecollect__V1__SpanRequest *span;
  struct scene s;

  scene_init(&s);
  cr_assert_eq(read_text(&s, TP_ROUTE_SEGMENTS, "service=&limit=", &list), TB_OK);
  cr_expect_eq(list->limit, 100u);
  cr_assert_not_null(list->selector);
  cr_expect_str_eq(list->selector->service, "");
  tp_query_write(&tp_routes[TP_ROUTE_SEGMENTS], &list->base, &s.text);
  cr_expect_eq(s.text.len, 0u);

  cr_assert_eq(read_text(&s, TP_ROUTE_SEGMENTS, "service=1%2f2&instance=x+y&", &list), TB_OK);
  cr_expect_str_eq(list->selector->service, "1/2");
  cr_expect_str_eq(list->selector->instance, "x y");

  cr_assert_eq(read_text(&s, TP_ROUTE_REPORT, "", &report), TB_OK);
  cr_expect_str_eq(report->window, "all");
  cr_expect_eq(report->top, 20u);
  report->top = 0;
  report->window = (char *)(uintptr_t) "10s";
  tp_query_write(&tp_routes[TP_ROUTE_REPORT], &report->base, &s.text);
  tb_buf_byte(&s.text, '\0');
  cr_expect_str_eq((char *)s.text.data, "window=10s&top=0");

  cr_assert_eq(read_text(&s, TP_ROUTE_LEASE, "wait=2s", &next), TB_OK);
  cr_expect(next->wait_ms == 2000 && next->bytes == 1 << 20);
  cr_assert_eq(read_text(&s, TP_ROUTE_SPAN,
                         "stream=000102030405060708090a0b0c0d0e0f&gen=1&ns=0&proc=0", &span),
               TB_OK, "%s", s.diag.text);
  cr_expect(span->goroutine == -1 && span->proc == 0 && span->thread == -1 && span->ns == 0);

  /* The message as a client makes it: a 0 that makes no sense counts as unset. */
  Tracecollect__V1__ListRequest plain = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  plain.settle = true;
  tb_buf_clear(&s.text);
  tp_query_write(&tp_routes[TP_ROUTE_SEGMENTS], &plain.base, &s.text);
  tb_buf_byte(&s.text, '\0');
  cr_expect_str_eq((char *)s.text.data, "settle=1");
  scene_fini(&s);
}

Test(query, a_number_is_plain_and_within_its_bounds) {
  struct tb_diag diag;
  uint64_t n;

  tb_diag_clear(&diag);
  cr_assert_eq(tp_query_number("limit", "1000", 1, 1000, &diag, &n), TB_OK);
  cr_assert_eq(n, 1000);
  for (const char *const *bad = (const char *const[]){ "0", "1001", "", "-1", "1e3", " 1", "1 ",
                                                       "99999999999999999999", NULL };
       *bad != NULL; bad++)
    cr_expect_eq(tp_query_number("limit", *bad, 1, 1000, &diag, &n), TB_PROTOCOL, "%s", *bad);
  cr_assert_eq(tp_query_number("id", "9223372036854775807", 1, INT64_MAX, &diag, &n), TB_OK);
  cr_assert_eq(tp_query_number("id", "9223372036854775808", 1, INT64_MAX, &diag, &n), TB_PROTOCOL);
}

Test(query, what_is_wrong_is_named) {
  static const struct {
    enum tp_route_id id;
    const char *text, *words;
  } wrong[] = {
    { TP_ROUTE_SEGMENTS, "nosuch=1", "no parameter \"nosuch\" here" },
    { TP_ROUTE_SEGMENTS, "limit=1&limit=1", "parameter \"limit\" is given twice" },
    { TP_ROUTE_SEGMENTS, "limit=10001", "limit=10001 is not a whole number from 1 to 10000" },
    { TP_ROUTE_SEGMENTS, "limit=0", "limit=0 is not a whole number from 1 to 10000" },
    { TP_ROUTE_SEGMENTS, "newest=2", "newest=2 is not a whole number from 0 to 1" },
    { TP_ROUTE_SEGMENTS, "service=%zz", "parameter \"service\" is not well encoded" },
    { TP_ROUTE_SEGMENTS, "service=%", "parameter \"service\" is not well encoded" },
    { TP_ROUTE_SEGMENTS, "service=%0", "parameter \"service\" is not well encoded" },
    { TP_ROUTE_SEGMENTS, "service=%00", "parameter \"service\" is not well encoded" },
    { TP_ROUTE_SEGMENTS, "%zz=1", "the query is not well encoded" },
    { TP_ROUTE_SEGMENTS, "since=soon", "since: no moment" },
    { TP_ROUTE_SEGMENTS, "stream=12", "stream=12 is not an id of 32 hexadecimal digits" },
    { TP_ROUTE_REPORT, "window=7s", "window=7s is not one of all, 10s, 1m, 5m" },
    { TP_ROUTE_REPORT, "window=1", "window=1 is not one of all, 10s, 1m, 5m" },
    { TP_ROUTE_LEASE, "wait=21s", "wait=21s: more than 20s" },
    { TP_ROUTE_SPANS, "stream=", "parameter \"stream\" is missing" },
    { TP_ROUTE_SPANS, "", "parameter \"stream\" is missing" },
    { TP_ROUTE_STREAMS, "x=1", "no parameter \"x\" here" },
  };
  struct scene s;
  void *message;

  scene_init(&s);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    cr_expect_eq(read_text(&s, wrong[i].id, wrong[i].text, &message), TB_PROTOCOL, "%s",
                 wrong[i].text);
    cr_expect_str_eq(s.diag.text, wrong[i].words);
  }
  scene_fini(&s);
}
