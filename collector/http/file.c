/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a segment's file. A worker finds and opens the file. The loop reads what is in the page cache, without waiting;
 * a worker reads the rest, a chunk at a time, while the chunk before is being sent: a slow reader costs one or two chunks
 * of memory. The first chunk is read before the head is sent, so that a read error is reported with a status, also to a
 * client that resumes at a byte. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/crc32c.h"
#include "base/text/hex.h"
#include "collector/base/logger.h"
#include "collector/http/private.h"
#include "proto/query.h"

enum {
  TURN_BYTES = 1 << 20,
  OWED_BYTES_MAX = TC__FILE_CHUNK_BYTES, /* above this no chunk is read */
  DIGEST_BYTES_MAX = 16 << 20            /* largest range that gets a Content-Digest */
};

struct tc__http_file {
  int fd;
  struct tc_segment_row row;
  uint64_t at, left;
  size_t chunk; /* bytes in buffer; 0: the read failed */
  struct tb_diag fault;
  unsigned char *buffer; /* used by the worker */
};

void tc__http_file_free(struct tc__http_conn *c) {
  if (c->file == NULL) return;
  if (c->file->fd >= 0) close(c->file->fd);
  free(c->file->buffer);
  free(c->file);
  c->file = NULL;
}

/* --- chunks ------------------------------------------------------------------------------------ */

static size_t next_bytes(const struct tc__http_file *f) {
  return f->left < TC__FILE_CHUNK_BYTES ? (size_t)f->left : TC__FILE_CHUNK_BYTES;
}

static tb_rc read_next(struct tc__http_file *f) {
  size_t want = next_bytes(f);

  if (f->buffer == NULL) f->buffer = malloc(TC__FILE_CHUNK_BYTES);
  tb_rc rc = f->buffer == NULL
                 ? tb_fail(&f->fault, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM))
                 : tc_read_exactly(f->fd, f->row.path, f->buffer, want, f->at, &f->fault);
  f->chunk = rc == TB_OK ? want : 0;
  return rc;
}

static void read_chunk(struct tc__http_job *job, struct tc_query_session *session) {
  (void)session;
  (void)!read_next(job->self); /* chunk_read() checks chunk */
}

static void send_some(struct tc__http_conn *c, const unsigned char *bytes, size_t n) {
  c->file->at += n;
  c->file->left -= n;
  tc_tls_send(c->tls, bytes, n);
}

static void chunk_read(struct tc__http_job *job, bool wanted) {
  struct tc__http_file *f = job->self;
  struct tc__http_conn *c = job->conn;

  if (!wanted) return;
  if (f->chunk == 0) {
    tc_tls_abort(c->tls, f->fault.text);
    return;
  }
  send_some(c, f->buffer, f->chunk);
  tc__turn_take(c);
}

static void begin_chunk(struct tc__http_conn *c) {
  struct tc__http_file *f = c->file;
  const struct tc__http_job job = { .run = read_chunk, .done = chunk_read, .self = f };

  if (!tc__job_begin(c->http, c, &job)) tc_tls_abort(c->tls, tb_rc_text(TB_NOMEM));
}

bool tc__http_file_turn(struct tc__http_conn *c) {
  struct tc__http_file *f = c->file;
  size_t sent = 0;

  while (f->left > 0 && c->job == NULL && tc_tls_unsent(c->tls) < OWED_BYTES_MAX) {
    struct iovec to = { c->http->turn_bytes, next_bytes(f) };

    if (sent >= TURN_BYTES) return true;
    ssize_t n = preadv2(f->fd, &to, 1, (off_t)f->at, RWF_NOWAIT);
    if (n <= 0) { /* not in the page cache, or an error, which the worker reports */
      begin_chunk(c);
      return false;
    }
    send_some(c, c->http->turn_bytes, (size_t)n);
    sent += (size_t)n;
  }
  if (f->left > 0) return false;
  tc__http_file_free(c);
  tc__conn_done(c);
  return false;
}

/* --- the head ---------------------------------------------------------------------------------- */

static tb_rc find_segment(struct tc__http_job *job, struct tc_query_session *session,
                          struct tb_diag *diag) {
  struct tc__http_file *f = job->self;
  struct tc_http_request *r = &job->conn->head.request;
  uint64_t id;

  const char *name = tp_route_rest(job->conn->route, r->path);
  if (tp_query_number("segment", name, 1, INT64_MAX, diag, &id) != TB_OK) return TB_NOTFOUND;
  return tc_query_session_open(session, id, diag, &f->row, &f->fd);
}

/* The tag of an open run is its length: a run only grows. */
static void write_tag(struct tc__http_answer *a, const struct tc_segment_row *row) {
  char hex[2 * TC_HASH_BYTES_MAX + 1];

  if (row->open)
    snprintf(a->tag, sizeof a->tag, "\"%" PRIu64 "-%" PRIu64 "\"", row->id, row->bytes);
  else
    snprintf(a->tag, sizeof a->tag, "\"%s\"",
             tb_hex(row->hash.bytes, tc_hash_len(row->hash.kind), hex));
}

static void add_digest(struct tc__http_answer *a, const char *field, const char *kind,
                       const unsigned char *sum, int n) {
  char text[4 * (EVP_MAX_MD_SIZE / 3 + 1) + 1];
  size_t used = strlen(a->fields);

  EVP_EncodeBlock((unsigned char *)text, sum, n);
  snprintf(a->fields + used, sizeof a->fields - used, "%s: %s=:%s:\r\n", field, kind, text);
}

/* Chooses status (200, 206, 304 or 416) and range by the request's fields. */
static void choose_range(const struct tc_http_request *r, struct tc__http_file *f,
                         struct tc__http_answer *a) {
  uint64_t total = f->row.bytes;
  struct tc_http_range range = { TC_HTTP_WHOLE, 0, total };
  int n = 0;

  write_tag(a, &f->row);
  a->caching = f->row.open ? "private, no-cache" : "private, max-age=31536000, immutable";
  if (r->if_range[0] == '\0' || tc_http_tag_listed(r->if_range, a->tag, false))
    range = tc_http_range_of(r->range, total);
  if (tc_http_tag_listed(r->if_none_match, a->tag, true)) {
    a->status = 304;
    range.bytes = 0;
  } else if (range.kind == TC_HTTP_PART) {
    a->status = 206;
    n = snprintf(a->fields, sizeof a->fields,
                 "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", range.first,
                 range.first + range.bytes - 1, total);
  } else if (range.kind == TC_HTTP_UNSATISFIABLE) {
    tc__answer_fail(a, 416, "the segment has %" PRIu64 " bytes", total);
    n = snprintf(a->fields, sizeof a->fields, "Content-Range: bytes */%" PRIu64 "\r\n", total);
  }
  a->bytes = range.bytes;
  f->at = range.first;
  f->left = range.bytes;
  if (a->status == 416) return;
  snprintf(a->fields + n, sizeof a->fields - (size_t)n,
           "Accept-Ranges: bytes\r\n"
           "Content-Disposition: attachment; filename=\"%.64s-%" PRIu64 ".trace\"\r\n",
           f->row.service, f->row.first_gen);
  if (!f->row.open && f->row.hash.kind == TC_HASH_SHA256)
    add_digest(a, "Repr-Digest", "sha-256", f->row.hash.bytes, TC_HASH_BYTES_MAX);
}

/* --- checksums --------------------------------------------------------------------------------- */

/* Reads the whole range into the answer's body and adds its checksum. */
static tb_rc add_content_digest(struct tc__http_file *f, enum tc_http_digest digest,
                                struct tc__http_answer *a, struct tb_diag *diag) {
  unsigned char sum[EVP_MAX_MD_SIZE];
  size_t n = (size_t)f->left;

  TB_TRY(tb_buf_reserve(&a->body, n));
  TB_TRY(tc_read_exactly(f->fd, f->row.path, a->body.data, n, f->at, diag));
  a->body.len = n;
  if (digest == TC_HTTP_CRC32C) {
    uint32_t crc = tb_crc32c(0, a->body.data, n);
    for (unsigned i = 0; i < 4; i++) sum[i] = (unsigned char)(crc >> (24 - 8 * i));
    add_digest(a, "Content-Digest", "crc32c", sum, 4);
    return TB_OK;
  }
  if (EVP_Digest(a->body.data, n, sum, NULL, EVP_sha256(), NULL) != 1) return TB_NOMEM;
  add_digest(a, "Content-Digest", "sha-256", sum, 32);
  return TB_OK;
}

static void open_segment(struct tc__http_job *job, struct tc_query_session *session) {
  const struct tc_http_request *r = &job->conn->head.request;
  struct tc__http_answer *a = &job->answer;
  struct tc__http_file *f = job->self;
  struct tc__http_question q;
  struct tb_diag diag;

  if (!tc__job_question(job, &q)) return;
  tc__question_fini(&q);
  tb_diag_clear(&diag);
  tb_rc rc = find_segment(job, session, &diag);
  if (rc == TB_OK) choose_range(r, f, a);
  enum tc_http_digest digest = tc_http_digest_of(r->want_content_digest);
  bool has_bytes = rc == TB_OK && a->status < 300 && f->left > 0;
  if (has_bytes && digest != TC_HTTP_NO_DIGEST && f->left <= DIGEST_BYTES_MAX)
    rc = add_content_digest(f, digest, a, &f->fault);
  else if (has_bytes && !r->is_head)
    rc = read_next(f);
  if (rc == TB_OK) return;
  if (f->fault.rc != TB_OK) diag = f->fault;
  a->fields[0] = '\0';
  tc__answer_fail_rc(a, rc, diag.text);
}

/* --- on the loop ------------------------------------------------------------------------------- */

static void segment_opened(struct tc__http_job *job, bool wanted) {
  struct tc__http_conn *c = job->conn;
  struct tc__http_answer *a = &job->answer;

  if (!wanted) return;
  if (c->file->fault.rc != TB_OK)
    tc_log(TC_ERROR, "http", "peer=%s: %s", c->peer, c->file->fault.text);
  if (a->status >= 400 || a->body.len > 0) {
    tc__http_file_free(c);
    tc__conn_answer(c, a);
    return;
  }
  tc__conn_begin(c, a);
  if (c->head.request.is_head) c->file->left = 0;
  if (c->file->chunk > 0) send_some(c, c->file->buffer, c->file->chunk);
  tc__turn_take(c);
}

void tc__http_file_begin(struct tc__http_conn *c) {
  struct tc__http_file *f = calloc(1, sizeof *f);
  struct tc__http_job job = { .run = open_segment, .done = segment_opened, .self = f };

  job.answer.type = "application/octet-stream";
  c->file = f;
  if (f != NULL) f->fd = -1;
  if (f != NULL && tc__job_begin(c->http, c, &job)) return;
  tc__http_file_free(c);
  tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}
