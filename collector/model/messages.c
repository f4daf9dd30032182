/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/model/messages.h"

#include <stdlib.h>

struct tc_submit *tc_submit_new(enum tc_submit_kind kind) {
  struct tc_submit *msg = calloc(1, sizeof *msg);

  if (msg != NULL) msg->kind = kind;
  return msg;
}

void tc_submit_free(struct tc_submit *msg) {
  if (msg == NULL) return;
  if (msg->kind == TC_SUBMIT_RECORD && msg->record != NULL) msg->record->free(msg->record);
  free(msg);
}
