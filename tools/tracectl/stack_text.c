/* SPDX-License-Identifier: Apache-2.0 */
/* Stack text, cached: in a real trace thousands of events share one stack of 10 to 60 frames, and
 * their text is most of the output. When the cache is full it is simply begun anew, so that a trace
 * with a million stacks costs no more memory than one with a thousand. */
#include <string.h>

#include "base/map.h"
#include "online/generation.h"
#include "tools/tracectl/print.h"

enum { CACHE_BYTES_MAX = 8 << 20 };

struct tk_stack_texts {
  struct tb_map spans; /* stack id -> offset << 32 | length, in text */
  struct tb_buf text;
};

tb_rc tk_printer_init(struct tk_printer *printer, struct tb_mem *mem, struct tk_out *out,
                      struct tb_diag *diag) {
  void *stacks = NULL;

  TB_TRY(tb_mem_take(mem, sizeof(struct tk_stack_texts), &stacks));
  *printer = (struct tk_printer){ .out = out, .diag = diag, .stacks = stacks };
  tb_map_init(&printer->stacks->spans, mem, (uint64_t)(uintptr_t)stacks);
  tb_buf_init(&printer->stacks->text, mem);
  return TB_OK;
}

void tk_printer_fini(struct tk_printer *printer) {
  struct tk_stack_texts *stacks = printer->stacks;

  if (stacks == NULL) return;
  struct tb_mem *mem = stacks->text.mem;
  tb_map_fini(&stacks->spans);
  tb_buf_fini(&stacks->text);
  tb_mem_give(mem, stacks, sizeof *stacks);
  *printer = (struct tk_printer){ 0 };
}

static unsigned char *put(unsigned char *at, const char *bytes, size_t n) {
  memcpy(at, bytes, n);
  return at + n;
}

static tb_rc add_frame(struct tb_buf *text, const struct to_frame *frame) {
  char digits[20], *end = digits + sizeof digits, *begin;

  TB_TRY(tb_buf_reserve(text, frame->function.len + frame->file.len + 64));
  unsigned char *at = text->data + text->len;
  at = put(at, "\t", 1);
  at = put(at, frame->function.data, frame->function.len);
  at = put(at, " @ 0x", 5);
  begin = tk_hexadecimal(end, frame->pc);
  at = put(at, begin, (size_t)(end - begin));
  at = put(at, "\n\t\t", 3);
  at = put(at, frame->file.data, frame->file.len);
  at = put(at, ":", 1);
  begin = tk_decimal(end, frame->line);
  at = put(at, begin, (size_t)(end - begin));
  at = put(at, "\n", 1);
  text->len = (size_t)(at - text->data);
  return TB_OK;
}

tb_rc tk_stack_text(struct tk_printer *printer, const struct to_generation *gen, uint64_t id,
                    const unsigned char **out_text, size_t *out_len) {
  struct tk_stack_texts *stacks = printer->stacks;
  struct tb_buf *text = &stacks->text;
  uint64_t *span;
  bool fresh;

  /* Another generation may stand at the same address: its number tells. */
  if (printer->gen != to_generation_number(gen) || text->len > CACHE_BYTES_MAX) {
    tb_map_clear(&stacks->spans);
    tb_buf_clear(text);
    printer->gen = to_generation_number(gen);
  }
  TB_TRY(tb_map_put(&stacks->spans, id, &span, &fresh));
  if (fresh) {
    struct to_stack_iter it;
    struct to_frame frame;
    size_t from = text->len;

    if (!to_generation_stack(gen, id, &it)) {
      tb_map_remove(&stacks->spans, id);
      return TB_NOTFOUND;
    }
    while (to_stack_next(&it, &frame)) TB_TRY(add_frame(text, &frame));
    *span = (uint64_t)from << 32 | (text->len - from);
  }
  *out_text = text->data + (*span >> 32);
  *out_len = (size_t)(*span & UINT32_MAX);
  return TB_OK;
}
