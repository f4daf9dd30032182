/* SPDX-License-Identifier: Apache-2.0 */
/* The stream that a verb of one stream takes where several match: a service that was restarted has one for each of its
 * processes. The live one is taken, and where none is live the newest.
 *
 * Errors    TB_BROKEN: several are live, and named on stderr; or so many match that not all are known.
 */
#ifndef TK_FETCH_CHOOSE_H
#define TK_FETCH_CHOOSE_H

#include "proto/archive.pb-c.h"
#include "tools/tracectl/args/selector.h"

/* Narrows selector to one of the streams that the list's first page names, and says on stderr which one that is. */
TB_MUST tb_rc tk_stream_choose(const char *verb, const Tracecollect__V1__ListReply *page,
                               struct tk_selector *selector, struct tb_diag *diag);

#endif
