/* SPDX-License-Identifier: Apache-2.0 */
/* The named sub-streams in a generation's experimental batches, and the blobs in them (wire/substream.h).
 *
 *   if (ev->type == TW_EV_SYNC && gen != NULL)     -- a generation begins
 *     TB_TRY(to_substreams_generation(s, gen));
 *   if ((id = to_event_blob(gen, ev)) != 0 &&      -- or any argument that the event's owner knows to be one
 *       to_blob_read(s, id, diag, &bytes) == TB_OK) ...
 *
 * Pointers that are given out belong to their generation: it is there from the call above until the generation ends,
 * and never mixed with another one's.
 *
 * Nothing that a trace says is believed: a blob is given out when each of its bytes has come exactly once. A
 * batch that cannot be read is reported to the fault sink and passed over; it does not break the trace, of which
 * these bytes are no part for Go's reader. A batch without our header is no fault either, it belongs to another writer.
 *
 * Memory    from mem: 48 bytes a piece, 112 a blob and its place in a hash map. A blob of several pieces is joined
 *           when it is read: memory is bounded by what has come, whatever sizes it claims.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this generation's sub-streams are not known, it seems to have none.
 */
#ifndef TO_TRACE_SUBSTREAMS_H
#define TO_TRACE_SUBSTREAMS_H

#include "base/mem.h"
#include "online/event/generation.h"
#include "wire/substream.h"

enum { TO_SUBSTREAMS_MAX = 256 }; /* in a generation; a batch of one more is a fault */

/* A batch of the owner's own bytes. */
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
  uint64_t bytes;                   /* of its batches, headers left out */
  const struct to_content *content; /* the first; they stand in the order in which they came */
  const struct to_blob *blob;       /* the first, likewise */
};

struct to_blob {
  const struct to_blob *next; /* of its sub-stream */
  const struct to_substream *substream;
  uint64_t id, bytes;
  bool whole; /* else to_blob_read() says what is wrong with it */
};

/* Hears where something cannot be read and why; lent for the call. */
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

/* The blob that an event holds in the way every Go tool reads (tw_blob_word()); 0: none. */
uint64_t to_event_blob(const struct to_generation *gen, const struct to_event *ev);
const struct to_blob *to_blob_find(const struct to_substreams *s, uint64_t id); /* NULL: none */

struct to_bytes {
  const unsigned char *data; /* until the generation ends */
  size_t len;
};
/* TB_NOTFOUND: no such blob in this generation. TB_BROKEN: it is not whole. Both: diag, which may be NULL, says
 * where and why. TB_BUDGET, TB_NOMEM: no memory to join it. */
TB_MUST tb_rc to_blob_read(struct to_substreams *s, uint64_t id, struct tb_diag *diag,
                           struct to_bytes *out);

#endif
