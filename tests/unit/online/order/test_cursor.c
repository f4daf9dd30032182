/* SPDX-License-Identifier: Apache-2.0 */
/* The last event of a batch. The cursor's fast path reads eight bytes at once, and must not accept
 * the bytes after the batch as part of the event. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/order_text.h"
#include "wire/varint.h"

/* Returns a number that is encoded in this many bytes. */
static uint64_t number_of(unsigned bytes) {
  return UINT64_C(1) << 7 * (bytes - 1);
}

/* Orders a trace whose only batch with events ends with a HeapAlloc: a dt and an argument of these
 * lengths. cut: the argument's last byte has its top bit set, as if another byte followed. */
static struct tt_run order_last_event(unsigned dt_bytes, unsigned arg_bytes, bool cut,
                                      unsigned flags) {
  struct tt_run run = { .flags = flags };
  unsigned char event[1 + 2 * TW_VARINT_BYTES_MAX] = { TW_EV_HEAP_ALLOC };
  size_t len = 1;
  struct tb_buf bytes;
  char text[300];

  len += tw_varint_write(event + len, number_of(dt_bytes));
  len += tw_varint_write(event + len, number_of(arg_bytes));
  snprintf(text, sizeof text,
           "Trace Go1.26\n"
           "EventBatch gen=1 m=0 time=0\n"
           "ProcStatus dt=1 p=0 pstatus=1\n"
           "HeapAlloc dt=%" PRIu64 " heapalloc_value=%" PRIu64 "\n",
           number_of(dt_bytes), number_of(arg_bytes));
  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bytes, &run.mem);
  tt_trace_bytes(text, &run.mem, &bytes);
  unsigned char *at = memmem(bytes.data, bytes.len, event, len);
  cr_assert_not_null(at);
  if (cut) at[len - 1] |= 0x80;
  tt_order_bytes(&run, bytes.data, bytes.len);
  tb_buf_fini(&bytes);
  return run;
}

static uint64_t heap_bytes(const struct tt_run *run) {
  for (size_t i = 0; i < run->count; i++)
    if (run->events[i].type == TW_EV_HEAP_ALLOC) return run->events[i].args[0];
  return 0;
}

/* A dt of 8 and an argument of 7 bytes, cut: the fast path would read one byte too many. */
Test(cursor, the_end_of_a_batch_ends_its_last_event) {
  static const unsigned ways[] = { 0, TO_READER_PLAIN };

  for (unsigned dt = 1; dt <= 8; dt++)
    for (unsigned arg = 1; arg < TW_VARINT_BYTES_MAX; arg++)
      for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tt_run whole = order_last_event(dt, arg, false, ways[i]);
        cr_assert_eq(whole.rc, TB_OK, "%u bytes of time, %u of argument: %s", dt, arg,
                     whole.diag.text);
        cr_assert_eq(heap_bytes(&whole), number_of(arg));
        tt_run_fini(&whole);

        struct tt_run cut = order_last_event(dt, arg, true, ways[i]);
        cr_assert_eq(cut.rc, TB_BROKEN, "%u bytes of time, %u of argument", dt, arg);
        cr_assert_not_null(strstr(cut.diag.text, "an argument cannot be read"),
                           "%u bytes of time, %u of argument: %s", dt, arg, cut.diag.text);
        tt_run_fini(&cut);
      }
}
