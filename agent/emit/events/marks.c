/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own marks: regions, tasks, logs, labels, pauses and figures. */
#include "agent/emit/events/act.h"
#include "traceagent.h"

/* Regions. Each goroutine has a stack of open ones. Beyond TA_REGIONS_MAX they are only counted, so that ends still match. */

void ta_region_begin(ta_name name, ta_task task) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  struct ta_go *go = t->go;
  name = ta_name_known(name);
  if (TB_LIKELY(go->regions < TA_REGIONS_MAX)) {
    go->region_name[go->regions] = (uint16_t)name;
    go->region_task[go->regions] = task;
    ta_put_from(t, TW_EV_USER_REGION_BEGIN, 2, task, ta_name_id(name, t->running_gen, TA_AS_STRING),
                0, TA_CALLER);
  }
  go->regions++;
  ta_leave(t);
}

static inline void end_region(struct ta_thread *t, const void *from) {
  struct ta_go *go = t->go;

  if (--go->regions >= TA_REGIONS_MAX) return;
  ta_put_from(t, TW_EV_USER_REGION_END, 2, go->region_task[go->regions],
              ta_name_id(go->region_name[go->regions], t->running_gen, TA_AS_STRING), 0, from);
}

void ta_region_end(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  if (t->go->regions > 0)
    end_region(t, TA_CALLER);
  else
    ta_misuse_end(t, "ta_region_end(): no region is open");
  ta_leave(t);
}

void ta_act_close_ranges(struct ta_thread *t, const void *from) {
  ta_act_assist_end(t);
  while (t->go->regions > 0) end_region(t, from);
}

/* Tasks and texts. */

ta_task ta_task_begin(ta_name type, ta_task parent) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return 0;
  ta_task task = ta_next_id(t);
  ta_put_from(t, TW_EV_USER_TASK_BEGIN, 3, task, parent, ta_string(t, type), TA_CALLER);
  ta_leave(t);
  return task;
}

void ta_task_end(ta_task task) {
  struct ta_thread *t = task == 0 ? NULL : ta_enter_running();

  if (t == NULL) return;
  ta_put_from(t, TW_EV_USER_TASK_END, 1, task, 0, 0, TA_CALLER);
  ta_leave(t);
}

void ta_log(ta_task task, ta_name key, const char *text) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  if (text != NULL) {
    uint64_t value = ta_put_text(t, text);
    ta_put_from(t, TW_EV_USER_LOG, 3, task, ta_string(t, key), value, TA_CALLER);
  } else {
    ta_misuse(t, "ta_log(): the text is NULL");
  }
  ta_leave(t);
}

void ta_label(ta_name label) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  ta_put(t, TW_EV_GO_LABEL, 1, ta_string(t, label), 0, 0, 0);
  ta_leave(t);
}

/* Pauses. ta_emit.word counts open pauses, so that no generation ends in one. */

/* Returns false if the generation is over. */
static bool count_pause(uint32_t gen, int64_t by) {
  uint64_t word = atomic_load(&ta_emit.word);

  do
    if (ta_gen_of(word) != gen) return false;
  while (!atomic_compare_exchange_weak(&ta_emit.word, &word, word + (uint64_t)by));
  return true;
}

void ta_pause_begin(ta_name kind) {
  struct ta_thread *t = ta_enter_running();

  while (t != NULL && t->pause_gen == 0 && !count_pause(ta_gen(t), 1)) {
    ta_leave(t);
    t = ta_enter();
  }
  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  if (t->pause_gen != 0) {
    ta_misuse(t, "ta_pause_begin(): this thread has stopped the world already");
  } else {
    t->pause_gen = ta_gen(t);
    ta_put_from(t, TW_EV_STW_BEGIN, 1, ta_string(t, kind), 0, 0, TA_CALLER);
  }
  ta_leave(t);
}

/* A pause whose generation was given up because it took too long has no end event. */
void ta_act_pause_end(struct ta_thread *t) {
  if (t->pause_gen == 0) return;
  if (t->pause_gen == ta_gen(t)) {
    ta_put(t, TW_EV_STW_END, 0, 0, 0, 0, 0);
    count_pause(t->pause_gen, -1);
  }
  t->pause_gen = 0;
}

void ta_pause_end(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  if (t->pause_gen == 0) ta_misuse_end(t, "ta_pause_end(): this thread has not stopped the world");
  ta_act_pause_end(t);
  ta_leave(t);
}

/* Figures. */

void ta_workers(unsigned n) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  atomic_store_explicit(&ta_emit.workers, n, memory_order_relaxed);
  atomic_store_explicit(&ta_emit.workers_gen, ta_gen(t), memory_order_relaxed);
  ta_put_from(t, TW_EV_PROCS_CHANGE, 1, n, 0, 0, TA_CALLER);
  ta_leave(t);
}

void ta_act_workers(struct ta_thread *t) {
  uint32_t gen = ta_gen(t), n = atomic_load_explicit(&ta_emit.workers, memory_order_relaxed);

  if (n == 0) return;
  if (atomic_load_explicit(&ta_emit.workers_gen, memory_order_relaxed) == gen) return;
  if (atomic_exchange_explicit(&ta_emit.workers_gen, gen, memory_order_relaxed) != gen)
    ta_put(t, TW_EV_PROCS_CHANGE, 2, n, 0, 0, 0);
}

void ta_heap_alloc(uint64_t bytes) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  ta_put(t, TW_EV_HEAP_ALLOC, 1, bytes, 0, 0, 0);
  ta_leave(t);
}

void ta_heap_goal(uint64_t bytes) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return;
  ta_put(t, TW_EV_HEAP_GOAL, 1, bytes, 0, 0, 0);
  ta_leave(t);
}
