/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/tail/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pack/report_json.h"
#include "pack/report_read.h"
#include "proto/json.h"
#include "tools/tracectl/report/cell.h"
#include "tools/tracectl/report/frame_text.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/quote.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__FeedMessage feed_message;

struct line {
  struct tk_lines *lines;
  struct tk_out *out;
  const char *topic;
  const feed_message *message;
  uint64_t seq;  /* sequence number of the item */
  unsigned said; /* number of printed figures */
};

static void text(struct line *l, const char *words) {
  tk_out_plain(l->out, words, strlen(words));
}

static void number(struct line *l, const char *before, uint64_t n) {
  char human[TK_FORMAT_BYTES];

  tk_out_text(l->out, before);
  tk_out_text(l->out, tk_format_count(n, human));
}

static void duration(struct line *l, const char *before, uint64_t ns) {
  char human[TK_FORMAT_BYTES];

  tk_out_text(l->out, before);
  tk_out_text(l->out, tk_format_ns(ns, human));
}

/* Prints a distribution's count and maximum. Figures of 0 are left out, except distributions. */
static void say_figure(struct line *l, const Tracecollect__V1__StreamReport *r,
                       const Tracecollect__V1__FieldSchema *field,
                       const Tracecollect__V1__Value *value) {
  const Tracecollect__V1__Distribution *d = tp_value_distribution(value);
  char words[TK_CELL_BYTES];

  if (d == NULL && tp_value_number(value) == 0 && tp_value_share(value) <= 0) return;
  tk_out_text(l->out, l->said++ == 0 ? ": " : "; ");
  tk_cell_name(field, words);
  text(l, words);
  if (d == NULL) {
    tk_cell_text(r, field, value, TK_PART_WHOLE, words);
    size_t len = strlen(words);
    if (len > 0 && words[len - 1] == ' ') words[len - 1] = '\0'; /* strips the padding */
    tk_out_byte(l->out, ' ');
    text(l, words);
    return;
  }
  number(l, " ", d->count);
  if (d->count > 0) duration(l, ", longest ", d->max_ns);
}

/* Prints the figures, then the number of rows of each list. */
static void say_report(struct line *l, const Tracecollect__V1__StreamReport *message) {
  const Tracecollect__V1__Report *r = message->report;

  text(l, message->window);
  l->said = 0;
  for (size_t i = 0; r != NULL && r->schema != NULL && i < r->n_figures; i++)
    if (i < r->schema->n_figures) say_figure(l, message, r->schema->figures[i], r->figures[i]);
  for (size_t t = 0; r != NULL && r->schema != NULL && t < r->n_tables; t++) {
    if (t >= r->schema->n_tables || !r->schema->tables[t]->list) continue;
    if (r->tables[t]->rows_total == 0) continue;
    tk_out_text(l->out, l->said++ == 0 ? ": " : "; ");
    text(l, r->schema->tables[t]->name);
    number(l, ": ", r->tables[t]->rows_total);
    tk_out_text(l->out, r->tables[t]->rows_total == 1 ? " row" : " rows");
  }
  if (l->said == 0) {
    number(l, ": ", message->events);
    tk_out_text(l->out, " events");
  }
}

static const char *state_word(Tracecollect__V1__GenerationState state) {
  switch ((int)state) {
  case TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BEGIN: return "begins";
  case TRACECOLLECT__V1__GENERATION_STATE__GENERATION_END: return "ends";
  case TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BROKEN: return "is broken";
  case TRACECOLLECT__V1__GENERATION_STATE__GENERATION_LOST: return "is lost";
  case TRACECOLLECT__V1__GENERATION_STATE__GENERATION_ARCHIVED: return "is archived";
  default: return "?";
  }
}

static void say_generation(struct line *l, const Tracecollect__V1__GenerationNote *g) {
  tk_out_u64(l->out, g->first_gen);
  if (g->last_gen > g->first_gen) {
    tk_out_text(l->out, "..");
    tk_out_u64(l->out, g->last_gen);
  }
  tk_out_byte(l->out, ' ');
  tk_out_text(l->out, state_word(g->state));
  if (g->events != 0) number(l, ", events ", g->events);
  if (g->bytes != 0) number(l, ", bytes ", g->bytes);
  if (*g->reason != '\0') tk_out_text(l->out, ": "), text(l, g->reason);
  if (*g->fetch != '\0') tk_out_text(l->out, "  "), text(l, g->fetch);
}

static void say_place(struct line *l, size_t n, Tracecollect__V1__Frame *const *stack) {
  const Tracecollect__V1__Frame *own = tk_frame_own(stack, n);
  char place[256];

  if (own == NULL) return;
  tk_frame_text(own, place, sizeof place);
  tk_out_text(l->out, "  at ");
  text(l, place);
}

static void say_alert(struct line *l, const Tracecollect__V1__Alert *a) {
  text(l, a->text);
  if (a->suppressed != 0) number(l, "; left out before it: ", a->suppressed);
  say_place(l, a->n_stack, a->stack);
  if (*a->fetch != '\0') tk_out_text(l->out, "  "), text(l, a->fetch);
  if (*a->page != '\0') tk_out_text(l->out, "  "), text(l, a->page);
}

static void say_event(struct line *l, const Tracecollect__V1__Event *e) {
  text(l, e->id);
  if (e->goroutine >= 0) {
    tk_out_text(l->out, " g");
    tk_out_u64(l->out, (uint64_t)e->goroutine);
  }
  if (e->task != 0) {
    tk_out_text(l->out, " task ");
    tk_out_u64(l->out, e->task);
  }
  if (*e->name != '\0') tk_out_byte(l->out, ' '), text(l, e->name);
  if (*e->reason != '\0') tk_out_text(l->out, ": "), text(l, e->reason);
  if (*e->text != '\0') tk_out_text(l->out, ": "), text(l, e->text);
  if (e->duration_ns != 0) duration(l, e->lower_bound ? "  at least " : "  ", e->duration_ns);
  say_place(l, e->n_stack, e->stack);
}

static tb_rc json_line(struct line *l, const char *type, const ProtobufCMessage *item) {
  const feed_message *m = l->message;
  struct tb_buf buf;

  tb_buf_init(&buf, &tk_mem);
  tb_buf_printf(&buf, "{\"record\":\"%s\",\"topic\":", type);
  tp_json_text(&buf, l->topic);
  tb_buf_printf(&buf, ",\"seq\":%" PRIu64 ",\"service\":", l->seq);
  tp_json_text(&buf, m->service);
  tb_buf_text(&buf, ",\"instance\":");
  tp_json_text(&buf, m->instance);
  tb_buf_printf(&buf,
                ",\"generation\":%" PRIu64 ",\"from_wall_ns\":%" PRIu64
                ",\"until_wall_ns\":%" PRIu64 ",\"message\":",
                m->generation, m->from_wall_ns, m->until_wall_ns);
  if (item->descriptor == &tracecollect__v1__stream_report__descriptor)
    tp_report_json(&buf, (const void *)item);
  else
    tp_json_message(&buf, item);
  tb_buf_byte(&buf, '}');
  if (buf.rc == TB_OK) tk_out_bytes(l->out, buf.data, buf.len);
  tb_rc rc = buf.rc;
  tb_buf_fini(&buf);
  return rc;
}

static tb_rc print(struct line *l, const char *type, const ProtobufCMessage *item,
                   uint64_t wall_ns) {
  tb_rc rc = TB_OK;

  l->out = tk_lines_begin(l->lines);
  if (l->lines->json) {
    rc = json_line(l, type, item);
  } else {
    if (wall_ns != 0)
      tk_lines_wall(l->lines, wall_ns);
    else
      tk_out_byte(l->out, '-');
    tk_out_text(l->out, "  ");
    tk_lines_bold(l->lines, l->topic); /* escaped, so safe to print */
    tk_out_text(l->out, "  ");
    switch (*type) {
    case 'r': say_report(l, (const void *)item); break;
    case 'g': say_generation(l, (const void *)item); break;
    case 'a': say_alert(l, (const void *)item); break;
    default: say_event(l, (const void *)item); break;
    }
  }
  l->seq++;
  tb_rc end = tk_lines_end(l->lines);
  return rc != TB_OK ? rc : end;
}

tb_rc tk_message_print(struct tk_lines *lines, const char *topic, const feed_message *m) {
  struct line l = { .lines = lines, .topic = topic, .message = m, .seq = m->seq };

  for (size_t i = 0; i < m->n_reports; i++)
    TB_TRY(print(&l, "report", &m->reports[i]->base, m->until_wall_ns));
  for (size_t i = 0; i < m->n_generations; i++)
    TB_TRY(print(&l, "generation", &m->generations[i]->base, m->until_wall_ns));
  for (size_t i = 0; i < m->n_alerts; i++)
    TB_TRY(
        print(&l, "alert", &m->alerts[i]->base,
              m->alerts[i]->begin_wall_ns != 0 ? m->alerts[i]->begin_wall_ns : m->until_wall_ns));
  for (size_t i = 0; i < m->n_events; i++)
    TB_TRY(print(&l, "event", &m->events[i]->base, m->events[i]->wall_ns));
  return TB_OK;
}
