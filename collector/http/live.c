/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/live.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* EVENT_BYTES: assumed mean size of an event; with smaller events the ring runs out of slots before bytes. */
enum { KINDS_MAX = 127, KIND_MAX = 31, EVENT_BYTES = 128 };

struct event {
  char listed[KIND_MAX + 3]; /* ",kind,", to be found in kinds of a reader */
  size_t len;
  char text[]; /* as it is sent */
};

/* Event n is in slot n % slots. */
struct tc_live {
  uint64_t run;
  uint64_t first, last; /* events first to last have a slot; NULL in a slot: the event was lost */
  struct event **slot;
  size_t slots;
  size_t bytes, bytes_max;
  LIST_HEAD(, tc_live_reader) all;
  size_t readers;
};

struct tc_live_reader {
  LIST_ENTRY(tc_live_reader) all;
  uint64_t next;  /* number of the next event to send */
  bool restarted; /* the last id is of an earlier start of the daemon: a gap is reported */
  char kinds[KINDS_MAX + 3]; /* ",a,b," */
  char notice[160];
};

tb_rc tc_live_new(size_t bytes_max, uint64_t run, struct tc_live **out) {
  struct tc_live *live = calloc(1, sizeof *live);

  if (live == NULL) return TB_NOMEM;
  live->run = run;
  live->first = 1;
  live->bytes_max = bytes_max;
  live->slots = bytes_max / EVENT_BYTES + 1;
  live->slot = calloc(live->slots, sizeof(struct event *));
  if (live->slot == NULL) {
    free(live);
    return TB_NOMEM;
  }
  *out = live;
  return TB_OK;
}

static struct event **slot_of(const struct tc_live *live, uint64_t number) {
  return &live->slot[number % live->slots];
}

static void drop_oldest(struct tc_live *live) {
  struct event **slot = slot_of(live, live->first), *gone = TB_MOVE(*slot);

  live->first++;
  if (gone != NULL) live->bytes -= gone->len;
  free(gone);
}

void tc_live_free(struct tc_live *live) {
  if (live == NULL) return;
  assert(live->readers == 0);
  while (live->first <= live->last) drop_oldest(live);
  free(live->slot);
  free(live);
}

static void list_kind(char listed[KIND_MAX + 3], const char *kind) {
  snprintf(listed, KIND_MAX + 3, ",%.*s,", KIND_MAX, kind);
}

void tc_live_publish(struct tc_live *live, const char *kind, const void *data, size_t n) {
  char head[96];
  uint64_t number = live->last + 1;
  int head_len =
      snprintf(head, sizeof head, "id: %" PRIx64 "-%" PRIu64 "\nevent: %.*s\ndata: ", live->run,
               number, KIND_MAX, kind);
  size_t len = (size_t)head_len + n + 2;
  struct event *e = len <= live->bytes_max ? malloc(sizeof *e + len) : NULL;

  if (number - live->first == live->slots) drop_oldest(live);
  live->last = number;
  *slot_of(live, number) = e;
  if (e == NULL) return; /* every reader gets a gap here */
  e->len = len;
  list_kind(e->listed, kind);
  memcpy(e->text, head, (size_t)head_len);
  memcpy(e->text + head_len, data, n);
  memcpy(e->text + head_len + n, "\n\n", 2);
  live->bytes += len;
  while (live->bytes > live->bytes_max) drop_oldest(live);
}

/* --- readers ----------------------------------------------------------------------------------- */

tb_rc tc_live_join(struct tc_live *live, const char *last_id, const char *kinds,
                   struct tc_live_reader **out) {
  struct tc_live_reader *r = calloc(1, sizeof *r);
  uint64_t run, number;

  if (r == NULL) return TB_NOMEM;
  if (strlen(kinds) > KINDS_MAX) {
    free(r);
    return TB_PROTOCOL;
  }
  snprintf(r->kinds, sizeof r->kinds, ",%s,", kinds);
  r->next = live->last + 1;
  if (sscanf(last_id, "%" SCNx64 "-%" SCNu64, &run, &number) == 2) {
    r->restarted = run != live->run || number > live->last;
    if (!r->restarted) r->next = number + 1;
  }
  LIST_INSERT_HEAD(&live->all, r, all);
  live->readers++;
  *out = r;
  return TB_OK;
}

void tc_live_leave(struct tc_live *live, struct tc_live_reader *reader) {
  if (reader == NULL) return;
  LIST_REMOVE(reader, all);
  live->readers--;
  free(reader);
}

size_t tc_live_readers(const struct tc_live *live) {
  return live->readers;
}

bool tc_live_reads(const struct tc_live_reader *r, const char *kind) {
  char listed[KIND_MAX + 3];

  list_kind(listed, kind);
  return strstr(r->kinds, listed) != NULL;
}

bool tc_live_wanted(const struct tc_live *live, const char *kind) {
  char listed[KIND_MAX + 3];

  list_kind(listed, kind);
  for (const struct tc_live_reader *r = LIST_FIRST(&live->all); r != NULL; r = LIST_NEXT(r, all))
    if (strstr(r->kinds, listed) != NULL) return true;
  return false;
}

static bool report_gap(struct tc_live_reader *r, const char *data, const void **out, size_t *len) {
  *len = (size_t)snprintf(r->notice, sizeof r->notice, "event: gap\ndata: %s\n\n", data);
  *out = r->notice;
  return true;
}

bool tc_live_next(struct tc_live *live, struct tc_live_reader *r, const void **out_text,
                  size_t *out_len) {
  uint64_t there = r->next > live->first ? r->next : live->first;
  char data[80];

  if (r->restarted) {
    r->restarted = false;
    return report_gap(r, "{\"lost\":null,\"why\":\"the collector was restarted\"}", out_text,
                      out_len);
  }
  for (;;) {
    while (there <= live->last && *slot_of(live, there) == NULL) there++;
    if (there > r->next) {
      snprintf(data, sizeof data, "{\"lost\":%" PRIu64 ",\"why\":\"read too slowly\"}",
               there - r->next);
      r->next = there;
      return report_gap(r, data, out_text, out_len);
    }
    if (there > live->last) return false;
    const struct event *e = *slot_of(live, there);
    r->next = ++there;
    if (strstr(r->kinds, e->listed) == NULL) continue;
    *out_text = e->text;
    *out_len = e->len;
    return true;
  }
}
