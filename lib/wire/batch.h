/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a batch, and the header of a trace.
 *
 *   trace  = "go 1.NN trace" NUL NUL NUL, then batches (from 1.26 also single end-of-generation
 * bytes) batch  = 1 | 49 experiment, then varints generation, thread, time, size, then size bytes
 *
 * Memory    batch bytes are borrowed.
 * Errors    TB_AGAIN: more bytes are needed to decide. TB_BROKEN, TB_UNSUPPORTED: see diag's text
 *           (the caller fills in the place).
 */
#ifndef TW_BATCH_H
#define TW_BATCH_H

#include "base/result.h"
#include "wire/spec.h"

enum tw_batch_kind {
  TW_BATCH_EVENTS, /* timed events of one thread (or of none) */
  TW_BATCH_STRINGS,
  TW_BATCH_STACKS,
  TW_BATCH_CPU_SAMPLES,
  TW_BATCH_SYNC, /* frequency, from 1.25 also clocks */
  TW_BATCH_EXPERIMENTAL,
  TW_BATCH_END, /* ends a generation (1.26) */
};

struct tw_batch {
  uint64_t gen;
  int64_t thread; /* -1: none */
  uint64_t time;  /* raw ticks */
  const unsigned char *data;
  size_t len;
  uint8_t experiment; /* enum tw_experiment; 0 is an ordinary batch */
};

/* Reads a whole batch from the start of bytes; *out_used includes its header. A lone end mark
 * is returned as a batch of generation 0 without thread that contains only that byte. */
TB_MUST tb_rc tw_batch_read(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                            struct tw_batch *out, size_t *out_used);
/* Returns the kind of a batch in a trace of this version. */
enum tw_batch_kind tw_batch_kind(const struct tw_batch *batch, unsigned version);
/* Writes a batch's header, at most TW_BATCH_HEADER_BYTES_MAX bytes; returns how many. */
size_t tw_batch_write_header(unsigned char *out, const struct tw_batch *batch);

enum { TW_HEADER_BYTES = 16 }; /* as every Go writes it; readers allow spaces and leading zeros */

/* *out_version is also written with TB_UNSUPPORTED. */
TB_MUST tb_rc tw_header_read(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                             unsigned *out_version, size_t *out_used);
void tw_header_write(unsigned char out[TW_HEADER_BYTES], unsigned version);

#endif
