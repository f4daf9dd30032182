/* SPDX-License-Identifier: Apache-2.0 */
/* Tests say a trace out loud (support/trace_text.h) and look at what comes out in order.
 *
 * tt_order_text() adds what a test does not care about, unless the text has it: a frequency of one
 * tick a nanosecond and, from 1.25, clocks; a string "sN" for every string id N that events name;
 * an empty stack for every stack id; from 1.26 the end of each generation.
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
  size_t looked_at; /* by tt_expect_order() */
  uint64_t generations, lone_region_ends;
  size_t feed_bytes;       /* at most this many a feed; 0: all at once */
  bool feed_whole_batches; /* so many, and what is left of the batch */
  unsigned flags;
  struct to_limits limits;
  struct tb_diag misannotated; /* to_reader_misannotated(); rc TB_OK: none */
};

/* The bytes of a text trace, completed as said above. Fails the test on text it cannot read. */
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
/* Broken, for a reason that holds these words. */
#define TT_BROKEN(run, words)                                                                      \
  do {                                                                                             \
    cr_assert_eq((run).rc, TB_BROKEN, "%s", tb_rc_name((run).rc));                                 \
    cr_assert_not_null(strstr((run).diag.text, words), "said: %s", (run).diag.text);               \
  } while (0)

/* Each "m=0 GoSyscallBegin" must come after the one before it; NULL ends the list. */
void tt_expect_order_list(struct tt_run *run, const char *first, ...);
#define tt_expect_order(...) tt_expect_order_list(__VA_ARGS__, (const char *)NULL)

#endif
