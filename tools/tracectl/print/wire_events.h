/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the events of a file in order, without interpreting them: for -d wire and footprint.
 *
 * Errors    TB_END where Go's raw reader stops without an error: at the end of the file, also in the middle of an event if
 *           no byte of its next number is there. Otherwise TB_BROKEN, TB_UNSUPPORTED.
 */
#ifndef TK_PRINT_WIRE_EVENTS_H
#define TK_PRINT_WIRE_EVENTS_H

#include "base/buf.h"
#include "tools/tracectl/trace_file/input.h"
#include "wire/raw.h"

struct tk_wire_events {
  struct tk_input *in;
  struct tb_diag *diag;
  unsigned version, types_end; /* types_end: first event number not in the version */
  const unsigned char *pos, *end;
  uint64_t offset;     /* of pos in the trace */
  uint64_t released;   /* the input is released up to here */
  struct tb_buf carry; /* an event that straddles two pieces of input */
  bool in_carry, ended;
};

/* Reads the trace header. */
TB_MUST tb_rc tk_wire_open(struct tk_wire_events *events, struct tk_input *in, struct tb_mem *mem,
                           struct tb_diag *diag);
void tk_wire_close(struct tk_wire_events *events);
/* *out is lent until the next call. */
TB_MUST tb_rc tk_wire_next(struct tk_wire_events *events, struct tw_raw *out);

#endif
