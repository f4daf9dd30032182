/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of a stream, at the end of each whole generation: which began, which continue. They are passed to the store of findings
 * (collector/findings), which subscribes to nothing, and as alerts to the feed. A stream without findings has no list. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "collector/analysis/private.h"
#include "pack/summary/summary.h"

/* One that continues is passed on at most once in this time of the stream's clock. */
static const to_ns again_every_ns = 1000000000;

/* Writes the program's own function and line; "" if the stack has none. */
static void write_place(const struct to_callstack *stack, char out[TC_FINDING_PLACE_BYTES]) {
  const struct to_frame *frame = stack != NULL ? to_callstack_own(stack) : NULL;
  char line[24] = "";
  const size_t max = TC_FINDING_PLACE_BYTES - sizeof line;

  out[0] = '\0';
  if (frame == NULL || frame->function.len == 0) return;
  if (frame->line > 0) snprintf(line, sizeof line, ":%" PRIu64, frame->line);
  snprintf(out, TC_FINDING_PLACE_BYTES, "%.*s%s",
           (int)(frame->function.len < max ? frame->function.len : max), frame->function.data,
           line);
}

static struct tc_seen pass_on(struct tc__analysed *s, struct tc_sighting *sighting,
                              const struct to_callstack *stack, to_ns from, to_ns until) {
  struct tc_seen seen = { 0 };
  char place[TC_FINDING_PLACE_BYTES], words[TC_FINDING_WORDS_BYTES];

  if (s->u->env.findings == NULL) return seen;
  (void)to_words_write(to_analyses_program(s->analyses), sighting->words, words, sizeof words);
  sighting->words = words;
  write_place(stack, place);
  sighting->place = place;
  sighting->service = s->service;
  sighting->instance = s->instance;
  memcpy(sighting->stream, s->id, sizeof sighting->stream);
  sighting->from_ns = to_analyses_wall(s->analyses, from);
  sighting->until_ns = to_analyses_wall(s->analyses, until);
  if (tc_findings_see(s->u->env.findings, sighting, &seen) != TB_OK)
    tc_metric_add(&s->u->env.metrics->findings_missed_total, 1);
  return seen;
}

static struct tc_seen pass_finding(struct tc__analysed *s, const struct to_finding *finding,
                                   bool begins, const struct tc_verdict *v) {
  char words[TC_FINDING_WORDS_BYTES], why[TC_WHY_BYTES];
  struct tc_sighting sighting = { .kind = to_finding_name(finding->kind),
                                  .cause = finding->cause.len > 0 ? finding->cause.data : "",
                                  .unknown = TO_UNKNOWN_PLACE,
                                  .words = words,
                                  .why = why,
                                  .gen = v->gen,
                                  .amount = finding->count,
                                  .times = begins };

  tp_finding_words(finding, words, sizeof words);
  tc_finding_why(finding, v->last_ns, why);
  return pass_on(s, &sighting, finding->stack, finding->since, v->last_ns);
}

static struct tc__finding *find_known(struct tc__analysed *s, const struct to_finding *finding) {
  for (size_t i = 0; i < s->findings.n; i++) {
    struct tc__finding *known = &s->findings.at[i];
    if (known->kind == finding->kind && known->key == finding->key) return known;
  }
  return NULL;
}

/* Returns NULL if it cannot be tracked; reports still list it. */
static struct tc__finding *add_known(struct tc__analysed *s, const struct to_finding *finding) {
  if (s->findings.n == TC__FINDINGS_MAX ||
      TB_MEM_GROW(&s->mem, s->findings.at, s->findings.room, s->findings.n) != TB_OK)
    return NULL;
  struct tc__finding *known = &s->findings.at[s->findings.n++];
  *known = (struct tc__finding){ .key = finding->key, .kind = (uint8_t)finding->kind };
  tc_metric_add(&s->u->env.metrics->alerts_total, 1);
  return known;
}

bool tc__analysed_was_leak(void *self, const struct to_callstack *stack) {
  const struct tc__analysed *s = self;
  char place[TC_FINDING_PLACE_BYTES];

  if (s->u->env.findings == NULL) return false;
  write_place(stack, place);
  return place[0] != '\0' && tc_findings_is_open(s->u->env.findings, s->service,
                                                 to_finding_name(TO_FINDING_LEAK), place);
}

struct round {
  struct tc__analysed *s;
  const struct tc_verdict *verdict;
};

static void take_finding(void *self, const struct to_finding *finding) {
  const struct round *round = self;
  struct tc__analysed *s = round->s;
  struct tc__finding *known = find_known(s, finding);
  to_ns now = round->verdict->last_ns;
  bool begins = known == NULL;

  if ((s->u->findings_wanted >> finding->kind & 1) == 0) return;
  if (begins) known = add_known(s, finding);
  if (known == NULL) return;
  known->is_seen = true;
  if (begins || now - known->passed_on_ns >= again_every_ns) {
    struct tc_seen seen = pass_finding(s, finding, begins, round->verdict);
    known->passed_on_ns = now;
    known->id = seen.id;
    known->is_muted = seen.is_muted;
  }
  if (!known->is_shown && !known->is_muted && s->feed != NULL)
    known->is_shown = tc_feed_encoder_finding(s->feed, finding, known->id, now);
}

static void drop_known(struct tc__analysed *s) {
  tb_mem_free(&s->mem, s->findings.at, s->findings.room * sizeof *s->findings.at);
  s->findings.at = NULL;
  s->findings.n = s->findings.room = 0;
}

static void forget_ended(struct tc__analysed *s) {
  size_t n = 0;

  for (size_t i = 0; i < s->findings.n; i++) {
    struct tc__finding *known = &s->findings.at[i];
    if (!known->is_seen) continue;
    known->is_seen = false;
    s->findings.at[n++] = *known;
  }
  s->findings.n = n;
  if (n == 0) drop_known(s);
}

void tc__analysed_findings(struct tc__analysed *s, const struct tc_verdict *v) {
  struct round round = { s, v };

  if (s->u->findings_wanted == 0) return;
  tb_rc rc = to_analyses_findings(s->analyses, &(struct to_finding_sink){ &round, take_finding });
  if (rc != TB_OK) tc_metric_add(&s->u->env.metrics->findings_missed_total, 1);
  forget_ended(s);
}

/* ---- thresholds */

/* Spans of one kind, stack and cause that exceeded a threshold in one generation. */
struct tc__exceeded {
  struct tc__exceeded *next;
  const char *kind; /* static */
  const struct to_callstack *stack;
  to_ns begin, end; /* the longest span */
  uint64_t times;
  char cause[TC_FINDING_PLACE_BYTES];
  struct tc_exceeded_text text;
};

static struct tc__exceeded *find_exceeded(struct tc__analysed *s, const struct tc_exceeded *span,
                                          unsigned *out_n) {
  struct tc__exceeded *e = s->exceeded;

  for (*out_n = 0; e != NULL; e = e->next, ++*out_n)
    if (strcmp(e->kind, span->kind) == 0 && e->stack == span->stack &&
        strncmp(e->cause, span->cause, sizeof e->cause - 1) == 0)
      break;
  return e;
}

static struct tc__exceeded *add_exceeded(struct tc__analysed *s, const struct tc_exceeded *span,
                                         unsigned n) {
  struct tc__exceeded *e;

  if (n >= TC__FINDINGS_MAX || tb_mem_alloc(&s->mem, sizeof *e, &e) != TB_OK) {
    tc_metric_add(&s->u->env.metrics->findings_missed_total, 1);
    return NULL;
  }
  e->kind = span->kind;
  e->stack = span->stack;
  snprintf(e->cause, sizeof e->cause, "%s", span->cause);
  e->next = s->exceeded;
  s->exceeded = e;
  return e;
}

struct tc_exceeded_text *tc__analysed_exceeded(void *self, const struct tc_exceeded *span) {
  struct tc__analysed *s = self;
  unsigned n;

  if (s->u->env.findings == NULL) return NULL;
  struct tc__exceeded *e = find_exceeded(s, span, &n);
  if (e == NULL) e = add_exceeded(s, span, n);
  if (e == NULL) return NULL;
  e->times += !span->is_known;
  if (e->text.words[0] != '\0' && span->end - span->begin <= e->end - e->begin) return NULL;
  e->begin = span->begin;
  e->end = span->end;
  return &e->text;
}

static void drop_first(struct tc__analysed *s) {
  struct tc__exceeded *e = s->exceeded;

  s->exceeded = e->next;
  tb_mem_free(&s->mem, e, sizeof *e);
}

void tc__analysed_pass_exceeded(struct tc__analysed *s, uint64_t gen) {
  for (const struct tc__exceeded *e; (e = s->exceeded) != NULL; drop_first(s)) {
    struct tc_sighting sighting = { .kind = e->kind,
                                    .cause = e->cause,
                                    .words = e->text.words,
                                    .why = e->text.why,
                                    .gen = gen,
                                    .amount = (uint64_t)(e->end - e->begin),
                                    .is_time = true,
                                    .times = e->times };
    pass_on(s, &sighting, e->stack, e->begin, e->end);
  }
}

void tc__analysed_findings_drop(struct tc__analysed *s) {
  drop_known(s);
  while (s->exceeded != NULL) drop_first(s);
}
