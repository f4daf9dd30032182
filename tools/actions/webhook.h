/* SPDX-License-Identifier: Apache-2.0 */
/* Posts JSON to the URL of an action.
 *
 * Headers follow Standard Webhooks, for which most languages have libraries: webhook-id is the firing's id, equal in each try;
 * webhook-timestamp is the time of this try, in seconds since 1970; webhook-signature, if the action has a secret, is "v1," and the
 * base64 of HMAC-SHA256 over ID.TIMESTAMP.BODY.
 *
 * 2xx is success; the answer's body is ignored. No answer within AC_WEBHOOK_S, no connection, 408, 425, 429, 5xx: AC_LATER.
 * Others are final. */
#ifndef AC_WEBHOOK_H
#define AC_WEBHOOK_H

#include "tools/actions/deliver.h"

enum { AC_WEBHOOK_S = 10 };

/* Call tp_post_init() first. AC_LATER with diag->rc TB_BUSY: stop_fd became readable. *out_wait_s: pause that the answer asks for; 0:
 * none. */
enum ac_outcome ac_webhook(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                           struct tb_diag *diag, unsigned *out_wait_s);

#endif
