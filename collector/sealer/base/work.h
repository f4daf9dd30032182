/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two threads: the commit thread sends work to the sealer, the sealer reports how far streams are settled. */
#ifndef TC_SEALER_BASE_WORK_H
#define TC_SEALER_BASE_WORK_H

#include "archive/content_hash.h"
#include "archive/state_dir.h"
#include "collector/model/messages.h"

enum tc_work_kind {
  TC_WORK_STREAM = 1, /* a new stream */
  TC_WORK_ATTACHED,
  TC_WORK_DETACHED,
  TC_WORK_COUNTERS,
  TC_WORK_RECORDS,
  TC_WORK_ABANDON,    /* the stream no longer has a writer */
  TC_WORK_CHECKPOINT, /* the stream holds much of the log */
  TC_WORK_GIVE_UP,    /* the stream holds too much of the log */
  TC_WORK_FORGET,     /* the stream table has dropped it */
  TC_WORK_VERDICT,
  TC_WORK_BARRIER,
};

/* A stream's records up to seq are on the disk in an open file, so the log need not keep them. */
struct tc_checkpoint {
  uint64_t seq;
  uint64_t lsn; /* later records of the stream are after this in the log */
  bool run;     /* of whole generations: a record of kind TC_WAL_RUN */
  size_t len;
  unsigned char packed[]; /* LogCheckpoint */
};

/* How far a stream's records are settled (the log need not keep them), and its last segment. */
struct tc_settled {
  uint32_t stream;
  uint64_t seq;
  char day[TC_DAY_BYTES];
  uint64_t first_gen, last_gen;
  struct tc_content_hash hash;
  bool has_segment;
  uint64_t abandoned_gen;
  struct tc_checkpoint *checkpoint; /* if set, of the other fields only `stream` is valid */
};
void tc_settled_free(struct tc_settled *settled); /* must be from malloc() */

struct tc_stream_intro {
  uint32_t ref;
  unsigned home; /* loop */
  unsigned char id[TC_STREAM_BYTES];
  char identity[TC_IDENTITY_MAX + 1], service[TC_NAME_MAX + 1], instance[TC_NAME_MAX + 1];
  unsigned char header[64];
  uint32_t header_len;
  struct tc_settled settled; /* zeroed: nothing yet */
};

enum { TC_WORK_MAGIC = 0x3042b504 };

struct tc_work {
  struct tc_work *next;
  enum tc_work_kind kind;
  uint32_t stream;
  uint32_t magic; /* TC_WORK_MAGIC */
  union {
    struct tc_stream_intro *intro; /* malloc */
    struct {
      uint64_t conn;
      unsigned loop;
      char peer[64];
    } attached;
    struct tc_counters counters;
    struct {
      struct tc_record *head;
      uint64_t wall_ns;
      uint64_t end_lsn; /* end of these records in the log */
    } records;
    struct tc_verdict *verdict; /* malloc */
    uint64_t give_up_seq;       /* generations that are open up to this record are given up */
    struct {
      uint64_t held_lsn; /* the stream holds the log from here on; UINT64_MAX: unconditional */
      bool disk_begun;   /* the kernel is writing the file already */
    } checkpoint;
    struct {
      uint64_t cookie;
      unsigned loop;
    } barrier;
  };
};

/* Returns NULL if memory cannot be allocated. */
struct tc_work *tc_work_new(enum tc_work_kind kind, uint32_t stream);
void tc_work_free(struct tc_work *work);

#endif
