/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's file: a worker finds and opens it and reads each chunk, the loop sends them. The next
 * chunk is read when the one before has left, so a slow reader costs one chunk of memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/hex.h"
#include "collector/http/private.h"
#include "collector/http/query.h"

struct tc__http_file {
  int fd;
  struct tc_segment_row row;
  uint64_t at, left;
  size_t chunk; /* bytes in buffer; 0: it cannot be read */
  struct tb_diag fault;
  unsigned char *buffer;
};

void tc__http_file_free(struct tc__http_conn *c) {
  if (c->file == NULL) return;
  if (c->file->fd >= 0) close(c->file->fd);
  free(c->file->buffer);
  free(c->file);
  c->file = NULL;
}

/* --- chunks ------------------------------------------------------------------------------------ */

static void read_chunk(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc__http_file *f = job->self;
  size_t want = f->left < TC__FILE_CHUNK_BYTES ? (size_t)f->left : TC__FILE_CHUNK_BYTES;

  (void)session;
  tb_rc rc = tc_read_exactly(f->fd, f->row.path, f->buffer, want, f->at, &f->fault);
  f->chunk = rc == TB_OK ? want : 0;
}

static void chunk_read(struct tc__http_job *job, bool wanted) {
  struct tc__http_file *f = job->self;
  struct tc__http_conn *c = job->conn;

  if (!wanted) return;
  if (f->chunk == 0) {
    tc_tls_abort(c->tls, f->fault.text);
    return;
  }
  f->at += f->chunk;
  f->left -= f->chunk;
  tc_tls_send(c->tls, f->buffer, f->chunk);
  tc__http_file_pump(c);
}

void tc__http_file_pump(struct tc__http_conn *c) {
  struct tc__http_file *f = c->file;
  const struct tc__http_job job = { .run = read_chunk, .done = chunk_read, .self = f };

  if (c->job != NULL || tc_tls_unsent(c->tls) > 0) return;
  if (f->left == 0) {
    tc__http_file_free(c);
    tc__conn_done(c);
  } else if (!tc__job_begin(c->http, c, &job)) {
    tc_tls_abort(c->tls, tb_rc_text(TB_NOMEM));
  }
}

/* --- the head ---------------------------------------------------------------------------------- */

static void open_segment(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc__http_file *f = job->self;
  struct tc_http_request *r = &job->conn->head.request;
  struct tb_diag diag;
  uint64_t id;

  tb_diag_clear(&diag);
  tb_rc rc = tc_http_query(r->query, NULL, 0, &diag);
  if (rc == TB_OK) {
    rc = tp_query_number("segment", r->path + strlen("/api/v1/segments/"), 1, INT64_MAX, &diag, &id);
    if (rc == TB_PROTOCOL) rc = TB_NOTFOUND;
  }
  if (rc == TB_OK) rc = tc_query_session_open(session, id, &diag, &f->row, &f->fd);
  if (rc != TB_OK) tc__answer_fail_rc(&job->answer, rc, diag.text);
}

/* A run that is still written is known by its length: what is there of it stays. */
static void write_tag(struct tc__http_answer *a, const struct tc_segment_row *row) {
  char hex[2 * TC_HASH_BYTES_MAX + 1];

  if (row->open)
    snprintf(a->tag, sizeof a->tag, "\"%" PRIu64 "-%" PRIu64 "\"", row->id, row->bytes);
  else
    snprintf(a->tag, sizeof a->tag, "\"%s\"",
             tb_hex(row->hash.bytes, tc_hash_len(row->hash.kind), hex));
}

/* The part of the file that the request's fields name: 200, 206, 304 or 416. */
static void shape(const struct tc_http_request *r, struct tc__http_file *f,
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
}

static void segment_opened(struct tc__http_job *job, bool wanted) {
  struct tc__http_conn *c = job->conn;
  struct tc__http_answer *a = &job->answer;

  if (!wanted) return;
  if (a->status == 200) shape(&c->head.request, c->file, a);
  if (a->status >= 400) {
    tc__http_file_free(c);
    tc__conn_answer(c, a);
    return;
  }
  tc__conn_begin(c, a);
  if (c->head.request.is_head) c->file->left = 0;
  tc__http_file_pump(c);
}

void tc__http_file_begin(struct tc__http_conn *c) {
  struct tc__http_file *f = calloc(1, sizeof *f);
  struct tc__http_job job = { .run = open_segment, .done = segment_opened, .self = f };

  job.answer.type = "application/octet-stream";
  c->file = f;
  if (f != NULL) {
    f->fd = -1;
    f->buffer = malloc(TC__FILE_CHUNK_BYTES);
  }
  if (f != NULL && f->buffer != NULL && tc__job_begin(c->http, c, &job)) return;
  tc__http_file_free(c);
  tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
}
