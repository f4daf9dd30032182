/* SPDX-License-Identifier: Apache-2.0 */
/* A request and all that is parsed from it: the result is the same however the bytes of its head are cut; a head is
 * whole only with all that it promises; the route, its parameters or its body, ranges and tags of any text. */
#include <string.h>

#include "base/crc32c.h"
#include "collector/http/private.h"
#include "config/times.h"
#include "fuzz/fuzz.h"
#include "proto/json_read.h"
#include "proto/query.h"
#include "proto/unpack.h"

enum { HEAD_BYTES_MAX = 8 << 10, MEMORY_MAX = 1 << 20, ARENA_CHUNK = 4 << 10 };

struct outcome {
  tb_rc rc;
  size_t used;
};

static tb_rc moment(const char *text, struct tb_diag *diag, uint64_t *out_wall_ns) {
  return tc_time_parse(text, 1, diag, out_wall_ns);
}

/* Checks that a client can ask again with what was parsed from the parameters. */
static void look_at_query(const struct tp_route *route, const char *text) {
  static const struct tp_times times = { moment, tc_span_parse };
  ProtobufCMessage *message;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;
  struct tb_buf again;
  char *query;

  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_arena_init(&arena, &mem, ARENA_CHUNK);
  tb_buf_init(&again, &mem);
  tb_diag_clear(&diag);
  FUZZ_CHECK(tb_arena_copy(&arena, text, strlen(text) + 1, &query) == TB_OK &&
             tb_arena_alloc(&arena, route->ask->sizeof_message, &message) == TB_OK);
  protobuf_c_message_init(route->ask, message);
  tb_rc rc = tp_query_read(route, query, &times, &arena, &diag, message);
  FUZZ_CHECK(rc == TB_OK || (rc == TB_PROTOCOL && diag.text[0] != '\0'));
  if (rc == TB_OK) {
    tp_query_write(route, message, &again);
    tb_buf_byte(&again, '\0');
    protobuf_c_message_init(route->ask, message);
    FUZZ_CHECK(tp_query_read(route, (char *)again.data, &times, &arena, &diag, message) == TB_OK);
  }
  tb_buf_fini(&again);
  tb_arena_fini(&arena);
}

static void look_at_range(const char *field, uint64_t total) {
  struct tc_http_range range = tc_http_range_of(field, total);

  if (range.kind == TC_HTTP_WHOLE) FUZZ_CHECK(range.first == 0 && range.bytes == total);
  if (range.kind == TC_HTTP_PART)
    FUZZ_CHECK(range.bytes > 0 && range.first < total && range.bytes <= total - range.first);
  (void)tc_http_tag_listed(field, "\"a1\"", total % 2 == 0);
}

static void look_at_body(const struct tp_route *route, const struct tc_http_request *r,
                         const uint8_t *body, size_t len) {
  ProtobufCMessage *message;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_arena_init(&arena, &mem, ARENA_CHUNK);
  tb_diag_clear(&diag);
  if (tc__body_type_of(r) == TC__BODY_JSON) {
    tb_rc rc = tp_json_read(route->ask, body, len, &arena, &diag, &message);
    FUZZ_CHECK(rc == TB_OK || rc == TB_BUDGET || (rc == TB_PROTOCOL && diag.text[0] != '\0'));
  } else if (tc__body_type_of(r) == TC__BODY_PROTOBUF) {
    ProtobufCAllocator allocator = tp_arena_allocator(&arena);
    message = protobuf_c_message_unpack(route->ask, &allocator, len, body);
    FUZZ_CHECK(message == NULL || message->descriptor == route->ask);
  }
  tb_arena_fini(&arena);
}

/* Takes what follows a head as its body, if all of the body is present. */
static void look_at(const struct tc_http_request *r, const uint8_t *rest, size_t size) {
  unsigned unused;

  FUZZ_CHECK(r->path != NULL && r->path[0] == '/' && r->query != NULL);
  FUZZ_CHECK(strlen(r->path) <= TC_HTTP_URL_MAX);
  const struct tp_route *route =
      tp_route_find(r->method == HTTP_POST ? TP_POST : TP_GET, r->path, &unused);
  if (route != NULL) FUZZ_CHECK(strlen(tp_route_rest(route, r->path)) <= TC_HTTP_URL_MAX);
  if (route == NULL || route->ask == NULL) route = &tp_routes[TP_ROUTE_SEGMENTS];
  if (route->method == TP_GET)
    look_at_query(route, r->query);
  else if (r->body_bytes <= size)
    look_at_body(route, r, rest, (size_t)r->body_bytes);
  for (uint64_t total = 0; total < 5000; total = total * 3 + 1) {
    look_at_range(r->range, total);
    look_at_range(r->if_none_match, total);
  }
}

static struct outcome feed(const uint8_t *data, size_t size, size_t piece) {
  static struct tc_http_head
      whole; /* 9 KB: clearing it twice would take most of the time for a short head */
  struct tc_http_head *head = &whole;
  struct outcome o = { .rc = TB_OK };

  tc_http_head_init(head, HEAD_BYTES_MAX);
  while (o.used < size && o.rc == TB_OK) {
    size_t left = size - o.used, used = 0;
    o.rc = tc_http_head_feed(head, data + o.used, left < piece ? left : piece, &used);
    FUZZ_CHECK(used <= left);
    o.used += used;
  }
  FUZZ_CHECK(o.rc == TB_OK || o.rc == TB_END || o.rc == TB_PROTOCOL);
  if (o.rc == TB_END) look_at(&head->request, data + o.used, size - o.used);
  if (o.rc == TB_PROTOCOL) {
    FUZZ_CHECK(head->status >= 400 && head->why != NULL);
    o.used = 0; /* the place, and which of several faults comes first, depend on the cut */
  }
  return o;
}

/* Cuts each input in one way of its own: into pieces of 1, 8 or 57 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t pieces[] = { 1, 8, 57 };
  struct outcome whole = feed(data, size, size);
  struct outcome cut = feed(data, size, pieces[tb_crc32c(0, data, size) % 3]);

  FUZZ_CHECK(cut.rc == whole.rc && cut.used == whole.used);
  return 0;
}
