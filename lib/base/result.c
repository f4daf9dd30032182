/* SPDX-License-Identifier: Apache-2.0 */
#include "base/result.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void tb_diag_clear(struct tb_diag *diag) {
  *diag = (struct tb_diag){ .gen = TB_NO_GEN, .thread = TB_NO_THREAD, .offset = TB_NO_OFFSET };
}

tb_rc tb_fail(struct tb_diag *diag, tb_rc rc, const char *fmt, ...) {
  if (diag == NULL || diag->rc != TB_OK) return rc;

  va_list args;
  va_start(args, fmt);
  vsnprintf(diag->text, sizeof diag->text, fmt, args);
  va_end(args);
  diag->rc = rc;
  return rc;
}

void tb_diag_place(struct tb_diag *diag, uint64_t gen, int64_t thread, uint64_t offset) {
  if (diag == NULL || diag->rc != TB_OK) return;
  diag->gen = gen;
  diag->thread = thread;
  diag->offset = offset;
}

/* Each place is followed by ", ", the last by ": ". */
int tb_diag_format(const struct tb_diag *diag, char *out, size_t out_bytes) {
  const char *after_thread = diag->offset != TB_NO_OFFSET ? ", " : ": ";
  const char *after_gen = diag->thread != TB_NO_THREAD ? ", " : after_thread;
  char gen[40] = "", thread[40] = "", offset[40] = "";

  if (diag->gen != TB_NO_GEN)
    snprintf(gen, sizeof gen, "generation %" PRIu64 "%s", diag->gen, after_gen);
  if (diag->thread != TB_NO_THREAD)
    snprintf(thread, sizeof thread, "thread %" PRId64 "%s", diag->thread, after_thread);
  if (diag->offset != TB_NO_OFFSET)
    snprintf(offset, sizeof offset, "offset %" PRIu64 ": ", diag->offset);
  return snprintf(out, out_bytes, "%s%s%s%s", gen, thread, offset, diag->text);
}

struct result_row {
  tb_rc rc;
  enum tb_class cls;
  const char *name;
  const char *text;
};

#define TB_RESULT(name, num, cls, text) { TB_##name, TB_##cls, #name, text },
static const struct result_row rows[] = {
#include "base/result.def"
};
#undef TB_RESULT

static const struct result_row *find_row(tb_rc rc) {
  static const struct result_row unknown = { TB_IO, TB_HOST, "UNKNOWN", "unknown result" };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].rc == rc) return &rows[i];
  return &unknown;
}

const char *tb_rc_name(tb_rc rc) {
  return find_row(rc)->name;
}
const char *tb_rc_text(tb_rc rc) {
  return find_row(rc)->text;
}
enum tb_class tb_rc_class(tb_rc rc) {
  return find_row(rc)->cls;
}
