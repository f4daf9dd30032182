/* SPDX-License-Identifier: Apache-2.0 */
/* A unit is a header, a batch or an end mark. If all of it is in the fed bytes, it is passed on from there. If it straddles two
 * feeds, it is put together in `carry`, which has room for the largest unit. */
#include "wire/split.h"

#include <string.h>

#include "base/check.h"

enum { CARRY_BYTES = TW_BATCH_BYTES_MAX + TW_BATCH_HEADER_BYTES_MAX };

void tw_split_init(struct tw_split *split, struct tb_mem *mem) {
  *split = (struct tw_split){ .mem = mem };
  tb_diag_clear(&split->fault);
}

void tw_split_fini(struct tw_split *split) {
  if (split->mem != NULL)
    tb_mem_free(split->mem, split->carry, split->carry == NULL ? 0 : CARRY_BYTES);
  *split = (struct tw_split){ 0 };
}

tb_rc tw_split_reserve(struct tw_split *split) {
  void *carry = NULL;

  if (split->carry != NULL) return TB_OK;
  TB_TRY(tb_mem_resize(split->mem, &carry, 0, CARRY_BYTES));
  split->carry = carry;
  return TB_OK;
}

void tw_split_reset(struct tw_split *split) {
  unsigned char *carry = split->carry;

  tw_split_init(split, split->mem);
  split->carry = carry;
}

/* Reads the unit at the begin of bytes. TB_AGAIN: its end is missing. */
static tb_rc read_unit(struct tw_split *split, const unsigned char *bytes, size_t n,
                       struct tw_item *out) {
  tb_diag_place(&split->fault, TB_NO_GEN, TB_NO_THREAD, split->offset);
  *out = (struct tw_item){ .bytes = bytes, .offset = split->offset };
  if (!split->header_done) {
    out->kind = TW_ITEM_HEADER;
    TB_TRY(tw_header_read(bytes, n, &split->fault, &split->version, &out->len));
    split->header_done = true;
  } else {
    TB_TRY(tw_batch_read(bytes, n, &split->fault, &out->batch, &out->len));
    out->kind = bytes[0] == TW_EV_END_OF_GENERATION ? TW_ITEM_END_MARK : TW_ITEM_BATCH;
  }
  split->offset += out->len;
  return TB_OK;
}

static tb_rc hand_on_raw(struct tw_split *split, const unsigned char *bytes, size_t n, bool stays,
                         struct tw_item *out) {
  *out = (struct tw_item){
    .kind = TW_ITEM_RAW, .bytes = bytes, .len = n, .offset = split->offset, .stays = stays
  };
  split->offset += n;
  return TB_OK;
}

static tb_rc hand_on_carry(struct tw_split *split, struct tw_item *out) {
  split->carry_lent = true;
  return hand_on_raw(split, split->carry, split->carry_len, false, out);
}

static tb_rc feed_carry(struct tw_split *split, const unsigned char *bytes, size_t n,
                        size_t *out_used, struct tw_item *out) {
  size_t room = CARRY_BYTES - split->carry_len;
  size_t more = n < room ? n : room;

  memcpy(split->carry + split->carry_len, bytes, more);
  tb_rc rc = read_unit(split, split->carry, split->carry_len + more, out);
  if (rc == TB_OK) {
    *out_used = out->len - split->carry_len;
    split->carry_lent = true;
    return TB_OK;
  }
  if (rc == TB_AGAIN) {
    if (!TB_CHECK(more == n)) return TB_BUDGET; /* the carry has room for any unit */
    split->carry_len += n;
    *out_used = n;
    return TB_AGAIN;
  }
  return hand_on_carry(split, out); /* no bytes are taken yet */
}

tb_rc tw_split_feed(struct tw_split *split, const void *bytes, size_t n, size_t *out_used,
                    struct tw_item *out) {
  *out_used = 0;
  if (split->carry_lent) {
    split->carry_len = 0;
    split->carry_lent = false;
  }
  if (n == 0) return TB_AGAIN;
  if (split->carry_len > 0) return feed_carry(split, bytes, n, out_used, out);

  tb_rc rc = split->fault.rc == TB_OK ? read_unit(split, bytes, n, out) : split->fault.rc;
  if (rc == TB_OK) {
    out->stays = true;
    *out_used = out->len;
    return TB_OK;
  }
  if (rc != TB_AGAIN) {
    *out_used = n;
    return hand_on_raw(split, bytes, n, true, out);
  }
  TB_TRY(tw_split_reserve(split));
  memcpy(split->carry, bytes, n);
  split->carry_len = n;
  *out_used = n;
  return TB_AGAIN;
}

tb_rc tw_split_finish(struct tw_split *split, struct tw_item *out) {
  if (split->carry_lent) {
    split->carry_len = 0;
    split->carry_lent = false;
  }
  if (split->carry_len == 0) return TB_END;
  tb_diag_place(&split->fault, TB_NO_GEN, TB_NO_THREAD, split->offset);
  (void)tb_fail(&split->fault, TB_BROKEN, "the trace ends in the middle of a %s",
                split->header_done ? "batch" : "header");
  return hand_on_carry(split, out);
}
