/* SPDX-License-Identifier: Apache-2.0 */
/* Collapsed stacks for flame graphs, a line a stack: "main.main;main.serve;read 42", outermost frame first. The number counts
 * CPU samples, or nanoseconds that goroutines were in one state there. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/term/tracectl.h"

struct collapsed {
  FILE *file;
  enum tk_stacks_of of;
  uint64_t lines;
  struct tb_map weight; /* by stack */
};

static uint64_t weight_of(enum tk_stacks_of of, const struct to_span *span) {
  static const uint8_t states[] = { [TK_STACKS_OF_WAITING] = TO_GO_WAITING,
                                    [TK_STACKS_OF_RUNNABLE] = TO_GO_RUNNABLE,
                                    [TK_STACKS_OF_SYSCALL] = TO_GO_SYSCALL };

  if (of == TK_STACKS_OF_SAMPLES) return span->kind == TO_SPAN_SAMPLE;
  if (span->kind != TO_SPAN_GOROUTINE || span->state != states[of]) return 0;
  return (uint64_t)(span->until - span->from);
}

/* Replaces spaces and semicolons, which separate stack and frames. */
static void put_function(FILE *file, struct to_string function) {
  for (size_t i = 0; i < function.len; i++) {
    unsigned char byte = (unsigned char)function.data[i];
    putc(byte <= ' ' || byte == ';' || byte == 0x7f ? '_' : byte, file);
  }
}

static tb_rc collapsed_open(void *self, FILE *file, const struct tk_format_options *options) {
  struct collapsed *c = self;

  c->file = file;
  c->of = options->stacks;
  c->lines = 0;
  tb_map_init(&c->weight, &tk_mem, tb_seed());
  return TB_OK;
}

static tb_rc collapsed_begin(void *self, const struct tk_stream *s) {
  (void)s;
  tb_map_clear(&((struct collapsed *)self)->weight);
  return TB_OK;
}

static tb_rc collapsed_span(void *self, const struct tk_stream *s, const struct tk_span *at) {
  struct collapsed *c = self;
  uint64_t weight = weight_of(c->of, at->span), *sum;

  (void)s;
  if (weight == 0) return TB_OK;
  TB_TRY(tb_map_put(&c->weight, at->stack, &sum, NULL));
  *sum += weight;
  return TB_OK;
}

static tb_rc collapsed_end(void *self, const struct tk_stream *s) {
  struct collapsed *c = self;
  uint64_t number, sum;

  for (size_t i = 0; tb_map_next(&c->weight, &i, &number, &sum);) {
    const struct to_callstack *stack = tk_pass_stack(s->pass, (uint32_t)number);
    if (stack == NULL || stack->len == 0) fputs("no_stack", c->file);
    for (size_t f = stack == NULL ? 0 : stack->len; f-- > 0;) {
      put_function(c->file, stack->frames[f]->function);
      if (f > 0) putc(';', c->file);
    }
    fprintf(c->file, " %" PRIu64 "\n", sum);
    c->lines++;
  }
  return ferror(c->file) ? TB_IO : TB_OK;
}

static tb_rc collapsed_close(void *self) {
  const struct collapsed *c = self;

  if (c->lines == 0 && c->of == TK_STACKS_OF_SAMPLES)
    tk_note("convert", "no CPU samples in it, so no stacks: try --of waiting");
  else if (c->lines == 0)
    tk_note("convert", "no goroutine was in that state, so no stacks: try another --of");
  return TB_OK;
}

static void collapsed_fini(void *self) {
  tb_map_fini(&((struct collapsed *)self)->weight);
}

const struct tk_format tk_format_collapsed = {
  .name = "collapsed",
  .about = "stacks for flame graphs, a line each: --of samples, waiting, runnable, syscall",
  .bytes = sizeof(struct collapsed),
  .open = collapsed_open,
  .begin = collapsed_begin,
  .span = collapsed_span,
  .end = collapsed_end,
  .close = collapsed_close,
  .fini = collapsed_fini,
};
