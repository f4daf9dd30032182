/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/client.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crc32c.h"
#include "proto/query.h"
#include "proto/unpack.h"
#include "tools/tracectl/remote/http.h"

#define PROTOBUF "application/protobuf"

enum { UNPACKED_BYTES_MAX = 256 << 20, CHUNK_BYTES = 1 << 20, TRIES = 3 };

struct tk_client {
  struct tk_endpoint where;
  struct tk_http *http;
  struct tb_mem mem;
  struct tb_arena arena; /* of the last answer */
  struct tb_buf path, body;
};

#define AT(member) offsetof(struct tk_client_args, member)
const struct tk_option tk_client_options[] = {
  TK_OPTION(0, "server", "WHERE|@FILE", tk_read_text, AT(server),
            "the collector: HOST, HOST:PORT, http(s)://..., unix:PATH, or its ready file; without "
            "it its http.sock on this host"),
  TK_OPTION(0, "certs", "DIR", tk_read_text, AT(certs),
            "ca.pem, reader.pem and reader.key, or ca.crt, tls.crt and tls.key, for https"),
  TK_OPTION(0, "tls-ca", "FILE", tk_read_text, AT(tls_ca), "the authority, instead of DIR/ca.pem"),
  TK_OPTION(0, "tls-cert", "FILE", tk_read_text, AT(tls_cert),
            "the certificate, instead of DIR/reader.pem"),
  TK_OPTION(0, "tls-key", "FILE", tk_read_text, AT(tls_key), "its key, instead of DIR/reader.key"),
  TK_OPTION(0, "tls-crl", "FILE", tk_read_text, AT(tls_crl),
            "revocation lists: a collector listed there is refused"),
  { 0 },
};

bool tk_client_is_given(const struct tk_client_args *a) {
  return a->server != NULL || a->certs != NULL || a->tls_ca != NULL || a->tls_cert != NULL ||
         a->tls_key != NULL || a->tls_crl != NULL;
}

/* --- open and close ---------------------------------------------------------------------------- */

static tb_rc no_memory(struct tb_diag *diag) {
  return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
}

static tb_rc open_steps(struct tk_client *c, const struct tk_client_args *args,
                        struct tb_diag *diag) {
  TB_TRY(tk_endpoint_find(args, diag, &c->where));
  return tk_http_open(&c->where, diag, &c->http);
}

tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                     struct tk_client **out) {
  struct tk_client *c = calloc(1, sizeof *c);

  if (c == NULL) return no_memory(diag);
  tb_mem_init(&c->mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
  tb_arena_init(&c->arena, &c->mem, 1 << 20);
  tb_buf_init(&c->path, &c->mem);
  tb_buf_init(&c->body, &c->mem);
  tb_rc rc = open_steps(c, args, diag);
  if (rc != TB_OK) {
    tk_client_close(c);
    return rc;
  }
  *out = c;
  return TB_OK;
}

void tk_client_close(struct tk_client *c) {
  if (c == NULL) return;
  tk_http_close(c->http);
  tb_buf_fini(&c->body);
  tb_buf_fini(&c->path);
  tb_arena_fini(&c->arena);
  free(c);
}

void tk_client_stop(struct tk_client *c) {
  tk_http_stop(c->http);
}

const struct tk_endpoint *tk_client_where(const struct tk_client *c) {
  return &c->where;
}

/* --- requests --------------------------------------------------------------------------------- */

static void add_rest(struct tb_buf *path, const char *rest) {
  static const char plain[] = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

  for (; *rest != '\0'; rest++)
    if (strchr(plain, *rest) != NULL)
      tb_buf_byte(path, (unsigned char)*rest);
    else
      tb_buf_printf(path, "%%%02X", (unsigned char)*rest);
}

/* GET sends the request in the path, other methods in the body. */
static tb_rc write_question(struct tk_client *c, const struct tp_route *route, const char *rest,
                            const ProtobufCMessage *ask, struct tb_diag *diag) {
  tb_buf_clear(&c->path);
  tb_buf_clear(&c->body);
  tb_buf_text(&c->path, route->path);
  add_rest(&c->path, rest);
  if (ask != NULL && route->method == TP_GET) {
    tb_buf_byte(&c->path, '?');
    tp_query_write(route, ask, &c->path);
  } else if (ask != NULL &&
             tb_buf_reserve(&c->body, protobuf_c_message_get_packed_size(ask) + 1) == TB_OK) {
    c->body.len = protobuf_c_message_pack(ask, c->body.data);
  }
  tb_buf_byte(&c->path, '\0');
  return c->path.rc == TB_OK && c->body.rc == TB_OK ? TB_OK : no_memory(diag);
}

static bool is_of(const struct tk_http_answer *got, const ProtobufCMessageDescriptor *wanted) {
  const char *name = strstr(got->type, "proto=");

  return strncmp(got->type, PROTOBUF, strlen(PROTOBUF)) == 0 && name != NULL &&
         strcmp(name + strlen("proto="), wanted->name) == 0;
}

static tb_rc take_answer(struct tk_client *c, const ProtobufCMessageDescriptor *wanted,
                         const struct tk_http_answer *got, struct tb_diag *diag, void *out) {
  ProtobufCAllocator allocator = tp_arena_allocator(&c->arena);

  if (wanted == NULL) return TB_OK;
  if (!is_of(got, wanted))
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer is of another kind (%.40s)",
                   c->where.shown, got->type);
  tb_arena_reset(&c->arena);
  ProtobufCMessage *answer = protobuf_c_message_unpack(wanted, &allocator, got->len, got->body);
  if (answer == NULL)
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer cannot be read", c->where.shown);
  memcpy(out, &answer, sizeof answer);
  return TB_OK;
}

tb_rc tk_client_ask(struct tk_client *c, enum tp_route_id id, const char *rest,
                    const ProtobufCMessage *ask, struct tb_diag *diag, void *out) {
  const struct tp_route *route = &tp_routes[id];
  struct tk_http_answer got;

  TB_TRY(write_question(c, route, rest, ask, diag));
  const struct tk_http_ask question = { .method = tp_method_name(route->method),
                                        .path = (const char *)c->path.data,
                                        .accept = PROTOBUF,
                                        .body = ask != NULL && route->method != TP_GET
                                                    ? c->body.data
                                                    : NULL,
                                        .len = c->body.len };
  TB_TRY(tk_http_ask(c->http, &question, diag, &got));
  return take_answer(c, route->answer, &got, diag, out);
}

tb_rc tk_client_report(struct tk_client *c, const char *kind, const char *window,
                       const struct tk_selector *selector, const char *sum, struct tb_diag *diag,
                       const Tracecollect__V1__ReportReply **out) {
  static const Tracecollect__V1__ReportReply none = TRACECOLLECT__V1__REPORT_REPLY__INIT;
  Tracecollect__V1__ReportRequest ask = TRACECOLLECT__V1__REPORT_REQUEST__INIT;
  Tracecollect__V1__Selector which;

  tk_selector_message(selector, &which);
  ask.window = (char *)(uintptr_t)window; /* packing only reads them */
  ask.sum = (char *)(uintptr_t)sum;
  ask.service = which.service;
  ask.instance = which.instance;
  ask.stream = which.stream;
  tb_rc rc = tk_client_ask(c, TP_ROUTE_REPORT, kind, &ask.base, diag, out);
  if (rc != TB_NOTFOUND) return rc;
  tb_diag_clear(diag);
  *out = &none;
  return TB_OK;
}

/* --- bytes ------------------------------------------------------------------------------------- */

static void segment_path(uint64_t segment, char out[64]) {
  snprintf(out, 64, "%s%" PRIu64, tp_routes[TP_ROUTE_SEGMENT].path, segment);
}

static tb_rc ends_early(const struct tk_range *range, uint64_t bytes, struct tb_diag *diag) {
  return tb_fail(diag, TB_CORRUPT, "segment %" PRIu64 " ends at byte %" PRIu64, range->segment,
                 range->offset + bytes);
}

/* Checks a digest "crc32c=:BASE64:" of the body. */
static bool fits(const struct tk_http_answer *got) {
  uint32_t crc = tb_crc32c(0, got->body, got->len);
  const unsigned char big_endian[] = { (unsigned char)(crc >> 24), (unsigned char)(crc >> 16),
                                       (unsigned char)(crc >> 8), (unsigned char)crc };
  char base64[16], wanted[40];

  EVP_EncodeBlock((unsigned char *)base64, big_endian, sizeof big_endian);
  snprintf(wanted, sizeof wanted, "crc32c=:%s:", base64);
  return strcmp(got->digest, wanted) == 0;
}

static tb_rc read_chunk(struct tk_client *c, const struct tk_range *range, struct tb_diag *diag,
                        struct tk_http_answer *out) {
  char path[64];

  segment_path(range->segment, path);
  const struct tk_http_ask ask = { .path = path,
                                   .accept = "*/*",
                                   .first = range->offset,
                                   .bytes = range->bytes < CHUNK_BYTES ? range->bytes : CHUNK_BYTES,
                                   .sum = true };
  for (int i = 0; i < TRIES; i++) {
    TB_TRY(tk_http_ask(c->http, &ask, diag, out));
    if (out->len < ask.bytes) return ends_early(range, out->len, diag);
    if (fits(out)) return TB_OK;
  }
  return tb_fail(diag, TB_CORRUPT,
                 "segment %" PRIu64 ", offset %" PRIu64 ": a chunk does not fit its checksum",
                 range->segment, range->offset);
}

static tb_rc read_chunks(struct tk_client *c, struct tk_range range, tk_bytes_fn *take, void *self,
                         struct tb_diag *diag) {
  struct tk_http_answer chunk;

  for (; range.bytes > 0; range.offset += chunk.len, range.bytes -= chunk.len) {
    TB_TRY(read_chunk(c, &range, diag, &chunk));
    TB_TRY(take(self, chunk.body, chunk.len));
  }
  return TB_OK;
}

tb_rc tk_client_read(struct tk_client *c, const struct tk_range *range, tk_bytes_fn *take,
                     void *self, struct tb_diag *diag) {
  struct tk_http_answer got;
  char path[64];

  if (range->bytes == 0) return TB_OK;
  if (range->sum) return read_chunks(c, *range, take, self, diag);
  segment_path(range->segment, path);
  const struct tk_http_ask ask = { .path = path,
                                   .accept = "*/*",
                                   .first = range->offset,
                                   .bytes = range->bytes,
                                   .take = take,
                                   .self = self };
  TB_TRY(tk_http_ask(c->http, &ask, diag, &got));
  return got.len == range->bytes ? TB_OK : ends_early(range, got.len, diag);
}

tb_rc tk_client_live(struct tk_client *c, const Tracecollect__V1__LiveRequest *ask,
                     tk_bytes_fn *take, void *self, struct tb_diag *diag) {
  struct tk_http_answer got;

  TB_TRY(write_question(c, &tp_routes[TP_ROUTE_LIVE], "", &ask->base, diag));
  const struct tk_http_ask question = {
    .path = (const char *)c->path.data, .accept = "text/event-stream", .take = take, .self = self
  };
  return tk_http_ask(c->http, &question, diag, &got);
}
