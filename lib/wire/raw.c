/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/raw.h"

#include "wire/varint.h"

/* Moves *pos over n numbers; *last becomes the last of them. */
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

tb_rc tw_raw_read(const unsigned char *bytes, size_t n, unsigned types_end, struct tb_diag *diag,
                  struct tw_raw *out, size_t *out_used) {
  const unsigned char *pos = bytes + 1, *end = bytes + n;
  uint64_t last = 0;

  *out = (struct tw_raw){ .type = bytes[0], .spec = tw_spec(bytes[0]), .args = pos };
  if (out->type == TW_EV_NONE || out->type >= types_end)
    return tb_fail(diag, TB_BROKEN, "invalid event type: %u", out->type);
  out->nargs = out->spec->nargs + (unsigned)tw_spec_has_dt(out->spec);
  TB_TRY(skip_numbers(&pos, end, out->nargs, diag, &last));
  if (out->spec->kind == TW_KIND_STACK && (int64_t)last > 0) {
    out->frames = last;
    /* Four bytes a frame at least: a count that does not fit cannot be met by what is here. */
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

uint64_t tw_raw_number(const unsigned char **pos) {
  uint64_t value = 0;

  *pos += tw_varint_read(*pos, *pos + TW_VARINT_BYTES_MAX, &value); /* checked when it was read */
  return value;
}
