/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/term/out_file.h"
#include "tools/tracectl/term/tracectl.h"

struct converting {
  const struct tk_convert_ask *ask;
  void *self;                      /* of the format */
  int code;                        /* exit code: TK_FAILED if a trace is broken */
  unsigned has_wall, without_wall; /* streams */
};

static tb_rc begin(void *self, const struct tk_stream *stream) {
  struct converting *c = self;

  c->has_wall += stream->has_wall;
  c->without_wall += !stream->has_wall;
  return c->ask->format->begin(c->self, stream);
}

static tb_rc span(void *self, const struct tk_stream *stream, const struct tk_span *at) {
  struct converting *c = self;

  return c->ask->format->span(c->self, stream, at);
}

static tb_rc end(void *self, const struct tk_stream *stream) {
  struct converting *c = self;

  return c->ask->format->end == NULL ? TB_OK : c->ask->format->end(c->self, stream);
}

/* Walks all traces; a broken trace ends at its fault. */
static tb_rc walk_all(struct converting *c) {
  const struct tk_convert_sink sink = { c, begin, span, end };
  char error[TK_QUERY_ERROR];
  uint64_t spans;

  for (size_t i = 0; i < c->ask->n; i++) {
    tb_rc rc = tk_walk(&c->ask->place[i], (unsigned)i, c->ask->is_remote, &sink, &spans, error);
    if (rc != TB_OK && rc != TB_BROKEN) return rc;
    if (rc == TB_BROKEN) c->code = error[0] == 0 ? TK_FAILED : tk_fail("convert", "%s", error);
  }
  return c->ask->format->close(c->self);
}

/* file: NULL if the output is posted. */
static tb_rc write_all(struct converting *c, FILE *file, struct tb_diag *diag) {
  const struct tk_format *format = c->ask->format;
  struct tk_format_options options = c->ask->options;

  options.diag = diag;
  c->self = calloc(1, format->bytes);
  if (c->self == NULL) return TB_NOMEM;
  tb_rc rc = format->open(c->self, file, &options);
  if (rc == TB_OK) rc = walk_all(c);
  format->fini(c->self);
  free(c->self);
  return rc;
}

/* *out_is_gone: the reader of standard output is gone. */
static tb_rc write_file(struct converting *c, struct tb_diag *diag, bool *out_is_gone) {
  const char *path = c->ask->path;
  struct tk_out_set *files;
  FILE *file;

  TB_TRY(tk_out_new(diag, &files));
  tb_rc rc = tk_out_begin(files, path, diag, &file);
  if (rc == TB_OK) rc = write_all(c, file, diag);
  *out_is_gone = rc == TB_IO && strcmp(path, "-") == 0 && tk_reader_is_gone();
  if (rc == TB_OK) rc = tk_out_publish(files, diag);
  tk_out_free(files);
  return rc;
}

static int fail(tb_rc rc, const struct tb_diag *diag, const char *path) {
  if (diag->rc != TB_OK) return tk_fail("convert", "%s", diag->text);
  if (rc == TB_IO) return tk_fail("convert", "%s: %s", path, strerror(errno));
  return tk_fail("convert", "%s", tb_rc_text(rc));
}

int tk_convert(const struct tk_convert_ask *ask) {
  struct converting c = { .ask = ask };
  bool is_gone = false;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc =
      ask->options.url != NULL ? write_all(&c, NULL, &diag) : write_file(&c, &diag, &is_gone);
  if (is_gone) return TK_DONE;
  if (rc != TB_OK) return fail(rc, &diag, ask->path);
  if (c.without_wall > 0 && c.has_wall + c.without_wall > 1)
    tk_note("convert", "%u of the traces have no wall clock (before Go 1.25): they begin at zero",
            c.without_wall);
  return c.code;
}
