/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of stacks, cached in two levels. In a real trace thousands of events share a stack of 10 to 60 frames,
 * whose text is most of the output. If stacks differ (deep recursion), their frames are still a few thousand,
 * from which the text is put together. A full cache is emptied, so a million stacks need no more memory than a
 * thousand. */
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "online/event/generation.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/term/plain.h"

enum { CACHE_BYTES_MAX = 1 << 20, NEAR = 256 };

/* Texts by number, one after the other. */
struct cache {
  struct tb_map spans; /* number -> offset << 32 | length, in text */
  struct tb_buf text;
};

struct tk_stack_texts {
  bool plain;                  /* for a terminal */
  struct cache stacks, frames; /* by stack id; by program counter */
  struct {
    uint64_t id, span;
  } near[NEAR]; /* of `stacks`, by the low bits of the id; all zero: the empty stack */
};

static void cache_init(struct cache *cache, struct tb_mem *mem) {
  tb_map_init(&cache->spans, mem, tb_seed());
  tb_buf_init(&cache->text, mem);
}

static void cache_fini(struct cache *cache) {
  tb_map_fini(&cache->spans);
  tb_buf_fini(&cache->text);
}

static void cache_clear(struct cache *cache) {
  tb_map_clear(&cache->spans);
  tb_buf_clear(&cache->text);
}

static uint64_t span_from(const struct cache *cache, size_t from) {
  return (uint64_t)from << 32 | (cache->text.len - from);
}

tb_rc tk_printer_init(struct tk_printer *printer, struct tb_mem *mem, struct tk_out *out,
                      struct tb_diag *diag) {
  void *stacks = NULL;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct tk_stack_texts), &stacks));
  *printer = (struct tk_printer){ .out = out, .diag = diag, .stacks = stacks };
  printer->stacks->plain = isatty(out->fd);
  cache_init(&printer->stacks->stacks, mem);
  cache_init(&printer->stacks->frames, mem);
  to_allocfree_init(&printer->heap, mem);
  return TB_OK;
}

void tk_printer_fini(struct tk_printer *printer) {
  struct tk_stack_texts *texts = printer->stacks;

  if (texts == NULL) return;
  struct tb_mem *mem = texts->stacks.text.mem;
  cache_fini(&texts->stacks);
  cache_fini(&texts->frames);
  tb_mem_free(mem, texts, sizeof *texts);
  to_allocfree_fini(&printer->heap);
  *printer = (struct tk_printer){ 0 };
}

static void forget_stacks(struct tk_stack_texts *texts) {
  cache_clear(&texts->stacks);
  memset(texts->near, 0, sizeof texts->near);
}

void tk_stack_texts_forget(struct tk_printer *printer) {
  forget_stacks(printer->stacks);
  cache_clear(&printer->stacks->frames);
}

static char *append(char *at, struct to_string text) {
  memcpy(at, text.data, text.len);
  return at + text.len;
}

enum { FRAME_BYTES = 64 + TK_PEN_SLACK }; /* besides the two strings */

/* In a file names stay unchanged, as with Go's tool. */
static char *put_name(char *at, struct to_string name, bool plain) {
  char *end = append(at, name);

  return plain ? at + tk_plain(at, name.len) : end;
}

static tb_rc add_frame(struct tb_buf *text, const struct to_frame *frame, bool plain) {
  TB_TRY(tb_buf_reserve(text, frame->function.len + frame->file.len + FRAME_BYTES));
  char *at = (char *)text->data + text->len;
  at = put_name(TK_PEN(at, "\t"), frame->function, plain);
  at = tk_pen_hex(TK_PEN(at, " @ 0x"), frame->pc);
  at = put_name(TK_PEN(at, "\n\t\t"), frame->file, plain);
  at = tk_pen_u64(TK_PEN(at, ":"), frame->line);
  at = TK_PEN(at, "\n");
  text->len = (size_t)(at - (char *)text->data);
  return TB_OK;
}

/* Adds all frames of a stack to the cache. */
static tb_rc learn_frames(struct tk_stack_texts *texts, const struct to_generation *gen,
                          uint64_t id) {
  struct cache *frames = &texts->frames;
  struct to_stack_iter it;
  struct to_frame frame;

  if (frames->text.len > CACHE_BYTES_MAX) cache_clear(frames);
  if (!to_generation_stack(gen, id, &it)) return TB_NOTFOUND;
  while (to_stack_next(&it, &frame)) {
    size_t from = frames->text.len;
    uint64_t *span;
    bool fresh;
    TB_TRY(tb_map_put(&frames->spans, frame.pc, &span, &fresh));
    if (!fresh) continue;
    TB_TRY(add_frame(&frames->text, &frame, texts->plain));
    *span = span_from(frames, from);
  }
  return TB_OK;
}

static tb_rc add_stack(struct tk_stack_texts *texts, const struct to_generation *gen, uint64_t id) {
  struct cache *stacks = &texts->stacks, *frames = &texts->frames;
  uint64_t pcs[TW_STACK_FRAMES_MAX];
  size_t n = to_stack_pcs(gen, id, pcs, TW_STACK_FRAMES_MAX);

  for (size_t i = 0; i < n; i++) {
    const uint64_t *span = tb_map_find(&frames->spans, pcs[i]);
    if (span == NULL) {
      TB_TRY(learn_frames(texts, gen, id));
      span = tb_map_find(&frames->spans, pcs[i]);
    }
    tb_buf_add(&stacks->text, frames->text.data + (*span >> 32), (size_t)(*span & UINT32_MAX));
  }
  return stacks->text.rc;
}

static tb_rc find_stack(struct tk_stack_texts *texts, const struct to_generation *gen, uint64_t id,
                        uint64_t *out_span) {
  struct cache *stacks = &texts->stacks;
  struct to_stack_iter it;
  uint64_t *span;
  bool fresh;

  if (stacks->text.len > CACHE_BYTES_MAX) forget_stacks(texts);
  TB_TRY(tb_map_put(&stacks->spans, id, &span, &fresh));
  if (fresh) {
    size_t from = stacks->text.len;
    tb_rc rc = to_generation_stack(gen, id, &it) ? add_stack(texts, gen, id) : TB_NOTFOUND;
    if (rc != TB_OK) {
      tb_map_remove(&stacks->spans, id);
      return rc;
    }
    *span = span_from(stacks, from);
  }
  *out_span = *span;
  return TB_OK;
}

tb_rc tk_stack_text(struct tk_printer *printer, const struct to_generation *gen, uint64_t id,
                    const unsigned char **out_text, size_t *out_len) {
  struct tk_stack_texts *texts = printer->stacks;
  uint64_t span = texts->near[id % NEAR].span;

  if (texts->near[id % NEAR].id != id) {
    TB_TRY(find_stack(texts, gen, id, &span));
    texts->near[id % NEAR].id = id;
    texts->near[id % NEAR].span = span;
  }
  *out_text = texts->stacks.text.data + (span >> 32);
  *out_len = (size_t)(span & UINT32_MAX);
  return TB_OK;
}
