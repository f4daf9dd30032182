/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a stream for a verb that takes one, if several match: a restarted service has a stream for each process. The live stream
 * is chosen, or the newest if none is live. A stream that ended before the selected time does not count.
 *
 * Errors    TB_BROKEN: several are live, and are listed on stderr, with the command line for each; or more match than are known
 *           here.
 */
#ifndef TK_FETCH_CHOOSE_H
#define TK_FETCH_CHOOSE_H

#include "proto/archive.pb-c.h"
#include "tools/tracectl/args/selector.h"

/* Narrows selector to one of the streams of the list's first page, and prints on stderr which one. */
TB_MUST tb_rc tk_stream_choose(const char *verb, const Tracecollect__V1__ListReply *page,
                               struct tk_selector *selector, struct tb_diag *diag);

/* Returns the begin of the selected time: --last counts from the newest generation of all streams. 0: no begin is selected. */
uint64_t tk_streams_begin(const struct tk_selector *selector,
                          const Tracecollect__V1__ListReply *page);
/* Returns true if the stream has something since then, or if its time is not known. */
bool tk_stream_reaches(const Tracecollect__V1__StreamStatus *stream, uint64_t since_wall_ns);

#endif
