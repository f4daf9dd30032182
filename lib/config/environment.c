/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that are set by environment variables. A name is made from a key, never a key from a name: keys may contain "_", too.
 * A test checks that no two keys have the same variable. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "config/internal.h"

#define PREFIX "TRACECOLLECTD_SET_"

void tc_config_variable(const struct tc_config_key *key, char out[TC_VARIABLE_BYTES]) {
  int n = snprintf(out, TC_VARIABLE_BYTES, PREFIX "%s", key->name);

  for (char *c = out + sizeof PREFIX - 1; c < out + n; c++)
    *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
}

static const struct tc_config_key *key_of(const char *variable) {
  char name[TC_VARIABLE_BYTES];

  for (size_t i = 0; i < tc_config_keys_count; i++) {
    tc_config_variable(&tc_config_keys[i], name);
    if (strcmp(name, variable) == 0) return &tc_config_keys[i];
  }
  return NULL;
}

static tb_rc unknown(const char *variable, struct tb_diag *diag) {
  char name[TC_VARIABLE_BYTES], nearest[TC_VARIABLE_BYTES];
  size_t best = SIZE_MAX;

  for (size_t i = 0; i < tc_config_keys_count; i++) {
    tc_config_variable(&tc_config_keys[i], name);
    size_t distance = tb_nearest_distance(variable, name);
    if (distance >= best) continue;
    best = distance;
    memcpy(nearest, name, sizeof nearest);
  }
  if (best > 1 + strlen(variable + sizeof PREFIX - 1) / 4)
    return tb_fail(diag, TB_BROKEN,
                   "environment: %.80s: unknown key (tracecollectd --print-default-config prints "
                   "all)",
                   variable);
  return tb_fail(diag, TB_BROKEN, "environment: %.80s: unknown key; did you mean %s?", variable,
                 nearest);
}

static tb_rc take_entry(struct tc_config *config, const char *entry, struct tb_diag *diag) {
  const char *equals = strchr(entry, '=');
  char variable[128];

  if (equals == NULL || strncmp(entry, PREFIX, sizeof PREFIX - 1) != 0) return TB_OK;
  snprintf(variable, sizeof variable, "%.*s", (int)(equals - entry), entry);
  const struct tc_config_key *key = key_of(variable);
  if (key == NULL) return unknown(variable, diag);
  return tc__config_assign(config, key, equals + 1, (struct tc__origin){ variable, 0 }, diag);
}

tb_rc tc_config_environment(struct tc_config *config, const char *const *environment,
                            struct tb_diag *diag) {
  for (; *environment != NULL; environment++) TB_TRY(take_entry(config, *environment, diag));
  return TB_OK;
}
