/* SPDX-License-Identifier: Apache-2.0 */
/* The named sub-streams in a generation's experimental batches, and the blobs in them (wire/substream.h).
 *
 *   if (ev->type == TW_EV_SYNC && gen != NULL)     -- a generation begins
 *     TB_TRY(to_substreams_generation(s, gen));
 *   if ((id = to_event_blob(gen, ev)) != 0 &&      -- or any argument that is a blob id
 *       to_blob_read(s, id, diag, &bytes) == TB_OK) ...
 *
 * Pointers are valid until the generation ends.
 *
 * A blob can be read only if each of its bytes is there exactly once. A batch that cannot be read is reported to the
 * fault sink and skipped; the trace is not broken by it, because Go's reader ignores these bytes. A batch without our
 * header belongs to another writer and is not a fault.
 *
 * Memory    from mem: 48 bytes a piece, 112 a blob and its entry in a hash map. A blob of several pieces is joined
 *           when it is read, so memory is bounded by received bytes, not by claimed sizes.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this generation appears to have no sub-streams.
 */
#ifndef TO_TRACE_SUBSTREAMS_H
#define TO_TRACE_SUBSTREAMS_H

#include "base/mem.h"
#include "online/event/generation.h"
#include "wire/substream.h"

enum { TO_SUBSTREAMS_MAX = 256 }; /* in a generation; a batch of a further one is a fault */

/* A batch of the owner's bytes. */
struct to_content {
  const struct to_content *next;
  int64_t thread;
  uint64_t offset; /* of data in the trace */
  const unsigned char *data;
  size_t len;
};

struct to_substream {
  uint8_t experiment;
  struct to_string name;
  size_t batches, blobs;
  uint64_t bytes;                   /* of its batches without headers */
  const struct to_content *content; /* the first, in order of arrival */
  const struct to_blob *blob;       /* the first, likewise */
};

struct to_blob {
  const struct to_blob *next; /* in its sub-stream */
  const struct to_substream *substream;
  uint64_t id, bytes;
  bool whole; /* if not, to_blob_read() returns the fault */
};

/* Receives the place and reason of each fault, lent for the call. */
struct to_fault_sink {
  void *self;
  void (*fault)(void *self, const struct tb_diag *fault); /* NULL: there is no sink */
};

struct to_substreams;

TB_MUST tb_rc to_substreams_new(struct tb_mem *mem, struct to_fault_sink sink,
                                struct to_substreams **out);
void to_substreams_free(struct to_substreams *s); /* accepts NULL */
TB_MUST tb_rc to_substreams_generation(struct to_substreams *s, const struct to_generation *gen);
uint64_t to_substreams_faults(const struct to_substreams *s); /* in this generation */

/* for (size_t i = 0; (stream = to_substreams_at(s, i)) != NULL; i++) by first appearance. */
const struct to_substream *to_substreams_at(const struct to_substreams *s, size_t i);
const struct to_substream *to_substreams_find(const struct to_substreams *s, uint8_t experiment,
                                              const char *name); /* NULL: not here */

/* Returns the blob id of a log event whose message is a tw_blob_word(), or 0. */
uint64_t to_event_blob(const struct to_generation *gen, const struct to_event *ev);
const struct to_blob *to_blob_find(const struct to_substreams *s, uint64_t id); /* NULL: none */

struct to_bytes {
  const unsigned char *data; /* until the generation ends */
  size_t len;
};
/* Returns TB_NOTFOUND if this generation has no such blob, TB_BROKEN if the blob is not whole, both with place and
 * reason in diag, which may be NULL; TB_BUDGET or TB_NOMEM if the joined blob cannot be allocated. */
TB_MUST tb_rc to_blob_read(struct to_substreams *s, uint64_t id, struct tb_diag *diag,
                           struct to_bytes *out);

#endif
