/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/identity.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

static void names_freep(GENERAL_NAMES **names) {
  GENERAL_NAMES_free(*names);
}

static bool is_plain(const char *uri, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (uri[i] <= ' ' || uri[i] >= 0x7f) return false;
  return true;
}

/* Parses tracecollect:ROLE/NAME; NAME must not be empty. */
static bool read_role(const char *uri, size_t len, enum tc_role *out) {
  char head[32];

  for (enum tc_role role = TC_ROLE_SERVER; role < TC_ROLES; role++) {
    size_t n = (size_t)snprintf(head, sizeof head, "tracecollect:%s/", tc_role_name(role));

    *out = role;
    if (len > n && memcmp(uri, head, n) == 0) return true;
  }
  return false;
}

tb_rc tc_identity_of(X509 *cert, struct tb_diag *diag, enum tc_role *out_role,
                     char out[TC_IDENTITY_BYTES + 1]) {
  int found; /* -1: no such extension */
  TB_CLEANUP(names_freep)
  GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, &found, NULL);
  const ASN1_STRING *uri = NULL;
  int uris = 0;

  /* The chain was verified, so the extension is valid ASN.1: this can only be a lack of memory. */
  if (names == NULL && found >= 0)
    return tb_fail(diag, TB_NOMEM, "certificate's names cannot be read: out of memory");
  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

    if (name->type != GEN_URI) continue;
    uri = name->d.uniformResourceIdentifier;
    uris++;
  }
  if (uris != 1)
    return tb_fail(diag, TB_REFUSED, "certificate has %d SAN URIs, exactly one is needed", uris);

  const char *text = (const char *)ASN1_STRING_get0_data(uri);
  size_t len = (size_t)ASN1_STRING_length(uri);
  if (len > TC_IDENTITY_BYTES || !is_plain(text, len) || !read_role(text, len, out_role))
    return tb_fail(diag, TB_REFUSED, "certificate's SAN URI is not a name of ours");
  memcpy(out, text, len);
  out[len] = '\0';
  return TB_OK;
}

void tc_serial_text(const ASN1_INTEGER *serial, char out[TC_SERIAL_MAX + 1]) {
  const unsigned char *bytes = ASN1_STRING_get0_data(serial);
  int n = ASN1_STRING_length(serial);
  size_t used = 0;

  out[0] = '\0';
  for (int i = 0; i < n && used + 2 <= TC_SERIAL_MAX; i++, used += 2)
    snprintf(out + used, TC_SERIAL_MAX + 1 - used, "%02X", bytes[i]);
}
