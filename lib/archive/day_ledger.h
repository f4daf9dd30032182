/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a day: archive/YYYY-MM-DD/ledger, metas one after the other, each as a .meta file has it. Each is one of
 * tc_fold_end(), for the metas of a stream in that day's folder, which are gone or about to go.
 *
 * A record counts if all of it is there. Damaged bytes cost the records that they are in. A whole one that this program does
 * not understand, or that belongs to another day, does not count, and stays.
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
  uint64_t offset;   /* in the file */
  enum tc_signed by; /* with keys */
};

struct tc_day_ledger {
  char day[TC_DAY_BYTES];
  struct tc_day_record *records; /* in order of stream and last record */
  size_t n, cap;
  size_t foreign; /* whole ones that are not understood */
};

struct tc_day_ledger_options {
  const struct tc_keys *keys; /* NULL: signatures do not count */
  bool settle; /* syncs the file, and cuts off what a crash left behind the last whole record */
  void (*damaged)(void *self, const char *text); /* "FILE: what does not count"; may be NULL */
  void (*cut)(void *self, const char *text);     /* "FILE: what was cut off"; may be NULL */
  void *self;
};

/* Replaces what out has. A day without a ledger has no records. */
TB_MUST tb_rc tc_day_ledger_read(int day_fd, const char *day,
                                 const struct tc_day_ledger_options *options, struct tb_diag *diag,
                                 struct tc_day_ledger *out);
void tc_day_ledger_fini(struct tc_day_ledger *ledger); /* accepts a zeroed one */

/* The first record of the stream that ends with this record of it, or behind it; NULL: there is none. */
const tc_meta *tc_day_ledger_find(const struct tc_day_ledger *ledger,
                                  const unsigned char stream[16], uint64_t seq);
/* A meta of an expired segment or of losses, which a crash left beside the record that stands for it. */
bool tc_day_ledger_covers(const struct tc_day_ledger *ledger, const tc_meta *meta);

/* Behind what the file has, and with durable on the disk. After an error the record is not there, unless *out_unsure. */
TB_MUST tb_rc tc_day_ledger_append(int day_fd, const tc_meta *record, const struct tc_keys *signer,
                                   bool durable, struct tb_diag *diag, bool *out_unsure);

/* Readers hold it shared while they look at ledgers and folders; a writer exclusively from before it appends until the
 * metas are gone, or not at all. -1: errno; EWOULDBLOCK. To be closed. */
int tc_day_ledger_lock(int archive_fd, bool exclusive);

#endif
