/* SPDX-License-Identifier: Apache-2.0 */
/* A segment that is being written: open/<stream32>-<gen16>.part, the trace header and the batches in order.
 *
 *     tc_segment_append()   queues bytes; tc_segment_flush() writes the queue in one system call
 *     tc_segment_end()      completes the generation if it matches GENEND
 *     tc_segment_cut()      moves the unfinished generation out of the segment
 *
 * Checksums are updated with each batch: CRC32C, joined from the batches' own, and the content hash (archive/content_hash.h).
 *
 * Memory    queued payloads are borrowed until the flush.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM, and those of tc_errno_rc(). end: TB_BROKEN: the counts or the checksum differ.
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
  uint32_t crc;         /* of the generation's bytes */
  uint32_t crc_of_crcs; /* CRC of the batches' CRCs, as in GENEND */
  bool has_hash;        /* XXH3-128 only */
  unsigned char hash[TC_GENERATION_HASH_BYTES];
  bool unsafe_experiment;
  struct tc_clock_ticks ticks;
  struct tc_segment_verdict verdict;
};

/* Bytes written before the last start, listed in the checkpoint and not checked yet (proof.h). */
struct tc_segment_owed {
  uint64_t bytes; /* from the file's beginning; 0: none */
  size_t ngens;   /* generations in these bytes */
  uint32_t crc;   /* expected checksum */
  uint64_t read;  /* bytes checked so far */
  uint32_t read_crc;
};

struct tc_segment {
  int open_fd;                        /* the folder open/, borrowed */
  int fd;                             /* -1: closed (descriptors.h) */
  struct tc_descriptors *descriptors; /* NULL: the file is never closed */
  TAILQ_ENTRY(tc_segment) in_use;
  struct tc_segment *next_rest; /* in the sealer's list of files to be moved out of open/ */
  bool for_quarantine;          /* that file has bytes for salvage */
  char name[TC_FILE_NAME_BYTES];
  uint64_t first_gen;
  unsigned char header[64];
  size_t header_len;
  unsigned go_version; /* from the header; 0: unknown */

  uint64_t bytes; /* including queued ones */
  uint32_t crc;
  struct tc_hasher *hasher;
  struct tc_segment_gen *gens; /* complete generations */
  size_t ngens, gens_cap;
  bool in_gen;
  struct tc_segment_gen now;
  struct tc_hasher *border; /* SHA-256: the hasher before `now`, if generations precede */
  uint32_t border_crc;
  struct tc_segment_owed owed;

  uint64_t first_wall_ns, last_wall_ns, opened_mono_ns;

  struct iovec queue[TC_SEGMENT_QUEUE];
  unsigned nqueue;
  uint64_t written;
  uint64_t on_its_way; /* bytes that the kernel was asked to write to the disk */
  uint64_t synced;     /* bytes covered by the last sync */
  bool
      unsure; /* a sync failed, or the file was closed without one: bytes may be missing on the disk */
};

/* On failure *out is NULL, or a segment whose file could not be removed: the caller calls
 * tc_segment_discard() again, as the file is in the way of the next one of that name. */
TB_MUST tb_rc tc_segment_new(int open_fd, const char *stream_hex, uint64_t first_gen,
                             const void *header, size_t header_len, enum tc_hash_kind kind,
                             struct tb_diag *diag, struct tc_segment **out);
/* Content of a file when a checkpoint was written: complete generations, or only an open one. */
struct tc_segment_part {
  uint64_t first_gen, bytes, header_len;
  uint32_t crc;                     /* of bytes */
  const struct tc_segment_gen *now; /* open generation, or NULL */
  struct tc_segment_gen *gens;      /* malloc; moved to the segment by tc_segment_resume() */
  size_t ngens;
  bool is_vouched_for; /* synced before the checkpoint: the check may be deferred (proof.h) */
};
/* Opens an existing file and cuts off bytes after part->bytes. Generations with a known hash are not hashed again.
 * TB_CORRUPT: the file is missing, too short, or has another checksum. TB_IO: the file cannot be read now; its content may
 * be intact. */
TB_MUST tb_rc tc_segment_resume(int open_fd, const char *stream_hex, struct tc_segment_part *part,
                                enum tc_hash_kind kind, struct tb_diag *diag,
                                struct tc_segment **out);
/* Removes the file and frees the segment. Returns the segment if the disk refuses, else NULL. */
struct tc_segment *tc_segment_discard(struct tc_segment *segment);
/* Closes the file. Rename or unlink it before. */
void tc_segment_free(struct tc_segment *segment);

TB_MUST tb_rc tc_segment_append(struct tc_segment *segment, uint64_t gen, uint64_t seq,
                                const void *payload, uint32_t len, uint32_t crc,
                                struct tb_diag *diag);
TB_MUST tb_rc tc_segment_flush(struct tc_segment *segment, struct tb_diag *diag);
/* Asks the kernel to start writing flushed bytes to the disk, in large pieces, so that a later sync waits only for the last
 * piece. all: also an incomplete piece. Does not wait. */
void tc_segment_to_disk(struct tc_segment *segment, bool all);

/* Syncs flushed bytes to the disk. After a failed sync the kernel may have dropped the pages, and another sync would succeed
 * without them. So the next call first writes a new file, if the old one can be read and its checksum is right; else it
 * fails until the next start, for which the log has the records. */
TB_MUST tb_rc tc_segment_sync(struct tc_segment *segment, struct tb_diag *diag);

/* Returns the length of the header and the complete generations. */
uint64_t tc_segment_border(const struct tc_segment *segment);

struct tc_segment_claim { /* fields of GENEND */
  uint64_t gen, seq, batches, bytes, end_wall_ns;
  uint32_t crc;
};
TB_MUST tb_rc tc_segment_end(struct tc_segment *segment, const struct tc_segment_claim *claim,
                             struct tb_diag *diag);

/* Moves the unfinished generation into a new segment; this one ends at the border. Call after a flush, inside a generation
 * that follows complete ones. Fails as tc_segment_new() does. */
TB_MUST tb_rc tc_segment_cut(struct tc_segment *segment, const char *stream_hex,
                             struct tb_diag *diag, struct tc_segment **out_rest);

void tc_segment_name(const char *stream_hex, uint64_t first_gen, char out[TC_FILE_NAME_BYTES]);

/* Returns the content hash; no generation may be open. */
TB_MUST tb_rc tc_segment_hash(const struct tc_segment *segment, struct tc_content_hash *out);

/* Returns when a generation was traced, with or without a verdict. */
struct tc_wall tc_segment_gen_wall(const struct tc_segment_gen *gen);

/* Does the batch have an experiment that Go's own tools cannot read (any but number 1)? */
bool tc_batch_is_unsafe(const unsigned char *batch, uint32_t len);

/* Returns 26 for "go 1.26 trace\0\0\0"; 0: unknown header. */
unsigned tc_go_version(const unsigned char *header, uint32_t len);

#endif
