/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/why.h"

#include "explain/crowd.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/why/print.h"

#define MEMORY_MAX (UINT64_C(1) << 30)

static tb_rc keep(struct to_timeline *timeline, const struct tk_span *at) {
  bool is_life = at->span->kind == TO_SPAN_LIFE;

  return to_timeline_add(timeline, at->span, at->stack, is_life ? at->end_stack : at->by_stack);
}

/* How many were runnable while the subject was. */
static tb_rc look_at_crowd(struct tk_why *why, const struct to_timeline *timeline,
                           struct tb_mem *mem) {
  uint64_t ns = 0, all = 0;
  struct to_crowd crowd;

  TB_TRY(to_crowd_new(&crowd, timeline, mem));
  for (size_t i = 0; i < why->path.n; i++) {
    const struct to_path_piece *p = &why->path.piece[i];
    if (p->history == NULL || p->history->life != why->interval->life || p->state != TO_GO_RUNNABLE)
      continue;
    ns += (uint64_t)(p->until - p->from);
    all += to_crowd_time(&crowd, p->from, p->until);
  }
  to_crowd_fini(&crowd);
  why->runnable = ns == 0 ? 0 : (double)all / (double)ns;
  why->procs = timeline->procs;
  return TB_OK;
}

static tb_rc explain(struct tk_why *why, const struct to_timeline *timeline, struct tb_mem *mem) {
  const struct tk_why_interval *in = why->interval;

  TB_TRY(to_critical_path(timeline, in->life, in->from, in->until, mem, &why->path));
  TB_TRY(to_path_sum_new(&why->sum, &why->path, in->life, mem));
  TB_TRY(to_related_find(&why->related, timeline, in->life, mem));
  return look_at_crowd(why, timeline, mem);
}

static int fail_keeping(tb_rc rc) {
  if (rc == TB_BUDGET)
    return tk_fail("report", "the interval has more spans than 1 GiB of memory holds");
  return tk_fail("report", "%s", tb_rc_text(rc));
}

static int explain_pass(struct tk_why *why, struct tk_pass *pass, struct tb_mem *mem) {
  struct to_timeline timeline;
  char error[TK_QUERY_ERROR];
  struct tk_span at;
  tb_rc rc = TB_OK;
  int got = 0;

  to_timeline_init(&timeline, mem, why->interval->from, why->interval->until);
  while (rc == TB_OK && (got = tk_pass_next(pass, &at, error)) == 1) rc = keep(&timeline, &at);
  if (rc == TB_OK && got == 0) rc = explain(why, &timeline, mem);
  int code = rc != TB_OK ? fail_keeping(rc)
             : got < 0   ? tk_fail("report", "%s", error)
                         : tk_why_print(why);
  to_related_fini(&why->related);
  to_path_sum_fini(&why->sum);
  to_path_fini(&why->path);
  to_timeline_fini(&timeline);
  return code;
}

int tk_why_run(const struct tk_why_ask *ask) {
  struct tk_why_interval interval;
  char error[TK_QUERY_ERROR];
  struct tk_pass *pass;
  struct tb_mem mem;

  int code = tk_why_find(ask, &interval);
  if (code != TK_DONE) return code;
  if (!tk_pass_begin(&ask->place, 0, &pass, error))
    return error[0] == 0 ? TK_FAILED : tk_fail("report", "%s", error);
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  struct tk_why why = { .ask = ask, .interval = &interval, .pass = pass };
  code = explain_pass(&why, pass, &mem);
  tk_pass_end(pass);
  return code;
}
