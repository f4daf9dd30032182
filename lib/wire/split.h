/* SPDX-License-Identifier: Apache-2.0 */
/* An endless Go trace stream, cut where its own batches begin and end.
 *
 *   struct tw_item item;
 *   size_t used;
 *   while ((rc = tw_split_feed(&split, bytes, n, &used, &item)) == TB_OK) {
 *     bytes += used, n -= used;
 *     handle(&item);
 *   }                                          -- TB_AGAIN: all n taken, feed more
 *   while (tw_split_finish(&split, &item) == TB_OK) handle(&item);
 *
 * No byte is lost: the items' bytes, put together, are the stream. After a byte that cannot begin a
 * batch (split.fault then says what and where) everything is handed on as RAW, as it comes.
 *
 * Before 1.26 a generation ends where a batch with another number comes, from 1.26 at an end mark;
 * the splitter reports numbers and marks, the caller draws the conclusion.
 *
 * Memory    at most one batch and its header (64 KiB), charged to mem once a batch straddles two
 *           feeds. An item is lent until the next call; `stays` says that its bytes are the
 *           caller's own, not the splitter's.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM, TB_BUDGET from mem (nothing is taken then). Malformed input is no error.
 */
#ifndef TW_SPLIT_H
#define TW_SPLIT_H

#include "base/mem.h"
#include "wire/batch.h"

enum tw_item_kind {
  TW_ITEM_HEADER,
  TW_ITEM_BATCH,
  TW_ITEM_END_MARK, /* the single byte 52 */
  TW_ITEM_RAW,      /* after a fault, or cut off by the end of the stream */
};

struct tw_item {
  enum tw_item_kind kind;
  const unsigned char *bytes; /* whole: a batch with its header */
  size_t len;
  uint64_t offset; /* of bytes[0] in the stream */
  bool stays;
  struct tw_batch batch; /* BATCH and END_MARK (generation 0) */
};

struct tw_split {
  struct tb_mem *mem;
  unsigned char *carry; /* a unit that began in an earlier feed */
  size_t carry_len;
  uint64_t offset;  /* offset of the next byte to be returned, carry included */
  unsigned version; /* 0 until the header is read; set for an unknown version, too */
  bool header_done;
  bool carry_lent;
  struct tb_diag fault; /* rc TB_OK: none. TB_BROKEN, TB_UNSUPPORTED: RAW from fault.offset on */
};

void tw_split_init(struct tw_split *split, struct tb_mem *mem);
void tw_split_fini(struct tw_split *split); /* accepts a zeroed splitter */
/* Allocates the memory for a straddling batch now, so that no later feed can fail. */
TB_MUST tb_rc tw_split_reserve(struct tw_split *split);
/* Starts a new stream at offset 0. */
void tw_split_reset(struct tw_split *split);

/* TB_OK: *out holds an item, *out_used bytes taken. TB_AGAIN: all n bytes taken, no item yet. */
TB_MUST tb_rc tw_split_feed(struct tw_split *split, const void *bytes, size_t n, size_t *out_used,
                            struct tw_item *out);
/* The stream ends here: TB_OK with what is left as RAW (and the fault set), or TB_END. */
TB_MUST tb_rc tw_split_finish(struct tw_split *split, struct tw_item *out);

#endif
