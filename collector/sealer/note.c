/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the log: another thread writes them. */
#include <stdarg.h>
#include <stdio.h>

#include "collector/sealer/private.h"

void tc__note_at(struct tc_sealer *sealer, struct tc_log_site *site, enum tc_level level,
                 uint32_t ref, const char *fmt, ...) {
  char text[512];
  va_list args;

  if (sealer->opt.sink.note == NULL) return;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  sealer->opt.sink.note(sealer->opt.sink.self, &(struct tc_note){ site, level, ref, fmt, text });
}
