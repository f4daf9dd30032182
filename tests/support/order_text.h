/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a trace given as text (support/trace_text.h) through the reader, and checks the ordered
 * events.
 *
 * tt_order_text() adds what most tests leave out, unless the text has it: a frequency of one tick a
 * nanosecond and, from 1.25, clocks; a string "sN" for every string id N that events name; an empty
 * stack for every stack id; from 1.26 the end of each generation.
 */
#ifndef TT_ORDER_TEXT_H
#define TT_ORDER_TEXT_H

#include "base/buf.h"
#include "online/trace/reader.h"

struct tt_run {
  struct tb_mem mem;
  tb_rc rc;
  struct tb_diag diag;
  struct to_event *events; /* all that were delivered */
  size_t count, cap;
  size_t looked_at; /* number of events that tt_expect_order() has checked */
  uint64_t generations, lone_region_ends;
  size_t feed_bytes;       /* at most this many a feed; 0: all at once */
  bool feed_whole_batches; /* feed_bytes, rounded up to the end of the batch */
  unsigned flags;
  struct to_limits limits;
  struct tb_diag misannotated; /* to_reader_misannotated(); rc TB_OK: none */
};

/* Converts a text trace to bytes, completed as described above. Fails the test if the text is not
 * valid. */
void tt_trace_bytes(const char *text, struct tb_mem *mem, struct tb_buf *out);

struct tt_run tt_order_text(const char *text);
struct tt_run tt_order_text_by(const char *text, unsigned flags); /* of the reader */
/* Runs bytes through a reader as run->feed_bytes, flags and limits say, collecting events. */
void tt_order_bytes(struct tt_run *run, const void *bytes, size_t n);
void tt_run_fini(struct tt_run *run);

#define TT_OK(run)                                                                                 \
  do {                                                                                             \
    char text_[300];                                                                               \
    tb_diag_format(&(run).diag, text_, sizeof text_);                                              \
    cr_assert_eq((run).rc, TB_OK, "%s: %s", tb_rc_name((run).rc), text_);                          \
  } while (0)
/* Expects TB_BROKEN, with these words in the reason. */
#define TT_BROKEN(run, words)                                                                      \
  do {                                                                                             \
    cr_assert_eq((run).rc, TB_BROKEN, "%s", tb_rc_name((run).rc));                                 \
    cr_assert_not_null(strstr((run).diag.text, words), "said: %s, not: %s", (run).diag.text,       \
                       words);                                                                     \
  } while (0)

/* Each "m=0 GoSyscallBegin" must come after the one before it; NULL ends the list. */
void tt_expect_order_list(struct tt_run *run, const char *first, ...);
#define tt_expect_order(...) tt_expect_order_list(__VA_ARGS__, (const char *)NULL)

#endif
