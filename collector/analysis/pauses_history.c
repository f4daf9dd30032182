/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of stops, 16 bytes each, which name stream and cause by number, and the tables of both. A stream's entry is
 * reused only after its last stop has left the ring's five minutes, so a number stays valid. */
#include "collector/analysis/pauses_history.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text/hex.h"
#include "collector/store/store.h"

enum { CAUSES_MAX = 48, CAUSE_BYTES = 80 };
static const uint64_t second_ns = 1000000000;

struct stop {
  uint32_t second;
  uint16_t stream, cause;
  uint64_t ns;
};

struct stream {
  unsigned char id[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  uint32_t heard; /* second of its last totals; 0: the entry is free */
  uint64_t total_ns[CAUSES_MAX];
};

struct tc_pauses_history {
  pthread_mutex_t lock;
  struct tb_mem mem;
  uint32_t since; /* nothing is missing from this second on */
  struct stop *ring;
  size_t room, first, count;
  struct stream *streams;
  size_t streams_max, streams_used;
  struct tb_map by_id; /* first half of the id -> number + 1 */
  char causes[CAUSES_MAX][CAUSE_BYTES];
  size_t n_causes;
};

/* Agents draw ids at random. If two ids begin alike, the second stream has no history. */
static uint64_t key_of(const unsigned char *id) {
  uint64_t key;

  memcpy(&key, id, sizeof key);
  return key;
}

static bool is_past(uint32_t second, uint32_t now) {
  return second + TC_PAUSES_HISTORY_SECONDS < now;
}

static struct stream *free_place(struct tc_pauses_history *h, uint32_t now) {
  if (h->streams_used < h->streams_max) return &h->streams[h->streams_used++];
  for (size_t i = 0; i < h->streams_used; i++) {
    if (!is_past(h->streams[i].heard, now)) continue;
    tb_map_remove(&h->by_id, key_of(h->streams[i].id));
    return &h->streams[i];
  }
  return NULL;
}

/* Returns NULL if there is no room for the stream. */
static struct stream *find_stream(struct tc_pauses_history *h,
                                  const struct tc_pauses_history_of *of, uint32_t now,
                                  bool *out_fresh) {
  const uint64_t *known = tb_map_find(&h->by_id, key_of(of->stream));
  uint64_t *place;
  struct stream *s;

  *out_fresh = known == NULL;
  if (known != NULL) {
    s = &h->streams[*known - 1];
    return memcmp(s->id, of->stream, sizeof s->id) == 0 ? s : NULL;
  }
  s = free_place(h, now);
  if (s == NULL) return NULL;
  *s = (struct stream){ 0 };
  memcpy(s->id, of->stream, sizeof s->id);
  strncpy(s->service, of->service, TC_NAME_MAX);
  strncpy(s->instance, of->instance, TC_NAME_MAX);
  if (tb_map_put(&h->by_id, key_of(of->stream), &place, NULL) != TB_OK) return NULL;
  *place = (uint64_t)(s - h->streams) + 1;
  return s;
}

/* The last cause collects all for which there is no room. */
static size_t find_cause(struct tc_pauses_history *h, const char *id) {
  size_t i = 0;

  while (i < h->n_causes && strcmp(h->causes[i], id) != 0) i++;
  if (i < h->n_causes || strlen(id) >= CAUSE_BYTES) return i < CAUSES_MAX ? i : CAUSES_MAX - 1;
  if (i == CAUSES_MAX) return CAUSES_MAX - 1;
  strcpy(h->causes[h->n_causes++], i < CAUSES_MAX - 1 ? id : "/stw/other");
  return i;
}

static void drop_first(struct tc_pauses_history *h) {
  h->first = (h->first + 1) % h->room;
  h->count--;
}

static void add_stop(struct tc_pauses_history *h, struct stop stop) {
  if (h->count == h->room) {
    h->since = h->ring[h->first].second + 1;
    drop_first(h);
  }
  h->ring[(h->first + h->count++) % h->room] = stop;
}

static void drop_past(struct tc_pauses_history *h, uint32_t now) {
  while (h->count > 0 && is_past(h->ring[h->first].second, now)) drop_first(h);
  if (is_past(h->since, now)) h->since = now - TC_PAUSES_HISTORY_SECONDS;
}

static void take_totals(struct tc_pauses_history *h, struct stream *s,
                        const struct to_stop_total *totals, size_t n, bool only_remember,
                        uint32_t now) {
  uint64_t total[CAUSES_MAX] = { 0 };

  for (size_t i = 0; i < n; i++) total[find_cause(h, totals[i].id)] += totals[i].total_ns;
  for (size_t c = 0; c < h->n_causes; c++) {
    if (total[c] > s->total_ns[c] && !only_remember)
      add_stop(h, (struct stop){ now, (uint16_t)(s - h->streams), (uint16_t)c,
                                 total[c] - s->total_ns[c] });
    s->total_ns[c] = total[c];
  }
}

void tc_pauses_history_stops(struct tc_pauses_history *h, const struct tc_pauses_history_of *of,
                             const struct to_stop_total *totals, size_t n, uint64_t now_wall_ns) {
  uint32_t now = (uint32_t)(now_wall_ns / second_ns);
  bool fresh;

  if (h == NULL) return;
  pthread_mutex_lock(&h->lock);
  drop_past(h, now);
  struct stream *s = find_stream(h, of, now, &fresh);
  if (s != NULL) {
    /* A stream that had no entry, or lost it, reports its totals since it began: only remember them. */
    take_totals(h, s, totals, n, fresh && !of->begins, now);
    s->heard = now;
  }
  pthread_mutex_unlock(&h->lock);
}

/* No escaping needed: names are [A-Za-z0-9._:-] by protocol, ids of causes consist of letters, digits, - and /. */
void tc_pauses_history_write(struct tc_pauses_history *h, uint64_t now_wall_ns,
                             struct tb_buf *out) {
  uint32_t now = (uint32_t)(now_wall_ns / second_ns);

  pthread_mutex_lock(&h->lock);
  drop_past(h, now);
  tb_buf_printf(out, "{\"since\":%" PRIu32 ",\"until\":%" PRIu32 ",\"streams\":[", h->since, now);
  for (size_t i = 0; i < h->streams_used; i++) {
    const struct stream *s = &h->streams[i];
    char hex[2 * sizeof s->id + 1];

    tb_buf_printf(out, "%s{\"stream\":\"%s\",\"service\":\"%s\",\"instance\":\"%s\"}",
                  i > 0 ? "," : "", tb_hex(s->id, sizeof s->id, hex), s->service, s->instance);
  }
  tb_buf_text(out, "],\"causes\":[");
  for (size_t i = 0; i < h->n_causes; i++)
    tb_buf_printf(out, "%s\"%s\"", i > 0 ? "," : "", h->causes[i]);
  tb_buf_text(out, "],\"stops\":[");
  for (size_t i = 0; i < h->count; i++) {
    const struct stop *stop = &h->ring[(h->first + i) % h->room];

    tb_buf_printf(out, "%s[%" PRIu32 ",%u,%u,%" PRIu64 "]", i > 0 ? "," : "", stop->second,
                  stop->stream, stop->cause, stop->ns);
  }
  tb_buf_text(out, "]}");
  pthread_mutex_unlock(&h->lock);
}

/* Half of the memory is for the ring, half for streams and their entries in the map, which doubles as it grows. */
tb_rc tc_pauses_history_new(size_t bytes_max, uint64_t now_wall_ns,
                            struct tc_pauses_history **out) {
  enum { MAP_BYTES = 17 * 4 };
  struct tc_pauses_history *h = calloc(1, sizeof *h);

  if (h == NULL) return TB_NOMEM;
  pthread_mutex_init(&h->lock, NULL);
  tb_mem_init(&h->mem, tb_mem_libc, NULL, bytes_max);
  tb_map_init(&h->by_id, &h->mem, tb_seed());
  h->since = (uint32_t)(now_wall_ns / second_ns);
  h->room = bytes_max / 2 / sizeof *h->ring;
  h->streams_max = bytes_max / 2 / (sizeof *h->streams + MAP_BYTES);
  if (h->streams_max > UINT16_MAX) h->streams_max = UINT16_MAX;
  tb_rc rc = tb_mem_alloc(&h->mem, h->room * sizeof *h->ring, &h->ring);
  if (rc == TB_OK) rc = tb_mem_alloc(&h->mem, h->streams_max * sizeof *h->streams, &h->streams);
  if (rc != TB_OK) {
    tc_pauses_history_free(h);
    return rc;
  }
  *out = h;
  return TB_OK;
}

void tc_pauses_history_free(struct tc_pauses_history *h) {
  if (h == NULL) return;
  tb_map_fini(&h->by_id);
  if (h->streams != NULL) tb_mem_free(&h->mem, h->streams, h->streams_max * sizeof *h->streams);
  if (h->ring != NULL) tb_mem_free(&h->mem, h->ring, h->room * sizeof *h->ring);
  pthread_mutex_destroy(&h->lock);
  free(h);
}
