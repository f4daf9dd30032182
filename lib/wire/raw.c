/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/raw.h"

#include "wire/block.h"

/* Moves *pos past n numbers; *last is set to the last of them. */
static tb_rc skip_numbers(const unsigned char **pos, const unsigned char *end, uint64_t n,
                          struct tb_diag *diag, uint64_t *last) {
  for (; n > 0; n--) {
    if (*pos == end) return TB_END;
    int used = tw_varint_read(*pos, end, last);
    if (used == 0) return TB_AGAIN;
    if (used < 0) return tb_fail(diag, TB_BROKEN, "a number wider than 64 bits");
    *pos += used;
  }
  return TB_OK;
}

/* Skips n numbers of at most eight bytes each. Returns NULL if they must be read one by one. */
static const unsigned char *skip_short(const unsigned char *pos, const unsigned char *end,
                                       uint64_t n) {
  while (end - pos >= 8) {
    uint64_t ends = tw_ends(tw_load8(pos));
    unsigned count = (unsigned)((ends >> 7) * TW_EACH_BYTE >> 56);
    if (count == 0) return NULL;
    if (count >= n) {
      for (; n > 1; n--) ends &= ends - 1;
      return pos + __builtin_ctzll(ends) / 8 + 1;
    }
    n -= count;
    pos += 8 - __builtin_clzll(ends) / 8;
  }
  return NULL;
}

tb_rc tw_raw_read(const unsigned char *bytes, size_t n, unsigned types_end, struct tb_diag *diag,
                  struct tw_raw *out, size_t *out_used) {
  const unsigned char *pos = bytes + 1, *end = bytes + n;
  uint64_t last = 0;

  *out = (struct tw_raw){ .type = bytes[0], .spec = tw_spec(bytes[0]), .args = pos };
  if (out->type == TW_EV_NONE || out->type >= types_end)
    return tb_fail(diag, TB_BROKEN, "invalid event type: %u", out->type);
  out->nargs = out->spec->nargs + (unsigned)tw_spec_has_dt(out->spec);
  if (TB_LIKELY(tw_spec_has_dt(out->spec))) {
    const unsigned char *behind = skip_short(pos, end, out->nargs);
    if (TB_LIKELY(behind != NULL)) {
      *out_used = (size_t)(behind - bytes);
      return TB_OK;
    }
  }
  TB_TRY(skip_numbers(&pos, end, out->nargs, diag, &last));
  if (out->spec->kind == TW_KIND_STACK && (int64_t)last > 0) {
    out->frames = last;
    /* A frame has at least four bytes, so a forged count ends with the bytes. */
    for (uint64_t left = out->frames; left > 0; left--)
      TB_TRY(skip_numbers(&pos, end, 4, diag, &last));
  }
  if (out->spec->kind == TW_KIND_DATA) {
    TB_TRY(skip_numbers(&pos, end, 1, diag, &last));
    out->data = pos;
    out->data_len = (int64_t)last > 0 ? last : 0;
    if (out->data_len > (uint64_t)(end - pos)) return TB_END;
    pos += out->data_len;
  }
  *out_used = (size_t)(pos - bytes);
  return TB_OK;
}

tb_rc tw_raw_read_own(const unsigned char *bytes, size_t n, const struct tw_experiments *x,
                      struct tb_diag *diag, struct tw_raw *out, size_t *out_used) {
  const struct tw_own_event *own = tw_own_event(x, bytes[0]);
  const unsigned char *pos = bytes + 1;
  uint64_t last;

  if (own == NULL) return tw_raw_read(bytes, n, TW_EV_LIMIT, diag, out, out_used);
  *out = (struct tw_raw){
    .type = bytes[0], .spec = &own->spec, .args = pos, .nargs = own->spec.nargs + 1u
  };
  TB_TRY(skip_numbers(&pos, bytes + n, out->nargs, diag, &last));
  *out_used = (size_t)(pos - bytes);
  return TB_OK;
}
