/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text/hex.h"
#include "base/text/nearest.h"
#include "tools/tracectl/remote/remote.h"

enum { STREAM_BYTES = 16, DIGITS_MIN = 8, DIGITS_MAX = 32, SHOWN = 8, TEXT_BYTES = 800 };

typedef Tracecollect__V1__StreamStatus stream_status;
typedef Tracecollect__V1__StatusReply status_reply;

/* ---- ids ---- */

static int by_id(const void *a, const void *b) {
  return memcmp(*(unsigned char *const *)a, *(unsigned char *const *)b, STREAM_BYTES);
}

static unsigned digits_in_common(const unsigned char *a, const unsigned char *b) {
  unsigned n = 0;

  while (n < STREAM_BYTES && a[n] == b[n]) n++;
  if (n == STREAM_BYTES) return DIGITS_MAX - 1;
  return 2 * n + ((a[n] ^ b[n]) < 16);
}

unsigned tk_stream_digits(stream_status *const *streams, size_t n) {
  const unsigned char **id = calloc(n + 1, sizeof *id);
  unsigned digits = DIGITS_MIN;
  size_t ids = 0;

  if (id == NULL) return DIGITS_MAX;
  for (size_t i = 0; i < n; i++)
    if (streams[i]->stream.len == STREAM_BYTES) id[ids++] = streams[i]->stream.data;
  qsort(id, ids, sizeof *id, by_id);
  for (size_t i = 1; i < ids; i++)
    if (digits_in_common(id[i - 1], id[i]) >= digits)
      digits = digits_in_common(id[i - 1], id[i]) + 1;
  free(id);
  return digits;
}

const char *tk_stream_text(const ProtobufCBinaryData *id, unsigned digits,
                           char out[TK_STREAM_TEXT]) {
  out[0] = '\0';
  if (id->len != STREAM_BYTES) return out;
  tb_hex(id->data, STREAM_BYTES, out);
  if (digits < DIGITS_MAX) out[digits] = '\0';
  return out;
}

/* ---- the first digits of an id ---- */

static bool fits(const char *want, const char *have) {
  return want == NULL || strcmp(want, have) == 0;
}

static bool begins_so(const struct tk_selector *s, const stream_status *stream) {
  char text[TK_STREAM_TEXT];
  size_t n = strlen(s->stream_prefix);

  return fits(s->service, stream->service) && fits(s->instance, stream->instance) &&
         strncasecmp(tk_stream_text(&stream->stream, DIGITS_MAX, text), s->stream_prefix, n) == 0;
}

static tb_rc refuse_several(const status_reply *status, const struct tk_selector *s, size_t n,
                            struct tb_diag *diag) {
  unsigned digits = tk_stream_digits(status->streams, status->n_streams);
  char list[TEXT_BYTES] = "", text[TK_STREAM_TEXT];
  size_t at = 0, shown = 0;

  for (size_t i = 0; i < status->n_streams && shown < SHOWN && at < sizeof list; i++) {
    const stream_status *stream = status->streams[i];
    if (!begins_so(s, stream)) continue;
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%s (%s/%s)", shown++ > 0 ? ", " : "",
                           tk_stream_text(&stream->stream, digits, text), stream->service,
                           stream->instance);
  }
  return tb_fail(diag, TB_BROKEN, "%zu streams begin with %s: %.150s%s", n, s->stream_prefix, list,
                 n > shown || strlen(list) > 150 ? ", ..." : "");
}

static tb_rc find_stream(struct tk_client *client, struct tk_selector *s, struct tb_diag *diag) {
  const stream_status *found = NULL;
  const status_reply *status;
  size_t n = 0;

  TB_TRY(tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, diag, &status));
  for (size_t i = 0; i < status->n_streams; i++)
    if (begins_so(s, status->streams[i])) {
      found = status->streams[i];
      n++;
    }
  if (n > 1) return refuse_several(status, s, n, diag);
  if (n == 0)
    return tb_fail(diag, TB_NOTFOUND, "no stream's id begins with %s; 'tracectl status' shows them",
                   s->stream_prefix);
  memcpy(s->stream, found->stream.data, sizeof s->stream);
  s->stream_prefix[0] = '\0';
  return TB_OK;
}

tb_rc tk_remote_open(const struct tk_client_args *args, struct tk_selector *selector,
                     struct tb_diag *diag, struct tk_client **out) {
  TB_TRY(tk_client_open(args, diag, out));
  if (selector->stream_prefix[0] == '\0') return TB_OK;
  tb_rc rc = find_stream(*out, selector, diag);
  if (rc == TB_OK) return rc;
  tk_client_close(*out);
  *out = NULL;
  return rc;
}

tb_rc tk_remote_find_stream(const struct tk_client_args *args, struct tk_selector *selector,
                            struct tb_diag *diag) {
  struct tk_client *client;

  if (selector->stream_prefix[0] == '\0') return TB_OK;
  TB_TRY(tk_remote_open(args, selector, diag, &client));
  tk_client_close(client);
  return TB_OK;
}

/* ---- unknown names ---- */

/* A name of a stream: its service, or its instance if that is one of the service, or of any if service is NULL. */
struct names {
  const status_reply *status;
  const char *service;
  bool is_instance;
};

static const char *name_at(const struct names *n, size_t i) {
  const stream_status *s = n->status->streams[i];

  if (!n->is_instance) return s->service;
  return fits(n->service, s->service) ? s->instance : NULL;
}

static bool is_first(const struct names *n, size_t i) {
  const char *name = name_at(n, i);

  for (size_t k = 0; k < i; k++)
    if (name_at(n, k) != NULL && strcmp(name_at(n, k), name) == 0) return false;
  return true;
}

/* Appends "; known services: checkout, shop": some names, each once. */
static void add_names(const struct names *names, char *out, size_t bytes) {
  const char *what = names->is_instance ? "; known instances: " : "; known services: ";
  size_t n = strlen(out), shown = 0;

  for (size_t i = 0; i < names->status->n_streams && n < bytes; i++) {
    if (name_at(names, i) == NULL || !is_first(names, i)) continue;
    if (shown == SHOWN) {
      snprintf(out + n, bytes - n, ", ...");
      return;
    }
    n +=
        (size_t)snprintf(out + n, bytes - n, "%s%s", shown++ == 0 ? what : ", ", name_at(names, i));
  }
}

/* Returns false if the name is known. */
static bool say_unknown(const struct names *names, const char *name, char *out, size_t bytes) {
  struct tb_nearest nearest = { .word = name };

  for (size_t i = 0; name != NULL && i < names->status->n_streams; i++) {
    const char *known = name_at(names, i);
    if (known == NULL) continue;
    if (strcmp(known, name) == 0) return false;
    tb_nearest_try(&nearest, known);
  }
  if (name == NULL) return false;
  snprintf(out, bytes, "no %s \"%s\"%s%s", names->is_instance ? "instance" : "service", name,
           names->service != NULL ? " of " : "", names->service != NULL ? names->service : "");
  size_t n = strlen(out);
  if (n >= bytes) return true;
  if (nearest.best != NULL)
    snprintf(out + n, bytes - n, "; did you mean \"%s\"?", nearest.best);
  else
    add_names(names, out, bytes);
  return true;
}

static tb_rc ignore(void *self, const Tracecollect__V1__ListReply *page) {
  (void)self;
  (void)page;
  return TB_OK;
}

/* *out_is_known: there are streams of these names; else text says what there is. */
static tb_rc find_names(struct tk_client *client, const struct tk_selector *s, char *text,
                        size_t bytes, struct tb_diag *diag, bool *out_is_known) {
  /* A new stream has a row once its first records are in files. */
  const struct tk_selector any = { .service = s->service };
  const struct tk_list_ask settle = { .selector = &any, .settle = true, .limit = 1 };
  struct names services = { 0 }, instances = { .service = s->service, .is_instance = true };
  const status_reply *status;

  *out_is_known = true;
  if (s->service == NULL && s->instance == NULL) return TB_OK;
  TB_TRY(tk_remote_list(client, &settle, ignore, NULL, diag));
  TB_TRY(tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, diag, &status));
  services.status = instances.status = status;
  *out_is_known = !say_unknown(&services, s->service, text, bytes) &&
                  !say_unknown(&instances, s->instance, text, bytes);
  return TB_OK;
}

tb_rc tk_remote_check_names(struct tk_client *client, const struct tk_selector *selector,
                            struct tb_diag *diag) {
  char text[TEXT_BYTES];
  bool is_known;

  TB_TRY(find_names(client, selector, text, sizeof text, diag, &is_known));
  return is_known ? TB_OK : tb_fail(diag, TB_NOTFOUND, "%.190s", text);
}

const char *tk_remote_no_match(struct tk_client *client, const struct tk_selector *selector,
                               const char *otherwise) {
  static char text[TEXT_BYTES];
  struct tb_diag ignored;
  bool is_known;

  tb_diag_clear(&ignored);
  tb_rc rc = find_names(client, selector, text, sizeof text, &ignored, &is_known);
  return rc == TB_OK && !is_known ? text : otherwise;
}
