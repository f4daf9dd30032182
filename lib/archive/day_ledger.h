/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a day: archive/YYYY-MM-DD/ledger, a file of records. A record is a meta made by tc_fold_end(), in the format
 * of a .meta file. It replaces the metas of a stream in that day's folder, which are removed afterwards.
 *
 * Incomplete and damaged records are ignored. A complete record that this program does not understand, or that belongs
 * to another day, is ignored but kept.
 *
 * Memory    all records of a day, some 500 bytes each.
 * Threads   use each object from one thread at a time; readers beside a writer hold tc_day_ledger_lock().
 * Errors    as tc_errno_rc() and tc_read_rc() say, TB_NOMEM.
 */
#ifndef TC_ARCHIVE_DAY_LEDGER_H
#define TC_ARCHIVE_DAY_LEDGER_H

#include "archive/meta.h"
#include "archive/state_dir.h"

#define TC_DAY_LEDGER_NAME "ledger"

struct tc_day_record {
  tc_meta *meta;
  uint64_t offset;   /* byte in the file */
  enum tc_signed by; /* set if options had keys */
};

struct tc_day_ledger {
  char day[TC_DAY_BYTES];
  struct tc_day_record *records; /* sorted by stream and last_seq */
  size_t n, cap;
  size_t foreign; /* complete records that are not understood */
};

struct tc_day_ledger_options {
  const struct tc_keys *keys; /* NULL: signatures are not checked */
  bool settle;                /* sync the file, and cut off an incomplete record at the end */
  void (*damaged)(void *self, const char *text); /* "FILE: ignored part"; may be NULL */
  void (*cut)(void *self, const char *text);     /* "FILE: part that was cut off"; may be NULL */
  void *self;
};

/* Replaces the content of out. If the file does not exist, there are no records. */
TB_MUST tb_rc tc_day_ledger_read(int day_fd, const char *day,
                                 const struct tc_day_ledger_options *options, struct tb_diag *diag,
                                 struct tc_day_ledger *out);
void tc_day_ledger_fini(struct tc_day_ledger *ledger); /* accepts a zeroed one */

/* Returns the stream's first record whose last_seq is at least seq, or NULL. */
const tc_meta *tc_day_ledger_find(const struct tc_day_ledger *ledger,
                                  const unsigned char stream[16], uint64_t seq);
/* Is this a meta of an expired segment or of losses, left by a crash beside the record that replaces it? */
bool tc_day_ledger_covers(const struct tc_day_ledger *ledger, const tc_meta *meta);

/* Appends a record; durable: synced to the disk. After an error the record is not in the file, unless *out_unsure. */
TB_MUST tb_rc tc_day_ledger_append(int day_fd, const tc_meta *record, const struct tc_keys *signer,
                                   bool durable, struct tb_diag *diag, bool *out_unsure);

/* Locks the ledgers of all days: shared by readers while they read ledgers and folders, exclusive (without waiting) by a
 * writer from before it appends until the metas are removed. Returns a descriptor, which close() unlocks, or -1 with
 * errno; EWOULDBLOCK: somebody holds the lock. */
int tc_day_ledger_lock(int archive_fd, bool exclusive);

#endif
