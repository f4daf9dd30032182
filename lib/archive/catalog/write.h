/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's writing side: a row per meta, with totals kept by triggers, so that these tables can be rebuilt from the
 * metas; and rows of live streams and open runs, which cannot.
 *
 * Threads   the sealer only (and tools while no daemon runs).
 * Errors    as catalog.h.
 */
#ifndef TC_ARCHIVE_CATALOG_WRITE_H
#define TC_ARCHIVE_CATALOG_WRITE_H

#include "archive/catalog/catalog.h"
#include "archive/generation_time.h"
#include "archive/meta.h"
#include "archive/state_dir.h"

TB_MUST tb_rc tc_catalog_begin(struct tc_catalog *catalog, struct tb_diag *diag);
TB_MUST tb_rc tc_catalog_commit(struct tc_catalog *catalog, struct tb_diag *diag);
void tc_catalog_rollback(struct tc_catalog *catalog);

/* Adds or replaces the row of the meta's stream and first generation; a replaced row keeps its id. */
TB_MUST tb_rc tc_catalog_put(struct tc_catalog *catalog, const tc_meta *meta, struct tb_diag *diag);

/* The first generations of an open run whose verdict is final ("ok"). Their part of the meta is written only once, so that
 * the cost of an update does not grow with the run. Zeroed: none yet. */
struct tc_open_kept {
  uint64_t parts, generations, first_gen, batches, events;
  uint64_t lost_batches, lost_bytes, lost_generations;
  bool unsafe_experiment;
  struct tc_wall wall;
};
struct tc_open_run {
  const char *path;         /* file of the complete generations, relative to the state folder */
  struct tc_open_kept kept; /* as stored in the catalog; tc_catalog_put_open() adds next */
  const tc_meta *next;      /* generations to add to kept; NULL: none */
  const tc_meta *rest;      /* all later generations, at least one */
};
/* Does not replace a sealed row. tc_catalog_put() later seals this row. */
TB_MUST tb_rc tc_catalog_put_open(struct tc_catalog *catalog, struct tc_open_run *run,
                                  struct tb_diag *diag);
/* Deletes the row of an open run that will not be sealed. */
TB_MUST tb_rc tc_catalog_drop_open(struct tc_catalog *catalog, const unsigned char stream[16],
                                   uint64_t first_gen, struct tb_diag *diag);

/* Stores the facts of a live stream that no meta has: row's names, state, peer, go_version, acked_seq, produced, spool and
 * cut. */
TB_MUST tb_rc tc_catalog_put_live(struct tc_catalog *catalog, const struct tc_stream_row *row,
                                  struct tb_diag *diag);
/* Clears live streams and open runs; for a start of the daemon. */
TB_MUST tb_rc tc_catalog_forget_live(struct tc_catalog *catalog, struct tb_diag *diag);

struct tc_catalog_totals {
  uint64_t bytes, segments; /* not expired */
  uint64_t expired;
};
TB_MUST tb_rc tc_catalog_totals(struct tc_catalog *catalog, struct tb_diag *diag,
                                struct tc_catalog_totals *out);

/* catalog.stale marks a catalog that may lack rows of metas: the next start rebuilds it. Set the mark (`durable`: synced
 * to the disk) before metas and catalog differ. */
TB_MUST tb_rc tc_catalog_mark_stale(int state_fd, bool durable, struct tb_diag *diag);
void tc_catalog_unmark_stale(int state_fd);
bool tc_catalog_is_stale(int state_fd); /* true if the mark cannot be checked */

/* Deletes the catalog's rows for metas that this ledger record replaces, but no more than `most`; the sums do not change.
 * *out_more: there may be more such rows. */
TB_MUST tb_rc tc_catalog_drop_folded(struct tc_catalog *catalog, const tc_meta *record,
                                     unsigned most, struct tb_diag *diag, bool *out_more);
/* Adds a ledger record's figures to the sums; for a rebuild. */
TB_MUST tb_rc tc_catalog_put_folded(struct tc_catalog *catalog, const tc_meta *record,
                                    struct tb_diag *diag);

/* Reports for each stream, in order, by how many bytes its sum exceeds its rows: these are the bytes of ledger records. */
typedef tb_rc tc_folded_fn(void *self, const unsigned char stream[16], int64_t bytes);
TB_MUST tb_rc tc_catalog_folded(struct tc_catalog *catalog, tc_folded_fn *each, void *self,
                                struct tb_diag *diag);

struct tc_rebuilt {
  uint64_t segments;
  /* Failures that a later rebuild may not have: unreadable metas, ledgers and folders, ledger records of a newer
   * program, expired traces that could not be removed. */
  uint64_t unread;
};
/* Creates a new catalog from the metas and ledgers of archive/. A meta that is damaged or cannot be read, or a folder that
 * cannot be listed, is reported to note and left out. Removes traces that are marked as expired but that a crash left. */
TB_MUST tb_rc tc_catalog_rebuild(int state_fd, int archive_fd, struct tb_diag *diag,
                                 void (*note)(void *self, const char *text), void *self,
                                 struct tc_rebuilt *out);

/* The same rebuild in steps, each a transaction. Between steps the owner may write metas: tc_catalog_rebuild_put() adds
 * them, whatever the walk has reached. go_on handles at least one file or ledger record; TB_AGAIN: there is more. */
struct tc_rebuild;
TB_MUST tb_rc tc_catalog_rebuild_begin(int state_fd, int archive_fd, struct tb_diag *diag,
                                       void (*note)(void *self, const char *text), void *self,
                                       struct tc_rebuild **out);
TB_MUST tb_rc tc_catalog_rebuild_go_on(struct tc_rebuild *rebuild, uint64_t until_ns,
                                       struct tb_diag *diag, struct tc_rebuilt *out);
TB_MUST tb_rc tc_catalog_rebuild_put(struct tc_rebuild *rebuild, const tc_meta *meta,
                                     struct tb_diag *diag);
void tc_catalog_rebuild_free(struct tc_rebuild *rebuild);

/* Returns day and first generation of the stream's newest note of losses (a meta without a trace). TB_NOTFOUND: none. */
TB_MUST tb_rc tc_catalog_note(struct tc_catalog *catalog, const unsigned char stream[16],
                              struct tb_diag *diag, char out_day[TC_DAY_BYTES], uint64_t *out_gen);

/* Walks segments whose verdict is pending, by stream and generation. */
TB_MUST tb_rc tc_catalog_pending(struct tc_catalog *catalog, tc_segment_row_fn *each, void *self,
                                 struct tb_diag *diag);
/* Walks segments that retention may remove, oldest first. service NULL: all services. after NULL: from the oldest on. */
TB_MUST tb_rc tc_catalog_oldest(struct tc_catalog *catalog, const char *service,
                                const struct tc_segment_row *after, unsigned limit,
                                tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* Returns the arrival time of the newest of these segments; 0: there is none. */
TB_MUST tb_rc tc_catalog_newest_arrival(struct tc_catalog *catalog, uint64_t *out_arrival_ns,
                                        struct tb_diag *diag);
/* Reports services whose segments use more than `bytes`. */
TB_MUST tb_rc tc_catalog_heavy(struct tc_catalog *catalog, uint64_t bytes,
                               tb_rc (*each)(void *self, const char *service,
                                             uint64_t service_bytes),
                               void *self, struct tb_diag *diag);

#endif
