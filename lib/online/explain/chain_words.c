/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "online/explain/chains.h"
#include "online/spans/stacks/library.h"
#include "online/spans/state.h"

enum { WORDS_BYTES = 1024, NAME_BYTES = 80, STEPS = 4 };

struct words {
  const struct to_chains *chains;
  const struct to_span_sums *sums;
  char *text;
  size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *format, ...) {
  va_list args;

  va_start(args, format);
  int n = vsnprintf(w->text + w->n, WORDS_BYTES - w->n, format, args);
  va_end(args);
  if (n < 0) return;
  w->n += (size_t)n;
  if (w->n >= WORDS_BYTES) w->n = WORDS_BYTES - 1; /* truncated */
}

static void say_text(struct words *w, const char *before, struct to_string text) {
  if (text.len > 0)
    say(w, "%s%.*s", before, (int)(text.len < NAME_BYTES ? text.len : NAME_BYTES), text.data);
}

static void say_goroutine(struct words *w, uint32_t slot) {
  say(w, "goroutine %" PRId64, w->chains->spans->lives[slot].id);
  say_text(w, " ", to_span_sums_entry(w->sums, w->sums->goroutine[slot].entry));
}

/* Appends " at main.flush:17". */
static void say_place(struct words *w, uint32_t stack) {
  const struct to_frame *frame = to_callstack_own(to_spans_callstack(w->chains->spans, stack));

  if (frame == NULL || frame->function.len == 0) return;
  say_text(w, " at ", frame->function);
  if (to_library_line(frame) > 0) say(w, ":%" PRIu64, (uint64_t)frame->line);
}

static void say_age(struct words *w, to_ns since) {
  double ns = (double)(w->chains->spans->now - since);

  if (ns < 1e6)
    say(w, "%.0f us", ns / 1e3);
  else if (ns < 1e9)
    say(w, "%.0f ms", ns / 1e6);
  else
    say(w, "%.1f s", ns / 1e9);
}

/* Appends "waits at main.flush:17 (sync, 4.2 s)". */
static void say_wait(struct words *w, uint32_t slot) {
  const struct to_life *g = &w->chains->spans->lives[slot];

  say(w, "waits");
  say_place(w, w->chains->of_slot[slot].stack);
  say(w, " (%s, ", to_spans_reason(w->chains->spans, g->reason)->display);
  say_age(w, g->since);
  say(w, ")");
}

/* Describes the goroutine at the end, which may wait, too. */
static void say_end(struct words *w, const struct to_chain *chain) {
  const struct to_life *g = &w->chains->spans->lives[chain->last];
  uint32_t stack;

  switch ((enum to_chain_end)chain->end) {
  case TO_CHAIN_RUNS: say(w, ", which runs"); return;
  case TO_CHAIN_RUNNABLE:
    say(w, ", which has been runnable for ");
    say_age(w, g->since);
    return;
  case TO_CHAIN_CALL:
    say(w, ", which is in a system call");
    if (to_spans_stack(w->chains->spans, w->chains->gen, g->stack, &stack) == TB_OK)
      say_place(w, stack);
    say(w, " for ");
    say_age(w, g->since);
    return;
  case TO_CHAIN_IDLE: say(w, ", which waits for work"); return;
  case TO_CHAIN_NO_WAKER: say(w, "; it is unknown who will end that wait"); return;
  case TO_CHAIN_GONE: say(w, "; the goroutine that ended such waits has ended"); return;
  default: return;
  }
}

/* Explains how the weakest link is known. */
static void say_source(struct words *w, enum to_link weakest) {
  static const char *const words[TO_LINKS] = {
    [TO_LINK_NONE] = "",
    [TO_LINK_EXACT] = " (each holds the lock)",
    [TO_LINK_OWN] = " (inferred: each ended the last such wait of the one before)",
    [TO_LINK_OTHERS] = " (guessed: one of them ended such a wait of another goroutine)",
  };

  say(w, "%s", words[weakest]);
}

/* Describes all steps of a short chain, otherwise the first ones and the last. A cycle ends with the goroutine that it began with. */
static void say_steps(struct words *w, uint32_t slot) {
  const struct to_chain *first = &w->chains->of_slot[slot], *chain = first;
  uint32_t length = first->length, at = slot;
  enum to_link link = TO_LINK_NONE;

  say_goroutine(w, slot);
  for (uint32_t i = 0; i < length; i++) {
    chain = &w->chains->of_slot[at];
    say(w, i == 0 ? " " : ", which ");
    say_wait(w, at);
    if (chain->next == 0) break; /* the chain ends with this wait */
    at = chain->next;
    if (i + 1 == STEPS && length > STEPS + 1) {
      say(w, ", and so on over %" PRIu32 " more", length - STEPS);
      if (first->end == TO_CHAIN_CYCLE) break;
      say(w, " to ");
      at = first->last;
      say_goroutine(w, at);
      if (w->chains->of_slot[at].length == 0) break;
      say(w, ", which ");
      say_wait(w, at);
      break;
    }
    say(w, " for ");
    say_goroutine(w, at);
    if (chain->link > link) link = (enum to_link)chain->link;
  }
  if (first->end == TO_CHAIN_CYCLE)
    say(w, ": a circle");
  else
    say_end(w, first);
  say_source(w, link);
}

tb_rc to_chain_words(const struct to_chains *chains, const struct to_span_sums *sums, uint32_t slot,
                     struct tb_arena *arena, struct to_string *out) {
  struct words w = { .chains = chains, .sums = sums };
  char *text;

  TB_TRY(tb_arena_alloc(arena, WORDS_BYTES, &w.text));
  w.text[0] = '\0';
  say_steps(&w, slot);
  TB_TRY(tb_arena_alloc(arena, WORDS_BYTES, &text));
  size_t n = to_words_write(to_spans_program(chains->spans), w.text, text, WORDS_BYTES);
  *out = (struct to_string){ text, n < WORDS_BYTES ? n : WORDS_BYTES - 1 };
  return TB_OK;
}
