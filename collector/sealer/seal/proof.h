/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that a start took up are read back (segment/proof.h): in slices between other work, and at once where somebody is
 * about to rely on one. Until then none of it is offered to understand or shown to readers, no meta and no checkpoint
 * says what is in it, and no file of its stream is opened behind it. One that is not what its checkpoint says is lost
 * as if the start had found it so; what came since goes on in a file of its own. A file
 * that turns out not to be what its checkpoint says may be gone afterwards, or have another segment: open ones are to be
 * asked for again. */
#ifndef TC_SEALER_SEAL_PROOF_H
#define TC_SEALER_SEAL_PROOF_H

#include "collector/sealer/seal/seal.h"

TB_MUST tb_rc tc__prove_open(struct tc__seal *seal, const struct tc__stream *stream,
                             struct tb_diag *diag);
TB_MUST tb_rc tc__prove_queue(struct tc__seal *seal, struct tb_diag *diag);
/* Open ones. TB_AGAIN: not all of them by then, or before the deadline of a stop. */
TB_MUST tb_rc tc__prove_some(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag);
/* All generations of an open file that have no verdict. */
void tc__offer_pending(struct tc__outbox *outbox, const struct tc__file *file);

#endif
