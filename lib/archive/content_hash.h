/* SPDX-License-Identifier: Apache-2.0 */
/* The content hash of a segment, by which the next one of its stream names it, computed while its bytes pass.
 *
 *     SHA-256     of the whole file
 *     XXH3-128    of the trace header and, in order, the XXH3-128 of each generation's bytes. A generation's hash stands
 *                 in its meta, so that one generation can be proven alone, and what is before needs no second read.
 *
 * docs/FORMAT.md says it byte by byte. XXH3 finds damage; only SHA-256 withstands a person who changes bytes on purpose.
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

/* Numbers of HashKind in meta.proto, and in the catalog. */
enum tc_hash_kind { TC_HASH_NONE = 0, TC_HASH_SHA256 = 1, TC_HASH_XXH3 = 2 };

enum { TC_HASH_BYTES_MAX = 32, TC_GENERATION_HASH_BYTES = 16 };

struct tc_content_hash {
  enum tc_hash_kind kind;
  unsigned char bytes[TC_HASH_BYTES_MAX]; /* the first tc_hash_len(kind) count, the others are 0 */
};

size_t tc_hash_len(enum tc_hash_kind kind);          /* TC_HASH_NONE: 0 */
const char *tc_hash_name(enum tc_hash_kind kind);    /* "sha256", "xxh3", "" */
const char *tc_hash_title(enum tc_hash_kind kind);   /* "SHA-256", "XXH3-128" */
enum tc_hash_kind tc_hash_of_name(const char *name); /* TC_HASH_NONE: no such kind */
bool tc_hash_equal(const struct tc_content_hash *a, const struct tc_content_hash *b);

/* ---- in messages */

/* TC_HASH_NONE: there is none (NULL), or one of a wrong length. */
struct tc_content_hash tc_hash_read(const Tracecollect__V1__ContentHash *message);
/* room, which borrows from hash; NULL for TC_HASH_NONE. */
Tracecollect__V1__ContentHash *tc_hash_put(const struct tc_content_hash *hash,
                                           Tracecollect__V1__ContentHash *room);
/* Is there a hash of a kind that this program does not know? Such a message must not be taken for one without. */
bool tc_hash_is_foreign(const Tracecollect__V1__ContentHash *message);

/* ---- over bytes */

struct tc_hasher;

TB_MUST tb_rc tc_hasher_new(enum tc_hash_kind kind, struct tc_hasher **out);
void tc_hasher_free(struct tc_hasher *hasher);
enum tc_hash_kind tc_hasher_kind(const struct tc_hasher *hasher);

/* The next bytes of the file: its header before the first begin, then those of the generation that is open. */
TB_MUST tb_rc tc_hasher_add(struct tc_hasher *hasher, const void *bytes, size_t n);
void tc_hasher_begin(struct tc_hasher *hasher);
/* The open generation is over. out: its hash, of XXH3-128 only; else it stays as it is. */
void tc_hasher_end(struct tc_hasher *hasher, unsigned char out[TC_GENERATION_HASH_BYTES]);
/* The next generation, of which the hash is known, in the place of begin, add and end. Of XXH3-128 only. */
void tc_hasher_take(struct tc_hasher *hasher, const unsigned char hash[TC_GENERATION_HASH_BYTES]);

/* Of the header and all generations that are over; of SHA-256: of all bytes. It may go on. */
TB_MUST tb_rc tc_hasher_result(const struct tc_hasher *hasher, struct tc_content_hash *out);
/* What `from` has seen, `to` has seen, too; both are of one kind. */
TB_MUST tb_rc tc_hasher_copy(struct tc_hasher *to, const struct tc_hasher *from);
/* Moves the open generation: `to` has none open and goes on with it. Of XXH3-128 only. */
void tc_hasher_move_open(struct tc_hasher *to, struct tc_hasher *from);

#endif
