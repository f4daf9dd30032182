/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/spec.h"

#include <string.h>

#define A(type, label)                                                                             \
  { TW_ARG_##type, label }
#define NARGS(...) (sizeof((struct tw_arg[]){ { 0 }, __VA_ARGS__ }) / sizeof(struct tw_arg) - 1)
#define TW_EV(num, ID, nm, snc, knd, opn, ...)                                                     \
  [num] = { .name = (nm),                                                                          \
            .since = (snc),                                                                        \
            .kind = TW_KIND_##knd,                                                                 \
            .opens = TW_EV_##opn,                                                                  \
            .args = { __VA_ARGS__ },                                                               \
            .nargs = NARGS(__VA_ARGS__) },
const struct tw_spec tw_specs[UINT8_MAX + 1] = {
#include "wire/events.def"
};
#undef TW_EV
#undef A

enum tw_event tw_spec_find(const char *name, size_t len) {
  for (unsigned i = 1; i < TW_EV_LIMIT; i++) {
    const char *have = tw_specs[i].name;
    if (have != NULL && strlen(have) == len && memcmp(have, name, len) == 0)
      return (enum tw_event)i;
  }
  return TW_EV_NONE;
}

struct version_row {
  unsigned version, events_end;
};
static const struct version_row versions[] = {
  { 22, TW_EV_USER_LOG + 1 },
  { 23, TW_EV_EXPERIMENTAL_BATCH + 1 },
  { 25, TW_EV_CLOCK_SNAPSHOT + 1 },
  { 26, TW_EV_LIMIT },
};

unsigned tw_version_events_end(unsigned version) {
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
    if (versions[i].version == version) return versions[i].events_end;
  return 0;
}

bool tw_version_known(unsigned version) {
  return tw_version_events_end(version) != 0;
}

const char *tw_experiment_name(uint8_t experiment) {
  static const char *const names[TW_EXPERIMENTS] = { "None", "AllocFree" };

  return experiment < TW_EXPERIMENTS ? names[experiment] : NULL;
}
