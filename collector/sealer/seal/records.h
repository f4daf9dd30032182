/* SPDX-License-Identifier: Apache-2.0 */
/* Puts records into files: decides which file gets a batch, when a generation is whole, and what happens to one that can
 * no longer become whole.
 *
 * A full disk may stop any handler, which is then called again with the same record. So each handler does what can fail
 * before it changes state. */
#ifndef TC_SEALER_SEAL_RECORDS_H
#define TC_SEALER_SEAL_RECORDS_H

#include "collector/sealer/seal/seal.h"

/* A record that is durable in the log. */
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
/* Settles the stream's records up to seq: publishes whole generations, gives up an open one, notes losses.
 * The stream goes on. */
TB_MUST tb_rc tc__archive_give_up(struct tc__seal *seal, struct tc__stream *stream, uint64_t seq,
                                  struct tb_diag *diag);

#endif
