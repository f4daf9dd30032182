/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a month: archive/YYYY-MM.ledger, metas one after the other, each as a .meta file has it. Each is one of
 * tc_fold_end(), for the metas of a stream and a day of that month, which are gone or about to go.
 *
 * A record counts once all of it is there: what a crash left behind the last one is cut off by the next record. Where
 * bytes between two records are damaged, these two count.
 *
 * Memory    a file whole, while it is read: some 500 bytes a record.
 * Threads   use each object from one thread at a time; readers beside a writer hold tc_month_lock().
 * Errors    as tc_errno_rc() says, TB_NOMEM.
 */
#ifndef TC_ARCHIVE_MONTH_H
#define TC_ARCHIVE_MONTH_H

#include "archive/meta.h"
#include "archive/state_dir.h"

/* ---- reading */

struct tc_month_options {
  void (*problem)(
      void *self,
      const char *text); /* "FILE: reason": it cannot be read, or is damaged. NULL: an error */
  void *self;
  const struct tc_keys *keys; /* NULL: signatures do not count */
  bool sync;                  /* what is read is on the disk before it is given */
  const char *only;           /* a day: of its month alone; NULL: of all */
};

struct tc_month_record {
  tc_meta *meta;    /* lent until the next one; NULL: there are no more */
  const char *path; /* of its file, below the state folder */
  uint64_t offset;
  enum tc_signed by; /* with keys */
};

/* The records of all months, the oldest first. */
struct tc_month_reader;
TB_MUST tb_rc tc_month_reader_new(int archive_fd, const struct tc_month_options *options,
                                  struct tb_diag *diag, struct tc_month_reader **out);
void tc_month_reader_free(struct tc_month_reader *reader);
TB_MUST tb_rc tc_month_reader_next(struct tc_month_reader *reader, struct tb_diag *diag,
                                   struct tc_month_record *out);

/* ---- writing */

struct tc_month {
  int fd; /* -1: none is open */
  char name[24];
  uint64_t end; /* of the last record */
  bool is_new;  /* its name is not on the disk */
  bool unsure;  /* a record may be there that could not be written, nor cut off for good */
};

void tc_month_init(struct tc_month *month);
void tc_month_close(struct tc_month *month);
/* Behind the last record of the month of meta's day; on the disk afterwards if durable. An error: it is not there. */
TB_MUST tb_rc tc_month_append(struct tc_month *month, int archive_fd, const tc_meta *meta,
                              const struct tc_keys *signer, bool durable, struct tb_diag *diag);

/* Readers hold it shared while they look at ledgers and folders; a writer exclusively from before it appends until the
 * metas are gone, or not at all. -1: errno; EWOULDBLOCK. To be closed. */
int tc_month_lock(int archive_fd, bool exclusive);

/* ---- metas that a record stands for */

struct tc_month_cover {
  unsigned char stream[16];
  char day[TC_DAY_BYTES];
  uint64_t first_seq, last_seq, last_gen;
  struct tc_content_hash hash;
};

struct tc_month_covers {
  struct tc_month_cover *items; /* in no order until they are asked */
  size_t n, cap;
  bool is_sorted;
};

void tc_month_covers_fini(struct tc_month_covers *covers); /* accepts a zeroed one */
TB_MUST tb_rc tc_month_covers_add(struct tc_month_covers *covers, const tc_meta *record);
/* The first record of that stream and day that ends with this record of the stream, or behind it; NULL: there is none. */
const struct tc_month_cover *tc_month_covers_find(struct tc_month_covers *covers,
                                                  const unsigned char stream[16], const char *day,
                                                  uint64_t seq);
/* A meta of an expired segment or of losses, which a crash left beside the record that stands for it. */
bool tc_month_covers_it(struct tc_month_covers *covers, const tc_meta *meta);

#endif
