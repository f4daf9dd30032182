/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of what the agents of a simulation send. The seed and n alone determine record n of a stream, so the script
 * says what the archive must hold.
 *
 * A stream is its header, generations and losses, and at last a CLOSE. The CLOSE follows a whole generation or a loss,
 * at the point where the stream is made to end. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "sim/chance.h"

enum { SIM_HEADER_BYTES = 16 };

struct sim_record {
  uint8_t kind; /* enum tp_kind */
  uint32_t len, crc;
  uint64_t gen;
  unsigned char *payload; /* malloc */
};

/* A generation, or one loss. */
struct sim_unit {
  uint64_t first_seq, last_seq, gen;
  uint64_t batches, bytes; /* of the generation, or lost */
  size_t lost_gens;        /* 0: a generation, whole */
};

struct sim_script {
  struct sim_record *records; /* of seq 1 and on */
  size_t nrecords;
  struct sim_unit *units;
  size_t nunits;
};

/* Makes a script of about that many records; the last unit is whole. slow: long generations, as of a program with few
 * events. */
struct sim_script sim_script_make(struct sim_chance *chance, size_t nrecords, bool slow);
void sim_script_free(struct sim_script *script);

/* Returns the end of the unit that has this record. */
uint64_t sim_script_border(const struct sim_script *script, uint64_t seq);
/* Returns the CLOSE after record end_seq; the caller owns the payload. */
struct sim_record sim_script_close(const struct sim_script *script, uint64_t end_seq);

#endif
