/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct key {
  EVP_PKEY *pkey;
  unsigned char id[TC_KEY_ID_BYTES];
};

struct tc_keys {
  bool has_private; /* the first key is private */
  size_t n;
  struct key keys[TC_KEYS_MAX];
};

void tc_keys_free(struct tc_keys *keys) {
  if (keys == NULL) return;
  for (size_t i = 0; i < keys->n; i++) EVP_PKEY_free(keys->keys[i].pkey);
  free(keys);
}

/* ---- reading */

static tb_rc take_id(struct key *key) {
  unsigned char *der = NULL, digest[EVP_MAX_MD_SIZE];
  int len = i2d_PUBKEY(key->pkey, &der);
  bool good = len > 0 && EVP_Digest(der, (size_t)len, digest, NULL, EVP_sha256(), NULL) == 1;

  OPENSSL_free(der);
  if (!good) return TB_NOMEM;
  memcpy(key->id, digest, sizeof key->id);
  return TB_OK;
}

/* Returns NULL if the block has no key of that kind. */
static EVP_PKEY *unpack(const char *title, const unsigned char *der, long len, bool secret) {
  if (secret && strcmp(title, "PRIVATE KEY") == 0) return d2i_AutoPrivateKey(NULL, &der, len);
  return !secret && strcmp(title, "PUBLIC KEY") == 0 ? d2i_PUBKEY(NULL, &der, len) : NULL;
}

static tb_rc take_block(struct tc_keys *keys, const char *path, const char *title,
                        const unsigned char *der, long len, struct tb_diag *diag) {
  bool secret = keys->has_private && keys->n == 0;
  const char *expected =
      secret ? "a private key (Ed25519, not encrypted)" : "a public key (Ed25519)";

  if (keys->n == TC_KEYS_MAX)
    return tb_fail(diag, TB_BROKEN, "%s: has more than %d keys", path, TC_KEYS_MAX);
  struct key *key = &keys->keys[keys->n];
  key->pkey = unpack(title, der, len, secret);
  if (key->pkey == NULL)
    return tb_fail(diag, TB_BROKEN, "%s: block %zu is \"%.40s\", expected %s", path, keys->n + 1,
                   title, expected);
  keys->n++;
  if (EVP_PKEY_get_id(key->pkey) != EVP_PKEY_ED25519)
    return tb_fail(diag, TB_BROKEN, "%s: key %zu is of another kind, expected %s", path, keys->n,
                   expected);
  tb_rc rc = take_id(key);
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "%s: %s", path, tb_rc_text(rc));
}

static tb_rc take_blocks(struct tc_keys *keys, const char *path, FILE *file, struct tb_diag *diag) {
  tb_rc rc = TB_OK;
  char *title, *head;
  unsigned char *der;
  long len;

  while (rc == TB_OK && PEM_read(file, &title, &head, &der, &len) == 1) {
    rc = take_block(keys, path, title, der, len, diag);
    OPENSSL_free(title);
    OPENSSL_free(head);
    OPENSSL_clear_free(der, (size_t)len);
  }
  unsigned long error = ERR_peek_last_error();
  bool ended = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (rc != TB_OK) return rc;
  if (ferror(file)) return tb_fail(diag, TB_IO, "%s: %s", path, strerror(errno));
  if (!ended) return tb_fail(diag, TB_BROKEN, "%s: block %zu is not valid PEM", path, keys->n + 1);
  if (keys->n > 0) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "%s: no %s key in PEM", path,
                 keys->has_private ? "private" : "public");
}

static tb_rc check_file(const char *path, int fd, bool secret, struct tb_diag *diag) {
  struct stat st;

  if (fstat(fd, &st) != 0) return tb_fail(diag, TB_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode)) return tb_fail(diag, TB_BROKEN, "%s: is not a regular file", path);
  if (!secret || (st.st_mode & 077) == 0) return TB_OK;
  return tb_fail(diag, TB_REFUSED,
                 "%s: others may use this private key (mode %04o): its mode must be 0600", path,
                 (unsigned)st.st_mode & 07777);
}

static tb_rc read_keys(const char *path, bool secret, struct tb_diag *diag, struct tc_keys **out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

  if (file == NULL) {
    int why = errno;
    if (fd >= 0) close(fd);
    return tb_fail(diag, TB_IO, "%s: %s", path, strerror(why));
  }
  struct tc_keys *keys = calloc(1, sizeof *keys);
  tb_rc rc = keys != NULL ? check_file(path, fd, secret, diag)
                          : tb_fail(diag, TB_NOMEM, "%s: no memory", path);
  if (rc == TB_OK) {
    keys->has_private = secret;
    rc = take_blocks(keys, path, file, diag);
  }
  fclose(file);
  if (rc != TB_OK) {
    tc_keys_free(keys);
    return rc;
  }
  *out = keys;
  return TB_OK;
}

tb_rc tc_keys_read_private(const char *path, struct tb_diag *diag, struct tc_keys **out) {
  return read_keys(path, true, diag, out);
}

tb_rc tc_keys_read_public(const char *path, struct tb_diag *diag, struct tc_keys **out) {
  return read_keys(path, false, diag, out);
}

tb_rc tc_keys_read_signer(const char *path, struct tb_diag *diag, struct tc_keys **out) {
  struct tb_diag why = { 0 };

  *out = NULL;
  if (*path == '\0') return TB_OK;
  tb_rc rc = tc_keys_read_private(path, &why, out);
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "archive.sign: %s", why.text);
}

/* ---- using */

tb_rc tc_keys_sign(const struct tc_keys *keys, const void *bytes, size_t n,
                   struct tc_signature *out) {
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  size_t len = sizeof out->bytes;
  bool good = ctx != NULL && keys->has_private &&
              EVP_DigestSignInit(ctx, NULL, NULL, NULL, keys->keys[0].pkey) == 1 &&
              EVP_DigestSign(ctx, out->bytes, &len, bytes, n) == 1 && len == sizeof out->bytes;

  EVP_MD_CTX_free(ctx);
  if (!good) return TB_NOMEM;
  memcpy(out->key, keys->keys[0].id, sizeof out->key);
  return TB_OK;
}

static bool is_by(EVP_PKEY *pkey, const void *bytes, size_t n,
                  const struct tc_signature *signature) {
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  bool good = ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
              EVP_DigestVerify(ctx, signature->bytes, sizeof signature->bytes, bytes, n) == 1;

  EVP_MD_CTX_free(ctx);
  ERR_clear_error();
  return good;
}

enum tc_signed tc_keys_check(const struct tc_keys *keys, const void *bytes, size_t n,
                             const struct tc_signature *signature) {
  for (size_t i = 0; i < keys->n; i++)
    if (memcmp(keys->keys[i].id, signature->key, sizeof signature->key) == 0)
      return is_by(keys->keys[i].pkey, bytes, n, signature) ? TC_SIGNED_RIGHT : TC_SIGNED_WRONG;
  return TC_SIGNED_OTHER;
}
