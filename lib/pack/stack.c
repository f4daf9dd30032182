/* SPDX-License-Identifier: Apache-2.0 */
/* Not in text.c, so that a program that only packs reports does not link generations. */
#include "pack/text.h"

tb_rc tp_copy_stack(struct tb_arena *arena, const struct to_generation *gen, uint64_t id,
                    size_t *out_n, Tracecollect__V1__Frame ***out) {
  size_t most = to_stack_length(gen, id), n = 0;
  Tracecollect__V1__Frame *frames, **list;
  struct to_stack_iter it;
  struct to_frame frame;

  TP_TAKE(arena, Tracecollect__V1__Frame, most, frames);
  TP_TAKE(arena, Tracecollect__V1__Frame *, most, list);
  if (to_generation_stack_own(gen, id, &it)) {
    for (; n < most && to_stack_next(&it, &frame); n++) {
      list[n] = &frames[n];
      tracecollect__v1__frame__init(&frames[n]);
      TB_TRY(tp_copy_text(arena, frame.function, &frames[n].function));
      TB_TRY(tp_copy_text(arena, frame.file, &frames[n].file));
      frames[n].line = frame.line;
      frames[n].pc = frame.pc;
    }
  }
  *out_n = n;
  *out = list;
  return TB_OK;
}
