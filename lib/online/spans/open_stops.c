/* SPDX-License-Identifier: Apache-2.0 */
/* Open stops of the world, by goroutine and reason: a forged trace may have thousands per goroutine, a real one two. */
#include "base/hash.h"
#include "online/spans/state.h"

static uint64_t key_of(const struct to_spans *s, int64_t id, uint64_t text) {
  const uint64_t both[] = { (uint64_t)id, text };

  return tb_hash(s->open_stops.seed, both, sizeof both);
}

tb_rc to__open_stop_begins(struct to_spans *s, struct to_open_range *open, to_ns now) {
  uint64_t *place;

  to__spans_stop(s, true, now);
  TB_TRY(tb_map_put(&s->open_stops, key_of(s, open->id, open->text), &place, NULL));
  *place = (uintptr_t)open;
  return TB_OK;
}

struct to_open_range *to__open_stop_take(struct to_spans *s, int64_t id, uint64_t text) {
  uint64_t key = key_of(s, id, text);
  struct to_open_range *open = tb_map_at(&s->open_stops, key);

  if (open == NULL || open->id != id || open->text != text) return NULL;
  tb_map_remove(&s->open_stops, key);
  return open;
}
