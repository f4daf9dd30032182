/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "online/event/generation.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/term/quote.h"
#include "wire/spec.h"

static void put_value(struct tk_out *out, uint64_t value) {
  tk_out_text(out, "Value{Uint64(");
  tk_out_u64(out, value);
  tk_out_text(out, ")}");
}

/* Always finds it: the orderer has checked the id. */
static struct to_string string_of(const struct to_generation *gen, uint64_t id) {
  struct to_string text = { "", 0 };
  (void)to_generation_string(gen, id, &text);
  return text;
}

static void put_string(struct tk_out *out, const struct to_generation *gen, uint64_t id) {
  struct to_string text = string_of(gen, id);
  tk_out_quoted(out, text.data, text.len);
}

static void put_field_u64(struct tk_out *out, const char *label, uint64_t value) {
  tk_out_text(out, label);
  tk_out_u64(out, value);
}

/* Prints RFC 3339 in the local zone, without trailing zeros of the nanoseconds. */
static void put_wall(struct tk_out *out, int64_t seconds, int64_t ns) {
  time_t t =
      (time_t)((uint64_t)seconds + (uint64_t)(ns / 1000000000)); /* a peer's numbers may wrap */
  long fraction = (long)(ns % 1000000000);
  char text[80];
  struct tm tm;

  if (fraction < 0) {
    fraction += 1000000000;
    t--;
  }
  if (localtime_r(&t, &tm) == NULL) { /* a year beyond 2^31 */
    tk_out_text(out, "@");
    tk_out_i64(out, (int64_t)t);
    return;
  }
  int n = snprintf(text, sizeof text, "%04lld-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900LL,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
  if (fraction != 0) {
    n += snprintf(text + n, sizeof text - (size_t)n, ".%09ld", fraction);
    while (text[n - 1] == '0') n--;
  }
  tk_out_bytes(out, text, (size_t)n);
  long zone = tm.tm_gmtoff / 60;
  if (tm.tm_gmtoff == 0) {
    tk_out_byte(out, 'Z');
    return;
  }
  long off = zone < 0 ? -zone : zone;
  n = snprintf(text, sizeof text, "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+', off / 60,
               off % 60);
  tk_out_bytes(out, text, (size_t)n);
}

static void put_sync(struct tk_out *out, const struct to_generation *gen,
                     const struct to_event *ev) {
  struct to_clock clock;

  put_field_u64(out, " N=", ev->args[0]);
  if (gen == NULL || !to_generation_clock(gen, &clock)) return;
  tk_out_text(out, " Trace=");
  tk_out_i64(out, clock.trace_ns);
  put_field_u64(out, " Mono=", clock.mono_ns);
  tk_out_text(out, " Wall=");
  put_wall(out, clock.wall_s, clock.wall_ns);
}

static void put_range(struct tk_out *out, const struct to_generation *gen,
                      const struct to_event *ev, enum to_event_kind kind) {
  struct to_event_range range;

  if (!to_event_range(ev, &range)) return;
  const struct to_range_info *info = to_range_info(range.kind);
  tk_out_text(out, " Name=");
  if (range.kind != TO_RANGE_STW) {
    tk_out_byte(out, '"');
    tk_out_text(out, info->name);
    tk_out_byte(out, '"');
  } else {
    char name[TW_STRING_BYTES_MAX + 32];
    struct to_string what = string_of(gen, range.text);
    int n = snprintf(name, sizeof name, "%s (", info->name);
    memcpy(name + n, what.data, what.len);
    name[(size_t)n + what.len] = ')';
    tk_out_quoted(out, name, (size_t)n + what.len + 1);
  }
  tk_out_text(out, " Scope=");
  tk_out_text(out, to_resource_name(info->scope));
  if (info->scope != TO_RESOURCE_NONE) {
    tk_out_byte(out, '(');
    tk_out_i64(out, range.id);
    tk_out_byte(out, ')');
  }
  if (kind != TO_KIND_RANGE_END) return;
  tk_out_text(out, " Attributes=[");
  if (ev->type == TW_EV_GC_SWEEP_END) {
    tk_out_text(out, "\"bytes swept\"=");
    put_value(out, ev->args[0]);
    tk_out_text(out, " \"bytes reclaimed\"=");
    put_value(out, ev->args[1]);
  }
  tk_out_byte(out, ']');
}

static void put_task(struct tk_out *out, const struct to_generation *gen,
                     const struct to_event *ev) {
  struct to_user_event user;

  to_event_user(ev, &user);
  struct to_string type =
      user.name_is_extra ? to_generation_extra_string(gen, user.name) : string_of(gen, user.name);
  put_field_u64(out, " ID=", user.task);
  put_field_u64(out, " Parent=", user.parent);
  tk_out_text(out, " Type=");
  tk_out_quoted(out, type.data, type.len);
}

/* Quotes texts of the program's own events. Go's tools print texts bare, but never see such events. */
static void put_experimental(struct tk_out *out, const struct to_generation *gen,
                             const struct to_event *ev) {
  const struct tw_spec *spec = to_generation_spec(gen, ev->type);

  tk_out_text(out, " Name=");
  tk_out_text(out, spec->name);
  tk_out_text(out, " Args=[");
  for (unsigned i = 0; i < spec->nargs; i++) {
    if (i > 0) tk_out_text(out, ", ");
    tk_out_text(out, spec->args[i].label);
    tk_out_byte(out, '=');
    if (spec->args[i].type == TW_ARG_STRING)
      put_string(out, gen, ev->args[i]);
    else
      put_value(out, ev->args[i]);
  }
  tk_out_byte(out, ']');
}

static tb_rc put_stack(struct tk_printer *printer, const struct to_generation *gen,
                       const char *heading, uint64_t id) {
  const unsigned char *text;
  size_t len;

  TB_TRY(tk_stack_text(printer, gen, id, &text, &len));
  tk_out_text(printer->out, heading);
  tk_out_bytes(printer->out, text, len);
  return TB_OK;
}

/* Few reasons repeat often: short ones are quoted once and cached. */
static void put_reason(struct tk_printer *printer, const struct to_generation *gen, uint64_t id) {
  enum { QUOTED_MAX = sizeof printer->words.reasons[0].text.text, LONGEST_ESCAPE = 10 };
  struct tk_word *known = &printer->words.reasons[id % TK_REASONS].text;
  struct tk_out *out = printer->out;

  if (TB_LIKELY(printer->words.reasons[id % TK_REASONS].id == id && known->len > 0)) {
    tk_out_upto(out, tk_pen_word(tk_out_room(out, sizeof *known), known));
    return;
  }
  struct to_string text = string_of(gen, id);
  tk_out_room(out, LONGEST_ESCAPE * QUOTED_MAX); /* keeps a short text in one piece */
  size_t from = out->len;
  tk_out_quoted(out, text.data, text.len);
  if (text.len + 2 > QUOTED_MAX || out->len - from > QUOTED_MAX) return;
  printer->words.reasons[id % TK_REASONS].id = id;
  known->len = (uint8_t)(out->len - from);
  memcpy(known->text, out->data + from, known->len);
}

static tb_rc put_transition(struct tk_printer *printer, const struct to_generation *gen,
                            const struct to_event *ev) {
  const struct tk_parsed_words *words = &printer->words;
  char *at = tk_out_room(printer->out, 2 * TK_PEN_DECIMAL_MAX + 2 * sizeof(struct tk_word));
  struct to_transition tr;

  to_event_transition(ev, &tr);
  bool proc = tr.resource == TO_RESOURCE_PROC;
  at = proc ? TK_PEN(at, " ProcID=") : TK_PEN(at, " GoID=");
  at = tk_pen_byte(tk_pen_i64(at, tr.id), ' ');
  at = tk_pen_word(at, &words->from[proc][tr.from % TK_STATES]);
  at = tk_pen_word(at, &words->to[proc][tr.to % TK_STATES]);
  tk_out_upto(printer->out, at);
  put_reason(printer, gen, tr.reason);
  if (tr.stack == TO_NO_STACK) return TB_OK;
  return put_stack(printer, gen, "\nTransitionStack=\n", tr.stack);
}

static void begin_generation(struct tk_printer *printer, const struct to_generation *gen) {
  printer->gen = gen == NULL ? 0 : to_generation_number(gen);
  tk_stack_texts_forget(printer);
  memset(printer->words.reasons, 0, sizeof printer->words.reasons);
}

static tb_rc put_details(struct tk_printer *printer, const struct to_generation *gen,
                         const struct to_event *ev, enum to_event_kind kind) {
  struct tk_out *out = printer->out;

  switch (kind) {
  case TO_KIND_SYNC:
    begin_generation(printer, gen); /* new tables, even if the number is the same */
    put_sync(out, gen, ev);
    break;
  case TO_KIND_METRIC:
    tk_out_text(out, " Name=\"");
    tk_out_text(out, to_metric_name(to_event_metric(ev)));
    tk_out_text(out, "\" Value=");
    put_value(out, ev->args[0]);
    break;
  case TO_KIND_LABEL:
    tk_out_text(out, " Label=");
    put_string(out, gen, ev->args[0]);
    tk_out_text(out, " Resource=Goroutine(");
    tk_out_i64(out, ev->g);
    tk_out_byte(out, ')');
    break;
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END: put_range(out, gen, ev, kind); break;
  case TO_KIND_TASK_BEGIN:
  case TO_KIND_TASK_END: put_task(out, gen, ev); break;
  case TO_KIND_REGION_BEGIN:
  case TO_KIND_REGION_END:
    put_field_u64(out, " Task=", ev->args[0]);
    tk_out_text(out, " Type=");
    put_string(out, gen, ev->args[1]);
    break;
  case TO_KIND_LOG:
    put_field_u64(out, " Task=", ev->args[0]);
    tk_out_text(out, " Category=");
    put_string(out, gen, ev->args[1]);
    tk_out_text(out, " Message=");
    put_string(out, gen, ev->args[2]);
    break;
  case TO_KIND_TRANSITION: return put_transition(printer, gen, ev);
  case TO_KIND_EXPERIMENTAL: put_experimental(out, gen, ev); break;
  case TO_KIND_STACK_SAMPLE:
  case TO_KIND_BAD: break;
  }
  return TB_OK;
}

static void learn_words(struct tk_parsed_words *words) {
  static const enum to_resource resources[] = { TO_RESOURCE_GOROUTINE, TO_RESOURCE_PROC };

  for (unsigned type = 0; type < 256; type++) {
    const struct to_event probe = { .args = { 1, 2, 3, 4 }, .type = (uint8_t)type };
    uint64_t stack = to_event_stack(&probe);
    words->kind[type] = (uint8_t)to_event_kind(&probe);
    words->stack_arg[type] = stack == TO_NO_STACK ? UINT8_MAX : (uint8_t)(stack - 1);
  }
  for (unsigned kind = 0; kind <= TO_KIND_EXPERIMENTAL; kind++)
    words->kinds[kind] = tk_word(" ", to_event_kind_name((enum to_event_kind)kind), " Time=");
  for (unsigned i = 0; i < 2; i++)
    for (uint8_t state = 0; state < TK_STATES; state++) {
      words->from[i][state] = tk_word("", to_state_name(resources[i], state), "->");
      words->to[i][state] = tk_word("", to_state_name(resources[i], state), " Reason=");
    }
  words->known = true;
}

/* to_event_stack() by a table, for speed. */
static uint64_t stack_of(const struct tk_parsed_words *words, const struct to_event *ev) {
  uint8_t arg = words->stack_arg[ev->type];

  if (arg == UINT8_MAX) return TO_NO_STACK;
  return ev->args[arg] == 0 && ev->type != TW_EV_CPU_SAMPLE ? TO_NO_STACK : ev->args[arg];
}

static tb_rc print_event(struct tk_printer *printer, const struct to_generation *gen,
                         const struct to_event *ev) {
  const struct tk_parsed_words *words = &printer->words;
  enum to_event_kind kind = (enum to_event_kind)words->kind[ev->type];
  struct tk_out *out = printer->out;
  struct to_stack_iter it;

  /* the reader checks every stack except a CPU sample's */
  if (kind == TO_KIND_STACK_SAMPLE && !to_generation_stack(gen, ev->args[0], &it))
    return tb_fail(printer->diag, TB_BROKEN,
                   "the CPU sample at time %" PRId64 " names stack %" PRIu64 ", which is not there",
                   ev->time, ev->args[0]);
  char *at = tk_out_room(out, 5 * TK_PEN_DECIMAL_MAX + sizeof(struct tk_word));
  at = tk_pen_i64(TK_PEN(at, "M="), ev->m);
  at = tk_pen_i64(TK_PEN(at, " P="), ev->p);
  at = tk_pen_i64(TK_PEN(at, " G="), ev->g);
  at = tk_pen_word(at, &words->kinds[kind]);
  tk_out_upto(out, tk_pen_i64(at, ev->time));
  TB_TRY(put_details(printer, gen, ev, kind));
  uint64_t stack = stack_of(words, ev);
  if (stack != TO_NO_STACK) TB_TRY(put_stack(printer, gen, "\nStack=\n", stack));
  tk_out_byte(out, '\n');
  return TB_OK;
}

tb_rc tk_print_parsed(void *self, const struct to_generation *gen, const struct to_event *events,
                      size_t n) {
  struct tk_printer *printer = self;

  if (!printer->words.known) learn_words(&printer->words);
  if (gen != NULL && printer->gen != to_generation_number(gen)) begin_generation(printer, gen);
  for (const struct to_event *ev = events; ev < events + n; ev++)
    TB_TRY(print_event(printer, gen, ev));
  /* the reader of the output is gone: stop reading */
  return printer->out->error == 0 ? TB_OK : TB_IO;
}
