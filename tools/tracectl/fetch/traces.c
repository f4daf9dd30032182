/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/traces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/grow.h"
#include "base/text/hex.h"
#include "tools/tracectl/fetch/choose.h"
#include "tools/tracectl/fetch/read.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/table.h"

enum { STREAM_BYTES = 16 };

/* A stream that matches, with the requested part. */
struct wanted {
  struct tk_selector selector;
  char *name;
  struct tk_plan plan;
};

struct fetching {
  struct tk_client *client;
  struct tk_selector selector;
  struct tb_diag *diag;
  struct wanted *wanted;
  size_t n, room;
  const char *one_for; /* a verb that needs one stream; NULL: all that match */
  uint64_t bytes;
  struct tk_fetched_traces *out;
};

static tb_rc no_memory(struct tb_diag *diag) {
  return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
}

static void give_back(struct fetching *f) {
  for (size_t i = 0; i < f->n; i++) {
    tk_plan_fini(&f->wanted[i].plan);
    free(f->wanted[i].name);
  }
  free(f->wanted);
}

static tb_rc add_stream(struct fetching *f, const Tracecollect__V1__StreamStatus *stream) {
  char hex[2 * STREAM_BYTES + 1];

  if (TB_GROW(f->wanted, f->room, f->n) != TB_OK) return no_memory(f->diag);
  struct wanted *w = &f->wanted[f->n++];
  *w = (struct wanted){ .selector = f->selector };
  w->selector.has_stream = true;
  memcpy(w->selector.stream, stream->stream.data, STREAM_BYTES);
  tb_hex(stream->stream.data, STREAM_BYTES, hex);
  if (asprintf(&w->name, "%s/%s/%s", stream->service, stream->instance, hex) < 0) {
    w->name = NULL;
    return no_memory(f->diag);
  }
  return TB_OK;
}

static bool is_chosen(const struct tk_selector *s, const Tracecollect__V1__StreamStatus *stream) {
  return stream->stream.len == STREAM_BYTES &&
         (!s->has_stream || memcmp(s->stream, stream->stream.data, STREAM_BYTES) == 0);
}

/* The first page names all streams. One that ended before the newest part of the others is not a part of it. */
static tb_rc take_streams(void *self, const Tracecollect__V1__ListReply *page) {
  struct fetching *f = self;
  uint64_t begin = tk_streams_begin(&f->selector, page);

  if (f->one_for != NULL) TB_TRY(tk_stream_choose(f->one_for, page, &f->selector, f->diag));
  for (size_t i = 0; i < page->n_streams; i++)
    if (is_chosen(&f->selector, page->streams[i]) && tk_stream_reaches(page->streams[i], begin))
      TB_TRY(add_stream(f, page->streams[i]));
  return TB_END;
}

struct planning {
  struct tk_plan *plan;
  struct tb_diag *diag;
};

static tb_rc take_page(void *self, const Tracecollect__V1__ListReply *page) {
  struct planning *p = self;

  return tk_plan_take(p->plan, page, p->diag);
}

static tb_rc make_plan(struct fetching *f, struct wanted *w) {
  const struct tk_list_ask ask = { .selector = &w->selector, .detail = true };
  struct planning planning = { &w->plan, f->diag };

  tk_plan_init(&w->plan, &w->selector);
  w->plan.splits_broken = true;
  TB_TRY(tk_remote_list(f->client, &ask, take_page, &planning, f->diag));
  TB_TRY(tk_plan_finish(&w->plan, f->diag));
  f->bytes += w->plan.bytes;
  return TB_OK;
}

static tb_rc plan_all(struct fetching *f) {
  const struct tk_list_ask ask = { .selector = &f->selector, .settle = true, .limit = 1 };

  tb_rc rc = tk_remote_list(f->client, &ask, take_streams, f, f->diag);
  if (rc != TB_END) return rc;
  for (size_t i = 0; i < f->n; i++) TB_TRY(make_plan(f, &f->wanted[i]));
  if (f->bytes > 0) return TB_OK;
  return tb_fail(f->diag, TB_NOTFOUND, "%s",
                 tk_remote_no_match(f->client, &f->selector, "nothing in the archive matches"));
}

static bool is_bounded(const struct tk_selector *s) {
  return s->since_wall_ns != 0 || s->last_ns != 0 || s->first_gen != 0 || s->last_gen != 0;
}

static tb_rc refuse_all(const struct fetching *f) {
  char size[TK_SIZE_BYTES];

  tk_size_format(f->bytes, size);
  return tb_fail(f->diag, TB_BROKEN,
                 "that is the whole archive of %zu streams, %s: name a time (--since, --last) or "
                 "generations (--gen), or "
                 "give --all",
                 f->n, size);
}

static tb_rc begin_file(struct fetching *f, const struct wanted *w, uint64_t first_gen) {
  struct tk_fetched_traces *out = f->out;

  if (TB_GROW(out->trace, out->room, out->n) != TB_OK) return no_memory(f->diag);
  struct tk_fetched *t = &out->trace[out->n++];
  *t = (struct tk_fetched){ .first_gen = first_gen, .stream = strdup(w->name), .file = tmpfile() };
  if (t->stream == NULL) return no_memory(f->diag);
  if (t->file == NULL) return tb_fail(f->diag, TB_IO, "a temporary file: %s", strerror(errno));
  snprintf(t->path, sizeof t->path, "/proc/self/fd/%d", fileno(t->file));
  return TB_OK;
}

static tb_rc end_file(const struct fetching *f) {
  FILE *file = f->out->n > 0 ? f->out->trace[f->out->n - 1].file : NULL;

  if (file == NULL || fflush(file) == 0) return TB_OK;
  return tb_fail(f->diag, TB_IO, "a temporary file: %s", strerror(errno));
}

static tb_rc read_pieces(struct fetching *f, const struct wanted *w, size_t first,
                         struct tk_fetch *fetch) {
  const struct tk_plan *plan = &w->plan;

  for (size_t i = first; i < plan->n_pieces; i++) {
    const struct tk_piece *piece = &plan->pieces[i];
    bool begins = i == first || piece->begins_file;
    if (begins) TB_TRY(end_file(f));
    if (begins) TB_TRY(begin_file(f, w, piece->first_gen));
    struct tk_fetched *trace = &f->out->trace[f->out->n - 1];
    trace->last_gen = piece->last_gen;
    TB_TRY(tk_fetch_piece(fetch, piece, begins, trace->file));
    f->out->generations += piece->last_gen - piece->first_gen + 1;
    f->out->bytes += piece->len;
  }
  for (size_t i = 0; i < plan->n_gaps; i++)
    f->out->missing += plan->gaps[i].last_gen - plan->gaps[i].first_gen + 1;
  f->out->streams += plan->n_pieces > 0;
  return TB_OK;
}

static size_t first_of_last(const struct tk_plan *plan) {
  size_t first = plan->n_pieces - 1;

  while (first > 0 && !plan->pieces[first].begins_file) first--;
  return first;
}

/* Each run needs a file: many streams need more descriptors than the default limit. */
static void raise_files(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit); /* if this fails, the old limit applies */
}

static tb_rc read_all(struct fetching *f, bool progress) {
  struct tk_fetch fetch = { .client = f->client, .diag = f->diag, .full = true };
  tb_rc rc = TB_OK;

  raise_files();
  tk_progress_begin(&fetch.progress, "fetch", f->bytes, progress);
  for (size_t i = 0; rc == TB_OK && i < f->n; i++)
    if (f->wanted[i].plan.n_pieces > 0)
      rc = read_pieces(f, &f->wanted[i], f->one_for != NULL ? first_of_last(&f->wanted[i].plan) : 0,
                       &fetch);
  tk_progress_end(&fetch.progress);
  return rc == TB_OK ? end_file(f) : rc;
}

static tb_rc fetch_all(struct fetching *f, bool is_all, bool progress) {
  TB_TRY(plan_all(f));
  if (!is_all && !is_bounded(&f->selector)) return refuse_all(f);
  return read_all(f, progress);
}

static tb_rc fetch_with(struct fetching *f, bool is_all, bool progress) {
  *f->out = (struct tk_fetched_traces){ 0 };
  tb_rc rc = fetch_all(f, is_all, progress);
  give_back(f);
  if (rc != TB_OK) tk_fetched_fini(f->out);
  return rc;
}

tb_rc tk_fetch_traces(struct tk_client *client, const struct tk_selector *selector, bool is_all,
                      bool progress, struct tb_diag *diag, struct tk_fetched_traces *out) {
  struct fetching f = { .client = client, .selector = *selector, .diag = diag, .out = out };

  return fetch_with(&f, is_all, progress);
}

tb_rc tk_fetch_last(struct tk_client *client, const char *verb, const struct tk_selector *selector,
                    bool progress, struct tb_diag *diag, struct tk_fetched_traces *out) {
  struct fetching f = {
    .client = client, .selector = *selector, .diag = diag, .one_for = verb, .out = out
  };

  return fetch_with(&f, true, progress);
}

void tk_fetched_fini(struct tk_fetched_traces *traces) {
  for (size_t i = 0; i < traces->n; i++) {
    if (traces->trace[i].file != NULL) fclose(traces->trace[i].file);
    free(traces->trace[i].stream);
  }
  free(traces->trace);
  *traces = (struct tk_fetched_traces){ 0 };
}
