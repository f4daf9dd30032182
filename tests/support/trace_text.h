/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as text, one line per event: the language of the tests and of golden files.
 *
 *   Trace Go1.26
 *   EventBatch gen=1 m=0 time=0            # size= may be given; else the batch is as long as it gets
 *   ProcStatus dt=1 p=0 pstatus=1
 *   String id=5
 *       data="hello\x00"
 *   Stack id=1 nframes=1
 *       pc=4096 func=1 file=2 line=10
 *
 * Arguments follow the order of wire/events.def, dt first if the event has one. data= and frames may follow on the same
 * line or the next ones. '#' starts a comment.
 *
 * Memory    data of the event at hand is in a buffer from mem.
 * Errors    TB_END: no more events. TB_BROKEN: diag's text names the line. TB_NOMEM, TB_BUDGET.
 */
#ifndef TT_TRACE_TEXT_H
#define TT_TRACE_TEXT_H

#include "base/buf.h"
#include "wire/spec.h"

struct tt_text {
  const char *pos;
  unsigned line;
  unsigned version;
  struct tb_buf data;
  struct tb_diag *diag;
};

struct tt_text_event {
  uint8_t type;
  unsigned nargs; /* dt counted */
  uint64_t args[6];
  bool size_given; /* EventBatch: args[3] is valid */
  unsigned nframes;
  uint64_t frames[TW_STACK_FRAMES_MAX][4];
  const unsigned char *data; /* until the next event */
  size_t len;
};

/* Reads the "Trace Go1.NN" line. text is NUL-terminated and must outlive the reader. */
TB_MUST tb_rc tt_text_open(struct tt_text *text, const char *source, struct tb_mem *mem,
                           struct tb_diag *diag);
void tt_text_close(struct tt_text *text);
TB_MUST tb_rc tt_text_next(struct tt_text *text, struct tt_text_event *out);

/* Appends the event's bytes; for a batch, those before its size. */
void tt_text_encode(struct tb_buf *out, const struct tt_text_event *event);
void tt_text_encode_number(struct tb_buf *out, uint64_t value);

/* Writes a whole trace as text that reads back as the same events: `text -> bytes -> text` is the identity on text
 * written here. Sizes of batches are left out. Returns TB_BROKEN if bytes are not batches; diag has the offset. */
TB_MUST tb_rc tt_text_write(const unsigned char *bytes, size_t n, struct tb_buf *out,
                            struct tb_diag *diag);

/* Converts the whole text to trace bytes, without adding anything. */
TB_MUST tb_rc tt_text_to_bytes(const char *source, struct tb_mem *mem, struct tb_buf *out,
                               struct tb_diag *diag);

#endif
