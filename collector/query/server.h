/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about the archive over nng REQ/REP (proto/archive.proto): status, list, read,
 * report, verify, snap, trigger, firings, and those of leases.
 *
 * Each of a few worker threads owns one REP context and one read-only catalog connection; it may
 * block on files, so loops never wait for a reader. A list that asks to be settled goes behind a
 * barrier in the store: it sees everything acked before the question.
 *
 *   REQ ──> worker ──> catalog, segment files, reports registry
 *                ├───> TC_SUBMIT_BARRIER ──> store ──> tc_archive_reply()
 *                ├───> recorders ──SNAP──> agents
 *                └───> leases ──> REP
 *
 * Memory    a request is unpacked into an arena of fixed size; a reply holds at most one page of
 *           segments or one chunk of a file.
 * Threads   start and stop on one thread, tc_archive_reply() from the store's. The archive submits
 *           as sender number `sender`, one worker at a time.
 * Errors    start: TB_IO with the URL and reason, TB_CORRUPT: certificates or catalog, TB_NOMEM.
 *           A question that fails is answered with its code and words.
 */
#ifndef TC_QUERY_SERVER_H
#define TC_QUERY_SERVER_H

#include "collector/analysis/report_table.h"
#include "collector/ingest/recorders.h"
#include "collector/lease/broker.h"
#include "collector/net/nng_listener.h"
#include "collector/store/store.h"
#include "collector/trigger/triggers.h"

enum { TC_FIRINGS_ANSWER_MAX = 200 }; /* in one answer */

struct tc_archive_env {
  const struct tc_config *config; /* read by start() only */
  struct tc_store *store;
  struct tc_reports *reports;
  struct tc_leases *leases;               /* NULL: none are given */
  struct tc_recorders *recorders;         /* NULL: no agent gets requests for snaps */
  struct tc_triggers *triggers;           /* NULL: there are no rules */
  struct tc_history *kept;                /* NULL: no reports are kept */
  const char *feed_urls[TC_URLS_MAX + 1]; /* where the feed listens, for readers; up to a NULL */
  struct tc_nng_tls *tls;                 /* needed where listen.archive is tls+tcp:// */
  unsigned sender; /* the store's sender number, = loops; also the loop of its replies */
  uint64_t started_wall_ns;
  const char *version;
};

struct tc_archive;

TB_MUST tb_rc tc_archive_start(const struct tc_archive_env *env, struct tb_diag *diag,
                               struct tc_archive **out);
/* Ends the workers; a question under way gets no answer. Call it after tc_leases_stop() and before
 * tc_store_close(). */
void tc_archive_stop(struct tc_archive *archive);

uint64_t tc_archive_listener_turns(
    const struct tc_archive *archive); /* of its listeners' threads, one a second; any thread */
/* The real URLs, in the order of listen.archive; NULL: no more. */
const char *tc_archive_url(const struct tc_archive *archive, unsigned i);

/* The store's sink gives every TC_REPLY_BARRIER here, whatever its loop; owns reply. */
void tc_archive_reply(struct tc_archive *archive, struct tc_reply *reply);

#endif
