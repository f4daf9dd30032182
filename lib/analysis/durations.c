/* SPDX-License-Identifier: Apache-2.0 */
/* One map holds when each open thing began, under its id and kind; a goroutine is always in exactly one
 * state, so one entry for it is enough. Regions of a goroutine nest: they are kept by depth. */
#include "analysis/durations.h"

/* Kinds of entries: ranges have the number of their enum to_range_kind. */
enum { STATE = TO_RANGES, TASK, KINDS, DEPTH = TO_RANGE_REGION };

enum { KIND_BITS = 3, DEPTH_BITS = 16 };
_Static_assert(KINDS <= 1 << KIND_BITS, "a kind needs more bits");

static uint64_t key_of(unsigned kind, uint64_t id) {
  return id << KIND_BITS | kind;
}

static uint64_t region_key(uint64_t g, uint64_t depth) {
  return g << DEPTH_BITS | (depth & ((1u << DEPTH_BITS) - 1));
}

/* A moment and whether it is a lower bound, in one word. */
static uint64_t moment(to_ns time, bool lower_bound) {
  return (uint64_t)time << 1 | lower_bound;
}

static void measure(uint64_t begun, to_ns end, struct to_duration *out) {
  out->known = true;
  out->lower_bound = (begun & 1) != 0;
  out->ns = (uint64_t)(end - ((to_ns)begun >> 1));
}

/* --- one of a kind ----------------------------------------------------------------------------- */

static tb_rc begin(struct to_durations *s, unsigned kind, uint64_t id, to_ns time) {
  uint64_t *value;

  TB_TRY(tb_map_put(&s->begun, key_of(kind, id), &value, NULL));
  *value = moment(time, false);
  return TB_OK;
}

/* It is under way: how long is not known, unless we have seen it begin. */
static tb_rc restate(struct to_durations *s, unsigned kind, uint64_t id) {
  uint64_t *value;
  bool fresh;

  TB_TRY(tb_map_put(&s->begun, key_of(kind, id), &value, &fresh));
  if (fresh) *value = moment(s->began, true);
  return TB_OK;
}

static tb_rc end(struct to_durations *s, unsigned kind, uint64_t id, to_ns time,
                 struct to_duration *out) {
  const uint64_t *value = tb_map_find(&s->begun, key_of(kind, id));

  if (value == NULL) return TB_OK;
  measure(*value, time, out);
  tb_map_remove(&s->begun, key_of(kind, id));
  return TB_OK;
}

/* One state ends and the next begins. */
static tb_rc move(struct to_durations *s, uint64_t g, to_ns time, struct to_duration *out) {
  uint64_t *value;
  bool fresh;

  TB_TRY(tb_map_put(&s->begun, key_of(STATE, g), &value, &fresh));
  if (!fresh) measure(*value, time, out);
  *value = moment(time, false);
  return TB_OK;
}

/* --- regions ----------------------------------------------------------------------------------- */

/* The depth comes last: it never counts a region that is not there, so a depth is never 0. */
static tb_rc begin_region(struct to_durations *s, uint64_t g, to_ns time) {
  const uint64_t *known = tb_map_find(&s->begun, key_of(DEPTH, g));
  uint64_t depth = known == NULL ? 0 : *known;
  uint64_t *value;

  TB_TRY(tb_map_put(&s->regions, region_key(g, depth), &value, NULL));
  *value = moment(time, false);
  tb_rc rc = tb_map_put(&s->begun, key_of(DEPTH, g), &value, NULL);
  if (rc != TB_OK) {
    tb_map_remove(&s->regions, region_key(g, depth));
    return rc;
  }
  *value = depth + 1;
  return TB_OK;
}

static void end_region(struct to_durations *s, uint64_t g, to_ns time, struct to_duration *out) {
  uint64_t *depth = tb_map_find(&s->begun, key_of(DEPTH, g));

  if (depth == NULL) return;
  const uint64_t *value = tb_map_find(&s->regions, region_key(g, --*depth));
  if (value != NULL) measure(*value, time, out);
  tb_map_remove(&s->regions, region_key(g, *depth));
  if (*depth == 0) tb_map_remove(&s->begun, key_of(DEPTH, g));
}

static tb_rc destroy(struct to_durations *s, uint64_t g, to_ns time, struct to_duration *out) {
  struct to_duration none;

  for (const uint64_t *depth; (depth = tb_map_find(&s->begun, key_of(DEPTH, g))) != NULL;)
    end_region(s, g, time, &none);
  return end(s, STATE, g, time, out);
}

/* --- events ------------------------------------------------------------------------------------ */

static tb_rc take_transition(struct to_durations *s, const struct to_event *ev,
                             struct to_duration *out) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  if (tr.resource != TO_RESOURCE_GOROUTINE) return TB_OK;
  uint64_t g = (uint64_t)tr.id;
  if (tr.from == tr.to || tr.from == TO_GO_UNDETERMINED) return restate(s, STATE, g);
  if (tr.from == TO_GO_NOT_EXIST) return begin(s, STATE, g, ev->time);
  if (tr.to == TO_GO_NOT_EXIST) return destroy(s, g, ev->time, out);
  return move(s, g, ev->time, out);
}

static tb_rc take_range(struct to_durations *s, const struct to_event *ev,
                        struct to_duration *out) {
  struct to_event_range range;

  if (!to_event_range(ev, &range)) return TB_OK;
  uint64_t id = (uint64_t)range.id;
  if (range.phase == TO_KIND_RANGE_BEGIN) return begin(s, range.kind, id, ev->time);
  if (range.phase == TO_KIND_RANGE_ACTIVE) return restate(s, range.kind, id);
  return end(s, range.kind, id, ev->time, out);
}

static uint64_t task_of(const struct to_event *ev) {
  struct to_user_event user;

  to_event_user(ev, &user);
  return user.task;
}

/* --- public ------------------------------------------------------------------------------------ */

void to_durations_init(struct to_durations *s, struct tb_mem *mem) {
  uint64_t seed = tb_seed();

  *s = (struct to_durations){ 0 };
  tb_map_init(&s->begun, mem, seed);
  tb_map_init(&s->regions, mem, seed);
}

void to_durations_fini(struct to_durations *s) {
  tb_map_fini(&s->begun);
  tb_map_fini(&s->regions);
}

void to_durations_epoch(struct to_durations *s) {
  tb_map_clear(&s->begun);
  tb_map_clear(&s->regions);
  s->heard = false;
}

tb_rc to_durations_event(struct to_durations *s, const struct to_event *ev,
                         struct to_duration *out) {
  if (!s->heard) s->began = ev->time;
  s->heard = true;
  *out = (struct to_duration){ 0 };
  switch (to_event_kind(ev)) {
  case TO_KIND_TRANSITION: return take_transition(s, ev, out);
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END: return take_range(s, ev, out);
  case TO_KIND_TASK_BEGIN: return begin(s, TASK, task_of(ev), ev->time);
  case TO_KIND_TASK_END: return end(s, TASK, task_of(ev), ev->time, out);
  case TO_KIND_REGION_BEGIN: return begin_region(s, (uint64_t)ev->g, ev->time);
  case TO_KIND_REGION_END: end_region(s, (uint64_t)ev->g, ev->time, out); return TB_OK;
  default: return TB_OK;
  }
}

static bool find(const struct to_durations *s, unsigned kind, int64_t id, to_ns *out_since,
                 bool *out_lower_bound) {
  const uint64_t *value = tb_map_find(&s->begun, key_of(kind, (uint64_t)id));

  if (value == NULL) return false;
  *out_since = (to_ns)*value >> 1;
  *out_lower_bound = (*value & 1) != 0;
  return true;
}

bool to_durations_state(const struct to_durations *s, int64_t goroutine, to_ns *out_since,
                        bool *out_lower_bound) {
  return find(s, STATE, goroutine, out_since, out_lower_bound);
}

bool to_durations_range(const struct to_durations *s, enum to_range_kind range, int64_t id,
                        to_ns *out_since, bool *out_lower_bound) {
  return range != TO_RANGE_SYSCALL && range != TO_RANGE_REGION &&
         find(s, range, id, out_since, out_lower_bound);
}
