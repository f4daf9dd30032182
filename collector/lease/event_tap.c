/* SPDX-License-Identifier: Apache-2.0 */
/* A stream has a line for each lease that selects it. A slice of events is processed once for
 * durations and once for each line. */
#include "collector/lease/event_tap.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "pack/bundle.h"

enum { BUNDLE_BYTES = 128 << 10, SLICE_EVENTS_MAX = 256 };

struct lease {
  uint64_t id;
  bool unconfirmed; /* the leases' thread has not been told that this loop has the lease */
  uint64_t lost;    /* events lost since the last bundle that was sent */
  struct tc_lease_filter filter;
};

struct line {
  uint64_t lease;
  struct to_filter filter;
  struct tp_bundle bundle;
};

struct tc_tap_event {
  struct tc_tap_event *next, **at; /* in the tap's list */
  struct tc_event_tap *tap;
  uint64_t version; /* the tap's version when lines were made */
  struct tp_bundle_about about;
  struct to_durations *durations; /* NULL: not allocated; events then have no durations */
  uint64_t position;              /* of the next event in its generation */
  struct line *lines;
  size_t n_lines;
};

struct tc_event_tap {
  struct tc_leases *leases;
  unsigned loop;
  struct tb_mem mem;
  struct lease *lease;
  size_t n, room;
  uint64_t version;
  struct tc_tap_event *tapped;
};

/* --- lines ------------------------------------------------------------------------------------- */

static void line_fini(struct line *line) {
  tp_bundle_fini(&line->bundle);
}

/* Frees the bundle's memory, which is all it still holds. */
static void line_empty(struct tc_event_tap *tap, struct line *line) {
  tp_bundle_fini(&line->bundle);
  tp_bundle_init(&line->bundle, &tap->mem);
}

static struct lease *find_lease(struct tc_event_tap *tap, uint64_t id) {
  for (size_t i = 0; i < tap->n; i++)
    if (tap->lease[i].id == id) return &tap->lease[i];
  return NULL;
}

/* bundle NULL: only reports the loss. */
static void send_bundle(struct tc_event_tap *tap, struct lease *lease, struct tp_bundle *bundle) {
  uint64_t events = bundle != NULL ? bundle->count : 0;
  size_t len = events > 0 ? tp_bundle_bytes(bundle) : 0;
  struct tc_bundle *b = tc_bundle_new(lease->id, len);

  if (events > 0) bundle->count = 0;
  if (b != NULL) {
    b->events = events;
    b->lost_before = lease->lost;
    if (len > 0) tp_bundle_write(bundle, b->bytes);
    if (tc_leases_post(tap->leases, tap->loop, b)) {
      lease->lost = 0;
      return;
    }
    tc_bundle_free(b);
  }
  lease->lost += events;
}

static void line_send(struct tc_event_tap *tap, struct line *line) {
  struct lease *lease = find_lease(tap, line->lease);

  if (line->bundle.count > 0 && lease != NULL) send_bundle(tap, lease, &line->bundle);
}

static void line_add(struct tc_tap_event *t, struct line *line, const struct to_generation *gen,
                     const struct to_event *ev, uint64_t position,
                     const struct to_duration *lasted) {
  struct tp_bundle *b = &line->bundle;
  tb_rc rc = b->count == 0 ? tp_bundle_begin(b, gen, &t->about) : TB_OK;

  if (rc == TB_OK) rc = tp_bundle_add(b, gen, ev, position, lasted);
  if (rc != TB_OK) { /* out of memory: send the bundle, which frees its memory */
    struct lease *lease = find_lease(t->tap, line->lease);
    line_send(t->tap, line);
    line_empty(t->tap, line);
    if (lease != NULL) lease->lost++;
  } else if (tp_bundle_bytes(b) >= BUNDLE_BYTES) {
    line_send(t->tap, line);
  }
}

/* --- streams ----------------------------------------------------------------------------------- */

static bool name_fits(const char *want, bool prefix, const char *have) {
  if (prefix) return strncmp(want, have, strlen(want)) == 0;
  return want[0] == '\0' || strcmp(want, have) == 0;
}

static bool stream_fits(const struct tc_lease_filter *f, const struct tc_tap_event_about *about) {
  if (f->one_stream && memcmp(f->stream, about->stream, sizeof f->stream) != 0) return false;
  return name_fits(f->service, f->service_is_prefix, about->service) &&
         name_fits(f->instance, f->instance_is_prefix, about->instance);
}

static void remove_line(struct tc_tap_event *t, uint64_t lease) {
  for (size_t i = 0; i < t->n_lines; i++) {
    if (t->lines[i].lease != lease) continue;
    line_fini(&t->lines[i]);
    t->lines[i] = t->lines[--t->n_lines];
    return;
  }
}

static bool has_line(const struct tc_tap_event *t, uint64_t lease) {
  for (size_t i = 0; t != NULL && i < t->n_lines; i++)
    if (t->lines[i].lease == lease) return true;
  return false;
}

static bool add_line(struct tc_tap_event *t, const struct lease *lease) {
  struct line *lines = realloc(t->lines, (t->n_lines + 1) * sizeof *lines);

  if (lines == NULL) return false;
  t->lines = lines;
  lines[t->n_lines] = (struct line){ .lease = lease->id, .filter = lease->filter.events };
  tp_bundle_init(&lines[t->n_lines].bundle, &t->tap->mem);
  t->n_lines++;
  return true;
}

static struct tc_tap_event *tapped_new(struct tc_event_tap *tap,
                                       const struct tc_tap_event_about *about) {
  struct tc_tap_event *t = calloc(1, sizeof *t);

  if (t == NULL) return NULL;
  t->tap = tap;
  t->about = (struct tp_bundle_about){ .stream = about->stream,
                                       .service = about->service,
                                       .instance = about->instance };
  t->next = tap->tapped;
  t->at = &tap->tapped;
  if (t->next != NULL) t->next->at = &t->next;
  tap->tapped = t;
  return t;
}

void tc_tap_event_free(struct tc_tap_event *t) {
  if (t == NULL) return;
  *t->at = t->next;
  if (t->next != NULL) t->next->at = t->at;
  for (size_t i = 0; i < t->n_lines; i++) line_fini(&t->lines[i]);
  to_durations_free(t->durations);
  free(t->lines);
  free(t);
}

/* A line that cannot be allocated is tried again at the next generation. */
static void match_leases(struct tc_event_tap *tap, const struct tc_tap_event_about *about,
                         struct tc_tap_event **tapped) {
  bool all = true;

  for (size_t i = 0; i < tap->n; i++) {
    const struct lease *lease = &tap->lease[i];
    if (!stream_fits(&lease->filter, about) || has_line(*tapped, lease->id)) continue;
    if (*tapped == NULL) *tapped = tapped_new(tap, about);
    all = *tapped != NULL && add_line(*tapped, lease) && all;
  }
  if (*tapped != NULL && all) (*tapped)->version = tap->version;
}

void tc_event_tap_begin(struct tc_event_tap *tap, const struct tc_tap_event_about *about,
                        struct tc_tap_event **tapped) {
  if (tap == NULL || (tap->n == 0 && *tapped == NULL)) return;
  if (*tapped == NULL || (*tapped)->version != tap->version) match_leases(tap, about, tapped);
  if (*tapped == NULL) return;
  (*tapped)->position = 0;
  if ((*tapped)->n_lines == 0) {
    tc_tap_event_free(*tapped);
    *tapped = NULL;
  } else if ((*tapped)->durations == NULL &&
             to_durations_new(&tap->mem, &(*tapped)->durations) != TB_OK) {
    (*tapped)->durations = NULL;
  }
}

/* --- events ------------------------------------------------------------------------------------ */

static void add_slice(struct tc_tap_event *t, const struct to_generation *gen,
                      const struct to_event *events, size_t n) {
  struct to_duration lasted[SLICE_EVENTS_MAX];

  tb_rc rc =
      t->durations == NULL ? TB_NOMEM : to_durations_events(t->durations, gen, events, n, lasted);
  if (t->durations == NULL) memset(lasted, 0, n * sizeof *lasted);
  (void)rc; /* without memory events have no duration */
  for (struct line *line = t->lines; line < t->lines + t->n_lines; line++)
    for (size_t i = 0; i < n; i++)
      if (to_filter_fits(&line->filter, &events[i], &lasted[i]))
        line_add(t, line, gen, &events[i], t->position + i, &lasted[i]);
  t->position += n;
}

void tc_tap_event_events(struct tc_tap_event *t, const struct to_generation *gen,
                         const struct to_event *events, size_t n) {
  if (gen == NULL) return;
  for (size_t part; n > 0; events += part, n -= part) {
    part = n < SLICE_EVENTS_MAX ? n : SLICE_EVENTS_MAX;
    add_slice(t, gen, events, part);
  }
}

void tc_tap_event_end(struct tc_tap_event *t) {
  for (struct line *line = t->lines; line < t->lines + t->n_lines; line++) {
    line_send(t->tap, line);
    line_empty(t->tap, line);
  }
}

void tc_tap_event_epoch(struct tc_tap_event *t) {
  if (t->durations != NULL) to_durations_epoch(t->durations);
}

void tc_tap_event_clock(struct tc_tap_event *t, to_ns trace_ns, uint64_t wall_ns) {
  t->about.clock_trace_ns = trace_ns;
  t->about.clock_wall_ns = wall_ns;
}

/* --- leases ------------------------------------------------------------------------------------ */

static void confirm(struct tc_event_tap *tap, struct lease *lease) {
  struct tc_bundle *report = tc_bundle_new(lease->id, 0);

  if (report == NULL) return;
  report->ready = true;
  lease->unconfirmed = !tc_leases_post(tap->leases, tap->loop, report);
  if (lease->unconfirmed) tc_bundle_free(report);
}

static void add_lease(struct tc_event_tap *tap, const struct tc_event_tap_order *order) {
  if (TB_GROW(tap->lease, tap->room, tap->n) != TB_OK)
    return; /* never confirmed: its reader gets TB_BUSY */
  tap->lease[tap->n] = (struct lease){ .id = order->lease, .filter = order->filter };
  tap->version++;
  confirm(tap, &tap->lease[tap->n++]);
}

static void remove_lease(struct tc_event_tap *tap, uint64_t id) {
  for (struct tc_tap_event *t = tap->tapped; t != NULL; t = t->next) remove_line(t, id);
  struct lease *lease = find_lease(tap, id);
  if (lease != NULL) *lease = tap->lease[--tap->n];
}

void tc_event_tap_order(struct tc_event_tap *tap, struct tc_event_tap_order *order) {
  TB_MAGIC_CHECK(order, TC_TAP_ORDER_MAGIC);
  if (order->remove)
    remove_lease(tap, order->lease);
  else
    add_lease(tap, order);
  tc_event_tap_order_free(order);
}

void tc_event_tap_tick(struct tc_event_tap *tap) {
  for (struct lease *lease = tap->lease; lease < tap->lease + tap->n; lease++) {
    if (lease->unconfirmed) confirm(tap, lease);
    if (lease->lost > 0) send_bundle(tap, lease, NULL);
  }
}

tb_rc tc_event_tap_new(struct tc_leases *leases, unsigned loop, struct tc_event_tap **out) {
  struct tc_event_tap *tap = calloc(1, sizeof *tap);

  if (tap == NULL) return TB_NOMEM;
  tap->leases = leases;
  tap->loop = loop;
  tb_mem_init(&tap->mem, tb_mem_libc, NULL, TC_EVENT_TAP_BYTES_MAX);
  *out = tap;
  return TB_OK;
}

void tc_event_tap_free(struct tc_event_tap *tap) {
  if (tap == NULL) return;
  free(tap->lease);
  free(tap);
}
