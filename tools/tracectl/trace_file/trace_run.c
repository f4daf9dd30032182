/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/trace_file/trace_run.h"

#include <stdatomic.h>

#include "tools/tracectl/term/progress.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/ahead.h"
#include "tools/tracectl/trace_file/input.h"

enum { RUN_EVENTS = 1 << 16 };

/* No other stream waits here, so a file may use more tries than in the collector: by its size, about a quarter of
 * a second for each megabyte, and some seconds at most. */
static uint64_t fuel_of(const struct tk_input *in) {
  const uint64_t at_least = UINT64_C(1) << 24, at_most = UINT64_C(1) << 31, a_byte = 64;
  uint64_t bytes = tk_input_size(in);

  return bytes < (at_most - at_least) / a_byte ? at_least + bytes * a_byte : at_most;
}

struct run {
  struct tk_input *in;
  struct to_reader *reader;
  struct tk_progress bar;
  uint64_t fed; /* of the uncompressed stream */
  bool failed;  /* the input failed at a place that was needed */
  /* Set by the thread that reads the input, which may be a second one. */
  _Atomic uint64_t position;
  atomic_bool input_failed;
};

static tb_rc order_generation(struct run *run) {
  tb_rc rc;

  while ((rc = to_reader_run(run->reader, RUN_EVENTS)) == TB_AGAIN)
    tk_progress_at(&run->bar, tk_input_stays(run->in) ? run->fed : run->position);
  /* before Go 1.26 a batch of the next generation is fed, too: it is read again */
  tk_input_release(run->in, run->fed);
  return rc;
}

/* A source of bytes (online/trace/pull.h). TB_IO: the input failed. */
static tb_rc more(void *self, const void **out_bytes, size_t *out_n) {
  struct run *run = self;
  const unsigned char *bytes;
  int got;

  do got = tk_input_next(run->in, &bytes, out_n);
  while (got == 1 && *out_n == 0);
  run->position = tk_input_position(run->in);
  run->input_failed = got < 0;
  *out_bytes = bytes;
  return got == 1 ? TB_OK : got == 0 ? TB_END : TB_IO;
}

static tb_rc feed(struct run *run, const unsigned char *bytes, size_t n) {
  while (n > 0) {
    size_t used;
    tb_rc rc = to_reader_feed(run->reader, bytes, n, &used);
    bytes += used;
    n -= used;
    run->fed += used;
    if (rc == TB_AGAIN) rc = order_generation(run);
    if (rc != TB_OK) return rc;
  }
  return TB_OK;
}

static tb_rc run_alone(struct run *run) {
  const void *bytes;
  size_t n;
  tb_rc rc;

  while ((rc = more(run, &bytes, &n)) == TB_OK) {
    TB_TRY(feed(run, bytes, n));
    tk_progress_at(&run->bar, run->position);
  }
  run->failed = rc == TB_IO;
  if (rc != TB_END) return rc;
  while ((rc = to_reader_finish(run->reader)) == TB_AGAIN) TB_TRY(order_generation(run));
  return rc;
}

static tb_rc run_ahead(struct run *run, unsigned flags) {
  struct to_prepared *prepared;
  struct tk_ahead *ahead;
  tb_rc rc = TB_OK;

  TB_TRY(tk_ahead_open(flags, (struct to_pull_source){ run, more }, &ahead));
  while (rc == TB_OK && (prepared = tk_ahead_next(ahead)) != NULL) {
    run->fed = to_prepared_upto(prepared);
    run->failed = to_prepared_is_last(prepared) && run->input_failed;
    rc = to_reader_adopt(run->reader, prepared);
    if (rc == TB_AGAIN) rc = order_generation(run);
  }
  tk_ahead_close(ahead);
  return rc;
}

/* A pipe is read by one thread, because a second one could not be interrupted. */
static tb_rc run_all(const struct tk_trace_ask *ask, struct run *run, unsigned flags) {
  bool alone = ask->threads < 2 || tk_input_size(run->in) == 0;

  return alone ? run_alone(run) : run_ahead(run, flags | (ask->frames ? TO_READER_FRAMES : 0));
}

bool tk_trace_run(const struct tk_trace_ask *ask, struct tk_trace_run *out) {
  struct to_limits limits = { 0 };
  struct run run = { 0 };
  struct tb_mem mem;

  *out = (struct tk_trace_run){ 0 };
  tb_diag_clear(&out->diag);
  if (!tk_input_open(ask->verb, ask->path, &run.in)) return false;
  if (ask->part != NULL) tk_input_part(run.in, ask->part);
  tk_input_hush(run.in); /* reading ahead may fail at a place that is never needed */
  bool limited = ask->memory_max != 0 && ask->memory_max < SIZE_MAX;
  limits.fuel_tries = fuel_of(run.in);
  tb_mem_init(&mem, tb_mem_libc, NULL, limited ? (size_t)ask->memory_max : SIZE_MAX);
  tk_progress_begin(&run.bar, ask->path, tk_input_size(run.in), ask->progress && ask->part == NULL);
  unsigned flags = tk_input_stays(run.in) ? TO_READER_BYTES_STAY : 0;
  unsigned past = ask->past_annotations ? TO_READER_PAST_ANNOTATIONS : 0;
  out->rc = to_reader_new(&mem, &limits, flags | past, ask->sink, &out->diag, &run.reader);
  if (out->rc == TB_OK) {
    to_reader_on_end(run.reader, ask->sink.self, ask->generation_ends);
    out->rc = run_all(ask, &run, flags);
    const struct tb_diag *wrong = to_reader_misannotated(run.reader);
    out->went_past = out->rc == TB_OK && wrong != NULL;
    if (out->went_past) {
      out->rc = wrong->rc;
      out->diag = *wrong;
    }
    out->events = to_reader_written(run.reader);
    out->lone_region_ends = to_reader_lone_region_ends(run.reader);
    out->generations = to_reader_generations(run.reader);
    out->version = to_reader_version(run.reader);
    to_reader_free(run.reader);
  }
  const char *cut = out->rc == TB_OK ? tk_input_cut(run.in) : NULL; /* between two generations */
  if (cut != NULL) out->rc = tb_fail(&out->diag, TB_CORRUPT, "%s", cut);
  if (out->rc != TB_OK) (void)tb_fail(&out->diag, out->rc, "%s", tb_rc_text(out->rc));
  tk_progress_end(&run.bar);
  if (out->diag.offset != TB_NO_OFFSET)
    out->diag.offset = tk_input_offset(run.in, out->diag.offset);
  if (run.failed) tk_input_complain(run.in);
  tk_input_close(run.in);
  return !run.failed;
}

tb_rc tk_read_threads(const struct tk_option *option, const char *value, void *field,
                      struct tb_diag *diag) {
  TB_TRY(tk_read_word(option, value, field, diag));
  ++*(unsigned *)field; /* the first word is 1 */
  return TB_OK;
}
