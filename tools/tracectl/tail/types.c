/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/tail/types.h"

#include <string.h>

#include "online/event/event.h"

/* Control characters would move the terminal's cursor. */
static bool is_plain(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

  return name[0] != '\0' && name[strspn(name, letters)] == '\0';
}

static void read_type(struct tk_tail_types *types, const Tracecollect__V1__EventType *from) {
  if (from->type < TW_OWN_EVENT_FIRST || from->type > UINT8_MAX) return;
  if (!is_plain(from->name) || !is_plain(from->experiment) || from->n_args > TW_TIMED_ARGS_MAX)
    return;
  for (size_t i = 0; i < from->n_args; i++)
    if (!is_plain(from->args[i])) return;
  struct tw_spec *spec = &types->own[from->type - TW_OWN_EVENT_FIRST];
  *spec = (struct tw_spec){ .name = from->name,
                            .nargs = (uint8_t)from->n_args,
                            .kind = TW_KIND_EXPERIMENT };
  for (size_t i = 0; i < from->n_args; i++)
    spec->args[i] = (struct tw_arg){ tw_arg_type_of(from->args[i]), from->args[i] };
  types->experiment[from->type - TW_OWN_EVENT_FIRST] = from->experiment;
}

void tk_tail_types_read(struct tk_tail_types *types, const Tracecollect__V1__EventBundle *b) {
  memset(types, 0, sizeof *types);
  for (size_t i = 0; i < b->n_types; i++) read_type(types, b->types[i]);
}

const struct tw_spec *tk_tail_spec(const struct tk_tail_types *types, uint32_t type) {
  if (type > UINT8_MAX) return NULL;
  const struct tw_spec *spec =
      type < TW_OWN_EVENT_FIRST ? tw_spec((uint8_t)type) : &types->own[type - TW_OWN_EVENT_FIRST];
  return spec->name == NULL ? NULL : spec;
}

const char *tk_tail_experiment(const struct tk_tail_types *types, uint32_t type) {
  if (type >= TW_OWN_EVENT_FIRST) return types->experiment[type - TW_OWN_EVENT_FIRST];
  return tw_spec((uint8_t)type)->kind == TW_KIND_EXPERIMENT
             ? tw_experiment_name(TW_EXPERIMENT_ALLOC_FREE)
             : NULL;
}

unsigned tk_tail_args(const struct tk_tail_types *types, uint8_t type) {
  enum tw_arg_type ignored[TW_TIMED_ARGS_MAX];

  return type < TW_OWN_EVENT_FIRST ? to_event_args(type, ignored)
                                   : types->own[type - TW_OWN_EVENT_FIRST].nargs;
}
