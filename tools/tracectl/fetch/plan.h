/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that fetch will read: the archive's segments cut to the asked generations, in order, with the holes
 * between them. Pages of the list go in, pieces come out.
 *
 * Memory    owns copies of what it keeps.
 * Errors    TB_NOMEM. TB_BROKEN: the answer's own numbers do not fit together.
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
  uint64_t offset, len; /* of the generations' bytes, the header not counted */
  bool whole;           /* all of the file behind its header: hash covers it */
  bool ends_broken;     /* its last generation is: Go's reader goes no further */
  bool begins_file;     /* a hole lies before it, or a broken generation that splits */
  bool unsafe;          /* holds an experiment Go's tools cannot read */
  unsigned go_version;
  struct tc_content_hash hash; /* of the file; TC_HASH_NONE: unknown */
  struct tk_piece_generation
      *parts; /* each generation of the piece; NULL: their hashes are unknown */
  size_t n_parts, parts_room;
};

/* Generations that are not there, and why. */
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
  bool splits_broken; /* what follows a broken generation begins a file */
  /* From the selector, or its --last counted back from where the stream's newest generation ends. */
  uint64_t since_wall_ns, until_wall_ns;
  struct tk_piece *pieces;
  size_t n_pieces, room;
  struct tk_gap *gaps; /* holes between pieces, and asked generations before and after them */
  size_t n_gaps, gaps_room;
  struct tk_gap *absences; /* what the archive says of generations it does not hold */
  size_t n_absences, absences_room;
  struct tk_broken *broken;
  size_t n_broken, broken_room;
  uint64_t bytes; /* of all pieces */
};

void tk_plan_init(struct tk_plan *plan, const struct tk_selector *selector);
void tk_plan_fini(struct tk_plan *plan);
/* A page of one stream's segments. */
TB_MUST tb_rc tk_plan_take(struct tk_plan *plan, const Tracecollect__V1__ListReply *page,
                           struct tb_diag *diag);
/* After the last page: finds the holes. */
TB_MUST tb_rc tk_plan_finish(struct tk_plan *plan, struct tb_diag *diag);

#endif
