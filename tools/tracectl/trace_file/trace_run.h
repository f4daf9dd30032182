/* SPDX-License-Identifier: Apache-2.0 */
/* Orders a whole trace file, "-" or packed file into a sink, with progress. */
#ifndef TK_TRACE_FILE_TRACE_RUN_H
#define TK_TRACE_FILE_TRACE_RUN_H

#include "online/trace/reader.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/trace_file/input.h"

struct tk_trace_ask {
  const char *verb, *path;
  const struct tk_trace_range *part; /* NULL: all of the file */
  struct to_event_sink sink;
  /* Called after each generation's last event, with the sink's self; may be NULL. */
  tb_rc (*generation_ends)(void *self, const struct to_generation *gen);
  uint64_t memory_max; /* limit of memory; one thread only. 0: no limit */
  unsigned threads;    /* 2: a second thread prepares the next generation (ahead.h) */
  bool frames;         /* prepares the table of frames, too, if the sink needs stacks */
  bool progress;
  bool past_annotations; /* TO_READER_PAST_ANNOTATIONS: events continue, but rc is TB_BROKEN */
};

struct tk_trace_run {
  tb_rc rc;                  /* of the trace; TB_OK: whole */
  struct tb_diag diag;       /* the reason if rc is not TB_OK */
  bool went_past;            /* only annotations are wrong: all events were delivered */
  uint64_t lone_region_ends; /* to_reader_lone_region_ends() */
  uint64_t events, generations;
  unsigned version; /* 0: no header */
};

/* Returns false if the file could not be read (reported on stderr). The sink is only called on the
 * caller's thread. */
bool tk_trace_run(const struct tk_trace_ask *ask, struct tk_trace_run *out);

tk_read_fn tk_read_threads; /* for --threads 1|2: unsigned */
#define TK_THREADS_ABOUT "2: the next generation is read while the previous one is ordered"

#endif
