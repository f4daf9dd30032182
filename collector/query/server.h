/* SPDX-License-Identifier: Apache-2.0 */
/* Questions over nng REQ/REP (proto/archive.proto): each of a few worker threads owns a REP context and a session; those of
 * leases go on to the leases.
 *
 * Memory    a request is unpacked into an arena of fixed size.
 * Threads   start and stop on one thread.
 * Errors    start: TB_IO with the URL and reason, TB_CORRUPT: certificates, TB_NOMEM.
 *           A question that fails is answered with its code and words.
 */
#ifndef TC_QUERY_SERVER_H
#define TC_QUERY_SERVER_H

#include "collector/lease/broker.h"
#include "collector/net/nng_listener.h"
#include "collector/query/session.h"

struct tc_archive_env {
  const struct tc_config *config; /* read by start() only */
  struct tc_query *query;
  struct tc_leases *leases; /* NULL: none are given */
  struct tc_nng_tls *tls;   /* needed where listen.archive is tls+tcp:// */
};

struct tc_archive;

TB_MUST tb_rc tc_archive_start(const struct tc_archive_env *env, struct tb_diag *diag,
                               struct tc_archive **out);
/* Ends the workers; a question under way gets no answer. Call it after tc_leases_stop() and tc_query_stop(), and before
 * tc_store_close(). */
void tc_archive_stop(struct tc_archive *archive);

uint64_t tc_archive_listener_turns(
    const struct tc_archive *archive); /* of its listeners' threads, one a second; any thread */
/* The real URLs, in the order of listen.archive; NULL: no more. */
const char *tc_archive_url(const struct tc_archive *archive, unsigned i);

#endif
