/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's writing side: a row per meta, totals per stream kept by triggers, so that every table
 * stays a function of the metas; and what is known of live streams and open runs, which is not.
 *
 * Threads   the segment thread only (and tools while no daemon runs).
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

/* Replaces the row of the meta's stream and first generation, keeping its id. */
TB_MUST tb_rc tc_catalog_put(struct tc_catalog *catalog, const tc_meta *meta, struct tb_diag *diag);

/* Of a run that is still written: its first generations, which have their last verdict, "ok". Their part of the meta is
 * written once and not again, so that a run which grows costs no more the longer it is. Zero: none yet. */
struct tc_open_kept {
  uint64_t parts, generations, first_gen, batches, events;
  uint64_t lost_batches, lost_bytes, lost_generations;
  bool unsafe_experiment;
  struct tc_wall wall;
};
struct tc_open_run {
  const char *path;         /* of the file that has its complete generations, in the state folder */
  struct tc_open_kept kept; /* as the catalog has them; put_open() adds those of next */
  const tc_meta *next; /* of the generations behind them that are kept from now on; NULL: none */
  const tc_meta *rest; /* of those behind these, one at least, as it would be now */
};
/* A sealed row of that name stays as it is; tc_catalog_put() seals this one. */
TB_MUST tb_rc tc_catalog_put_open(struct tc_catalog *catalog, struct tc_open_run *run,
                                  struct tb_diag *diag);
/* The open run that begins with this generation will never be sealed. */
TB_MUST tb_rc tc_catalog_drop_open(struct tc_catalog *catalog, const unsigned char stream[16],
                                   uint64_t first_gen, struct tb_diag *diag);

/* A stream's facts beside its metas: row's names, state, peer, go_version, acked_seq, produced,
 * spool and cut. */
TB_MUST tb_rc tc_catalog_put_live(struct tc_catalog *catalog, const struct tc_stream_row *row,
                                  struct tb_diag *diag);
/* After a start nothing is live or open. */
TB_MUST tb_rc tc_catalog_forget_live(struct tc_catalog *catalog, struct tb_diag *diag);

struct tc_catalog_totals {
  uint64_t bytes, segments; /* not expired */
  uint64_t expired;
};
TB_MUST tb_rc tc_catalog_totals(struct tc_catalog *catalog, struct tb_diag *diag,
                                struct tc_catalog_totals *out);

/* catalog.stale: the catalog does not say all that the metas say, so the next start rebuilds it. To be set, and with
 * `durable` to be on the disk, before that is so. */
TB_MUST tb_rc tc_catalog_mark_stale(int state_fd, bool durable, struct tb_diag *diag);
void tc_catalog_unmark_stale(int state_fd);
bool tc_catalog_is_stale(int state_fd); /* or it cannot be seen */

/* Takes away so many rows at most of the metas that a record of a day's ledger stands for; sums stay as they are. *out_more:
 * there may be more. */
TB_MUST tb_rc tc_catalog_drop_folded(struct tc_catalog *catalog, const tc_meta *record,
                                     unsigned most, struct tb_diag *diag, bool *out_more);
/* Adds a record's figures to the sums: those of a catalog that is made again. */
TB_MUST tb_rc tc_catalog_put_folded(struct tc_catalog *catalog, const tc_meta *record,
                                    struct tb_diag *diag);

/* The bytes that each stream's sums have beyond its rows: those of a day's ledger. In order of stream. */
typedef tb_rc tc_folded_fn(void *self, const unsigned char stream[16], int64_t bytes);
TB_MUST tb_rc tc_catalog_folded(struct tc_catalog *catalog, tc_folded_fn *each, void *self,
                                struct tb_diag *diag);

struct tc_rebuilt {
  uint64_t segments;
  /* What is to be done again: metas, ledgers and folders that the disk did not give now, which may be sound, records that a
   * newer program may understand, expired traces that the disk did not take away. */
  uint64_t unread;
};
/* Empties everything and fills it from archive/.../.meta. A meta that cannot be read or is damaged, or a
 * folder that cannot be listed, is passed to note and left out. A file that is no database is replaced. Where a meta
 * says that its trace has expired, and a crash kept it from being unlinked, it is unlinked now. */
TB_MUST tb_rc tc_catalog_rebuild(int state_fd, int archive_fd, struct tb_diag *diag,
                                 void (*note)(void *self, const char *text), void *self,
                                 struct tc_rebuilt *out);

/* The same in steps, each a transaction, between which its owner may write metas: what it puts meanwhile is in the new
 * catalog wherever the walk has got to. go_on: TB_AGAIN, there is more; at least one file is looked at, or a record of a ledger. */
struct tc_rebuild;
TB_MUST tb_rc tc_catalog_rebuild_begin(int state_fd, int archive_fd, struct tb_diag *diag,
                                       void (*note)(void *self, const char *text), void *self,
                                       struct tc_rebuild **out);
TB_MUST tb_rc tc_catalog_rebuild_go_on(struct tc_rebuild *rebuild, uint64_t until_ns,
                                       struct tb_diag *diag, struct tc_rebuilt *out);
TB_MUST tb_rc tc_catalog_rebuild_put(struct tc_rebuild *rebuild, const tc_meta *meta,
                                     struct tb_diag *diag);
void tc_catalog_rebuild_free(struct tc_rebuild *rebuild);

/* Where the stream's newest note of losses lies, a meta without a trace. TB_NOTFOUND: it has none. */
TB_MUST tb_rc tc_catalog_note(struct tc_catalog *catalog, const unsigned char stream[16],
                              struct tb_diag *diag, char out_day[TC_DAY_BYTES], uint64_t *out_gen);

/* Segments whose verdict is pending, by stream and generation. */
TB_MUST tb_rc tc_catalog_pending(struct tc_catalog *catalog, tc_segment_row_fn *each, void *self,
                                 struct tb_diag *diag);
/* Published segments that retention may take, oldest first: of one service, or NULL: of all; those behind a row, or
 * NULL: from the oldest on. */
TB_MUST tb_rc tc_catalog_oldest(struct tc_catalog *catalog, const char *service,
                                const struct tc_segment_row *after, unsigned limit,
                                tc_segment_row_fn *each, void *self, struct tb_diag *diag);
/* When the newest of them came; 0: there is none. */
TB_MUST tb_rc tc_catalog_newest_arrival(struct tc_catalog *catalog, uint64_t *out_arrival_ns,
                                        struct tb_diag *diag);
/* Services that take more than bytes. */
TB_MUST tb_rc tc_catalog_heavy(struct tc_catalog *catalog, uint64_t bytes,
                               tb_rc (*each)(void *self, const char *service,
                                             uint64_t service_bytes),
                               void *self, struct tb_diag *diag);

#endif
