/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request and all that is read out of it: the same answer however the bytes are cut, a
 * whole head only of what it promises to be, and parameters, ranges and tags of any text. */
#include <string.h>

#include "base/crc32c.h"
#include "collector/http/range.h"
#include "collector/http/request.h"
#include "config/times.h"
#include "fuzz/fuzz.h"
#include "proto/query.h"

enum { HEAD_BYTES_MAX = 8 << 10 };

struct outcome {
  tb_rc rc;
  size_t used;
};

static tb_rc moment(const char *text, struct tb_diag *diag, uint64_t *out_wall_ns) {
  return tc_time_parse(text, 1, diag, out_wall_ns);
}

/* What is read out of parameters, a client may ask again. */
static void look_at_query(const char *text) {
  static const struct tp_times times = { moment, tc_span_parse };
  const struct tp_route *route = &tp_routes[TP_ROUTE_SEGMENTS];
  ProtobufCMessage *message;
  struct tb_arena arena;
  struct tb_diag diag;
  struct tb_mem mem;
  struct tb_buf again;
  char *query;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tb_arena_init(&arena, &mem, 4 << 10);
  tb_buf_init(&again, &mem);
  tb_diag_clear(&diag);
  FUZZ_CHECK(tb_arena_copy(&arena, text, strlen(text) + 1, &query) == TB_OK &&
             tb_arena_take(&arena, route->ask->sizeof_message, &message) == TB_OK);
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

static void look_at(const struct tc_http_request *r) {
  FUZZ_CHECK(r->path != NULL && r->path[0] == '/' && r->query != NULL);
  FUZZ_CHECK(strlen(r->path) <= TC_HTTP_URL_MAX);
  look_at_query(r->query);
  for (uint64_t total = 0; total < 5000; total = total * 3 + 1) {
    look_at_range(r->range, total);
    look_at_range(r->if_none_match, total);
  }
}

static struct outcome feed(const uint8_t *data, size_t size, size_t piece) {
  static struct tc_http_head
      whole; /* of 9 KB; to clear it twice would be most of a short head's time */
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
  if (o.rc == TB_END) look_at(&head->request);
  if (o.rc == TB_PROTOCOL) {
    FUZZ_CHECK(head->status >= 400 && head->why != NULL);
    o.used = 0; /* where it was seen, and which of several faults first, is the cut's to say */
  }
  return o;
}

/* Each input is cut in one way of its own: into pieces of 1, 8 or 57 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t pieces[] = { 1, 8, 57 };
  struct outcome whole = feed(data, size, size);
  struct outcome cut = feed(data, size, pieces[tb_crc32c(0, data, size) % 3]);

  FUZZ_CHECK(cut.rc == whole.rc && cut.used == whole.used);
  return 0;
}
