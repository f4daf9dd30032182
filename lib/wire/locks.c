/* SPDX-License-Identifier: Apache-2.0 */
/* Each pair of lock and holder takes 10 to 20 bytes, once in a generation. */
#include "wire/locks.h"

#include <string.h>

#include "wire/substream.h"
#include "wire/varint.h"

static const char name[] = "locks";
enum { NAME = sizeof name - 1, FIELDS = 4 };

tb_rc tw_write_locks(struct tw_write *w, uint64_t missed) {
  unsigned char number[TW_VARINT_BYTES_MAX];

  TB_TRY(tw_write_substream(w, TW_SUBSTREAM_BYTES, name, NAME));
  return tw_write_bytes(w, number, tw_varint_write(number, missed));
}

tb_rc tw_write_lock(struct tw_write *w, const struct tw_lock *lock) {
  const uint64_t field[FIELDS] = { lock->string, lock->object, lock->holder, lock->name };
  unsigned char bytes[FIELDS * TW_VARINT_BYTES_MAX], *pos = bytes;

  for (int i = 0; i < FIELDS; i++) pos += tw_varint_write(pos, field[i]);
  return tw_write_bytes(w, bytes, (size_t)(pos - bytes));
}

static bool read_number(struct tw_locks_reading *r, uint64_t *out) {
  int used = tw_varint_read(r->pos, r->end, out);

  if (used <= 0) return false;
  r->pos += used;
  return true;
}

bool tw_locks_read(const unsigned char *data, size_t len, struct tw_locks_reading *out) {
  struct tw_substream stream;

  if (tw_substream_read(data, len, NULL, &stream) != TB_OK) return false;
  if (stream.kind != TW_SUBSTREAM_BYTES || stream.name_len != NAME ||
      memcmp(stream.name, name, NAME) != 0)
    return false;
  *out = (struct tw_locks_reading){ .pos = stream.data, .end = stream.data + stream.len };
  return read_number(out, &out->missed);
}

bool tw_lock_next(struct tw_locks_reading *r, struct tw_lock *out) {
  return read_number(r, &out->string) && read_number(r, &out->object) &&
         read_number(r, &out->holder) && read_number(r, &out->name);
}
