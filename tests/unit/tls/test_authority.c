/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/authority.h"

static char folder[64];
static const struct tc_cert_days default_days = { 0 };

static void make_folder(void) {
  strcpy(folder, "/tmp/tc_certs_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  strcat(folder, "/c"); /* missing, so init makes it */
}

static void remove_folder(void) {
  char path[512];
  DIR *dir = opendir(folder);

  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (dir != NULL) closedir(dir);
  rmdir(folder);
  folder[strlen(folder) - 2] = '\0';
  rmdir(folder);
}

TestSuite(certs, .init = make_folder, .fini = remove_folder);

static const char *file(const char *name) {
  static char path[512];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static X509 *read_cert(const char *name) {
  FILE *f = fopen(file(name), "r");
  cr_assert_not_null(f, "%s", name);
  X509 *cert = PEM_read_X509(f, NULL, NULL, NULL);
  fclose(f);
  cr_assert_not_null(cert, "%s", name);
  return cert;
}

/* Returns all SAN entries of cert as "URI:x DNS:y IP:z ". */
static void read_names(X509 *cert, char *out, size_t out_bytes) {
  GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
  size_t used = 0;

  *out = '\0';
  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
    const ASN1_STRING *s = n->type == GEN_IPADD ? n->d.iPAddress : n->d.ia5;
    const char *kind = n->type == GEN_URI ? "URI" : n->type == GEN_DNS ? "DNS" : "IP";
    if (n->type == GEN_IPADD)
      used += (size_t)snprintf(out + used, out_bytes - used, "IP%d ", ASN1_STRING_length(s));
    else
      used += (size_t)snprintf(out + used, out_bytes - used, "%s:%.*s ", kind,
                               ASN1_STRING_length(s), (const char *)ASN1_STRING_get0_data(s));
  }
  GENERAL_NAMES_free(names);
}

static int verify(const char *name, int purpose) {
  X509_STORE *store = X509_STORE_new();
  X509_STORE_CTX *ctx = X509_STORE_CTX_new();
  X509 *ca = read_cert("ca.pem"), *cert = read_cert(name);

  X509_STORE_add_cert(store, ca);
  X509_STORE_set_flags(store, X509_V_FLAG_X509_STRICT);
  X509_STORE_CTX_init(ctx, store, cert, NULL);
  X509_STORE_CTX_set_purpose(ctx, purpose);
  X509_verify_cert(ctx);
  int error = X509_STORE_CTX_get_error(ctx);
  X509_STORE_CTX_free(ctx);
  X509_STORE_free(store);
  X509_free(ca);
  X509_free(cert);
  return error;
}

Test(certs, init_makes_an_authority_and_three_certificates_it_vouches_for) {
  struct tb_diag diag;
  char names[1024];
  struct stat st;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  for (const char *const *n = (const char *const[]){ "ca", "server", "agent", "reader", NULL };
       *n != NULL; n++) {
    char key[32];
    snprintf(key, sizeof key, "%s.key", *n);
    cr_assert_eq(stat(file(key), &st), 0, "%s", key);
    cr_expect_eq(st.st_mode & 0777, 0600, "%s", key);
  }
  cr_expect_eq(verify("server.pem", X509_PURPOSE_SSL_SERVER), X509_V_OK);
  cr_expect_eq(verify("agent.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  cr_expect_eq(verify("reader.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  cr_expect_eq(verify("agent.pem", X509_PURPOSE_SSL_SERVER), X509_V_ERR_INVALID_PURPOSE);
  cr_expect_eq(verify("server.pem", X509_PURPOSE_SSL_CLIENT), X509_V_ERR_INVALID_PURPOSE);

  X509 *cert = read_cert("agent.pem");
  read_names(cert, names, sizeof names);
  cr_expect_str_eq(names, "URI:tracecollect:agent/agent ");
  cr_expect_eq(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
  X509_free(cert);

  cert = read_cert("server.pem");
  read_names(cert, names, sizeof names);
  cr_expect_eq(strncmp(names, "URI:tracecollect:server/server DNS:localhost ", 45), 0, "%s", names);
  cr_expect_not_null(strstr(names, "IP4 IP16 "), "%s", names);
  cr_expect_null(strstr(names + 4, "URI:"), "%s", names);
  cr_expect_null(strstr(names, "DNS:server"), "%s", names); /* the role's name is not a host name */
  cr_expect_eq(X509_check_ip_asc(cert, "127.0.0.1", 0), 1);
  cr_expect_eq(X509_check_ip_asc(cert, "::1", 0), 1);
  X509_free(cert);
}

Test(certs, an_authority_is_never_overwritten) {
  struct tb_diag diag;
  char name[TC_CERT_NAME_MAX + 1];

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  X509 *before = read_cert("ca.pem");
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_REFUSED);
  cr_assert_not_null(strstr(diag.text, "ca.pem exists"), "%s", diag.text);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_AGENT, "agent", 0, &diag, name), TB_REFUSED);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_AGENT, "ca", 0, &diag, name), TB_REFUSED);
  X509 *after = read_cert("ca.pem");
  cr_assert_eq(X509_cmp(before, after), 0);
  X509_free(before);
  X509_free(after);
}

Test(certs, add_makes_one_more_under_a_fresh_name) {
  struct tb_diag diag;
  char name[TC_CERT_NAME_MAX + 1], names[1024];

  tb_diag_clear(&diag);
  /* the folder does not exist yet */
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_AGENT, "", 0, &diag, name), TB_IO);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_READER, "", 0, &diag, name), TB_OK, "%s", diag.text);
  cr_assert_str_eq(name, "reader-2");
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_READER, "", 0, &diag, name), TB_OK, "%s", diag.text);
  cr_assert_str_eq(name, "reader-3");
  cr_expect_eq(verify("reader-3.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);

  cr_assert_eq(tc_certs_add(folder, TC_ROLE_SERVER, "trace.example", 0, &diag, name), TB_OK, "%s",
               diag.text);
  X509 *cert = read_cert("trace.example.pem");
  read_names(cert, names, sizeof names);
  cr_expect_not_null(strstr(names, "URI:tracecollect:server/trace.example "), "%s", names);
  cr_expect_not_null(strstr(names, "DNS:trace.example "), "%s", names);
  X509_free(cert);

  for (const char *const *bad =
           (const char *const[]){ "../x", ".x", "-x", "a b", "a,URI:b", "ü", NULL };
       *bad != NULL; bad++) {
    tb_diag_clear(&diag);
    cr_expect_eq(tc_certs_add(folder, TC_ROLE_AGENT, *bad, 0, &diag, name), TB_REFUSED, "%s", *bad);
  }
}

Test(certs, ensure_completes_what_a_killed_run_left) {
  char made[TC_FINGERPRINT_BYTES];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_ensure(folder, &diag, made), TB_OK, "%s", diag.text);
  cr_expect_eq(strlen(made), (size_t)TC_FINGERPRINT_BYTES - 1);
  X509 *ca = read_cert("ca.pem");
  unlink(file("server.pem")); /* killed between key and certificate */
  unlink(file("reader.pem"));
  unlink(file("reader.key"));
  cr_assert_eq(tc_certs_ensure(folder, &diag, made), TB_OK, "%s", diag.text);
  cr_expect_str_eq(made, "");
  cr_expect_eq(verify("server.pem", X509_PURPOSE_SSL_SERVER), X509_V_OK);
  cr_expect_eq(verify("reader.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  X509 *same = read_cert("ca.pem");
  cr_expect_eq(X509_cmp(ca, same), 0);
  X509_free(ca);
  X509_free(same);

  unlink(file("ca.key")); /* key kept elsewhere: fine as long as the server's pair is there */
  unlink(file("agent.pem"));
  cr_assert_eq(tc_certs_ensure(folder, &diag, made), TB_OK, "%s", diag.text);
  unlink(file("server.pem"));
  cr_assert_eq(tc_certs_ensure(folder, &diag, made), TB_IO);
  cr_assert_not_null(strstr(diag.text, "ca.key: No such file"), "%s", diag.text);
}

Test(certs, a_folder_that_is_named_must_be_complete) {
  static const char *const files[] = { "ca.pem", "server.pem", "server.key" };
  struct tb_diag diag;
  char kept[64];

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_require("/nowhere", &diag), TB_NOTFOUND);
  cr_expect_not_null(
      strstr(diag.text, "certs: /nowhere: No such file or directory; tracectl certs init"), "%s",
      diag.text);
  cr_assert_eq(tc_certs_init(folder, (struct tc_cert_days){ 0 }, &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(tc_certs_require(folder, &diag), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(kept, sizeof kept, "%s.kept", files[i]);
    char *from = strdup(file(files[i])), *to = strdup(file(kept));
    rename(from, to);
    tb_diag_clear(&diag);
    cr_expect_eq(tc_certs_require(folder, &diag), TB_NOTFOUND);
    cr_expect_not_null(strstr(diag.text, files[i]), "%s", diag.text);
    cr_expect_not_null(strstr(diag.text, "server.key are needed there"), "%s", diag.text);
    rename(to, from);
    free(from);
    free(to);
  }
}

static X509_CRL *read_list(void) {
  FILE *f = fopen(file("crl.pem"), "r");
  cr_assert_not_null(f);
  X509_CRL *list = PEM_read_X509_CRL(f, NULL, NULL, NULL);
  fclose(f);
  cr_assert_not_null(list);
  return list;
}

static bool is_listed(X509 *cert) {
  X509_REVOKED *entry;
  X509_CRL *list = read_list();
  bool is = X509_CRL_get0_by_cert(list, &entry, cert) == 1;

  X509_CRL_free(list);
  return is;
}

Test(certs, lifetimes_are_as_asked_and_end_with_the_authority) {
  struct tc_cert_days days = { .authority = 20, .certificate = 10 };
  struct tb_diag diag;
  char name[TC_CERT_NAME_MAX + 1];
  int left, seconds;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, days, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_certs_add(folder, TC_ROLE_AGENT, "long", 4000, &diag, name), TB_OK, "%s",
               diag.text);
  for (const char *const *n =
           (const char *const[]){ "ca.pem", "19", "agent.pem", "9", "long.pem", "19", NULL };
       *n != NULL; n += 2) {
    X509 *cert = read_cert(n[0]);
    cr_assert_eq(ASN1_TIME_diff(&left, &seconds, NULL, X509_get0_notAfter(cert)), 1);
    cr_expect(left == atoi(n[1]) || left == atoi(n[1]) + 1, "%s: %d days", n[0], left);
    X509_free(cert);
  }
}

Test(certs, a_name_is_revoked_with_all_that_were_renewed_and_others_are_not) {
  struct tc_certs_revoked done;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  X509 *first = read_cert("agent.pem"), *other = read_cert("reader.pem");
  cr_assert_eq(tc_certs_renew(folder, "agent", 5, false, &diag), TB_OK, "%s", diag.text);
  X509 *second = read_cert("agent.pem");
  cr_expect_eq(EVP_PKEY_eq(X509_get0_pubkey(first), X509_get0_pubkey(second)), 1);
  cr_expect_neq(X509_cmp(first, second), 0);
  cr_expect_eq(verify("agent.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);

  cr_assert_eq(tc_certs_revoke(folder, "agent", 0, &diag, &done), TB_OK, "%s", diag.text);
  cr_expect_eq(done.added, 2);
  cr_expect(is_listed(first) && is_listed(second) && !is_listed(other));
  cr_assert_eq(tc_certs_revoke(folder, "agent", 0, &diag, &done), TB_OK, "%s", diag.text);
  cr_expect_eq(done.added, 0);
  cr_expect_eq(done.listed, 2);

  cr_expect_eq(tc_certs_renew(folder, "agent", 0, false, &diag), TB_REFUSED);
  cr_expect_not_null(strstr(diag.text, "--new-key"), "%s", diag.text);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_renew(folder, "agent", 0, true, &diag), TB_OK, "%s", diag.text);
  X509 *third = read_cert("agent.pem");
  cr_expect_eq(EVP_PKEY_eq(X509_get0_pubkey(first), X509_get0_pubkey(third)), 0);
  cr_expect_not(is_listed(third));
  cr_expect_eq(verify("agent.pem", X509_PURPOSE_SSL_CLIENT), X509_V_OK);
  X509_free(first);
  X509_free(second);
  X509_free(third);
  X509_free(other);
}

Test(certs, what_cannot_be_revoked_or_renewed_is_refused_by_name) {
  struct tc_certs_revoked done;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  for (const char *const *what =
           (const char *const[]){ "ca", "nobody", "0", "", "../agent.pem",
                                  "0x12345678901234567890123456789012345678901", NULL };
       *what != NULL; what++) {
    tb_diag_clear(&diag);
    cr_expect_neq(tc_certs_revoke(folder, *what, 0, &diag, &done), TB_OK, "%s", *what);
    cr_expect_neq(diag.text[0], '\0', "%s", *what);
  }
  cr_expect_neq(access(file("crl.pem"), F_OK), 0, "nothing was written");
  tb_diag_clear(&diag);
  cr_expect_eq(tc_certs_renew(folder, "nobody", 0, false, &diag), TB_NOTFOUND);
  tb_diag_clear(&diag);
  cr_expect_eq(tc_certs_renew(folder, "../c/agent", 0, false, &diag), TB_NOTFOUND);
  tb_diag_clear(&diag);
  cr_expect_eq(tc_certs_renew(folder, "ca", 0, true, &diag), TB_REFUSED);

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_revoke(folder, "0x5a:01", 0, &diag, &done), TB_OK, "%s", diag.text);
  cr_expect_str_eq(done.serial, "5A01");
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_renew(folder, "ca", 0, false, &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(verify("server.pem", X509_PURPOSE_SSL_SERVER), X509_V_OK, "the authority's renewal");
}

static PKCS12 *read_pack(const char *name) {
  FILE *f = fopen(file(name), "r");
  cr_assert_not_null(f, "%s", name);
  PKCS12 *pack = d2i_PKCS12_fp(f, NULL);
  fclose(f);
  cr_assert_not_null(pack, "%s", name);
  return pack;
}

Test(certs, a_pack_has_certificate_key_and_authority_and_is_never_overwritten) {
  struct tb_diag diag;
  STACK_OF(X509) *chain = NULL;
  EVP_PKEY *key = NULL;
  X509 *cert = NULL;
  struct stat st;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(folder, default_days, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_certs_pack(folder, "reader", "a word", &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(stat(file("reader.p12"), &st), 0);
  cr_expect_eq(st.st_mode & 07777, 0600);
  PKCS12 *pack = read_pack("reader.p12");
  cr_expect_neq(PKCS12_verify_mac(pack, "another", -1), 1);
  cr_assert_eq(PKCS12_parse(pack, "a word", &key, &cert, &chain), 1);
  X509 *want = read_cert("reader.pem"), *authority = read_cert("ca.pem");
  cr_expect_eq(X509_cmp(cert, want), 0);
  cr_expect_eq(X509_check_private_key(want, key), 1);
  cr_assert_eq(sk_X509_num(chain), 1);
  cr_expect_eq(X509_cmp(sk_X509_value(chain, 0), authority), 0);

  cr_expect_eq(tc_certs_pack(folder, "reader", "a word", &diag), TB_REFUSED);
  for (const char *const *other = (const char *const[]){ "agent", "server", "ca", NULL };
       *other != NULL; other++) {
    tb_diag_clear(&diag);
    cr_expect_eq(tc_certs_pack(folder, *other, "a word", &diag), TB_REFUSED, "%s", *other);
  }
  for (const char *const *none = (const char *const[]){ "nobody", "../c/reader", "", NULL };
       *none != NULL; none++) {
    tb_diag_clear(&diag);
    cr_expect_eq(tc_certs_pack(folder, *none, "a word", &diag), TB_NOTFOUND, "%s", *none);
  }
  X509_free(cert);
  X509_free(want);
  X509_free(authority);
  EVP_PKEY_free(key);
  sk_X509_pop_free(chain, X509_free);
  PKCS12_free(pack);
}
