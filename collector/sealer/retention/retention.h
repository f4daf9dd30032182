/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which segments are deleted, and when (expire.c does it). A round works in slices of 20 ms between other work:
 * records never wait long, and the round need not wait for idle time. A round skips segments that cannot be deleted. */
#ifndef TC_SEALER_RETENTION_RETENTION_H
#define TC_SEALER_RETENTION_RETENTION_H

#include "collector/sealer/catalog/sync.h"
#include "collector/sealer/retention/fold.h"
#include "collector/sealer/seal/aside.h"
#include "collector/segment/reserve.h"
#include "collector/segment/retention.h"

/* The state of quarantine/ after the last pass. */
struct tc__quarantine {
  uint64_t files, bytes, oldest_wall_ns;
  struct tc__quarantine_pass *pass; /* in progress; NULL: none */
};

enum { TC__HALF_MAX = 64, TC__SLICE_NS = 20000000 };

/* Segments that are marked as expired in the meta, but not deleted completely. */
struct tc__half_gone {
  uint64_t ids[TC__HALF_MAX]; /* of their rows */
  size_t n;
  bool more;        /* ids[] was full; the next start finds the others */
  bool marked;      /* the catalog's mark was set by retention alone */
  unsigned makings; /* `makings` of the catalog that has their rows */
};

struct tc__round;

struct tc__retaining {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  const struct tc__file_queue *files; /* not published yet */
  const struct tc_reserve *reserve;
  struct tc__aside *aside;
  struct tc_retention pace;
  struct tc__round *round;     /* in progress; NULL: none */
  bool is_begun;               /* a round has begun since the start */
  uint64_t bytes;              /* of the archive after the last round */
  uint64_t finding_bytes;      /* kept only by findings, in the last round */
  uint64_t slice_bytes;        /* of the archive after the last slice */
  uint64_t next_ns;            /* no slice between other work before this time */
  uint64_t segments, noted_ns; /* deleted since the last log line; time of that line */
  struct tc__half_gone half_gone;
  size_t at_once; /* number of segments to mark together; 0: no batch yet */
  struct tc__quarantine quarantine;
  struct tc__folding folding;
};

/* The caller zeroes the struct and sets the pointers first. */
void tc__retaining_init(struct tc__retaining *retaining);
void tc__retaining_fini(struct tc__retaining *retaining);
/* Continues a round, or begins one that is due, for 20 ms. Called between two pieces of work. */
void tc__retain(struct tc__retaining *retaining);
bool tc__retains(const struct tc__retaining *retaining); /* has more to do */
/* Retention may be deleting segments: a round is in progress or a segment is half gone. */
bool tc__takes_segments(const struct tc__retaining *retaining);
/* For a stop: finishes segments that are half gone, and removes the catalog's mark. */
void tc__end_retention(struct tc__retaining *retaining);

#endif
