/* SPDX-License-Identifier: Apache-2.0 */
/* From records to files: which file a batch goes to, when a generation is whole, what becomes of one
 * that never will be.
 *
 * A full disk may stop any handler; it is called again with the same record. So whatever can fail comes
 * before whatever is remembered. */
#ifndef TC_SEALER_SEAL_RECORDS_H
#define TC_SEALER_SEAL_RECORDS_H

#include "collector/sealer/seal/seal.h"

/* What a durable record does. On failure it may be called again. */
struct tc__item {
  unsigned kind;
  uint64_t seq, gen, wall_ns;
  const unsigned char *payload;
  uint32_t len, crc; /* of the payload */
};
TB_MUST tb_rc tc__archive_record(struct tc__seal *seal, struct tc__stream *stream,
                                 const struct tc__item *item, struct tb_diag *diag);
TB_MUST tb_rc tc__archive_abandon(struct tc__seal *seal, struct tc__stream *stream,
                                  struct tb_diag *diag);
/* The stream's records up to seq are settled: whole generations are sealed, one that is still open is
 * given up, losses are noted. The stream goes on. */
TB_MUST tb_rc tc__archive_give_up(struct tc__seal *seal, struct tc__stream *stream, uint64_t seq,
                                  struct tb_diag *diag);

#endif
