/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why generations were lost, in a sentence that names the setting to change if there is one.
 *
 * Threads   any. The text is static.
 */
#ifndef TP_LOSS_H
#define TP_LOSS_H

#include <stdint.h>

/* reason: LossReason of proto/frame.proto, from any version of an agent. */
const char *tp_loss_text(uint32_t reason);

#endif
