/* SPDX-License-Identifier: Apache-2.0 */
/* Ed25519 keys and signatures. archive/meta.h defines which bytes are signed.
 *
 * A key file has one PEM block per key. A collector's file begins with its private key. Public keys after it are keys that
 * the collector used earlier: it may change metas signed with them and sign them again with its own key. A reader's file
 * has public keys.
 *
 * Threads   a key set does not change after it was read: any thread may use it.
 * Errors    TB_REFUSED: others may read the private key. TB_BROKEN: the file has no valid keys. TB_IO, TB_NOMEM.
 */
#ifndef TC_ARCHIVE_SIGNATURE_H
#define TC_ARCHIVE_SIGNATURE_H

#include <stddef.h>

#include "base/result.h"

enum { TC_KEY_ID_BYTES = 16, TC_SIGNATURE_BYTES = 64, TC_KEYS_MAX = 16 };

struct tc_keys;

struct tc_signature {
  /* first bytes of the SHA-256 of the public key (SubjectPublicKeyInfo, DER) */
  unsigned char key[TC_KEY_ID_BYTES];
  unsigned char bytes[TC_SIGNATURE_BYTES];
};

enum tc_signed {
  TC_SIGNED_NOT,   /* there is no signature */
  TC_SIGNED_RIGHT, /* valid, by one of the keys */
  TC_SIGNED_WRONG, /* names one of the keys, but is not valid */
  TC_SIGNED_OTHER, /* by a key that is not in the set */
};

TB_MUST tb_rc tc_keys_read_private(const char *path, struct tb_diag *diag, struct tc_keys **out);
TB_MUST tb_rc tc_keys_read_public(const char *path, struct tb_diag *diag, struct tc_keys **out);
/* Reads the file of archive.sign as tc_keys_read_private() does; messages name the option. Empty path: *out is NULL. */
TB_MUST tb_rc tc_keys_read_signer(const char *path, struct tb_diag *diag, struct tc_keys **out);
void tc_keys_free(struct tc_keys *keys);

/* Signs with the private key. */
TB_MUST tb_rc tc_keys_sign(const struct tc_keys *keys, const void *bytes, size_t n,
                           struct tc_signature *out);
enum tc_signed tc_keys_check(const struct tc_keys *keys, const void *bytes, size_t n,
                             const struct tc_signature *signature);

#endif
