/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that tc_config_finish() checks against each other have the same APPLIES, so that no unchecked combination comes
 * into use. */
#include <stdlib.h>
#include <string.h>

#include "config/table.h"

static bool differs(const struct tc_config_key *key, const void *a, const void *b) {
  switch (key->type) {
  case TC_TYPE_STRING:
  case TC_TYPE_URLS: return strcmp(*(char *const *)a, *(char *const *)b) != 0;
  case TC_TYPE_BOOL: return *(const atomic_bool *)a != *(const atomic_bool *)b;
  default: return *(const _Atomic uint64_t *)a != *(const _Atomic uint64_t *)b;
  }
}

/* Texts are swapped: tc_config_fini() of the fresh configuration frees the old text. */
static void take_over(const struct tc_config_key *key, void *to, void *from) {
  switch (key->type) {
  case TC_TYPE_STRING: {
    char *old = *(char **)to;
    *(char **)to = *(char **)from;
    *(char **)from = old;
    break;
  }
  case TC_TYPE_BOOL: *(atomic_bool *)to = *(const atomic_bool *)from; break;
  default: *(_Atomic uint64_t *)to = *(const _Atomic uint64_t *)from;
  }
}

void tc_config_reload(struct tc_config *running, struct tc_config *fresh,
                      void (*changed)(void *self, const char *key, bool applied), void *self) {
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    void *ours = (char *)running + key->offset;
    void *theirs = (char *)fresh + key->offset;

    if (!differs(key, ours, theirs)) continue;
    if (key->reloads) take_over(key, ours, theirs);
    changed(self, key->name, key->reloads);
  }
}
