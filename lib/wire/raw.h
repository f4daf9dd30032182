/* SPDX-License-Identifier: Apache-2.0 */
/* One event as written, without interpretation: its numbers, frames and data.
 *
 * A batch's header counts as an event here, so a whole trace reads as a flat sequence.
 *
 * Memory    all pointers borrow from the bytes read.
 * Errors    TB_AGAIN: cut off within a number. TB_END: cut off where a number, a frame or data should begin (where Go's raw
 *           reader stops without an error). TB_BROKEN: see diag.
 */
#ifndef TW_RAW_H
#define TW_RAW_H

#include "base/result.h"
#include "wire/experiments.h"
#include "wire/varint.h"

struct tw_raw {
  uint8_t type;
  const struct tw_spec *spec;
  const unsigned char *args; /* its numbers: dt if it has one, arguments, frames; all checked */
  uint64_t nargs;            /* without frames */
  uint64_t frames;           /* groups of four numbers after the arguments */
  const unsigned char *data; /* for a kind that has data */
  uint64_t data_len;
};

/* Reads the event at the start of n > 0 bytes. Types from types_end on are refused. types_end is TW_EV_LIMIT or, to equal Go's
 * raw reader, tw_version_events_end(). If the event table has no row for a type, spec has no name. */
TB_MUST tb_rc tw_raw_read(const unsigned char *bytes, size_t n, unsigned types_end,
                          struct tb_diag *diag, struct tw_raw *out, size_t *out_used);

/* Works as tw_raw_read() with TW_EV_LIMIT, and also reads events of the generation's own experiments. */
TB_MUST tb_rc tw_raw_read_own(const unsigned char *bytes, size_t n, const struct tw_experiments *x,
                              struct tb_diag *diag, struct tw_raw *out, size_t *out_used);

/* Returns the next number of args or frames and moves *pos after it. */
static inline uint64_t tw_raw_number(const unsigned char **pos) {
  uint64_t value = **pos;

  if (value < 0x80)
    ++*pos;
  else
    *pos += tw_varint_read(*pos, *pos + TW_VARINT_BYTES_MAX, &value); /* checked when it was read */
  return value;
}

#endif
