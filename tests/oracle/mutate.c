/* SPDX-License-Identifier: Apache-2.0 */
/* A mutant is built in two steps: the seed is cut into pieces (header, batches, end marks), the list of pieces is edited (drop,
 * repeat, swap, splice in another trace's), and it is written out again. While it is written, the content of a few batches is
 * edited, and their lengths are corrected. One mutant in four is then edited byte by byte, lengths included. */
#include "oracle/mutate.h"

#include <string.h>

enum { HEADER_BYTES = 16, PIECES_MAX = 2048, EV_BATCH = 1, EV_EXPERIMENTAL = 49, EV_END = 52 };

struct piece {
  const unsigned char *data;
  size_t len;
  size_t head; /* bytes before the batch's length field; 0: not a batch */
  size_t body; /* offset of the content */
};

struct pieces {
  struct piece at[PIECES_MAX];
  size_t n;
};

uint64_t tt_random(struct tt_rng *rng) {
  uint64_t z = (rng->state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

uint64_t tt_below(struct tt_rng *rng, uint64_t limit) {
  return limit == 0 ? 0 : tt_random(rng) % limit;
}

static size_t get_varint(const unsigned char *p, size_t n, uint64_t *out) {
  uint64_t v = 0;
  for (size_t i = 0; i < n && i < 10; i++) {
    v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
    if (p[i] < 0x80) {
      *out = v;
      return i + 1;
    }
  }
  return 0;
}

static size_t put_varint(unsigned char *p, uint64_t v) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) p[n++] = (unsigned char)(v | 0x80);
  p[n++] = (unsigned char)v;
  return n;
}

/* Cuts the seed into pieces; the part that does not parse becomes one last piece. */
static void cut_pieces(const struct tt_seed *seed, struct pieces *out) {
  size_t pos = HEADER_BYTES < seed->len ? HEADER_BYTES : seed->len;

  out->at[0] = (struct piece){ .data = seed->data, .len = pos };
  out->n = 1;
  while (pos < seed->len && out->n < PIECES_MAX - 1) {
    const unsigned char *p = seed->data + pos;
    size_t left = seed->len - pos;
    struct piece piece = { .data = p, .len = 1 };

    if (p[0] == EV_BATCH || p[0] == EV_EXPERIMENTAL) {
      uint64_t value = 0;
      size_t at = p[0] == EV_BATCH ? 1 : 2;
      for (int field = 0; field < 4; field++) {
        if (field == 3) piece.head = at;
        size_t used = at < left ? get_varint(p + at, left - at, &value) : 0;
        if (used == 0) goto rest;
        at += used;
      }
      if (value > left - at) goto rest;
      piece.body = at;
      piece.len = at + value;
    } else if (p[0] != EV_END) {
      goto rest;
    }
    out->at[out->n++] = piece;
    pos += piece.len;
    continue;
  rest:
    out->at[out->n++] = (struct piece){ .data = p, .len = left };
    return;
  }
}

static void edit_pieces(struct tt_rng *rng, struct pieces *ps, const struct pieces *other) {
  if (ps->n < 2) return;
  size_t i = 1 + tt_below(rng, ps->n - 1), k = 1 + tt_below(rng, ps->n - 1);

  switch (tt_below(rng, 6)) {
  case 0: /* drop */
    memmove(&ps->at[i], &ps->at[i + 1], (ps->n - i - 1) * sizeof ps->at[0]);
    ps->n--;
    break;
  case 1: { /* swap */
    struct piece t = ps->at[i];
    ps->at[i] = ps->at[k];
    ps->at[k] = t;
    break;
  }
  case 2: /* repeat */
    if (ps->n == PIECES_MAX) break;
    memmove(&ps->at[i + 1], &ps->at[i], (ps->n - i) * sizeof ps->at[0]);
    ps->n++;
    break;
  case 3: /* end here */ ps->n = i; break;
  case 4: /* a piece of another trace */
    if (other->n < 2) break;
    ps->at[i] = other->at[1 + tt_below(rng, other->n - 1)];
    break;
  case 5: /* go on as another trace does */
    ps->n = i;
    for (size_t from = 1 + tt_below(rng, other->n); from < other->n && ps->n < PIECES_MAX; from++)
      ps->at[ps->n++] = other->at[from];
    break;
  }
}

/* Edits bytes[0..len) in place or by a small shift. Returns the new length, at most len + 16. */
static size_t edit_bytes(struct tt_rng *rng, unsigned char *bytes, size_t len) {
  if (len == 0) return 0;
  size_t at = tt_below(rng, len);
  uint64_t value;

  switch (tt_below(rng, 9)) {
  case 0: bytes[at] ^= (unsigned char)(1u << tt_below(rng, 8)); return len;
  case 1: bytes[at] = (unsigned char)tt_random(rng); return len;
  case 2: bytes[at]++; return len;
  case 3: bytes[at]--; return len;
  case 4: { /* drop a few */
    size_t n = 1 + tt_below(rng, 8);
    if (n > len - at) n = len - at;
    memmove(bytes + at, bytes + at + n, len - at - n);
    return len - n;
  }
  case 5: { /* repeat a few */
    size_t n = 1 + tt_below(rng, 8);
    if (n > len - at) n = len - at;
    memmove(bytes + at + n, bytes + at, len - at);
    return len + n;
  }
  case 6: { /* copy a run over another place */
    size_t from = tt_below(rng, len), n = 1 + tt_below(rng, 16);
    if (n > len - at) n = len - at;
    if (n > len - from) n = len - from;
    memmove(bytes + at, bytes + from, n);
    return len;
  }
  case 7: { /* replace a number by another one */
    static const uint64_t odd[] = { 0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    127,
                                    128,
                                    129,
                                    1024,
                                    1025,
                                    65536,
                                    65537,
                                    UINT32_MAX,
                                    INT64_MAX,
                                    (uint64_t)INT64_MAX + 1,
                                    UINT64_MAX - 1,
                                    UINT64_MAX };
    unsigned char text[10];
    size_t used = get_varint(bytes + at, len - at, &value);
    if (used == 0) return len;
    value = tt_below(rng, 2) == 0 ? odd[tt_below(rng, sizeof odd / sizeof odd[0])]
                                  : value + tt_below(rng, 7) - 3;
    size_t n = put_varint(text, value);
    memmove(bytes + at + n, bytes + at + used, len - at - used);
    memcpy(bytes + at, text, n);
    return len - used + n;
  }
  default: { /* swap two bytes */
    size_t other = tt_below(rng, len);
    unsigned char t = bytes[at];
    bytes[at] = bytes[other];
    bytes[other] = t;
    return len;
  }
  }
}

static size_t write_piece(struct tt_rng *rng, const struct piece *piece, unsigned edits,
                          unsigned char *out, size_t room) {
  if (piece->len + 16 * (edits + 1) > room) return 0;
  if (piece->head == 0 || edits == 0) {
    memcpy(out, piece->data, piece->len);
    size_t len = piece->len;
    while (edits-- > 0) len = edit_bytes(rng, out, len);
    return len;
  }

  /* Leave ten bytes for the length, edit the content after them, then close the gap. */
  size_t body = piece->head + 10, len = piece->len - piece->body;
  memcpy(out, piece->data, piece->head);
  memcpy(out + body, piece->data + piece->body, len);
  while (edits-- > 0) len = edit_bytes(rng, out + body, len);
  size_t at = piece->head + put_varint(out + piece->head, len);
  memmove(out + at, out + body, len);
  return at + len;
}

size_t tt_mutate(struct tt_rng *rng, const struct tt_seed *seeds, size_t nseeds,
                 unsigned char out[TT_MUTANT_BYTES_MAX]) {
  static struct pieces ps,
      other; /* 160 KB: clearing them on the stack would take longer than a mutant */
  size_t len = 0;

  cut_pieces(&seeds[tt_below(rng, nseeds)], &ps);
  cut_pieces(&seeds[tt_below(rng, nseeds)], &other);
  if (tt_below(rng, 3) == 0)
    for (uint64_t n = 1 + tt_below(rng, 3); n > 0; n--) edit_pieces(rng, &ps, &other);

  uint64_t chosen = tt_below(rng, ps.n), edits = tt_below(rng, 4);
  for (size_t i = 0; i < ps.n; i++)
    len += write_piece(rng, &ps.at[i], i == chosen ? (unsigned)edits : 0, out + len,
                       TT_MUTANT_BYTES_MAX - len);
  if (tt_below(rng, 4) == 0 && len + 64 < TT_MUTANT_BYTES_MAX)
    for (uint64_t n = 1 + tt_below(rng, 3); n > 0; n--) len = edit_bytes(rng, out, len);
  if (tt_below(rng, 16) == 0) len = tt_below(rng, len + 1);
  return len;
}
