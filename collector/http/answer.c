/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collector/http/private.h"
#include "proto/json.h"

static const char *status_text(int status) {
  static const struct {
    int status;
    const char *text;
  } texts[] = {
#define STATUS(num, name, text) { num, #text },
    HTTP_STATUS_MAP(STATUS)
#undef STATUS
  };

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].status == status) return texts[i].text;
  return "Error";
}

void tc__answer_init(struct tc__http_answer *a, const char *type) {
  memset(a, 0, sizeof *a);
  a->status = 200;
  a->type = type;
  tb_mem_init(&a->mem, tb_mem_libc, NULL, TC__ANSWER_BYTES_MAX);
  tb_buf_init(&a->body, &a->mem);
}

void tc__answer_fini(struct tc__http_answer *a) {
  tb_buf_fini(&a->body);
}

void tc__answer_fail_as(struct tc__http_answer *a, int status, tb_rc rc, const char *why) {
  tb_buf_fini(&a->body);
  tb_buf_init(&a->body, &a->mem);
  a->status = status;
  a->type = "application/json";
  a->caching = NULL;
  a->varies = false;
  a->tag[0] = '\0';
  tb_buf_printf(&a->body, "{\"status\":%d,\"code\":\"%s\",\"error\":", status, tb_rc_name(rc));
  tp_json_text(&a->body, why);
  tb_buf_text(&a->body, "}\n");
}

/* Maps an HTTP status to a result code. */
static tb_rc result_of(int status) {
  switch (status) {
  case 403:
  case 409:
  case 421: return TB_REFUSED;
  case 404: return TB_NOTFOUND;
  case 405:
  case 415: return TB_UNSUPPORTED;
  case 413:
  case 429: return TB_BUDGET;
  case 503: return TB_BUSY;
  default: return TB_PROTOCOL;
  }
}

void tc__answer_fail(struct tc__http_answer *a, int status, const char *fmt, ...) {
  char why[TC__WHY_BYTES];
  va_list args;

  va_start(args, fmt);
  vsnprintf(why, sizeof why, fmt, args);
  va_end(args);
  tc__answer_fail_as(a, status, result_of(status), why);
}

void tc__answer_fail_rc(struct tc__http_answer *a, tb_rc rc, const char *why) {
  int status =
      tb_rc_class(rc) == TB_PEER ? 422 : 500; /* peer: a fault in the trace or in the request */

  switch ((int)rc) {
  case TB_PROTOCOL:
  case TB_BROKEN: status = 400; break;
  case TB_NOTFOUND: status = 404; break;
  case TB_REFUSED: status = 403; break;
  case TB_BUDGET: status = 413; break;
  case TB_NOMEM:
  case TB_NOFILES:
  case TB_AGAIN:
  case TB_BUSY: status = 503; break;
  default: break;
  }
  tc__answer_fail_as(a, status, rc, *why != '\0' ? why : tb_rc_text(rc));
}

static void write_date(char out[64]) {
  time_t now = time(NULL);
  struct tm tm;

  gmtime_r(&now, &tm);
  strftime(out, 64, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm); /* the locale is C */
}

size_t tc__answer_head(const struct tc__http_answer *a, const struct tc_http_request *r, bool keep,
                       char out[TC__HEAD_BYTES_MAX]) {
  const char *connection = "";
  char date[64], tag[96] = "", length[48] = "";

  write_date(date);
  if (a->tag[0] != '\0') snprintf(tag, sizeof tag, "ETag: %s\r\n", a->tag);
  if (a->bytes != UINT64_MAX && a->status != 304 && a->status != 204)
    snprintf(length, sizeof length, "Content-Length: %" PRIu64 "\r\n", a->bytes);
  if (!keep)
    connection = "Connection: close\r\n";
  else if (r->minor == 0)
    connection = "Connection: keep-alive\r\n";
  int n = snprintf(
      out, TC__HEAD_BYTES_MAX,
      "HTTP/1.1 %d %s\r\n%s"
      "Content-Type: %s\r\n%s%s%s%s%s"
      "Cache-Control: %s\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: %s\r\n%s\r\n",
      a->status, status_text(a->status), date, a->type, length, tag, a->fields,
      a->varies ? "Vary: Accept\r\n" : "", a->status == 503 ? "Retry-After: 1\r\n" : "",
      a->caching != NULL ? a->caching : "no-store",
      a->policy != NULL ? a->policy : "default-src 'none'; frame-ancestors 'none'", connection);
  return (size_t)n;
}
