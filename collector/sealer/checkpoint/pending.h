/* SPDX-License-Identifier: Apache-2.0 */
/* Generations without a verdict at a start, archived or resumed. */
#ifndef TC_SEALER_CHECKPOINT_PENDING_H
#define TC_SEALER_CHECKPOINT_PENDING_H

#include "collector/sealer/seal/seal.h"

/* Offers them to analysis; finds or creates their streams with `stream_of`. */
TB_MUST tb_rc tc__offer_archived(struct tc__seal *seal,
                                 tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                                    const char *identity, const char *service,
                                                    const char *instance, uint32_t *out_ref),
                                 void *self, struct tb_diag *diag);

#endif
