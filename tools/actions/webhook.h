/* SPDX-License-Identifier: Apache-2.0 */
/* Posts JSON to the URL of an action.
 *
 * Headers are those of Standard Webhooks, for which receivers have libraries in most languages: webhook-id is the firing's,
 * and the same in each try; webhook-timestamp is this try's, in seconds since 1970; webhook-signature, where the action has a secret, is
 * "v1," and the base64 of HMAC-SHA256 over ID.TIMESTAMP.BODY.
 *
 * 2xx is success, whatever becomes of the answer's body. No answer within AC_WEBHOOK_S, no connection, 408, 425, 429 and 5xx: AC_LATER. All else is final.
 */
#ifndef AC_WEBHOOK_H
#define AC_WEBHOOK_H

#include "tools/actions/deliver.h"

enum { AC_WEBHOOK_S = 10 };

/* After tp_post_init(). AC_LATER with diag->rc TB_BUSY: stop_fd became readable. *out_wait_s: the answer asks for so long a pause before the
 * next try; 0: it does not. */
enum ac_outcome ac_webhook(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                           struct tb_diag *diag, unsigned *out_wait_s);

#endif
