/* SPDX-License-Identifier: Apache-2.0 */
/* The content hash of a segment, to which the stream's next segment refers. It is computed while the bytes are written.
 *
 *     SHA-256     hash of the whole file
 *     XXH3-128    hash of the trace header and, in order, the XXH3-128 of each generation's bytes. The meta has the hash
 *                 of each generation, so that one generation can be checked alone without reading the ones before it.
 *
 * docs/FORMAT.md defines both. XXH3 detects damage; only SHA-256 detects deliberate changes.
 *
 * Memory    a hasher is about 1.2 KiB.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOMEM.
 */
#ifndef TC_ARCHIVE_CONTENT_HASH_H
#define TC_ARCHIVE_CONTENT_HASH_H

#include <stddef.h>

#include "base/result.h"
#include "proto/meta.pb-c.h"

/* The numbers of HashKind in meta.proto; also stored in the catalog. */
enum tc_hash_kind { TC_HASH_NONE = 0, TC_HASH_SHA256 = 1, TC_HASH_XXH3 = 2 };

enum { TC_HASH_BYTES_MAX = 32, TC_GENERATION_HASH_BYTES = 16 };

struct tc_content_hash {
  enum tc_hash_kind kind;
  unsigned char bytes[TC_HASH_BYTES_MAX]; /* the first tc_hash_len(kind); the others are 0 */
};

size_t tc_hash_len(enum tc_hash_kind kind);          /* TC_HASH_NONE: 0 */
const char *tc_hash_name(enum tc_hash_kind kind);    /* "sha256", "xxh3", "" */
const char *tc_hash_title(enum tc_hash_kind kind);   /* "SHA-256", "XXH3-128" */
enum tc_hash_kind tc_hash_of_name(const char *name); /* TC_HASH_NONE: unknown name */
bool tc_hash_equal(const struct tc_content_hash *a, const struct tc_content_hash *b);

/* ---- in messages */

/* Returns TC_HASH_NONE if message is NULL or has a wrong length. */
struct tc_content_hash tc_hash_read(const Tracecollect__V1__ContentHash *message);
/* Fills room, which points into hash. Returns room, or NULL for TC_HASH_NONE. */
Tracecollect__V1__ContentHash *tc_hash_put(const struct tc_content_hash *hash,
                                           Tracecollect__V1__ContentHash *room);
/* Does the message have a hash of a kind that this program does not know? It must not be treated as TC_HASH_NONE. */
bool tc_hash_is_foreign(const Tracecollect__V1__ContentHash *message);

/* ---- over bytes */

struct tc_hasher;

TB_MUST tb_rc tc_hasher_new(enum tc_hash_kind kind, struct tc_hasher **out);
void tc_hasher_free(struct tc_hasher *hasher);
enum tc_hash_kind tc_hasher_kind(const struct tc_hasher *hasher);

/* Adds the next bytes of the file: the header before the first begin, then bytes of the open generation. */
TB_MUST tb_rc tc_hasher_add(struct tc_hasher *hasher, const void *bytes, size_t n);
void tc_hasher_begin(struct tc_hasher *hasher);
/* Ends the open generation. out: the generation's hash, for XXH3-128; unchanged for SHA-256. */
void tc_hasher_end(struct tc_hasher *hasher, unsigned char out[TC_GENERATION_HASH_BYTES]);
/* Adds a generation by its hash, instead of begin, add and end. XXH3-128 only. */
void tc_hasher_take(struct tc_hasher *hasher, const unsigned char hash[TC_GENERATION_HASH_BYTES]);

/* Returns the hash of the header and all ended generations (SHA-256: of all bytes). The hasher may be used further. */
TB_MUST tb_rc tc_hasher_result(const struct tc_hasher *hasher, struct tc_content_hash *out);
/* Copies the state of `from` to `to`; both are of one kind. */
TB_MUST tb_rc tc_hasher_copy(struct tc_hasher *to, const struct tc_hasher *from);
/* Moves the open generation to `to`, which must have none open. XXH3-128 only. */
void tc_hasher_move_open(struct tc_hasher *to, struct tc_hasher *from);

#endif
