/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/loss.h"

#include <stddef.h>

#include "proto/frame.pb-c.h"

#define LOSS(name) [TRACECOLLECT__V1__LOSS_REASON__LOSS_##name]

static const char *const texts[] = {
  LOSS(UNKNOWN) = "lost before it was sent",
  LOSS(SPOOL_FULL) =
      "the agent's spool was full: raise spool_bytes, or look at network and collector",
  LOSS(NOMEM) = "the agent could not allocate memory",
  LOSS(RATE_CAP) = "above the agent's rate cap: raise rate_bytes_s",
  LOSS(GENERATION_TOO_LARGE) = "larger than the agent's spool: raise spool_bytes",
  LOSS(DISABLED) = "the agent was turned off",
  LOSS(FORGOTTEN) = "acked, and lost by the collector",
  LOSS(DAMAGED) = "damaged in the collector's log",
  LOSS(NO_BATCH) = "the agent's memory for events was full: raise spool_bytes",
  LOSS(PAUSE) = "the program stopped the world for more than ten generations",
  LOSS(STUCK_THREAD) = "a thread did not leave the middle of an event",
};

const char *tp_loss_text(uint32_t reason) {
  const char *text = reason < sizeof texts / sizeof *texts ? texts[reason] : NULL;

  return text != NULL ? text : "dropped by the agent";
}
