/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/why/why.h"

#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/why/print.h"

#define MEMORY_MAX (UINT64_C(1) << 30)

static int fail_keeping(tb_rc rc) {
  if (rc == TB_BUDGET)
    return tk_fail("why", "the interval has more spans than 1 GiB of memory holds");
  return tk_fail("why", "%s", tb_rc_text(rc));
}

static int begin(const struct tk_why_ask *ask, struct tk_pass **out) {
  char error[TK_QUERY_ERROR];

  if (tk_pass_begin(&ask->place, 0, out, error)) return TK_DONE;
  return error[0] == 0 ? TK_FAILED : tk_fail("why", "%s", error);
}

static int choose(const struct tk_why_ask *ask, const struct to_why_finding *finding,
                  struct to_why_interval *out) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = to_why_choose(finding, &diag, out);
  if (rc == TB_OK) return TK_DONE;
  tk_plain_text(diag.text);
  return tk_fail("why", "%s: %s", ask->place.name, diag.text);
}

static int find_interval(const struct tk_why_ask *ask, struct to_why_interval *out) {
  struct to_why_finding finding;
  char error[TK_QUERY_ERROR];
  struct tk_pass *pass;
  struct tk_span at;
  int got;

  int code = begin(ask, &pass);
  if (code != TK_DONE) return code;
  to_why_finding_init(&finding, &ask->of);
  while ((got = tk_pass_next(pass, &at, error)) == 1)
    to_why_look(&finding, at.span, at.has_wall ? at.wall_ns : 0);
  tk_pass_end(pass);
  return got < 0 ? tk_fail("why", "%s", error) : choose(ask, &finding, out);
}

static tb_rc keep_span(struct to_why *why, const struct tk_span *at) {
  bool is_life = at->span->kind == TO_SPAN_LIFE;

  return to_why_add(why, at->span, at->stack, is_life ? at->end_stack : at->by_stack);
}

static int explain(const struct tk_why_ask *ask, struct to_why *why, struct tk_pass *pass) {
  char error[TK_QUERY_ERROR];
  struct tk_span at;
  tb_rc rc = TB_OK;
  int got = 0;

  while (rc == TB_OK && (got = tk_pass_next(pass, &at, error)) == 1) rc = keep_span(why, &at);
  if (rc == TB_OK && got == 0) rc = to_why_explain(why);
  if (rc != TB_OK) return fail_keeping(rc);
  return got < 0 ? tk_fail("why", "%s", error) : tk_why_print(ask, why);
}

int tk_why_run(const struct tk_why_ask *ask) {
  struct to_why_interval interval;
  struct tk_pass *pass;
  struct to_why why;
  struct tb_mem mem;

  int code = find_interval(ask, &interval);
  if (code == TK_DONE) code = begin(ask, &pass);
  if (code != TK_DONE) return code;
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  to_why_init(&why, &interval, tk_pass_spans(pass), &mem);
  code = explain(ask, &why, pass);
  to_why_fini(&why);
  tk_pass_end(pass);
  return code;
}
