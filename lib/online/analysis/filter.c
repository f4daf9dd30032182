/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/filter.h"

#include <string.h>

#include "wire/experiments.h"

/* Prefixes each name of a row; the longest row has sixteen. */
#define N1(a)      TW_EV_##a,
#define N2(a, ...) N1(a) __VA_OPT__(N1(__VA_ARGS__))
#define N3(a, ...) N1(a) __VA_OPT__(N2(__VA_ARGS__))
#define N4(a, ...) N1(a) __VA_OPT__(N3(__VA_ARGS__))
#define N5(a, ...) N1(a) __VA_OPT__(N4(__VA_ARGS__))
#define N6(a, ...) N1(a) __VA_OPT__(N5(__VA_ARGS__))
#define N7(a, ...) N1(a) __VA_OPT__(N6(__VA_ARGS__))
#define N8(a, ...) N1(a) __VA_OPT__(N7(__VA_ARGS__))
#define N9(a, ...) N1(a) __VA_OPT__(N8(__VA_ARGS__))
#define NA(a, ...) N1(a) __VA_OPT__(N9(__VA_ARGS__))
#define NB(a, ...) N1(a) __VA_OPT__(NA(__VA_ARGS__))
#define NC(a, ...) N1(a) __VA_OPT__(NB(__VA_ARGS__))
#define ND(a, ...) N1(a) __VA_OPT__(NC(__VA_ARGS__))
#define NE(a, ...) N1(a) __VA_OPT__(ND(__VA_ARGS__))
#define NF(a, ...) N1(a) __VA_OPT__(NE(__VA_ARGS__))
#define NG(a, ...) N1(a) __VA_OPT__(NF(__VA_ARGS__))

/* Events of the program's own experiments have no names here. */
#define TW_EV_OWN TW_OWN_EVENT_FIRST

#define TO_KIND(name, about, ...) { name, about, (const uint8_t[]){ NG(__VA_ARGS__) 0 } },
const struct to_kind to_kinds[] = {
#include "online/event/kinds.def"
};
#undef TO_KIND
#undef TW_EV_OWN
const size_t to_kinds_count = sizeof to_kinds / sizeof to_kinds[0];

static void add_type(struct to_filter *f, unsigned type) {
  unsigned last = type == TW_OWN_EVENT_FIRST ? UINT8_MAX : type;

  for (; type <= last; type++) f->types[type >> 6] |= UINT64_C(1) << (type & 63);
}

void to_filter_none(struct to_filter *f) {
  *f = (struct to_filter){ .goroutine = TO_NONE };
}

void to_filter_all(struct to_filter *f) {
  to_filter_none(f);
  memset(f->types, 0xff, sizeof f->types);
}

bool to_filter_add(struct to_filter *f, const char *kind) {
  for (size_t i = 0; i < to_kinds_count; i++) {
    if (strcmp(kind, to_kinds[i].name) != 0) continue;
    for (const uint8_t *type = to_kinds[i].types; *type != 0; type++) add_type(f, *type);
    return true;
  }
  enum tw_event type = tw_spec_find(kind, strlen(kind));
  if (type == TW_EV_NONE) return false;
  add_type(f, type);
  return true;
}

bool to_event_concerns(const struct to_event *ev, int64_t goroutine) {
  const struct tw_spec *spec = tw_spec(ev->type);

  if (ev->g == goroutine) return true;
  return spec->kind == TW_KIND_TIMED && spec->nargs > 0 && spec->args[0].type == TW_ARG_G &&
         (int64_t)ev->args[0] == goroutine;
}
