/* SPDX-License-Identifier: Apache-2.0 */
/* Topic event/KIND: some are ordered events, others are spans; both come from the analyses' watch.
 * Each is packed at once, with text and stack, and published together with others of its kind: a note
 * wakes the feed's thread, which costs more than many events. */
#include <string.h>

#include "collector/analysis/feed_private.h"
#include "online/event/view.h"
#include "pack/text.h"
#include "wire/spec.h"

enum {
  DRAFT_BYTES = 48 << 10,
  DRAFT_EVENTS = 1024,
  EVENTS_FIELD = 19, /* FeedMessage.events */
};
static const int64_t second_ns = 1000000000;

static const struct {
  enum tc_feed_event_kind kind;
  const char *id;
} published[64] = {
  [TW_EV_USER_TASK_BEGIN] = { TC_FEED_EVENT_TASKS, "/task/begin" },
  [TW_EV_USER_TASK_END] = { TC_FEED_EVENT_TASKS, "/task/end" },
  [TW_EV_USER_LOG] = { TC_FEED_EVENT_LOGS, "/log" },
  [TW_EV_USER_REGION_BEGIN] = { TC_FEED_EVENT_REGIONS, "/region/begin" },
  [TW_EV_USER_REGION_END] = { TC_FEED_EVENT_REGIONS, "/region/end" },
  [TW_EV_GC_BEGIN] = { TC_FEED_EVENT_GC, "/gc/begin" },
  [TW_EV_GC_END] = { TC_FEED_EVENT_GC, "/gc/end" },
  [TW_EV_PROC_START] = { TC_FEED_EVENT_PROCS, "/proc/start" },
  [TW_EV_PROC_STOP] = { TC_FEED_EVENT_PROCS, "/proc/stop" },
  [TW_EV_PROC_STEAL] = { TC_FEED_EVENT_PROCS, "/proc/stolen" },
};

uint64_t tc__event_types(unsigned kinds) {
  uint64_t types = 0;

  for (unsigned type = 0; type < 64; type++)
    if (published[type].id != NULL && (kinds >> published[type].kind & 1) != 0)
      types |= UINT64_C(1) << type;
  return types;
}

static void flush(struct tc_feed_encoder *source, unsigned kind) {
  struct tc__feed_draft *draft = &source->events[kind];
  struct tc_feed_note note = { .slot = (enum tc_feed_slot)(TC_FEED_EVENTS + kind),
                               .count = draft->count,
                               .gen = source->gen,
                               .from_wall_ns = draft->from_wall_ns,
                               .until_wall_ns = draft->until_wall_ns,
                               .bytes = draft->bytes.data,
                               .len = draft->bytes.len };

  if (draft->count == 0) return;
  tc_feed_publish(source->env.feed, source->env.port, &source->origin, &note);
  tb_buf_clear(&draft->bytes);
  draft->count = 0;
  draft->from_wall_ns = draft->until_wall_ns = 0;
}

void tc__flush_events(struct tc_feed_encoder *source) {
  for (unsigned kind = 0; kind < TC_FEED_EVENT_KINDS; kind++) flush(source, kind);
  source->drafted = false;
}

void tc_feed_encoder_pause(struct tc_feed_encoder *source, uint64_t mono_ns) {
  source->wanted = tc_feed_wanted(source->env.feed); /* until the next one */
  if (!source->drafted) return;
  if (mono_ns - source->flushed_mono_ns < source->env.config->feed_bundle_wait) return;
  source->flushed_mono_ns = mono_ns;
  tc__flush_events(source);
}

/* Returns true if this second already has feed.events_rate events of the kind: this one is counted as
 * a gap. */
static bool past_rate(struct tc_feed_encoder *source, enum tc_feed_event_kind kind, to_ns time) {
  struct tc__feed_draft *draft = &source->events[kind];

  if (time / second_ns != draft->second) {
    draft->second = time / second_ns;
    draft->taken = 0;
  }
  if (draft->taken++ < source->env.config->feed_events_rate) return false;
  flush(source, kind); /* in front of the gap */
  tc_feed_miss(source->env.feed, &source->origin, (enum tc_feed_slot)(TC_FEED_EVENTS + kind), 1);
  return true;
}

static void widen_span(struct tc__feed_draft *draft, const Tracecollect__V1__Event *event) {
  uint64_t begin = event->wall_ns != 0 ? event->wall_ns - event->duration_ns : 0;

  if (begin != 0 && (draft->from_wall_ns == 0 || begin < draft->from_wall_ns))
    draft->from_wall_ns = begin;
  if (event->wall_ns > draft->until_wall_ns) draft->until_wall_ns = event->wall_ns;
}

/* Adds an event to the draft of its kind. The stack, packed beforehand, is appended. */
static void add_event(struct tc_feed_encoder *source, enum tc_feed_event_kind kind,
                      const Tracecollect__V1__Event *event, const struct tb_buf *stack) {
  struct tc__feed_draft *draft = &source->events[kind];
  struct tb_buf *out = &draft->bytes;
  size_t event_bytes = tracecollect__v1__event__get_packed_size(event);
  size_t most = TC__FIELD_BYTES_MAX + event_bytes + stack->len;

  if (draft->count == DRAFT_EVENTS || out->len + most > DRAFT_BYTES) flush(source, kind);
  if (tb_buf_reserve(out, most) != TB_OK) {
    flush(source, kind);
    tb_buf_clear(out); /* clears the buffer's error, too */
    tc_feed_miss(source->env.feed, &source->origin, (enum tc_feed_slot)(TC_FEED_EVENTS + kind), 1);
    return;
  }
  out->len += tc__put_field(out->data + out->len, EVENTS_FIELD, event_bytes + stack->len);
  out->len += tracecollect__v1__event__pack(event, out->data + out->len);
  tb_buf_add(out, stack->data, stack->len);
  draft->count++;
  source->drafted = true;
  widen_span(draft, event);
}

static tb_rc fill_span(struct tc_feed_encoder *source, const struct to_watched *span,
                       Tracecollect__V1__Event *event, const struct tb_buf **out_stack) {
  event->time_ns = span->end;
  event->wall_ns = to_analyses_wall(source->analyses, span->end);
  event->goroutine = span->goroutine;
  event->thread = span->thread;
  event->proc = event->from_thread = TO_NONE;
  event->duration_ns = (uint64_t)(span->end - span->begin);
  event->lower_bound = span->lower_bound;
  if (span->what == TO_WORLD_RESTARTED) {
    event->id = (char *)(uintptr_t)span->id;
    TB_TRY(tp_take_text(&source->arena, span->reason, &event->reason));
  } else if (span->what == TO_SYSCALL_BLOCKED) {
    event->id = (char *)(uintptr_t) "/syscall/blocked";
  } else {
    event->id = (char *)(uintptr_t) "/syscall/unblocked";
    event->from = TRACECOLLECT__V1__GO_STATE__GO_SYSCALL;
    event->to = TRACECOLLECT__V1__GO_STATE__GO_RUNNABLE;
  }
  return tc__pack_stack(source, span->stack, out_stack);
}

void tc__span_event(struct tc_feed_encoder *source, const struct to_watched *span) {
  bool stw = span->what == TO_WORLD_RESTARTED;
  enum tc_feed_event_kind kind = stw ? TC_FEED_EVENT_STW : TC_FEED_EVENT_SYSCALL_BLOCKED;
  Tracecollect__V1__Event event = TRACECOLLECT__V1__EVENT__INIT;
  const struct tb_buf *stack;

  if ((source->event_kinds >> kind & 1) == 0) return;
  if (!stw && (span->what == TO_SYSCALL_LONG || !span->blocked)) return;
  if (past_rate(source, kind, span->end)) return;
  if (fill_span(source, span, &event, &stack) == TB_OK)
    add_event(source, kind, &event, stack);
  else
    tc_feed_miss(source->env.feed, &source->origin, (enum tc_feed_slot)(TC_FEED_EVENTS + kind), 1);
}

static tb_rc copy_string(struct tc_feed_encoder *source, const struct to_generation *gen,
                         uint64_t id, char **out) {
  struct to_string text;

  if (!to_generation_string(gen, id, &text)) return TB_OK; /* the field stays empty */
  return tp_copy_text(&source->arena, text, out);
}

static tb_rc fill_user(struct tc_feed_encoder *source, const struct to_generation *gen,
                       const struct to_event *ev, Tracecollect__V1__Event *event) {
  struct to_user_event user;

  to_event_user(ev, &user);
  event->task = user.task;
  event->parent_task = user.parent != TO_NO_TASK ? user.parent : 0;
  if (user.text != 0) TB_TRY(copy_string(source, gen, user.text, &event->text));
  if (!user.name_is_extra) return copy_string(source, gen, user.name, &event->name);
  return tp_copy_text(&source->arena, to_generation_extra_string(gen, user.name), &event->name);
}

static void fill_proc(const struct to_event *ev, Tracecollect__V1__Event *event) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  event->proc = tr.id;
  if (ev->type == TW_EV_PROC_STEAL) event->from_thread = (int64_t)ev->args[2];
}

static tb_rc fill_event(struct tc_feed_encoder *source, const struct to_generation *gen,
                        const struct to_event *ev, Tracecollect__V1__Event *event,
                        const struct tb_buf **out_stack) {
  uint64_t stack = to_event_stack(ev);

  event->time_ns = ev->time;
  event->wall_ns = source->analyses != NULL ? to_analyses_wall(source->analyses, ev->time) : 0;
  event->id = (char *)(uintptr_t)published[ev->type].id;
  event->goroutine = ev->g;
  event->thread = ev->m;
  event->proc = ev->p;
  event->from_thread = TO_NONE;
  switch (published[ev->type].kind) {
  case TC_FEED_EVENT_TASKS:
  case TC_FEED_EVENT_REGIONS:
  case TC_FEED_EVENT_LOGS: TB_TRY(fill_user(source, gen, ev, event)); break;
  case TC_FEED_EVENT_PROCS: fill_proc(ev, event); break;
  default: break;
  }
  return tc__pack_stack_of(source, gen, stack == TO_NO_STACK ? 0 : stack, out_stack);
}

void tc__publish_event(struct tc_feed_encoder *source, const struct to_generation *gen,
                       const struct to_event *ev) {
  enum tc_feed_event_kind kind = published[ev->type].kind;
  Tracecollect__V1__Event event = TRACECOLLECT__V1__EVENT__INIT;
  const struct tb_buf *stack;

  if (past_rate(source, kind, ev->time)) return;
  if (fill_event(source, gen, ev, &event, &stack) == TB_OK)
    add_event(source, kind, &event, stack);
  else
    tc_feed_miss(source->env.feed, &source->origin, (enum tc_feed_slot)(TC_FEED_EVENTS + kind), 1);
}
