/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines, threads and procs by id, each a small block of its own; the events' rules were checked by the
 * orderer, so what does not fit here (a goroutine that is not known yet) is simply added. Since when a goroutine
 * is in its state, and which ranges are under way, is left to analysis/durations.h. */
#include "analysis/model.h"

#include <string.h>

#include "analysis/durations.h"
#include "base/map.h"
#include "wire/spec.h"

enum { REASONS_KEPT = 64 }; /* string ids of a generation whose reason is known; Go uses some 20 */

struct goroutine {
  int64_t id, m;
  to_ns call_since; /* in a system call: its begin */
  int64_t call_proc;
  uint64_t call_stack, call_gen;
  char *label; /* label_len bytes from mem */
  size_t label_len;
  uint8_t state; /* enum to_go_state */
  uint8_t reason;
  bool call_lower_bound, blocked;
};

struct thread {
  int64_t id, g, p;
  to_ns since; /* in its state */
  bool lower_bound;
};

struct proc {
  int64_t id, m;
  to_ns since;
  uint8_t state; /* enum to_proc_state */
  bool lower_bound;
};

struct to_model {
  struct tb_mem *mem;
  struct tb_map goroutines, threads, procs;
  struct to_durations durations;
  uint64_t gomaxprocs;
  uint64_t in_gen; /* the generation that has begun; TB_NO_GEN: none */
  uint64_t gen;    /* the generation of `reasons` */
  struct {
    uint64_t string;
    uint8_t reason;
    bool known;
  } reasons[REASONS_KEPT];
  char *last_label; /* of a span that has just ended: lent with the news */
  size_t last_label_len;
};

static void drop_all(struct tb_map *map, struct tb_mem *mem, size_t bytes) {
  uint64_t key, value;

  for (size_t pos = 0; tb_map_next(map, &pos, &key, &value);)
    tb_mem_give(mem, (void *)(uintptr_t)value, bytes);
  tb_map_clear(map);
}

static void drop_goroutines(struct to_model *model) {
  uint64_t key, value;

  for (size_t pos = 0; tb_map_next(&model->goroutines, &pos, &key, &value);) {
    struct goroutine *g = (void *)(uintptr_t)value;
    tb_mem_give(model->mem, g->label, g->label_len);
  }
  drop_all(&model->goroutines, model->mem, sizeof(struct goroutine));
}

void to_model_epoch(struct to_model *model) {
  drop_goroutines(model);
  drop_all(&model->threads, model->mem, sizeof(struct thread));
  drop_all(&model->procs, model->mem, sizeof(struct proc));
  to_durations_epoch(&model->durations);
  model->gomaxprocs = 0;
  model->gen = model->in_gen = TB_NO_GEN;
}

tb_rc to_model_new(struct tb_mem *mem, struct to_model **out) {
  struct to_model *model;

  TB_TRY(tb_mem_take(mem, sizeof(struct to_model), &model));
  model->mem = mem;
  tb_map_init(&model->goroutines, mem, tb_seed());
  tb_map_init(&model->threads, mem, tb_seed());
  tb_map_init(&model->procs, mem, tb_seed());
  to_durations_init(&model->durations, mem);
  *out = model;
  return TB_OK;
}

void to_model_free(struct to_model *model) {
  if (model == NULL) return;
  to_model_epoch(model);
  tb_mem_give(model->mem, model->last_label, model->last_label_len);
  tb_map_fini(&model->goroutines);
  tb_map_fini(&model->threads);
  tb_map_fini(&model->procs);
  to_durations_fini(&model->durations);
  tb_mem_give(model->mem, model, sizeof *model);
}

static void *find(const struct tb_map *map, int64_t id) {
  return tb_map_at(map, (uint64_t)id);
}

static void drop(struct to_model *model, struct tb_map *map, int64_t id, size_t bytes) {
  void *block = find(map, id);

  if (block == NULL) return;
  tb_mem_give(model->mem, block, bytes);
  tb_map_remove(map, (uint64_t)id);
}

static tb_rc claim_goroutine(struct to_model *model, int64_t id, struct goroutine **out) {
  bool fresh;

  TB_TRY(tb_map_claim(&model->goroutines, (uint64_t)id, sizeof **out, out, &fresh));
  if (fresh)
    **out = (struct goroutine){
      .id = id, .m = TO_NONE, .call_proc = TO_NONE, .call_stack = TO_NO_STACK
    };
  return TB_OK;
}

static tb_rc claim_thread(struct to_model *model, int64_t id, struct thread **out) {
  bool fresh;

  TB_TRY(tb_map_claim(&model->threads, (uint64_t)id, sizeof **out, out, &fresh));
  if (fresh) **out = (struct thread){ id, TO_NONE, TO_NONE, model->durations.began, true };
  return TB_OK;
}

static tb_rc claim_proc(struct to_model *model, int64_t id, struct proc **out) {
  bool fresh;

  TB_TRY(tb_map_claim(&model->procs, (uint64_t)id, sizeof **out, out, &fresh));
  if (fresh)
    **out = (struct proc){
      .id = id, .m = TO_NONE, .since = model->durations.began, .lower_bound = true
    };
  return TB_OK;
}

/* --- labels and reasons -------------------------------------------------------------------------- */

static tb_rc set_label(struct to_model *model, struct goroutine *g, struct to_string text) {
  void *block = g->label;

  TB_TRY(tb_mem_resize(model->mem, &block, g->label_len, text.len));
  g->label = block;
  g->label_len = text.len;
  if (text.len > 0) memcpy(g->label, text.data, text.len);
  return TB_OK;
}

/* The goroutine leaves its thread: its label goes out with the news. */
static void end_label(struct to_model *model, struct goroutine *g) {
  tb_mem_give(model->mem, model->last_label, model->last_label_len);
  model->last_label = g->label;
  model->last_label_len = g->label_len;
  g->label = NULL;
  g->label_len = 0;
}

static enum to_reason reason_of(struct to_model *model, const struct to_generation *gen,
                                uint64_t id) {
  uint64_t number = to_generation_number(gen);
  size_t at = id % REASONS_KEPT;
  struct to_string text;

  if (number != model->gen) memset(model->reasons, 0, sizeof model->reasons);
  model->gen = number;
  if (model->reasons[at].known && model->reasons[at].string == id)
    return (enum to_reason)model->reasons[at].reason;
  if (!to_generation_string(gen, id, &text)) return TO_REASON_OTHER;
  model->reasons[at].string = id;
  model->reasons[at].reason = (uint8_t)to_reason_find(text);
  model->reasons[at].known = true;
  return (enum to_reason)model->reasons[at].reason;
}

/* --- goroutines ---------------------------------------------------------------------------------- */

/* Off the thread it was on, if that one still thinks so. */
static void leave_thread(struct to_model *model, struct goroutine *g) {
  struct thread *t = g->m == TO_NONE ? NULL : find(&model->threads, g->m);

  if (t != NULL && t->g == g->id) t->g = TO_NONE;
  g->m = TO_NONE;
}

static tb_rc enter_thread(struct to_model *model, struct goroutine *g, int64_t m) {
  struct thread *t;

  leave_thread(model, g);
  if (m == TO_NONE) return TB_OK;
  TB_TRY(claim_thread(model, m, &t));
  t->g = g->id;
  g->m = m;
  return TB_OK;
}

static void begin_call(const struct to_model *model, struct goroutine *g, uint64_t stack,
                       const struct to_generation *gen) {
  const struct thread *t = g->m == TO_NONE ? NULL : find(&model->threads, g->m);

  (void)to_durations_state(&model->durations, g->id, &g->call_since, &g->call_lower_bound);
  g->call_proc = t == NULL ? TO_NONE : t->p;
  g->call_stack = stack;
  g->call_gen = gen == NULL ? TB_NO_GEN : to_generation_number(gen);
  g->blocked = false;
}

static void note_blocked(struct goroutine *g, int64_t m, struct to_effects *out) {
  if (g->blocked) return;
  g->blocked = true;
  out->syscall_blocked = true;
  out->blocked =
      (struct to_blocked_syscall){ g->id,         m,           g->call_proc,       g->call_since,
                                   g->call_stack, g->call_gen, g->call_lower_bound };
}

/* A thread that sits in a call has lost its proc. */
static void lose_proc(struct to_model *model, struct thread *t, struct to_effects *out) {
  struct goroutine *g = t->g == TO_NONE ? NULL : find(&model->goroutines, t->g);

  if (g != NULL && g->state == TO_GO_SYSCALL) note_blocked(g, t->id, out);
  t->p = TO_NONE;
}

static void destroy_goroutine(struct to_model *model, struct goroutine *g) {
  leave_thread(model, g);
  tb_mem_give(model->mem, g->label, g->label_len);
  drop(model, &model->goroutines, g->id, sizeof *g);
}

static int64_t thread_of(const struct to_event *ev, uint8_t to) {
  if (to != TO_GO_RUNNING && to != TO_GO_SYSCALL) return TO_NONE;
  bool status = ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK;
  return status && to == TO_GO_SYSCALL ? (int64_t)ev->args[1] : ev->m;
}

static tb_rc move_goroutine(struct to_model *model, const struct to_generation *gen,
                            const struct to_event *ev, const struct to_transition *tr,
                            struct to_effects *out) {
  struct goroutine *g;

  if (tr->id == TO_NONE) return TB_OK;
  TB_TRY(claim_goroutine(model, tr->id, &g));
  if (g->state == tr->to && tr->from == tr->to) return TB_OK; /* a status that says what is known */
  if (ev->type == TW_EV_GO_SYSCALL_END_BLOCKED && g->state == TO_GO_SYSCALL)
    note_blocked(g, ev->m, out); /* at the latest */
  if (tr->to != TO_GO_SYSCALL && tr->to != TO_GO_RUNNING) end_label(model, g);
  if (tr->to == TO_GO_NOT_EXIST) {
    destroy_goroutine(model, g);
    return TB_OK;
  }
  if (tr->reason != 0 && gen != NULL) out->reason = reason_of(model, gen, tr->reason);
  g->reason = (uint8_t)out->reason;
  g->state = tr->to;
  g->blocked = false;
  TB_TRY(enter_thread(model, g, thread_of(ev, tr->to)));
  if (tr->to == TO_GO_SYSCALL) begin_call(model, g, tr->stack, gen);
  return TB_OK;
}

/* --- procs --------------------------------------------------------------------------------------- */

static tb_rc move_proc(struct to_model *model, const struct to_event *ev,
                       const struct to_transition *tr, struct to_effects *out) {
  struct proc *p;
  struct thread *t;

  if (tr->id == TO_NONE) return TB_OK;
  TB_TRY(claim_proc(model, tr->id, &p));
  struct thread *had = p->m == TO_NONE ? NULL : find(&model->threads, p->m);
  if (ev->type == TW_EV_PROC_STEAL) out->stolen_from = p->m;
  if (p->state != tr->to || p->m != (tr->to == TO_PROC_RUNNING ? ev->m : TO_NONE)) {
    if (p->state != TO_PROC_UNDETERMINED && p->state != tr->to) {
      out->ends = true;
      out->lasted_ns = (uint64_t)ev->time - (uint64_t)p->since;
      out->lower_bound = p->lower_bound;
    }
    if (p->state != tr->to) {
      p->lower_bound = tr->from == TO_PROC_UNDETERMINED;
      p->since = p->lower_bound ? model->durations.began : ev->time;
    }
    if (had != NULL && had->p == p->id) lose_proc(model, had, out);
    p->m = TO_NONE;
  }
  p->state = tr->to;
  if (tr->to != TO_PROC_RUNNING || ev->m == TO_NONE) return TB_OK;
  TB_TRY(claim_thread(model, ev->m, &t));
  t->p = p->id;
  p->m = t->id;
  return TB_OK;
}

/* --- samples ------------------------------------------------------------------------------------- */

static bool is_mismatch(const struct to_model *model, const struct to_event *ev) {
  const struct thread *t = find(&model->threads, ev->m);

  if (ev->m == TO_NONE || t == NULL) return false; /* nothing to compare with */
  return (ev->g != TO_NONE && ev->g != t->g) || (ev->p != TO_NONE && ev->p != t->p);
}

/* --- threads ------------------------------------------------------------------------------------- */

static enum to_thread_state thread_state(const struct to_model *model, const struct thread *t) {
  const struct goroutine *g = t->g == TO_NONE ? NULL : find(&model->goroutines, t->g);

  if (g == NULL) return TO_THREAD_IDLE;
  if (g->state != TO_GO_SYSCALL) return TO_THREAD_RUNNING;
  /* On its way out of a call that lost its proc it may have got another already. */
  return g->blocked || t->p == TO_NONE ? TO_THREAD_BLOCKED : TO_THREAD_SYSCALL;
}

/* Threads whose state an event may change, and what they were before it. A thread's first known state is no
 * change: it was so before. */
struct watched {
  int64_t m[TO_THREAD_CHANGES_MAX]; /* TO_NONE: not looked at */
  enum to_thread_state was[TO_THREAD_CHANGES_MAX];
};

static void watch_threads(const struct to_model *model, const struct to_event *ev,
                          const struct to_transition *tr, struct watched *out) {
  bool steal = ev->type == TW_EV_PROC_STEAL && (int64_t)ev->args[2] != ev->m;
  bool known = tr->from != TO_GO_UNDETERMINED; /* the same number for a proc */

  *out = (struct watched){ .m = { known ? ev->m : TO_NONE,
                                  known && steal ? (int64_t)ev->args[2] : TO_NONE } };
  for (int i = 0; i < TO_THREAD_CHANGES_MAX; i++) {
    const struct thread *t = out->m[i] == TO_NONE ? NULL : find(&model->threads, out->m[i]);
    if (t != NULL)
      out->was[i] = thread_state(model, t);
    else
      out->m[i] = TO_NONE;
  }
}

static void report_threads(const struct to_model *model, const struct to_event *ev,
                           const struct watched *watched, struct to_effects *out) {
  for (int i = 0; i < TO_THREAD_CHANGES_MAX; i++) {
    struct thread *t = watched->m[i] == TO_NONE ? NULL : find(&model->threads, watched->m[i]);
    if (t == NULL) continue;
    enum to_thread_state now = thread_state(model, t);
    if (now == watched->was[i]) continue;
    out->thread[out->threads++] =
        (struct to_thread_change){ .m = t->id,
                                   .g = t->g,
                                   .from = watched->was[i],
                                   .to = now,
                                   .lasted_ns = (uint64_t)ev->time - (uint64_t)t->since,
                                   .lower_bound = t->lower_bound };
    t->since = ev->time;
    t->lower_bound = false;
  }
}

static void report_generation(struct to_model *model, const struct to_generation *gen,
                              struct to_effects *out) {
  out->generation_ends = model->in_gen;
  model->in_gen = gen == NULL ? TB_NO_GEN : to_generation_number(gen);
  out->generation_begins = model->in_gen;
  out->gomaxprocs = model->gomaxprocs;
}

tb_rc to_model_event(struct to_model *model, const struct to_generation *gen,
                     const struct to_event *ev, struct to_effects *out) {
  struct to_duration lasted;
  struct to_transition tr;
  struct watched watched;

  TB_TRY(to_durations_event(&model->durations, ev, &lasted));
  *out = (struct to_effects){ .ends = lasted.known,
                              .lasted_ns = lasted.ns,
                              .lower_bound = lasted.lower_bound,
                              .stolen_from = TO_NONE };
  tb_mem_give(model->mem, model->last_label, model->last_label_len);
  model->last_label = NULL;
  model->last_label_len = 0;
  switch (to_event_kind(ev)) {
  case TO_KIND_TRANSITION:
    to_event_transition(ev, &tr);
    watch_threads(model, ev, &tr, &watched);
    TB_TRY(tr.resource == TO_RESOURCE_PROC ? move_proc(model, ev, &tr, out)
                                           : move_goroutine(model, gen, ev, &tr, out));
    report_threads(model, ev, &watched, out);
    break;
  case TO_KIND_METRIC:
    if (to_event_metric(ev) == TO_METRIC_GOMAXPROCS)
      model->gomaxprocs = out->gomaxprocs = ev->args[0];
    break;
  case TO_KIND_SYNC: report_generation(model, gen, out); break;
  case TO_KIND_STACK_SAMPLE: out->context_mismatch = is_mismatch(model, ev); break;
  case TO_KIND_LABEL: {
    struct goroutine *g = find(&model->goroutines, ev->g);
    struct to_string text;
    if (g != NULL && gen != NULL && to_generation_string(gen, ev->args[0], &text))
      TB_TRY(set_label(model, g, text));
    break;
  }
  default: break;
  }
  const struct goroutine *g = ev->g == TO_NONE ? NULL : find(&model->goroutines, ev->g);
  if (model->last_label_len > 0)
    out->label = (struct to_string){ model->last_label, model->last_label_len };
  else if (g != NULL && g->label_len > 0)
    out->label = (struct to_string){ g->label, g->label_len };
  return TB_OK;
}

_Static_assert((int)TO_GO_UNDETERMINED == (int)TO_PROC_UNDETERMINED, "watch_threads takes either");

/* --- questions ----------------------------------------------------------------------------------- */

static void describe(const struct to_model *model, const struct goroutine *g,
                     struct to_goroutine *out) {
  const struct thread *t = g->m == TO_NONE ? NULL : find(&model->threads, g->m);

  *out = (struct to_goroutine){ .id = g->id,
                                .state = (enum to_go_state)g->state,
                                .m = g->m,
                                .p = t == NULL ? TO_NONE : t->p,
                                .reason = (enum to_reason)g->reason,
                                .blocked = g->blocked,
                                .label = { g->label, g->label_len } };
  (void)to_durations_state(&model->durations, g->id, &out->since, &out->lower_bound);
}

bool to_model_goroutine(const struct to_model *model, int64_t id, struct to_goroutine *out) {
  const struct goroutine *g = find(&model->goroutines, id);

  if (g != NULL) describe(model, g, out);
  return g != NULL;
}

bool to_model_next_goroutine(const struct to_model *model, size_t *pos, struct to_goroutine *out) {
  uint64_t key, value;

  if (!tb_map_next(&model->goroutines, pos, &key, &value)) return false;
  describe(model, (const struct goroutine *)(uintptr_t)value, out);
  return true;
}

size_t to_model_goroutines(const struct to_model *model) {
  return model->goroutines.count;
}

bool to_model_thread(const struct to_model *model, int64_t id, struct to_thread_now *out) {
  const struct thread *t = find(&model->threads, id);

  if (t == NULL) return false;
  *out =
      (struct to_thread_now){ t->id, t->g, t->p, thread_state(model, t), t->since, t->lower_bound };
  return true;
}

bool to_model_proc(const struct to_model *model, int64_t id, struct to_proc_now *out) {
  const struct proc *p = find(&model->procs, id);
  struct to_thread_now thread;

  if (p == NULL) return false;
  *out = (struct to_proc_now){ p->id, p->m, (enum to_proc_state)p->state, false };
  if (p->m != TO_NONE && to_model_thread(model, p->m, &thread))
    out->syscall = thread.state == TO_THREAD_SYSCALL;
  return true;
}

bool to_model_range(const struct to_model *model, enum to_range_kind kind, int64_t id,
                    to_ns *out_since, bool *out_lower_bound) {
  return to_durations_range(&model->durations, kind, id, out_since, out_lower_bound);
}

uint64_t to_model_gomaxprocs(const struct to_model *model) {
  return model->gomaxprocs;
}
