/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a generation: strings, stacks, CPU samples, clocks, one entry at a time.
 *
 *   struct tw_section section;
 *   tw_section_open(&section, &batch, &diag);
 *   while ((rc = tw_string_next(&section, &string)) == TB_OK) ...
 *
 * Memory    entries borrow from the batch.
 * Errors    TB_END: no more entries. TB_BROKEN: see diag. TB_AGAIN: the batch ends exactly where a
 *           number of a begun entry should start; Go's reader takes that for the end of the trace.
 */
#ifndef TW_SECTIONS_H
#define TW_SECTIONS_H

#include "wire/batch.h"

struct tw_section {
  const unsigned char *pos, *end;
  struct tb_diag *diag;
  uint64_t string_id_max; /* largest id of a function or file that frames have named */
};

/* The batch's first byte is its kind. Before 1.25 a sync batch has no such byte: therefore pass the version. */
void tw_section_open(struct tw_section *section, const struct tw_batch *batch, unsigned version,
                     struct tb_diag *diag);

struct tw_string {
  uint64_t id;
  const unsigned char *data;
  size_t len; /* at most TW_STRING_BYTES_MAX */
};
TB_MUST tb_rc tw_string_next(struct tw_section *section, struct tw_string *out);

/* Frames in their encoded form, which was checked: tw_frame_read() cannot fail. */
struct tw_stack {
  uint64_t id;
  unsigned nframes; /* at most TW_STACK_FRAMES_MAX */
  const unsigned char *frames;
};
TB_MUST tb_rc tw_stack_next(struct tw_section *section, struct tw_stack *out);

struct tw_frame {
  uint64_t pc, function, file, line; /* function and file are string ids */
};
/* Reads a frame of a checked stack; returns the begin of the next one. */
const unsigned char *tw_frame_read(const unsigned char *pos, struct tw_frame *out);
/* Reads the program counters of the first n of a checked stack's nframes frames. */
void tw_frame_pcs(const unsigned char *pos, size_t nframes, size_t n, uint64_t *out);

struct tw_cpu_sample {
  uint64_t time;
  int64_t m, p, g; /* g: -1 where the wire says 0 */
  uint64_t stack;
};
TB_MUST tb_rc tw_cpu_sample_next(struct tw_section *section, struct tw_cpu_sample *out);

struct tw_sync {
  uint8_t type;     /* TW_EV_FREQUENCY or TW_EV_CLOCK_SNAPSHOT */
  uint64_t args[4]; /* frequency; or dt, mono, sec, nsec */
};
TB_MUST tb_rc tw_sync_next(struct tw_section *section, unsigned version, struct tw_sync *out);

#endif
