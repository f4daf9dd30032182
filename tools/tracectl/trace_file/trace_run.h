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
  /* After each generation's last event, with the sink's self; NULL: no calls. */
  tb_rc (*generation_ends)(void *self, const struct to_generation *gen);
  uint64_t memory_max; /* the memory used stays below it; one thread only. 0: no limit */
  unsigned threads;    /* 2: the next generation of a file is prepared on a second one (ahead.h) */
  bool frames;         /* by it, with the table of all frames: the sink asks for stacks */
  bool progress;
  bool past_annotations; /* TO_READER_PAST_ANNOTATIONS: the events go on, rc says TB_BROKEN all the same */
};

struct tk_trace_run {
  tb_rc rc;                  /* of the trace; TB_OK: whole */
  struct tb_diag diag;       /* why not */
  bool went_past;            /* rc is that of annotations: all events have been delivered */
  uint64_t lone_region_ends; /* to_reader_lone_region_ends() */
  uint64_t events, generations;
  unsigned version; /* 0: no header */
};

/* False: the file could not be read (said on stderr). The sink is called by the caller's thread alone. */
bool tk_trace_run(const struct tk_trace_ask *ask, struct tk_trace_run *out);

tk_read_fn tk_read_threads; /* of --threads 1|2: unsigned */
#define TK_THREADS_ABOUT "2: the next generation is read while the one before is ordered"

#endif
