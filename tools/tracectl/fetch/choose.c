/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/choose.h"

#include <stdio.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/args/command.h"
#include "tools/tracectl/remote/names.h"
#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"

enum {
  STREAM_BYTES = 16,
  NAMED_MAX = 1000, /* as many streams as a collector names in a page */
  LISTED_MAX = 20,
};

typedef Tracecollect__V1__StreamStatus stream_status;

struct candidates {
  const Tracecollect__V1__ListReply *page;
  uint64_t since_wall_ns;     /* begin of the selected time; 0: none */
  size_t n, live;             /* streams that have something since then */
  const stream_status *taken; /* the live one, or the newest */
};

/* A stream without generations has nothing to fetch yet. */
static bool is_live(const stream_status *s) {
  return strcmp(s->state, "live") == 0 && s->generations > 0;
}

static bool is_newer(const stream_status *a, const stream_status *b) {
  if (is_live(a) != is_live(b)) return is_live(a);
  if (a->newest_wall_ns != b->newest_wall_ns) return a->newest_wall_ns > b->newest_wall_ns;
  return a->last_wall_ns > b->last_wall_ns; /* neither has an archived generation */
}

uint64_t tk_streams_begin(const struct tk_selector *s, const Tracecollect__V1__ListReply *page) {
  uint64_t newest = 0;

  if (s->last_ns == 0) return s->since_wall_ns;
  for (size_t i = 0; i < page->n_streams; i++)
    if (page->streams[i]->newest_wall_ns > newest) newest = page->streams[i]->newest_wall_ns;
  return newest > s->last_ns ? newest - s->last_ns : 0;
}

bool tk_stream_reaches(const stream_status *s, uint64_t since_wall_ns) {
  return s->newest_wall_ns == 0 || s->newest_wall_ns >= since_wall_ns;
}

static bool is_candidate(const struct candidates *c, const stream_status *s) {
  return s->generations > 0 && tk_stream_reaches(s, c->since_wall_ns);
}

static void count(struct candidates *c) {
  for (size_t i = 0; i < c->page->n_streams; i++) {
    const stream_status *s = c->page->streams[i];
    if (!is_candidate(c, s)) continue;
    c->n++;
    c->live += is_live(s);
    if (c->taken == NULL || is_newer(s, c->taken)) c->taken = s;
  }
}

static void print_command(const stream_status *s, unsigned digits) {
  char id[TK_STREAM_TEXT], until[TC_TIME_BYTES];

  fputs("  ", stderr);
  tk_command_print(stderr, "stream", tk_stream_text(&s->stream, digits, id));
  fputs("  # ", stderr);
  tk_put_plain(stderr, s->service);
  fputc('/', stderr);
  tk_put_plain(stderr, s->instance);
  fputs(", ", stderr);
  tk_put_plain(stderr, s->state);
  tc_time_format(s->newest_wall_ns, until);
  fprintf(stderr, ", until %s\n", until);
}

/* Lists the candidates but `without`, live ones first. */
static void print_commands(const struct candidates *c, const stream_status *without) {
  unsigned digits = tk_stream_digits(c->page->streams, c->page->n_streams);
  size_t left = c->n - (without != NULL), shown = 0;

  for (int ended = 0; ended < 2; ended++)
    for (size_t i = 0; i < c->page->n_streams && shown < LISTED_MAX; i++) {
      const stream_status *s = c->page->streams[i];
      if (s == without || !is_candidate(c, s) || is_live(s) == ended) continue;
      print_command(s, digits);
      shown++;
    }
  if (left > shown) fprintf(stderr, "  and %zu more: 'tracectl status' has them\n", left - shown);
}

static void say_taken(const char *verb, const struct candidates *c) {
  unsigned digits = tk_stream_digits(c->page->streams, c->page->n_streams);
  const stream_status *s = c->taken;
  char id[TK_STREAM_TEXT];

  tk_note(verb, "%zu streams match, this is the %s: %s/%s, --stream %s%s", c->page->n_streams,
          c->live > 0 ? "live one" : "newest, none is live", s->service, s->instance,
          tk_stream_text(&s->stream, digits, id),
          c->n > 1 ? "; others have something of that time:" : "");
  if (c->n > 1) print_commands(c, s);
}

tb_rc tk_stream_choose(const char *verb, const Tracecollect__V1__ListReply *page,
                       struct tk_selector *selector, struct tb_diag *diag) {
  struct candidates c = { .page = page, .since_wall_ns = tk_streams_begin(selector, page) };

  if (page->n_streams < 2) return TB_OK;
  if (page->n_streams >= NAMED_MAX)
    return tb_fail(diag, TB_BROKEN,
                   "%zu streams match, or more; one is required: see 'tracectl status'",
                   page->n_streams);
  count(&c);
  if (c.live > 1) {
    tk_note(verb, "%zu live streams match; choose one:", c.live);
    print_commands(&c, NULL);
    return tb_fail(diag, TB_BROKEN, "one stream is required");
  }
  if (c.taken == NULL) { /* nothing was traced then: the plan will say so */
    c.taken = page->streams[0];
    for (size_t i = 1; i < page->n_streams; i++)
      if (is_newer(page->streams[i], c.taken)) c.taken = page->streams[i];
  }
  if (c.taken->stream.len != STREAM_BYTES)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has %d bytes", STREAM_BYTES);
  memcpy(selector->stream, c.taken->stream.data, STREAM_BYTES);
  selector->has_stream = true;
  say_taken(verb, &c);
  return TB_OK;
}
