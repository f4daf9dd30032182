/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments go, and when (expire.c: how). A round goes on in slices of 20 ms between other work, so that
 * records never wait long for it, nor it for a time without records. Where segments lie that cannot be taken away, the
 * round goes on behind them. */
#ifndef TC_SEALER_RETENTION_RETENTION_H
#define TC_SEALER_RETENTION_RETENTION_H

#include "collector/sealer/catalog/sync.h"
#include "collector/sealer/retention/fold.h"
#include "collector/sealer/seal/aside.h"
#include "collector/segment/reserve.h"
#include "collector/segment/retention.h"

/* quarantine/ as retention last saw it. */
struct tc__quarantine {
  uint64_t files, bytes, oldest_wall_ns;
  struct tc__quarantine_pass *pass; /* NULL: none is under way */
};

enum { TC__HALF_MAX = 64, TC__SLICE_NS = 20000000 };

/* Segments of which the meta says that they expired, and that are not gone yet. */
struct tc__half_gone {
  uint64_t ids[TC__HALF_MAX]; /* of their rows */
  size_t n;
  bool more;        /* than there is room for: the next start finds them */
  bool marked;      /* retention set the catalog's mark, and nothing else counts on it */
  unsigned makings; /* of the catalog that has their rows */
};

struct tc__round;

struct tc__retaining {
  const struct tc__env *env;
  struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  const struct tc__file_queue *files; /* that are not published yet */
  const struct tc_reserve *reserve;
  struct tc__aside *aside;
  struct tc_retention pace;
  struct tc__round *round;     /* goes on; NULL: none does */
  bool is_begun;               /* there was one */
  uint64_t bytes;              /* of the archive after the last one */
  uint64_t slice_bytes;        /* and after the last slice */
  uint64_t next_ns;            /* not before, between other work */
  uint64_t segments, noted_ns; /* taken since the last note, and when that was */
  struct tc__half_gone half_gone;
  size_t at_once; /* so many are marked together; 0: none was yet */
  struct tc__quarantine quarantine;
  struct tc__folding folding;
};

/* The rest is zeroed and set by the caller. */
void tc__retaining_init(struct tc__retaining *retaining);
void tc__retaining_fini(struct tc__retaining *retaining);
/* Between two works: goes on with a round, or begins one that is due, for 20 ms. */
void tc__retain(struct tc__retaining *retaining);
bool tc__retains(const struct tc__retaining *retaining); /* there is more to do */
/* A round goes on, or a segment is half gone: files that are missing may be its. */
bool tc__takes_segments(const struct tc__retaining *retaining);
/* A stop: what is half gone goes, and the catalog's mark with it. */
void tc__end_retention(struct tc__retaining *retaining);

#endif
