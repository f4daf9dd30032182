/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of emitting: a session whose trace is kept in memory.
 *
 * If a generation is lost, the collector has a hole, after which a new trace begins. So does this scene. */
#ifndef TT_UNIT_EMIT_EMIT_SCENE_H
#define TT_UNIT_EMIT_EMIT_SCENE_H

#include <stdatomic.h>

#include "agent/emit/generation/session.h"

enum { EMITTED_TRACES_MAX = 1024 };

struct emitted {
  struct {
    unsigned char *bytes; /* a whole trace, header and all */
    size_t n, room;
  } trace[EMITTED_TRACES_MAX];
  unsigned traces;       /* the last one may have no generation */
  atomic_ulong lost;     /* lost generations; a test may read it while they are counted */
  enum ta_loss lost_why; /* reason for the last one */
  uint64_t ended, ended_gen;
  /* Fields of the generation being written. */
  uint64_t gen;
  unsigned char header[TW_HEADER_BYTES];
  size_t began; /* offset in the last trace */
  bool losing;
};

/* Starts a session, in which no generation ends by time unless config says so. Returns 0 on success. */
int emit_begin(struct emitted *e, const struct ta_emit_config *config, uint64_t memory_bytes);
int emit_begin_version(struct emitted *e, unsigned version);
struct ta_outlet emit_outlet(struct emitted *e);
int emit_end(struct emitted *e); /* 0: stopped; after this e may be read */
void emit_free(struct emitted *e);
void emit_end_generation(void); /* ends the current generation */

#endif
