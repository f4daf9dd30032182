/* SPDX-License-Identifier: Apache-2.0 */
/* Our batches begin with six bytes with which no count, small number or text begins. So batches of others differ from them;
 * Go's own begin with 0 or 1. */
#include "wire/substream.h"

#include <inttypes.h>
#include <string.h>

#include "wire/varint.h"

/* magic, version, kind, length of the name */
static const unsigned char magic[] = { 0xd5, 't', 'c', 's', 'u', 'b' };
enum { VERSION_AT = sizeof magic, KIND_AT, NAME_LEN_AT, HEADER_BYTES };
enum { PIECE_NUMBERS = 4, PIECE_LEAST = 256 }; /* only the last piece of a blob may be shorter */

_Static_assert(TW_BATCH_HEADER_BYTES_MAX + TW_VARINT_BYTES_MAX + HEADER_BYTES +
                       TW_SUBSTREAM_NAME_MAX + PIECE_NUMBERS * TW_VARINT_BYTES_MAX + PIECE_LEAST <=
                   TW_SUBSTREAM_ROOM_MIN,
               "each batch takes a piece");

static const char word[] = "blob:";
enum { WORD = sizeof word - 1 };

static bool is_name(const char *name, size_t len) {
  if (len == 0 || len > TW_SUBSTREAM_NAME_MAX) return false;
  for (size_t i = 0; i < len; i++) {
    char c = name[i], letter = (char)(c | 0x20);
    if (!(letter >= 'a' && letter <= 'z') && !(c >= '-' && c <= '9') && c != '_') return false;
  }
  return true;
}

tb_rc tw_substream_read(const unsigned char *data, size_t len, struct tb_diag *diag,
                        struct tw_substream *out) {
  if (len < sizeof magic || memcmp(data, magic, sizeof magic) != 0) return TB_NOTFOUND;
  if (len <= NAME_LEN_AT) return tb_fail(diag, TB_BROKEN, "the header of a sub-stream is cut off");
  if (data[VERSION_AT] != TW_SUBSTREAM_VERSION)
    return tb_fail(diag, TB_UNSUPPORTED, "a sub-stream of version %u, known is %u",
                   data[VERSION_AT], TW_SUBSTREAM_VERSION);
  if (data[KIND_AT] != TW_SUBSTREAM_BYTES && data[KIND_AT] != TW_SUBSTREAM_BLOBS)
    return tb_fail(diag, TB_UNSUPPORTED, "a sub-stream of kind %u", data[KIND_AT]);
  size_t name_len = data[NAME_LEN_AT];
  const char *name = (const char *)data + HEADER_BYTES;
  if (name_len > len - HEADER_BYTES || !is_name(name, name_len))
    return tb_fail(diag, TB_BROKEN, "the name of a sub-stream is none");
  *out = (struct tw_substream){ .kind = (enum tw_substream_kind)data[KIND_AT],
                                .name = name,
                                .name_len = name_len,
                                .data = data + HEADER_BYTES + name_len,
                                .len = len - HEADER_BYTES - name_len };
  return TB_OK;
}

/* Checks each number before the next check relies on it. No sum can wrap. */
static tb_rc check_piece(const struct tw_piece *p, uint64_t len, size_t left,
                         struct tb_diag *diag) {
  if (p->id == 0) return tb_fail(diag, TB_BROKEN, "a piece of blob 0, which is none");
  if (p->blob_bytes > TW_BLOB_BYTES_MAX)
    return tb_fail(diag, TB_BROKEN, "blob %" PRIu64 " is said to have %" PRIu64 " bytes, above %d",
                   p->id, p->blob_bytes, TW_BLOB_BYTES_MAX);
  if (p->at > p->blob_bytes || len > p->blob_bytes - p->at)
    return tb_fail(diag, TB_BROKEN,
                   "%" PRIu64 " bytes at %" PRIu64 " of blob %" PRIu64 ", which has %" PRIu64, len,
                   p->at, p->id, p->blob_bytes);
  if (len == 0 && p->blob_bytes != 0)
    return tb_fail(diag, TB_BROKEN, "an empty piece of blob %" PRIu64, p->id);
  if (len > left)
    return tb_fail(diag, TB_BROKEN,
                   "a piece of blob %" PRIu64 " has %" PRIu64 " bytes, its batch %zu", p->id, len,
                   left);
  return TB_OK;
}

tb_rc tw_piece_read(const unsigned char **pos, const unsigned char *end, struct tb_diag *diag,
                    struct tw_piece *out) {
  const unsigned char *at = *pos;
  uint64_t number[PIECE_NUMBERS];

  if (at == end) return TB_END;
  for (int i = 0; i < PIECE_NUMBERS; i++) {
    int used = tw_varint_read(at, end, &number[i]);
    if (used <= 0) return tb_fail(diag, TB_BROKEN, "the numbers before a piece of a blob are cut");
    at += used;
  }
  *out = (struct tw_piece){ .id = number[0], .blob_bytes = number[1], .at = number[2], .data = at };
  TB_TRY(check_piece(out, number[3], (size_t)(end - at), diag));
  out->len = (size_t)number[3];
  *pos = at + out->len;
  return TB_OK;
}

tb_rc tw_write_substream(struct tw_write *w, enum tw_substream_kind kind, const char *name,
                         size_t name_len) {
  unsigned char header[HEADER_BYTES];

  if (w->version < 23) return TB_UNSUPPORTED;
  if (!tw_write_is_empty(w) || !is_name(name, name_len)) return TB_BROKEN;
  if (HEADER_BYTES + name_len > (size_t)(w->end - w->pos)) return TB_AGAIN;
  memcpy(header, magic, sizeof magic);
  header[VERSION_AT] = TW_SUBSTREAM_VERSION;
  header[KIND_AT] = (unsigned char)kind;
  header[NAME_LEN_AT] = (unsigned char)name_len;
  TB_TRY(tw_write_bytes(w, header, sizeof header));
  return tw_write_bytes(w, name, name_len);
}

tb_rc tw_write_blob(struct tw_write *w, struct tw_blob *blob) {
  size_t left = blob->len - blob->done, room = (size_t)(w->end - w->pos);
  size_t least = left < PIECE_LEAST ? left : PIECE_LEAST;

  if (w->holds != TW_BATCH_EXPERIMENTAL || blob->id == 0 || blob->len > TW_BLOB_BYTES_MAX)
    return TB_BROKEN;
  if (room < PIECE_NUMBERS * TW_VARINT_BYTES_MAX + least) return TB_AGAIN;
  room -= PIECE_NUMBERS * TW_VARINT_BYTES_MAX;
  size_t n = left < room ? left : room;
  const uint64_t numbers[PIECE_NUMBERS] = { blob->id, blob->len, blob->done, n };
  for (int i = 0; i < PIECE_NUMBERS; i++) w->pos += tw_varint_write(w->pos, numbers[i]);
  TB_TRY(tw_write_bytes(w, n == 0 ? NULL : (const char *)blob->bytes + blob->done, n));
  blob->done += n;
  return n == left ? TB_OK : TB_AGAIN;
}

size_t tw_blob_word(uint64_t id, char out[TW_BLOB_WORD_BYTES]) {
  char digits[20];
  size_t n = sizeof digits;

  do digits[--n] = (char)('0' + id % 10);
  while ((id /= 10) != 0);
  memcpy(out, word, WORD);
  memcpy(out + WORD, digits + n, sizeof digits - n);
  out[WORD + sizeof digits - n] = '\0';
  return WORD + sizeof digits - n;
}

uint64_t tw_blob_word_read(const char *text, size_t len) {
  uint64_t id = 0;

  if (len <= WORD || memcmp(text, word, WORD) != 0 || text[WORD] == '0') return 0;
  for (size_t i = WORD; i < len; i++) {
    uint64_t digit = (uint64_t)text[i] - '0';
    if (digit > 9 || id > (UINT64_MAX - digit) / 10) return 0;
    id = id * 10 + digit;
  }
  return id;
}
