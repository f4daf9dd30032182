/* SPDX-License-Identifier: Apache-2.0 */
/* Result codes, and messages about failures.
 *
 * A function that can fail returns a tb_rc. The message for people goes into a struct tb_diag that
 * the caller passes in at construction. It is filled where the fault is found; the first fault stays
 * until the owner clears it.
 */
#ifndef TB_RESULT_H
#define TB_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TB_RESULT(name, num, cls, text) TB_##name = (num),
typedef enum {
#include "base/result.def"
} tb_rc;
#undef TB_RESULT

enum tb_class { TB_PROGRESS, TB_PEER, TB_HOST };

#define TB_MUST              __attribute__((warn_unused_result))
#define TB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TB_LIKELY(x)         __builtin_expect(!!(x), 1)
#define TB_UNLIKELY(x)       __builtin_expect(!!(x), 0)

#define TB_TRY(expr)                                                                               \
  do {                                                                                             \
    tb_rc try_rc_ = (expr);                                                                        \
    if (try_rc_ != TB_OK) return try_rc_;                                                          \
  } while (0)

/* TB_CLEANUP(x_freep) struct x *x = NULL; ... *out = TB_MOVE(x); */
#define TB_CLEANUP(fn) __attribute__((cleanup(fn)))
#define TB_MOVE(ptr)                                                                               \
  ({                                                                                               \
    __typeof__(ptr) moved_ = (ptr);                                                                \
    (ptr) = NULL;                                                                                  \
    moved_;                                                                                        \
  })

#define TB_NO_GEN    UINT64_C(0) /* generation numbers start at 1 */
#define TB_NO_OFFSET UINT64_MAX  /* offsets count bytes of the trace, header included */
#define TB_NO_THREAD INT64_C(-1)

/* The place and the reason of a failure, for people. */
struct tb_diag {
  tb_rc rc;        /* TB_OK: empty */
  uint64_t gen;    /* or TB_NO_GEN */
  int64_t thread;  /* or TB_NO_THREAD */
  uint64_t offset; /* byte in the trace, or TB_NO_OFFSET */
  char text[200];  /* one line, no newline, NUL-terminated */
};

void tb_diag_clear(struct tb_diag *diag);

/* Stores rc and the text in diag, unless diag is NULL or already filled, and returns rc. The place is
 * set before, by tb_diag_place(). */
tb_rc tb_fail(struct tb_diag *diag, tb_rc rc, const char *fmt, ...) TB_PRINTF(3, 4);
void tb_diag_place(struct tb_diag *diag, uint64_t gen, int64_t thread, uint64_t offset);

/* Formats "generation 3, thread 71, offset 4711: text" without unknown places. Returns as snprintf(). */
int tb_diag_format(const struct tb_diag *diag, char *out, size_t out_bytes);

const char *tb_rc_name(tb_rc rc); /* "BROKEN" */
const char *tb_rc_text(tb_rc rc); /* "trace breaks a rule of its own format" */
enum tb_class tb_rc_class(tb_rc rc);

#endif
