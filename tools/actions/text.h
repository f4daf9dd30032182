/* SPDX-License-Identifier: Apache-2.0 */
/* Formats a firing for an action: a line for each field for a command, JSON for a webhook.
 *
 * Memory    the caller frees *out, which is NULL after an error.
 * Errors    TB_NOMEM.
 */
#ifndef AC_TEXT_H
#define AC_TEXT_H

#include "tools/actions/deliver.h"

TB_MUST tb_rc ac_text(enum ac_kind kind, const Tracecollect__V1__Firing *firing, char **out,
                      size_t *out_len);

#endif
