/* SPDX-License-Identifier: Apache-2.0 */
/* Ed25519 keys, and signatures with them. The bytes that are signed are archive/meta.h's.
 *
 * A file has PEM blocks, one a key. That of a collector begins with its private key; the public ones behind it are keys
 * that it used earlier: what those signed, it may change and sign anew with its own. That of a reader has public keys.
 *
 * Threads   a key set is not changed once it is read: any may use it.
 * Errors    TB_REFUSED: others may read the private key. TB_BROKEN: no such keys in the file. TB_IO, TB_NOMEM.
 */
#ifndef TC_ARCHIVE_SIGNATURE_H
#define TC_ARCHIVE_SIGNATURE_H

#include <stddef.h>

#include "base/result.h"

enum { TC_KEY_ID_BYTES = 16, TC_SIGNATURE_BYTES = 64, TC_KEYS_MAX = 16 };

struct tc_keys;

struct tc_signature {
  unsigned char
      key[TC_KEY_ID_BYTES]; /* of SHA-256 over the public key (SubjectPublicKeyInfo, DER) */
  unsigned char bytes[TC_SIGNATURE_BYTES];
};

enum tc_signed {
  TC_SIGNED_NOT,   /* there is no signature */
  TC_SIGNED_RIGHT, /* by one of the keys */
  TC_SIGNED_WRONG, /* one of the keys is named, and did not sign these bytes */
  TC_SIGNED_OTHER, /* by a key that is not in the set */
};

TB_MUST tb_rc tc_keys_read_private(const char *path, struct tb_diag *diag, struct tc_keys **out);
TB_MUST tb_rc tc_keys_read_public(const char *path, struct tb_diag *diag, struct tc_keys **out);
/* As tc_keys_read_private(), of the file that archive.sign names: the words say so. An empty path: NULL. */
TB_MUST tb_rc tc_keys_read_signer(const char *path, struct tb_diag *diag, struct tc_keys **out);
void tc_keys_free(struct tc_keys *keys);

/* With the private key. */
TB_MUST tb_rc tc_keys_sign(const struct tc_keys *keys, const void *bytes, size_t n,
                           struct tc_signature *out);
enum tc_signed tc_keys_check(const struct tc_keys *keys, const void *bytes, size_t n,
                             const struct tc_signature *signature);

#endif
