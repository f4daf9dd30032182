/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/content_hash.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct {
  const char *name, *title;
  size_t len;
} kinds[] = {
  [TC_HASH_NONE] = { "", "", 0 },
  [TC_HASH_SHA256] = { "sha256", "SHA-256", 32 },
  [TC_HASH_XXH3] = { "xxh3", "XXH3-128", 16 },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

size_t tc_hash_len(enum tc_hash_kind kind) {
  return kinds[kind].len;
}

const char *tc_hash_name(enum tc_hash_kind kind) {
  return kinds[kind].name;
}

const char *tc_hash_title(enum tc_hash_kind kind) {
  return kinds[kind].title;
}

enum tc_hash_kind tc_hash_of_name(const char *name) {
  for (unsigned kind = TC_HASH_SHA256; kind < KINDS; kind++)
    if (strcmp(kinds[kind].name, name) == 0) return (enum tc_hash_kind)kind;
  return TC_HASH_NONE;
}

bool tc_hash_equal(const struct tc_content_hash *a, const struct tc_content_hash *b) {
  return a->kind == b->kind && memcmp(a->bytes, b->bytes, kinds[a->kind].len) == 0;
}

/* ---- in messages */

bool tc_hash_is_foreign(const Tracecollect__V1__ContentHash *message) {
  return message != NULL && ((unsigned)message->kind >= KINDS || message->kind == 0);
}

struct tc_content_hash tc_hash_read(const Tracecollect__V1__ContentHash *message) {
  struct tc_content_hash hash = { .kind = TC_HASH_NONE };

  if (message == NULL || tc_hash_is_foreign(message) ||
      message->value.len != kinds[message->kind].len)
    return hash;
  hash.kind = (enum tc_hash_kind)message->kind;
  memcpy(hash.bytes, message->value.data, message->value.len);
  return hash;
}

Tracecollect__V1__ContentHash *tc_hash_put(const struct tc_content_hash *hash,
                                           Tracecollect__V1__ContentHash *room) {
  if (hash->kind == TC_HASH_NONE) return NULL;
  tracecollect__v1__content_hash__init(room);
  room->kind = (Tracecollect__V1__HashKind)hash->kind;
  room->value =
      (ProtobufCBinaryData){ kinds[hash->kind].len, (unsigned char *)(uintptr_t)hash->bytes };
  return room;
}

/* ---- over bytes */

struct tc_hasher {
  enum tc_hash_kind kind;
  EVP_MD_CTX *sha;
  XXH3_state_t *all,
      *gen; /* all: header and generations' hashes; gen: bytes of the open generation */
  bool is_open;
};

static bool make(struct tc_hasher *h) {
  if (h->kind == TC_HASH_SHA256) {
    h->sha = EVP_MD_CTX_new();
    return h->sha != NULL && EVP_DigestInit_ex(h->sha, EVP_sha256(), NULL) == 1;
  }
  h->all = XXH3_createState();
  h->gen = XXH3_createState();
  return h->all != NULL && h->gen != NULL && XXH3_128bits_reset(h->all) == XXH_OK;
}

tb_rc tc_hasher_new(enum tc_hash_kind kind, struct tc_hasher **out) {
  struct tc_hasher *h = calloc(1, sizeof *h);

  assert(kind == TC_HASH_SHA256 || kind == TC_HASH_XXH3);
  if (h == NULL) return TB_NOMEM;
  h->kind = kind;
  if (!make(h)) {
    tc_hasher_free(h);
    return TB_NOMEM;
  }
  *out = h;
  return TB_OK;
}

void tc_hasher_free(struct tc_hasher *h) {
  if (h == NULL) return;
  EVP_MD_CTX_free(h->sha);
  XXH3_freeState(h->all);
  XXH3_freeState(h->gen);
  free(h);
}

enum tc_hash_kind tc_hasher_kind(const struct tc_hasher *h) {
  return h->kind;
}

tb_rc tc_hasher_add(struct tc_hasher *h, const void *bytes, size_t n) {
  if (n == 0) return TB_OK;
  if (h->kind == TC_HASH_SHA256) return EVP_DigestUpdate(h->sha, bytes, n) == 1 ? TB_OK : TB_NOMEM;
  (void)XXH3_128bits_update(h->is_open ? h->gen : h->all, bytes, n); /* fails only for NULL */
  return TB_OK;
}

void tc_hasher_begin(struct tc_hasher *h) {
  assert(!h->is_open);
  if (h->kind == TC_HASH_XXH3) (void)XXH3_128bits_reset(h->gen);
  h->is_open = true;
}

void tc_hasher_end(struct tc_hasher *h, unsigned char out[TC_GENERATION_HASH_BYTES]) {
  XXH128_canonical_t canonical;

  assert(h->is_open);
  h->is_open = false;
  if (h->kind != TC_HASH_XXH3) return;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(h->gen));
  memcpy(out, canonical.digest, sizeof canonical.digest);
  tc_hasher_take(h, out);
}

void tc_hasher_take(struct tc_hasher *h, const unsigned char hash[TC_GENERATION_HASH_BYTES]) {
  assert(h->kind == TC_HASH_XXH3 && !h->is_open);
  (void)XXH3_128bits_update(h->all, hash, TC_GENERATION_HASH_BYTES);
}

static tb_rc finish_sha(const struct tc_hasher *h, unsigned char out[32]) {
  EVP_MD_CTX *copy = EVP_MD_CTX_new();
  unsigned len = 32;
  bool good = copy != NULL && EVP_MD_CTX_copy_ex(copy, h->sha) == 1 &&
              EVP_DigestFinal_ex(copy, out, &len) == 1;

  EVP_MD_CTX_free(copy);
  return good ? TB_OK : TB_NOMEM;
}

tb_rc tc_hasher_result(const struct tc_hasher *h, struct tc_content_hash *out) {
  XXH128_canonical_t canonical;

  *out = (struct tc_content_hash){ .kind = h->kind };
  if (h->kind == TC_HASH_SHA256) return finish_sha(h, out->bytes);
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(h->all));
  memcpy(out->bytes, canonical.digest, sizeof canonical.digest);
  return TB_OK;
}

tb_rc tc_hasher_copy(struct tc_hasher *to, const struct tc_hasher *from) {
  assert(to->kind == from->kind);
  to->is_open = from->is_open;
  if (to->kind == TC_HASH_SHA256)
    return EVP_MD_CTX_copy_ex(to->sha, from->sha) == 1 ? TB_OK : TB_NOMEM;
  XXH3_copyState(to->all, from->all);
  XXH3_copyState(to->gen, from->gen);
  return TB_OK;
}

void tc_hasher_move_open(struct tc_hasher *to, struct tc_hasher *from) {
  assert(to->kind == TC_HASH_XXH3 && from->kind == TC_HASH_XXH3);
  assert(from->is_open && !to->is_open);
  XXH3_copyState(to->gen, from->gen);
  to->is_open = true;
  from->is_open = false;
}
