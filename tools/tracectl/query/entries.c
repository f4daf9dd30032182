/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/entries.h"

#include <stdlib.h>
#include <string.h>

struct tk_life_entry {
  uint64_t life;
  const struct to_frame *frame;
  bool is_sure; /* from its creation, not the outermost frame of a stack */
};

static tb_rc make_room(struct tk_entries *e, uint32_t slot) {
  size_t room = e->room == 0 ? 256 : e->room;

  if (slot < e->room) return TB_OK;
  while (room <= slot) room *= 2;
  struct tk_life_entry *of = realloc(e->of, room * sizeof *of);
  if (of == NULL) return TB_NOMEM;
  memset(of + e->room, 0, (room - e->room) * sizeof *of);
  e->of = of;
  e->room = room;
  return TB_OK;
}

tb_rc tk_entries_look(struct tk_entries *e, const struct tk_pass *pass, const struct tk_span *at) {
  const struct to_span *span = at->span;
  bool is_life = span->kind == TO_SPAN_LIFE;

  if (span->life == 0 || (!is_life && span->kind != TO_SPAN_GOROUTINE)) return TB_OK;
  TB_TRY(make_room(e, span->slot));
  struct tk_life_entry *entry = &e->of[span->slot];
  if (entry->life != span->life) *entry = (struct tk_life_entry){ .life = span->life };
  if (entry->is_sure || (entry->frame != NULL && !is_life)) return TB_OK;
  uint32_t number = at->stack > TO_STACK_OTHER || is_life ? at->stack : at->end_stack;
  const struct to_frame *frame = to_callstack_entry(tk_pass_stack(pass, number), is_life);
  if (frame == NULL) return TB_OK;
  entry->is_sure = is_life;
  entry->frame = frame;
  return TB_OK;
}

const struct to_frame *tk_entries_find(const struct tk_entries *e, const struct tk_span *at) {
  uint32_t slot = at->span->slot;

  if (at->span->life == 0 || slot >= e->room) return NULL;
  return e->of[slot].life == at->span->life ? e->of[slot].frame : NULL;
}

void tk_entries_fini(struct tk_entries *e) {
  free(e->of);
}
