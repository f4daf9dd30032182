/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's answers for questions from inside the daemon: no socket, no thread, the same words.
 *
 * Memory    a session owns a read-only catalog connection and the arena of its last answer.
 * Threads   one at a time; a question may block on files, so it is for workers, not for loops.
 * Errors    in the reply, as over the socket (proto/archive.proto).
 */
#ifndef TC_QUERY_SESSION_H
#define TC_QUERY_SESSION_H

#include "archive/catalog.h"
#include "collector/query/server.h"
#include "proto/archive.pb-c.h"

struct tc_query_session;

struct tc_query_session_env {
  struct tc_store *store;
  struct tc_reports *reports;
  struct tc_triggers *triggers; /* NULL: there are no rules */
  struct tc_history *kept;      /* NULL: no reports are kept */
  uint64_t started_wall_ns;
  const char *version;
  bool durable; /* what an ack promises */
};

/* NULL: no memory. */
struct tc_query_session *tc_query_session_new(const struct tc_query_session_env *env);
void tc_query_session_free(
    struct tc_query_session *session); /* before the store's end; NULL is fine */

/* The reply lives until the session's next question. Not settled, no verify, and rules are not changed. */
const Tracecollect__V1__Reply *tc_query_session_ask(struct tc_query_session *session,
                                                    const Tracecollect__V1__Request *request);

/* A segment's row and its file, opened for reading; the caller closes it. TB_NOTFOUND, TB_IO. */
TB_MUST tb_rc tc_query_session_open(struct tc_query_session *session, uint64_t segment,
                                    struct tb_diag *diag, struct tc_segment_row *out_row,
                                    int *out_fd);

#endif
