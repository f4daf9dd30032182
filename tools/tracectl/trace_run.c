/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/trace_run.h"

#include "tools/tracectl/input.h"
#include "tools/tracectl/progress.h"
#include "tools/tracectl/tracectl.h"

enum { RUN_EVENTS = 1 << 16 };

/* Offline there is nobody to keep waiting: a trace may take some ten seconds of trying. */
static const uint64_t fuel_tries = UINT64_C(1) << 31;

struct run {
  struct tk_input *in;
  struct to_reader *reader;
  struct tk_progress bar;
  uint64_t fed; /* of the unpacked stream */
};

static tb_rc order_generation(struct run *run) {
  tb_rc rc;

  while ((rc = to_reader_run(run->reader, RUN_EVENTS)) == TB_AGAIN)
    tk_progress_at(&run->bar, tk_input_stays(run->in) ? run->fed : tk_input_position(run->in));
  return rc;
}

static tb_rc feed(struct run *run, const unsigned char *bytes, size_t n) {
  while (n > 0) {
    size_t used;
    tb_rc rc = to_reader_feed(run->reader, bytes, n, &used);
    bytes += used;
    n -= used;
    run->fed += used;
    if (rc == TB_AGAIN) {
      rc = order_generation(run);
      /* Before 1.26 one batch of the next generation is fed, too: it is read from the file again. */
      tk_input_release(run->in, run->fed);
    }
    if (rc != TB_OK) return rc;
  }
  return TB_OK;
}

/* 1: the trace's end or fault is reached, rc says which; -1: reading failed. */
static int run_all(struct run *run, tb_rc *rc) {
  const unsigned char *bytes;
  size_t n;
  int got;

  while ((got = tk_input_next(run->in, &bytes, &n)) == 1) {
    *rc = feed(run, bytes, n);
    if (*rc != TB_OK) return 1;
    tk_progress_at(&run->bar, tk_input_position(run->in));
  }
  if (got < 0) return -1;
  while ((*rc = to_reader_finish(run->reader)) == TB_AGAIN) {
    *rc = order_generation(run);
    if (*rc != TB_OK) break;
  }
  return 1;
}

bool tk_trace_run(const char *verb, const char *path, const struct tk_part *part,
                  struct to_event_sink sink, uint64_t memory_max, bool progress,
                  struct tk_trace_run *out) {
  struct to_limits limits = { .fuel_tries = fuel_tries };
  struct run run = { 0 };
  struct tb_mem mem;
  int ended = -1;

  *out = (struct tk_trace_run){ 0 };
  tb_diag_clear(&out->diag);
  if (!tk_input_open(verb, path, &run.in)) return false;
  if (part != NULL) tk_input_part(run.in, part);
  tb_mem_init(&mem, tb_mem_libc, NULL, memory_max < SIZE_MAX ? (size_t)memory_max : SIZE_MAX);
  tk_progress_begin(&run.bar, path, tk_input_size(run.in), progress && part == NULL);
  unsigned flags = tk_input_stays(run.in) ? TO_READER_BYTES_STAY : 0;
  out->rc = to_reader_new(&mem, &limits, flags, sink, &out->diag, &run.reader);
  if (out->rc == TB_OK) {
    ended = run_all(&run, &out->rc);
    out->events = to_reader_events(run.reader);
    out->generations = to_reader_generations(run.reader);
    out->version = to_reader_version(run.reader);
    to_reader_free(run.reader);
  } else {
    ended = 1;
    (void)tb_fail(&out->diag, out->rc, "%s", tb_rc_text(out->rc));
  }
  tk_progress_end(&run.bar);
  if (out->diag.offset != TB_NO_OFFSET)
    out->diag.offset = tk_input_offset(run.in, out->diag.offset);
  tk_input_close(run.in);
  return ended > 0;
}
