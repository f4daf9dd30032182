/* SPDX-License-Identifier: Apache-2.0 */
/* Parked threads come back when what they wait for is there: the same events in the same order
 * as when all threads are tried again and again. One scene for each thing that a thread can wait
 * for: many threads wait before it is there, and other threads provide it one after another,
 * later. */
#include <criterion/criterion.h>
#include <string.h>

#include "support/order_text.h"

enum { THREADS = 40 };

#define BATCH(i, start) "EventBatch gen=1 m=$" #i " time=$" #start "\n"
#define RUNNING         "ProcStatus dt=1 p=$1 pstatus=1\nGoStatus dt=1 g=$1 m=$1 gstatus=2\n"
#define IN_A_CALL       RUNNING "GoSyscallBegin dt=1 p_seq=1 stack=0\n"

/* $1 is the waiting thread's number and of its own P and goroutine, $2 is 100 more, $3 and $4
 * are its early and its late time. gives: thread 0's part for this thread; helps: a batch of
 * another thread. */
static const struct scene {
  const char *what, *waits, *gives, *helps;
} scenes[] = {
  { "GoStart", BATCH(1, 3) "ProcStatus dt=1 p=$1 pstatus=1\nGoStart dt=1 g=$2 g_seq=1\n",
    "GoCreate dt=50 new_g=$2 new_stack=0 stack=0\n", NULL },
  { "GoUnblock", BATCH(1, 3) "GoUnblock dt=1 g=$2 g_seq=1 stack=0\n",
    "GoCreateBlocked dt=50 new_g=$2 new_stack=0 stack=0\n", NULL },
  { "GoSwitch", BATCH(1, 3) RUNNING "GoSwitch dt=1 g=$2 g_seq=1\n",
    "GoCreateBlocked dt=50 new_g=$2 new_stack=0 stack=0\n", NULL },
  { "GoSyscallEndBlocked", BATCH(1, 3) IN_A_CALL "GoSyscallEndBlocked dt=1\n",
    "ProcSteal dt=50 p=$1 p_seq=2 m=$1\n", NULL },
  { "ProcStart", BATCH(1, 3) "ProcStart dt=1 p=$1 p_seq=1\n", "ProcStatus dt=50 p=$1 pstatus=2\n",
    NULL },
  { "ProcStart after its own is gone",
    BATCH(1, 3) IN_A_CALL "ProcStatus dt=1 p=$2 pstatus=2\nProcStart dt=1 p=$2 p_seq=1\n",
    "ProcSteal dt=50 p=$1 p_seq=2 m=$1\n", NULL },
  { "ProcSteal", BATCH(2, 3) "ProcSteal dt=1 p=$1 p_seq=2 m=$1\n",
    "HeapAlloc dt=50 heapalloc_value=1\n", BATCH(1, 4) IN_A_CALL },
};

static void say(struct tb_buf *text, const char *what, unsigned i) {
  const unsigned value[] = { i, 100 + i, 5000 - 10 * i, 20000 + 10 * i };

  for (; *what != '\0'; what++)
    if (*what == '$')
      tb_buf_printf(text, "%u", value[*++what - '1']);
    else
      tb_buf_byte(text, (unsigned char)*what);
}

static struct tt_run order_scene(const struct scene *scene, uint64_t exact_tries) {
  struct tt_run run = { .limits = { .exact_tries = exact_tries } };
  struct tb_buf text, bytes;

  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&text, &run.mem);
  tb_buf_init(&bytes, &run.mem);
  tb_buf_text(&text, "Trace Go1.23\nEventBatch gen=1 m=0 time=0\nProcStatus dt=1 p=0 pstatus=1\n"
                     "GoStatus dt=1 g=999 m=0 gstatus=2\nGoStop dt=10000 reason_string=0 stack=0\n"
                     "GoStart dt=1 g=999 g_seq=1\n");
  for (unsigned i = 1; i <= THREADS; i++) say(&text, scene->gives, i);
  for (unsigned i = 1; i <= THREADS; i++) say(&text, scene->waits, i);
  for (unsigned i = 1; i <= THREADS && scene->helps != NULL; i++) say(&text, scene->helps, i);
  tb_buf_byte(&text, '\0');
  tt_trace_bytes((const char *)text.data, &run.mem, &bytes);
  tt_order_bytes(&run, bytes.data, bytes.len);
  tb_buf_fini(&bytes);
  tb_buf_fini(&text);
  return run;
}

static bool is_same(const struct to_event *a, const struct to_event *b) {
  return a->type == b->type && a->time == b->time && a->m == b->m && a->p == b->p && a->g == b->g &&
         memcmp(a->args, b->args, sizeof a->args) == 0;
}

Test(parked, threads_come_back_in_the_order_they_would_have_gone_in) {
  for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
    struct tt_run tried = order_scene(&scenes[k], 0), parked = order_scene(&scenes[k], 1);

    cr_assert_eq(tried.rc, TB_OK, "%s: %s", scenes[k].what, tried.diag.text);
    cr_assert_eq(parked.rc, TB_OK, "%s: %s", scenes[k].what, parked.diag.text);
    cr_assert_gt(tried.count, 2 * THREADS, "%s", scenes[k].what);
    cr_assert_eq(tried.count, parked.count, "%s", scenes[k].what);
    for (size_t i = 0; i < tried.count; i++)
      cr_assert(is_same(&tried.events[i], &parked.events[i]), "%s: event %zu", scenes[k].what, i);
    tt_run_fini(&tried);
    tt_run_fini(&parked);
  }
}
