/* SPDX-License-Identifier: Apache-2.0 */
/* A topic is the feed's: SERVICE/INSTANCE/KIND/DETAIL, or a prefix, names escaped with %XX. It also
 * selects the streams of leased events. Events come from a lease if the feed cannot select or does
 * not carry them; otherwise from the feed, which costs the collector less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack/topic.h"
#include "tools/tracectl/tail/tail.h"

static bool is_event_kind(const char *kind) {
  struct to_filter probe;

  to_filter_none(&probe);
  return to_filter_add(&probe, kind);
}

static bool add_kind(struct tk_tail_ask *ask, const char *kind) {
  if (ask->n_kinds == TK_TAIL_KINDS_MAX) return false;
  ask->kinds[ask->n_kinds++] = kind;
  return true;
}

bool tk_tail_kind(struct tk_tail_ask *ask, const char *kind) {
  if (strcmp(kind, "report") == 0) return ask->reports = true;
  if (strcmp(kind, "generation") == 0) return ask->generations = true;
  if (strcmp(kind, "alert") == 0) return ask->alerts = true;
  if (strcmp(kind, "all") == 0) return ask->lease = true;
  if (!is_event_kind(kind)) return false;
  ask->lease = true;
  return add_kind(ask, kind);
}

/* Default events of tail, which are the feed's. */
static void add_feed_kinds(struct tk_tail_ask *ask) {
  static const char *const kinds[] = { "stw", "syscall-blocked", "tasks", "logs" };

  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) (void)add_kind(ask, kinds[i]);
}

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static bool feed_carries(const char *detail) {
#define TC_FEED_EVENT(ID, name, about)                                                             \
  if (starts(name, detail)) return true;
#include "pack/feed_events.def"
#undef TC_FEED_EVENT
  return false;
}

/* Adds every kind and event with this prefix. Returns false if there is none. */
static bool add_detail(struct tk_tail_ask *ask, const char *detail) {
  size_t before = ask->n_kinds;

  for (size_t i = 0; i < to_kinds_count; i++)
    if (starts(to_kinds[i].name, detail) && !add_kind(ask, to_kinds[i].name)) return false;
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    const char *name = tw_specs[type].name;
    if (name == NULL || !starts(name, detail) || !is_event_kind(name)) continue;
    if (!add_kind(ask, name)) return false;
  }
  return ask->n_kinds > before;
}

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Parses a level up to a slash or the end; *out_whole: a slash follows. */
static tb_rc take_level(const char **pos, char *out, size_t out_bytes, bool *out_whole,
                        struct tb_diag *diag) {
  const char *c = *pos;
  size_t n = 0;

  for (; *c != '\0' && *c != '/'; c++) {
    if (n + 1 == out_bytes) return tb_fail(diag, TB_BROKEN, "the topic's name is too long");
    out[n] = *c;
    if (*c == '%') {
      int high = digit(c[1]), low = high < 0 ? -1 : digit(c[2]);
      if (low < 0)
        return tb_fail(diag, TB_BROKEN, "the topic's %% must be followed by two digits, as %%2F");
      out[n] = (char)(high << 4 | low);
      c += 2;
    }
    n++;
  }
  out[n] = '\0';
  *out_whole = *c == '/';
  *pos = *out_whole ? c + 1 : c;
  return TB_OK;
}

/* Parses a topic's third and fourth level. */
static tb_rc take_kind(struct tk_tail_ask *ask, const char *kind, bool whole, const char *detail,
                       struct tb_diag *diag) {
  bool any = ask->reports || ask->generations || ask->alerts || ask->lease;

  if (any && *kind != '\0')
    return tb_fail(diag, TB_BROKEN, "a kind stands in the topic or in --kind, not in both");
  if (any) return TB_OK;
  ask->reports = whole ? strcmp(kind, "report") == 0 : starts("report", kind);
  ask->generations = !whole && starts("generation", kind);
  ask->alerts = !whole && starts("alert", kind);
  ask->events = whole ? strcmp(kind, "event") == 0 : starts("event", kind);
  if (!ask->reports && !ask->generations && !ask->alerts && !ask->events)
    return tb_fail(diag, TB_BROKEN,
                   "\"%.80s\": a topic's kind is report, generation, alert or event", kind);
  if (whole && ask->events && *detail != '\0' && !feed_carries(detail)) ask->lease = true;
  if (ask->lease && !add_detail(ask, detail))
    return tb_fail(diag, TB_BROKEN,
                   "\"%.80s\": no event's name and no kind begins so; see "
                   "`tracectl tables kinds events`",
                   detail);
  return TB_OK;
}

static tb_rc take_topic(struct tk_tail_ask *ask, struct tb_diag *diag) {
  const char *pos = ask->topic;
  char kind[32], detail[64];
  bool whole, whole_detail;

  TB_TRY(take_level(&pos, ask->service, sizeof ask->service, &whole, diag));
  ask->service_is_prefix = !whole;
  if (!whole && *ask->service == '\0') ask->service_is_prefix = false;
  TB_TRY(take_level(&pos, ask->instance, sizeof ask->instance, &whole, diag));
  ask->instance_is_prefix = !whole && *ask->instance != '\0';
  TB_TRY(take_level(&pos, kind, sizeof kind, &whole, diag));
  TB_TRY(take_level(&pos, detail, sizeof detail, &whole_detail, diag));
  if (whole_detail) return tb_fail(diag, TB_BROKEN, "a topic has four levels at most");
  return take_kind(ask, kind, whole, detail, diag);
}

tb_rc tk_tail_resolve(struct tk_tail_ask *ask, struct tb_diag *diag) {
  const struct tk_selector *s = &ask->selector;
  bool chosen = ask->lease, is_live = ask->reports || ask->generations || ask->alerts;

  if (*ask->topic != '\0' && (s->service != NULL || s->instance != NULL))
    return tb_fail(diag, TB_BROKEN, "streams stand in the topic or in --service, not in both");
  TB_TRY(take_topic(ask, diag));
  bool only_alerts =
      ask->alerts && !ask->reports && !ask->generations && !ask->events && !ask->lease;
  bool since_of_events = s->since_wall_ns != 0 && !only_alerts;
  if (since_of_events && (is_live || (!ask->lease && !ask->events)))
    return tb_fail(
        diag, TB_BROKEN,
        "--since replays events, or alerts alone; reports and generations come live only");
  if (s->service != NULL) snprintf(ask->service, sizeof ask->service, "%s", s->service);
  if (s->instance != NULL) snprintf(ask->instance, sizeof ask->instance, "%s", s->instance);
  if (ask->goroutine != 0 || ask->duration_ns != 0 || since_of_events) {
    if (!ask->lease && since_of_events && ask->goroutine == 0 && ask->duration_ns == 0)
      add_feed_kinds(ask);
    ask->lease = true;
    if (!chosen) ask->reports = ask->generations = ask->alerts = false;
  }
  if (ask->lease) ask->events = false;
  ask->feed = ask->reports || ask->generations || ask->alerts || ask->events;
  return TB_OK;
}

void tk_tail_filter(const struct tk_tail_ask *ask, struct to_filter *out) {
  if (ask->n_kinds == 0)
    to_filter_all(out);
  else
    to_filter_none(out);
  for (size_t i = 0; i < ask->n_kinds; i++) (void)to_filter_add(out, ask->kinds[i]);
  if (ask->goroutine != 0) out->goroutine = (int64_t)ask->goroutine;
  out->duration_ns = ask->duration_ns;
}

static bool name_fits(const char *want, bool prefix, const char *have) {
  return *want == '\0' || (prefix ? starts(have, want) : strcmp(want, have) == 0);
}

bool tk_tail_wants(const struct tk_tail_ask *ask, const char *service, const char *instance,
                   const unsigned char *stream) {
  if (ask->selector.has_stream &&
      memcmp(stream, ask->selector.stream, sizeof ask->selector.stream) != 0)
    return false;
  return name_fits(ask->service, ask->service_is_prefix, service) &&
         name_fits(ask->instance, ask->instance_is_prefix, instance);
}
