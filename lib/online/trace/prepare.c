/* SPDX-License-Identifier: Apache-2.0 */
#include "online/trace/prepare.h"

#include "online/order/generation_builder.h"
#include "online/trace/prepared.h"

struct to_prepare {
  struct tb_mem *mem;
  bool frames; /* make the table of frames, too */
  struct to_builder builder;
  struct tb_diag diag;   /* kept from generation to generation, as a reader's */
  struct to_prepared *p; /* the current generation */
};

tb_rc to_prepare_new(struct tb_mem *mem, const struct to_limits *limits, unsigned flags,
                     struct to_prepare **out) {
  struct to_prepare *prepare;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_prepare), &prepare));
  prepare->mem = mem;
  tb_diag_clear(&prepare->diag);
  prepare->frames = (flags & TO_READER_FRAMES) != 0;
  to__builder_init(&prepare->builder, mem, (flags & TO_READER_BYTES_STAY) != 0,
                   limits == NULL ? 0 : limits->generation_bytes_max);
  *out = prepare;
  return TB_OK;
}

void to_prepare_free(struct to_prepare *prepare) {
  if (prepare == NULL) return;
  to__builder_fini(&prepare->builder);
  tb_mem_free(prepare->mem, prepare, sizeof *prepare);
}

tb_rc to_prepared_new(struct tb_mem *mem, struct to_prepared **out) {
  struct to_prepared *p;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_prepared), &p));
  p->mem = mem;
  to__generation_init(&p->gen, mem);
  *out = p;
  return TB_OK;
}

void to_prepared_free(struct to_prepared *prepared) {
  if (prepared == NULL) return;
  to__generation_fini(&prepared->gen);
  tb_mem_free(prepared->mem, prepared, sizeof *prepared);
}

bool to_prepared_is_last(const struct to_prepared *prepared) {
  return prepared->rc != TB_AGAIN;
}

uint64_t to_prepared_upto(const struct to_prepared *prepared) {
  return prepared->upto;
}

static tb_rc settle(struct to_prepare *prepare, tb_rc rc) {
  struct to_prepared *p = prepare->p;

  if (rc == TB_OK) return TB_OK;
  if (rc == TB_AGAIN && prepare->frames) {
    tb_rc frames_rc = to__frames_make(&p->gen);
    (void)frames_rc; /* stored in the generation, and reported when a stack is read */
  }
  p->rc = rc;
  p->diag = prepare->diag;
  p->headless = prepare->builder.headless;
  p->version = prepare->builder.version;
  p->upto = prepare->builder.split.offset;
  return TB_AGAIN;
}

tb_rc to_prepare_begin(struct to_prepare *prepare, struct to_prepared *p) {
  prepare->p = p;
  p->rc = TB_OK;
  to__generation_clear(&p->gen);
  return settle(prepare, to__builder_next(&prepare->builder, &p->gen, &prepare->diag));
}

tb_rc to_prepare_feed(struct to_prepare *prepare, const void *bytes, size_t n, size_t *out_used) {
  struct to_prepared *p = prepare->p;

  return settle(
      prepare, to__builder_feed(&prepare->builder, &p->gen, &prepare->diag, bytes, n, n, out_used));
}

tb_rc to_prepare_finish(struct to_prepare *prepare) {
  struct to_prepared *p = prepare->p;

  return settle(prepare, to__builder_finish(&prepare->builder, &p->gen, &prepare->diag));
}

void to_prepare_fail(struct to_prepare *prepare, tb_rc rc) {
  (void)settle(prepare, rc);
}
