/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of our own. A script gets JSON, as the collector's errors are, and a person a page. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/json.h"
#include "tools/tracectl/page/private.h"

static const char style[] =
    "<meta name=color-scheme content=\"light dark\"><style>body{font:1rem/1.5 system-ui,sans-serif;"
    "max-width:40rem;margin:4rem auto;padding:0 1rem}</style>";

/* A browser does not ask for an address with a fragment again if only <meta> says so. */
#define AGAIN        "setTimeout(() => location.reload(), 2000)"
#define AGAIN_SHA256 "31rD9+wvLQ4fRY46OPDuBzal5rQfXdwToQRLbczFN+c="
static const char again_head[] =
    "<script>" AGAIN "</script><noscript><meta http-equiv=refresh content=2></noscript>";

static const char *status_text(int status) {
  switch (status) {
#define STATUS(num, name, text)                                                                    \
  case num: return #text;
    HTTP_STATUS_MAP(STATUS)
#undef STATUS
  default: return "Error";
  }
}

/* fields: more of them, each with its line end. */
static void answer(struct tk__client *c, int status, const char *type, const char *fields,
                   const struct tb_buf *body) {
  bool keep = c->head.request.keep && !c->ending;
  struct tb_buf head;

  if (body->rc != TB_OK) {
    tk__client_close(c);
    return;
  }
  tb_buf_init(&head, &c->server->mem);
  tb_buf_printf(
      &head,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'sha256-" AGAIN_SHA256 "'; frame-ancestors 'none'\r\n%s\r\n",
      status, status_text(status), type, body->len, fields,
      !keep                        ? "Connection: close\r\n"
      : c->head.request.minor == 0 ? "Connection: keep-alive\r\n"
                                   : "");
  if (!c->head.request.is_head) tb_buf_add(&head, body->data, body->len);
  if (!keep) c->ending = true;
  if (head.rc == TB_OK) tk__client_send(c, head.data, head.len);
  if (head.rc == TB_OK)
    tk__client_done(c);
  else
    tk__client_close(c);
  tb_buf_fini(&head);
}

static void add_html(struct tb_buf *out, const char *text) {
  for (; *text != '\0'; text++) {
    switch (*text) {
    case '<': tb_buf_text(out, "&lt;"); break;
    case '>': tb_buf_text(out, "&gt;"); break;
    case '&': tb_buf_text(out, "&amp;"); break;
    default: tb_buf_byte(out, (unsigned char)*text);
    }
  }
}

static bool is_for_a_person(const struct tk__client *c) {
  return strstr(c->head.request.accept, "text/html") != NULL;
}

/* again: the page asks again by itself. */
static void fail(struct tk__client *c, int status, tb_rc rc, const char *title, const char *why,
                 bool again) {
  bool person = is_for_a_person(c);
  struct tb_buf body;

  tb_buf_init(&body, &c->server->mem);
  if (person) {
    tb_buf_printf(&body, "<!doctype html><title>%s</title>%s%s<h1>%s</h1><p>", title, style,
                  again ? again_head : "", title);
    add_html(&body, why);
    tb_buf_text(&body, again ? "</p><p>This page asks again every two seconds.</p>\n" : "</p>\n");
  } else {
    tb_buf_printf(&body, "{\"status\":%d,\"code\":\"%s\",\"error\":", status, tb_rc_name(rc));
    tp_json_text(&body, why);
    tb_buf_text(&body, "}\n");
  }
  answer(c, status, person ? "text/html; charset=utf-8" : "application/json",
         status == 405 ? (c->server->guard.may_act ? "Allow: GET, HEAD, POST, PUT, DELETE\r\n"
                                                   : "Allow: GET, HEAD\r\n")
                       : "",
         &body);
  tb_buf_fini(&body);
}

static tb_rc result_of(int status) {
  switch (status) {
  case 403:
  case 421: return TB_REFUSED;
  case 405: return TB_UNSUPPORTED;
  case 413: return TB_BUDGET;
  case 503: return TB_BUSY;
  default: return TB_PROTOCOL;
  }
}

void tk__answer_refuse(struct tk__client *c, int status, const char *why) {
  fail(c, status, result_of(status), "tracectl page refuses this", why, false);
}

/* The browser goes on by itself and not by a redirect: the next request is then of this site, and sends the cookie, even if the
 * link stood on a page of another one. */
void tk__answer_welcome(struct tk__client *c) {
  const struct tk_guard *g = &c->server->guard;
  char cookie[2 * TK_SECRET_DIGITS + 80];
  struct tb_buf body;

  snprintf(cookie, sizeof cookie, "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict\r\n",
           g->cookie, g->secret);
  tb_buf_init(&body, &c->server->mem);
  tb_buf_printf(
      &body,
      "<!doctype html><title>tracecollect</title>%s<meta http-equiv=refresh content=\"0;url=/\">"
      "<p><a href=\"/\">The page</a></p>\n",
      style);
  answer(c, 200, "text/html; charset=utf-8", cookie, &body);
  tb_buf_fini(&body);
}

/* A reader of events gets no answer at all: after one that is an error it would not come back. */
void tk__answer_no_collector(struct tk__client *c, const char *why) {
  if (strstr(c->head.request.accept, "text/event-stream") != NULL)
    tk__client_close(c);
  else
    fail(c, 502, TB_IO, "No collector", why, true);
}
