/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the archive and about what is running, answered with the messages of proto/archive.proto.
 *
 *   session ──> catalog, segment files, reports, rules, kept reports
 *      ├──TC_SUBMIT_BARRIER──> store ──> tc_query_reply()
 *      └──> recorders ──SNAP──> agents
 *
 * A question may block on files, so sessions are for workers, not for loops. A list that asks to be settled goes behind a
 * barrier in the store: it sees everything acked before the question. It may wait for seconds, as a snap may; a verification
 * reads every byte there is.
 *
 * Memory    a session owns a read-only catalog connection, and of its last answer some 64 MiB at most.
 * Threads   a session: one at a time. reply: the store's. stop: any.
 * Errors    new: TB_NOMEM. Questions: TB_PROTOCOL, TB_NOTFOUND, TB_REFUSED, TB_BUDGET (too large, too many), TB_UNSUPPORTED (not
 *           here), TB_BUSY (later), TB_IO, TB_NOMEM; always with words.
 */
#ifndef TC_QUERY_SESSION_H
#define TC_QUERY_SESSION_H

#include "archive/catalog/catalog.h"
#include "collector/analysis/report_table.h"
#include "collector/history/history.h"
#include "collector/ingest/recorders.h"
#include "collector/store/store.h"
#include "collector/trigger/triggers.h"
#include "config/url_list.h"
#include "proto/archive.pb-c.h"

enum { TC_FIRINGS_ANSWER_MAX = 200 }; /* in one answer */

struct tc_query_env {
  struct tc_store *store;
  struct tc_reports *reports;
  struct tc_recorders *recorders;         /* NULL: no agent gets requests for snaps */
  struct tc_triggers *triggers;           /* NULL: there are no rules */
  struct tc_history *kept;                /* NULL: no reports are kept */
  const char *feed_urls[TC_URLS_MAX + 1]; /* where the feed listens, for readers; up to a NULL */
  unsigned sender; /* the store's sender number, = loops; also the loop of its replies */
  uint64_t started_wall_ns;
  const char *version;
  bool durable; /* what an ack promises */
};

struct tc_query;

TB_MUST tb_rc tc_query_new(const struct tc_query_env *env, struct tb_diag *diag,
                           struct tc_query **out);
/* The store's sink gives every TC_REPLY_BARRIER here, whatever its loop; owns reply. */
void tc_query_reply(struct tc_query *query, struct tc_reply *reply);
/* Questions that wait end with TB_IO, later ones too. NULL is fine. */
void tc_query_stop(struct tc_query *query);
void tc_query_free(struct tc_query *query); /* after its sessions and the store; NULL is fine */

struct tc_reports *tc_query_reports(const struct tc_query *query);

struct tc_query_session;

/* NULL: no memory. */
struct tc_query_session *tc_query_session_new(struct tc_query *query);
void tc_query_session_free(
    struct tc_query_session *session); /* before the store's end; NULL is fine */

/* --- questions: an answer lives until the session's next one ------------------------------------ */

/* What looks at a long one from outside. */
struct tc_query_watch {
  void *self;
  bool (*stop)(void *self); /* true: give up */
  void (*progress)(void *self, uint64_t done_bytes, uint64_t total_bytes);
};

TB_MUST tb_rc tc_query_status(struct tc_query_session *session, struct tb_diag *diag,
                              Tracecollect__V1__StatusReply **out);
#define TC_QUESTION(name, Message)                                                                 \
  TB_MUST tb_rc tc_query_##name(struct tc_query_session *session,                                  \
                                const Tracecollect__V1__##Message##Request *ask,                   \
                                struct tb_diag *diag, Tracecollect__V1__##Message##Reply **out)
TC_QUESTION(list, List);
TC_QUESTION(report, Report);
TC_QUESTION(history, History);
TC_QUESTION(firings, Firings);
/* Agents' flight recorders send what they keep; answered when they have answered. */
TC_QUESTION(snap, Snap);
#undef TC_QUESTION
/* Rules, after one was added or removed, where they are not NULL: whether that may be, the caller has looked. */
TB_MUST tb_rc tc_query_triggers(struct tc_query_session *session, const char *add,
                                const char *remove, struct tb_diag *diag,
                                Tracecollect__V1__TriggerReply **out);
/* Proves the whole archive: reads every byte of it. */
TB_MUST tb_rc tc_query_verify(struct tc_query_session *session,
                              const struct tc_query_watch *watch, struct tb_diag *diag,
                              Tracecollect__V1__VerifyReply **out);

/* A segment's row and its file, opened for reading; the caller closes it. TB_NOTFOUND, TB_IO. */
TB_MUST tb_rc tc_query_session_open(struct tc_query_session *session, uint64_t segment,
                                    struct tb_diag *diag, struct tc_segment_row *out_row,
                                    int *out_fd);

#endif
