/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies resumed runs by reading their bytes back (segment/proof.h): in slices between other work, and at once before
 * something relies on one. Until then a run is not sent to analysis or shown to readers, named by no meta or checkpoint,
 * and the stream opens no file after it. If a run does not match its checkpoint, it is lost as if the start had found
 * this; generations that arrived since move to a file of their own.
 * After a call the stream's open file may be gone or have another segment: read stream->open again. */
#ifndef TC_SEALER_SEAL_PROOF_H
#define TC_SEALER_SEAL_PROOF_H

#include "collector/sealer/seal/seal.h"

TB_MUST tb_rc tc__prove_open(struct tc__seal *seal, const struct tc__stream *stream,
                             struct tb_diag *diag);
TB_MUST tb_rc tc__prove_queue(struct tc__seal *seal, struct tb_diag *diag);
/* Verifies open runs until until_ns or the deadline of a stop. TB_AGAIN: more may be left. */
TB_MUST tb_rc tc__prove_some(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag);
/* Offers the generations of an open file that have no verdict. */
void tc__offer_pending(struct tc__outbox *outbox, const struct tc__file *file);

#endif
