/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the pieces that fetch reads: the archive's segments cut to the requested generations, in order, and the holes between
 * them. Input are pages of the list.
 *
 * Memory    owns copies of what it keeps.
 * Errors    TB_NOMEM. TB_BROKEN: numbers of the answer contradict each other.
 */
#ifndef TK_FETCH_PLAN_H
#define TK_FETCH_PLAN_H

#include "archive/content_hash.h"
#include "proto/archive.pb-c.h"
#include "tools/tracectl/args/selector.h"

enum { TK_TRACE_HEADER_BYTES = 16 };

struct tk_piece_generation {
  uint64_t gen, bytes;
  unsigned char hash[TC_GENERATION_HASH_BYTES];
};

struct tk_piece {
  uint64_t segment;
  uint64_t first_gen, last_gen;
  uint64_t offset, len; /* of the generations, without the trace header */
  bool whole;           /* the whole file without its header: hash covers it */
  bool ends_broken;     /* its last generation is broken: Go's reader stops there */
  bool begins_file;     /* after a hole, or after a broken generation with --split */
  bool unsafe;          /* holds an experiment Go's tools cannot read */
  unsigned go_version;
  struct tc_content_hash hash;       /* of the file; TC_HASH_NONE: unknown */
  struct tk_piece_generation *parts; /* generations of the piece; NULL: hashes are unknown */
  size_t n_parts, parts_room;
};

/* Missing generations, and why. */
struct tk_gap {
  uint64_t first_gen, last_gen;
  const char *why;
};

struct tk_broken {
  uint64_t gen;
  char *reason;
};

struct tk_plan {
  const struct tk_selector *selector;
  bool splits_broken; /* a new file begins after a broken generation */
  /* From the selector, or --last counted back from the end of the stream's newest generation. */
  uint64_t since_wall_ns, until_wall_ns;
  struct tk_piece *pieces;
  size_t n_pieces, room;
  struct tk_gap *gaps; /* between pieces, and requested generations before and after them */
  size_t n_gaps, gaps_room;
  struct tk_gap *absences; /* generations that the archive reports as missing, with the reason */
  size_t n_absences, absences_room;
  struct tk_broken *broken;
  size_t n_broken, broken_room;
  uint64_t bytes; /* of all pieces */
};

void tk_plan_init(struct tk_plan *plan, const struct tk_selector *selector);
void tk_plan_fini(struct tk_plan *plan);
/* Adds a page of one stream's segments. */
TB_MUST tb_rc tk_plan_take(struct tk_plan *plan, const Tracecollect__V1__ListReply *page,
                           struct tb_diag *diag);
/* Call after the last page: finds the holes. */
TB_MUST tb_rc tk_plan_finish(struct tk_plan *plan, struct tb_diag *diag);

#endif
