/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/term/tracectl.h"

enum { PAGE_SEGMENTS = 10000, PLACE_BYTES = 128 };

int tk_remote_fail(const char *verb, tb_rc rc, const struct tb_diag *diag) {
  const char *text = diag->rc != TB_OK ? diag->text : tb_rc_text(rc);

  return rc == TB_BROKEN ? tk_usage(verb, "%s", text) : tk_fail(verb, "%s", text);
}

tb_rc tk_remote_list(struct tk_client *client, const struct tk_list_ask *ask, tk_list_fn *each,
                     void *self, struct tb_diag *diag) {
  Tracecollect__V1__ListRequest list = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  const Tracecollect__V1__ListReply *page;
  Tracecollect__V1__Selector which;
  char place[PLACE_BYTES];

  tk_selector_message(ask->selector, &which);
  list.selector = &which;
  list.settle = ask->settle;
  list.detail = ask->detail;
  list.newest_first = ask->newest_first;
  list.limit = ask->limit != 0 && ask->limit < PAGE_SEGMENTS ? (uint32_t)ask->limit : PAGE_SEGMENTS;
  for (bool more = true; more;) {
    TB_TRY(tk_client_ask(client, TP_ROUTE_SEGMENTS, "", &list.base, diag, &page));
    more = page->more && page->n_segments > 0;
    snprintf(place, sizeof place, "%s", page->next); /* copied: page is lent */
    list.place = place;
    list.settle = false;
    TB_TRY(each(self, page));
  }
  return TB_OK;
}

enum { SERVICES_SHOWN = 8, NO_MATCH_BYTES = 800 };

static bool is_first(const Tracecollect__V1__StatusReply *s, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (strcmp(s->streams[k]->service, s->streams[i]->service) == 0) return false;
  return true;
}

/* Appends "; known services: checkout, shop": some services, each once. */
static void add_services(const Tracecollect__V1__StatusReply *s, char *out, size_t bytes) {
  size_t n = strlen(out), shown = 0;

  for (size_t i = 0; i < s->n_streams && n < bytes; i++) {
    if (!is_first(s, i)) continue;
    if (shown == SERVICES_SHOWN) {
      snprintf(out + n, bytes - n, ", ...");
      return;
    }
    n += (size_t)snprintf(out + n, bytes - n, "%s%s", shown++ == 0 ? "; known services: " : ", ",
                          s->streams[i]->service);
  }
}

static bool say_unknown(const Tracecollect__V1__StatusReply *s, const char *service, char *out,
                        size_t bytes) {
  struct tb_nearest nearest = { .word = service };

  for (size_t i = 0; i < s->n_streams; i++) {
    if (strcmp(s->streams[i]->service, service) == 0) return false;
    tb_nearest_try(&nearest, s->streams[i]->service);
  }
  snprintf(out, bytes, "no service \"%s\"", service);
  size_t n = strlen(out);
  if (nearest.best != NULL)
    snprintf(out + n, bytes - n, "; did you mean \"%s\"?", nearest.best);
  else
    add_services(s, out, bytes);
  return true;
}

static tb_rc ignore(void *self, const Tracecollect__V1__ListReply *page) {
  (void)self;
  (void)page;
  return TB_OK;
}

const char *tk_remote_no_match(struct tk_client *client, const struct tk_selector *selector,
                               const char *otherwise) {
  static char text[NO_MATCH_BYTES];
  const Tracecollect__V1__StatusReply *status;
  struct tb_diag ignored;

  if (selector->service == NULL) return otherwise;
  tb_diag_clear(&ignored);
  /* A new stream has a row once its first records are in files. */
  struct tk_list_ask settle = { .selector = selector, .settle = true, .limit = 1 };
  if (tk_remote_list(client, &settle, ignore, NULL, &ignored) != TB_OK) return otherwise;
  if (tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, &ignored, &status) != TB_OK)
    return otherwise;
  return say_unknown(status, selector->service, text, sizeof text) ? text : otherwise;
}
