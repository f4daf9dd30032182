/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/generation/settings.h"

#include <stddef.h>
#include <string.h>

#include "agent/api/forward.h"
#include "agent/emit/events/experiments.h"
#include "agent/emit/generation/flusher.h"
#include "agent/emit/generation/samples.h"
#include "agent/emit/stacks/frames.h"

enum {
  FIRST_BYTES =
      offsetof(struct ta_emit_config, allocfree) + sizeof(int), /* size of the struct in 0.1.0 */
  PERIOD_MS_MAX = 60000,
  GENERATION_BYTES_MIN = 64 << 10,
};

struct ta_emit_config ta_emit_config_of(const struct ta_emit_config *config) {
  struct ta_emit_config all = { 0 };
  size_t size = config == NULL ? 0 : config->size == 0 ? FIRST_BYTES : config->size;

  if (config != NULL) memcpy(&all, config, size < sizeof all ? size : sizeof all);
  return all;
}

int ta_emit_config_check(const struct ta_emit_config *c) {
  static const unsigned versions[] = { 22, 23, 25, 26 };
  bool known = c->version == 0;

  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    if (c->version == versions[i]) known = true;
  if (!known) return ta_forward_fault(TA_E_CONFIG, "version is not 22, 23, 25 or 26");
  if (c->generation_ms != 0 &&
      (c->generation_ms < TA_PERIOD_MS_MIN || c->generation_ms > PERIOD_MS_MAX))
    return ta_forward_fault(TA_E_CONFIG, "generation_ms is not 50 to 60000");
  if (c->generation_bytes != 0 && c->generation_bytes < GENERATION_BYTES_MIN)
    return ta_forward_fault(TA_E_CONFIG, "generation_bytes is below 65536");
  if (c->stack_depth > TA_FRAMES_MAX)
    return ta_forward_fault(TA_E_CONFIG, "stack_depth is above 128");
  if (c->samples_hz > TA_SAMPLES_HZ_MAX)
    return ta_forward_fault(TA_E_CONFIG, "samples_hz is above 1000");
  if (c->allocfree != 0 && c->version != 0 && c->version < TA_FIRST_VERSION_WITH_EXPERIMENTS)
    return ta_forward_fault(TA_E_CONFIG, "allocfree needs version 23 or later");
  return TA_OK;
}
