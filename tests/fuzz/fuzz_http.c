/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request and all that is read out of it: the same answer however the bytes are cut, a
 * whole head only of what it promises to be, and parameters, ranges and tags of any text. */
#include <string.h>

#include "base/crc32c.h"
#include "collector/http/query.h"
#include "collector/http/range.h"
#include "collector/http/request.h"
#include "fuzz/fuzz.h"

enum { HEAD_BYTES_MAX = 8 << 10 };

struct outcome {
  tb_rc rc;
  size_t used;
};

static void look_at_query(const char *text) {
  const char *service = NULL, *window = NULL;
  const struct tc_http_param params[] = { { "service", &service }, { "window", &window } };
  struct tb_diag diag;
  uint64_t number;

  char *query = strdup(text);
  if (query == NULL) return;
  size_t len = strlen(query);
  tb_diag_clear(&diag);
  tb_rc rc = tc_http_query(query, params, 2, &diag);
  FUZZ_CHECK(rc == TB_OK || (rc == TB_PROTOCOL && diag.text[0] != '\0'));
  if (rc == TB_OK && service != NULL) {
    FUZZ_CHECK(service >= query && service + strlen(service) <= query + len);
    tb_diag_clear(&diag);
    if (tp_query_number("service", service, 3, 70000, &diag, &number) == TB_OK)
      FUZZ_CHECK(number >= 3 && number <= 70000);
  }
  free(query);
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
