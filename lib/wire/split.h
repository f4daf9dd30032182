/* SPDX-License-Identifier: Apache-2.0 */
/* Splits an endless Go trace stream into its header, batches and end marks.
 *
 *   struct tw_item item;
 *   size_t used;
 *   while ((rc = tw_split_feed(&split, bytes, n, &used, &item)) == TB_OK) {
 *     bytes += used, n -= used;
 *     handle(&item);
 *   }                                          -- TB_AGAIN: all n taken, feed more
 *   while (tw_split_finish(&split, &item) == TB_OK) handle(&item);
 *
 * No byte is lost: the bytes of all items together are the stream. After a byte that cannot begin a batch, all further bytes
 * are returned as RAW, in pieces as they were fed; split.fault has the reason and the place.
 *
 * Before 1.26 a generation ends at the first batch with another generation number, from 1.26 on at an end mark. The splitter
 * only reports numbers and marks; the caller decides where generations end.
 *
 * Memory    at most one batch and its header (64 KiB), charged to mem once a batch straddles two feeds. An item is lent until
 *           the next call. `stays`: its bytes are in the caller's buffer, not in the splitter's.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM, TB_BUDGET from mem: no bytes were taken. Malformed input is not an error.
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
  const unsigned char *bytes; /* all of the item: a batch with its header */
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

/* TB_OK: *out is an item, *out_used bytes were taken. TB_AGAIN: all n bytes were taken, there is no item yet. */
TB_MUST tb_rc tw_split_feed(struct tw_split *split, const void *bytes, size_t n, size_t *out_used,
                            struct tw_item *out);
/* Call it at the end of the stream. TB_OK: *out has the remaining bytes as RAW, and the fault is set. TB_END: none remain. */
TB_MUST tb_rc tw_split_finish(struct tw_split *split, struct tw_item *out);

#endif
