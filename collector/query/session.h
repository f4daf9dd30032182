/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about the archive and live streams, with messages of proto/archive.proto.
 *
 *   session ──> catalog, segment files, reports, rules, stored reports
 *      ├──TC_SUBMIT_BARRIER──> store ──> tc_query_reply()
 *      └──> recorders ──SNAP──> agents
 *
 * A question may block on files, so call sessions on workers, not on loops. A list with `settle` first waits for a barrier in
 * the store, so that it contains everything acked before the question. It may wait for seconds, as may a snap; a
 * verification reads the whole archive.
 *
 * Memory    a session owns a read-only catalog connection and its last answer, at most about 64 MiB.
 * Threads   a session: one thread at a time. reply: the store's. stop: any.
 * Errors    new: TB_NOMEM. Questions: TB_PROTOCOL, TB_NOTFOUND, TB_REFUSED, TB_BUDGET (too large, too many),
 *           TB_UNSUPPORTED (not available here), TB_BUSY (try again later), TB_IO, TB_NOMEM; always with a text in diag.
 */
#ifndef TC_QUERY_SESSION_H
#define TC_QUERY_SESSION_H

#include "archive/catalog/catalog.h"
#include "collector/analysis/report_table.h"
#include "collector/findings/findings.h"
#include "collector/history/history.h"
#include "collector/ingest/recorders.h"
#include "collector/store/store.h"
#include "collector/trigger/triggers.h"
#include "config/url_list.h"
#include "proto/archive.pb-c.h"

enum {
  TC_FIRINGS_ANSWER_MAX = 200, /* firings in one answer */
  TC_FINDINGS_ANSWER_MAX = 1000,
};

struct tc_query_env {
  struct tc_store *store;
  struct tc_reports *reports;
  struct tc_recorders *recorders;         /* NULL: snaps are not supported */
  struct tc_triggers *triggers;           /* NULL: there are no rules */
  struct tc_findings *findings;           /* NULL: findings are not stored */
  struct tc_history *kept;                /* NULL: no reports are kept */
  const char *feed_urls[TC_URLS_MAX + 1]; /* URLs of the feed, up to a NULL */
  unsigned sender; /* sender number at the store, and loop number of replies: the number of loops */
  uint64_t started_wall_ns;
  const char *version;
  bool durable; /* sync: durable */
};

struct tc_query;

TB_MUST tb_rc tc_query_new(const struct tc_query_env *env, struct tb_diag *diag,
                           struct tc_query **out);
/* Receives every TC_REPLY_BARRIER of the store's sink; owns reply. */
void tc_query_reply(struct tc_query *query, struct tc_reply *reply);
/* Ends waiting and later questions with TB_IO. Accepts NULL. */
void tc_query_stop(struct tc_query *query);
void tc_query_free(struct tc_query *query); /* after its sessions and the store; accepts NULL */

struct tc_reports *tc_query_reports(const struct tc_query *query);

struct tc_query_session;

/* Returns NULL if memory cannot be allocated. */
struct tc_query_session *tc_query_session_new(struct tc_query *query);
/* Call before the store is closed; accepts NULL. */
void tc_query_session_free(struct tc_query_session *session);

/* --- questions: an answer lives until the session's next one ------------------------------------ */

/* Control of a long question. */
struct tc_query_watch {
  void *self;
  bool (*stop)(void *self); /* returns true to stop */
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
TC_QUESTION(findings, Findings);
/* Sentences that say what stands out; one says that there is nothing to look at. */
TC_QUESTION(summary, Summary);
/* Asks agents' flight recorders for their events; returns after they have answered. */
TC_QUESTION(snap, Snap);
#undef TC_QUESTION
/* Adds and removes a rule (unless NULL) and returns all rules. The caller checks permissions. */
TB_MUST tb_rc tc_query_triggers(struct tc_query_session *session, const char *add,
                                const char *remove, struct tb_diag *diag,
                                Tracecollect__V1__TriggerReply **out);
/* Mutes a finding, and returns it alone. The caller checks permissions. TB_NOTFOUND; TB_BROKEN: no reason. */
TB_MUST tb_rc tc_query_mute(struct tc_query_session *session,
                            const Tracecollect__V1__MuteRequest *ask, struct tb_diag *diag,
                            Tracecollect__V1__FindingsReply **out);
/* Verifies the whole archive; reads every byte. */
TB_MUST tb_rc tc_query_verify(struct tc_query_session *session, const struct tc_query_watch *watch,
                              struct tb_diag *diag, Tracecollect__V1__VerifyReply **out);

/* A stream, and the time in it that has the slowest task or region of a type from its begin on. */
struct tc_query_slowest {
  unsigned char stream[TC_REPORT_STREAM_BYTES];
  uint64_t from_wall_ns, until_wall_ns;
};
/* Looks through the reports of a service's streams, or of an instance's if it is not "". Live streams come before ended ones; those
 * that neither are connected nor sent anything in the window do not count. TB_NOTFOUND: no task or region of this type is complete. */
TB_MUST tb_rc tc_query_slowest(struct tc_query_session *session, const char *service,
                               const char *instance, const char *type, enum to_window window,
                               struct tb_diag *diag, struct tc_query_slowest *out);

/* Returns a segment's row and its file, opened for reading; the caller closes the file. TB_NOTFOUND, TB_IO. */
TB_MUST tb_rc tc_query_session_open(struct tc_query_session *session, uint64_t segment,
                                    struct tb_diag *diag, struct tc_segment_row *out_row,
                                    int *out_fd);

#endif
