/* SPDX-License-Identifier: Apache-2.0 */
/* A segment while it is written: open/<stream32>-<gen16>.part, the trace header and batches as they came.
 *
 *     tc_segment_append()   queues bytes; tc_segment_flush() writes what is queued in one system call
 *     tc_segment_end()      the generation is whole if it is what GENEND says
 *     tc_segment_cut()      parts the unfinished generation from the complete ones before it
 *
 * Checksums run along with the bytes: CRC32C joined from the batches' own, and the content hash (archive/content_hash.h).
 *
 * Memory    queued payloads are borrowed until the flush.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM, and those of tc_errno_rc(). end: TB_BROKEN, the counts or the checksum differ.
 */
#ifndef TC_SEGMENT_WRITER_H
#define TC_SEGMENT_WRITER_H

#include <sys/uio.h>

#include "archive/content_hash.h"
#include "archive/generation_time.h"
#include "archive/state_dir.h"
#include "base/result.h"
#include "collector/segment/descriptors.h"

enum { TC_SEGMENT_QUEUE = 64 };

struct tc_segment_verdict {
  uint32_t code;
  uint64_t events, offset;
  int64_t first_ns, last_ns, thread;
  char *reason; /* malloc, or NULL */
};

struct tc_segment_gen {
  uint64_t gen, offset, bytes, batches, first_wall_ns, end_wall_ns, first_seq, last_seq;
  uint32_t crc;         /* of its bytes */
  uint32_t crc_of_crcs; /* as GENEND has it */
  bool has_hash;        /* of XXH3-128 only */
  unsigned char hash[TC_GENERATION_HASH_BYTES];
  bool unsafe_experiment;
  struct tc_clock_ticks ticks;
  struct tc_segment_verdict verdict;
};

/* Bytes of an earlier run of the program that its checkpoint vouches for and that were not read back yet (proof.h). */
struct tc_segment_owed {
  uint64_t bytes; /* from the file's beginning; 0: nothing is owed */
  size_t ngens;   /* that lie in them */
  uint32_t crc;   /* which they must have */
  uint64_t read;  /* so many of them were read back */
  uint32_t read_crc;
};

struct tc_segment {
  int open_fd;                        /* the folder open/, borrowed */
  int fd;                             /* -1: it rests */
  struct tc_descriptors *descriptors; /* NULL: it never rests */
  TAILQ_ENTRY(tc_segment) in_use;
  struct tc_segment *next_rest; /* in the sealer's list of files to be moved out of open/ */
  bool for_quarantine;          /* that file has bytes for salvage */
  char name[TC_FILE_NAME_BYTES];
  uint64_t first_gen;
  unsigned char header[64];
  size_t header_len;
  unsigned go_version; /* of the header; 0: unknown */

  uint64_t bytes; /* queued ones too */
  uint32_t crc;
  struct tc_hasher *hasher;
  struct tc_segment_gen *gens; /* complete ones */
  size_t ngens, gens_cap;
  bool in_gen;
  struct tc_segment_gen now;
  struct tc_hasher *border; /* of SHA-256: as it was before `now`, if a generation lies before it */
  uint32_t border_crc;
  struct tc_segment_owed owed;

  uint64_t first_wall_ns, last_wall_ns, opened_mono_ns;

  struct iovec queue[TC_SEGMENT_QUEUE];
  unsigned nqueue;
  uint64_t written;
  uint64_t on_its_way; /* so much of it the kernel was asked to write to the disk */
  uint64_t synced;     /* so much of it was written when it was last synced */
  bool
      unsure; /* a sync failed, or it was closed without one: it is not known what of it the disk has */
};

/* On failure *out is NULL, or a segment whose file could not be removed: the caller calls
 * tc_segment_discard() again, as the file is in the way of the next one of that name. */
TB_MUST tb_rc tc_segment_new(int open_fd, const char *stream_hex, uint64_t first_gen,
                             const void *header, size_t header_len, enum tc_hash_kind kind,
                             struct tb_diag *diag, struct tc_segment **out);
/* What a file had when it was noted: whole generations, or none of them and one that is open. */
struct tc_segment_part {
  uint64_t first_gen, bytes, header_len;
  uint32_t crc;                     /* of its bytes */
  const struct tc_segment_gen *now; /* NULL: none is open */
  struct tc_segment_gen *gens;      /* malloc; becomes the segment's, where it is taken up */
  size_t ngens;
  bool
      is_vouched_for; /* it was synced before it was noted: to be read later, where it looks as it should (proof.h) */
};
/* One that was written before; what lies behind part->bytes is cut off. Generations of which the hash is known are not
 * hashed again.
 * TB_CORRUPT: there is no such file, or it is shorter, or it does not have that checksum. TB_IO: it cannot be read now,
 * which says nothing of what is in it. */
TB_MUST tb_rc tc_segment_resume(int open_fd, const char *stream_hex, struct tc_segment_part *part,
                                enum tc_hash_kind kind, struct tb_diag *diag,
                                struct tc_segment **out);
/* Removes the file and frees the segment. Returns the segment if the disk refuses, else NULL. */
struct tc_segment *tc_segment_discard(struct tc_segment *segment);
/* Closes the file; the one that renames or unlinks it did so before. */
void tc_segment_free(struct tc_segment *segment);

TB_MUST tb_rc tc_segment_append(struct tc_segment *segment, uint64_t gen, uint64_t seq,
                                const void *payload, uint32_t len, uint32_t crc,
                                struct tb_diag *diag);
TB_MUST tb_rc tc_segment_flush(struct tc_segment *segment, struct tb_diag *diag);
/* Has the kernel begin to write to the disk what was flushed, in large pieces while more comes: who
 * syncs the file then waits for the last one only. all: and what is no large piece. Waits for nothing. */
void tc_segment_to_disk(struct tc_segment *segment, bool all);

/* Flushed bytes reach the disk. A failed sync is not just tried again: the kernel may have dropped the pages, and
 * would say yes. The next call writes all of it to a new file first, if it can still be read and its checksum is right;
 * else it fails until the next start, for which the log has the records. */
TB_MUST tb_rc tc_segment_sync(struct tc_segment *segment, struct tb_diag *diag);

/* The bytes of its complete generations, and the header. */
uint64_t tc_segment_border(const struct tc_segment *segment);

struct tc_segment_claim { /* what GENEND says */
  uint64_t gen, seq, batches, bytes, end_wall_ns;
  uint32_t crc;
};
TB_MUST tb_rc tc_segment_end(struct tc_segment *segment, const struct tc_segment_claim *claim,
                             struct tb_diag *diag);

/* After a flush, inside a generation with complete ones before it: moves the unfinished one into a
 * segment of its own; this one ends at the border. Fails as tc_segment_new() does. */
TB_MUST tb_rc tc_segment_cut(struct tc_segment *segment, const char *stream_hex,
                             struct tb_diag *diag, struct tc_segment **out_rest);

void tc_segment_name(const char *stream_hex, uint64_t first_gen, char out[TC_FILE_NAME_BYTES]);

/* Of all its bytes; no generation is open. */
TB_MUST tb_rc tc_segment_hash(const struct tc_segment *segment, struct tc_content_hash *out);

/* When a generation was traced, its verdict known or not. */
struct tc_wall tc_segment_gen_wall(const struct tc_segment_gen *gen);

/* Does this batch carry an experiment that Go's own tools cannot read (any but number 1)? */
bool tc_batch_is_unsafe(const unsigned char *batch, uint32_t len);

/* "go 1.26 trace\0\0\0" is 26; 0: a header this program does not know. */
unsigned tc_go_version(const unsigned char *header, uint32_t len);

#endif
