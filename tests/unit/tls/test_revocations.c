/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/patience.h"
#include "tls/authority.h"
#include "tls/revocations.h"

/* Two authorities, each with its certificates, and a list at "list". */
static char folder[64], list_path[96], ca_path[96];
static struct tc_revocations *revoked;
static struct tb_diag diag;
static const struct tc_cert_days default_days = { 0 };

static const char *in_folder(const char *name) {
  static char path[4][160];
  static unsigned at;

  at = (at + 1) % 4;
  snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
  return path[at];
}

static void open_it(bool optional) {
  cr_assert_eq(tc_revocations_new(list_path, optional, ca_path, &diag, &revoked), TB_OK);
}

static void set_up(void) {
  strcpy(folder, "/tmp/tc_revoked_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  strcpy(list_path, in_folder("list"));
  strcpy(ca_path, in_folder("a/ca.pem"));
  tb_diag_clear(&diag);
  cr_assert_eq(tc_certs_init(in_folder("a"), default_days, &diag), TB_OK, "%s", diag.text);
  open_it(false);
}

static void remove_all(const char *path) {
  DIR *dir = opendir(path);

  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    char inner[512];
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
    remove_all(inner);
  }
  if (dir != NULL) closedir(dir);
  remove(path);
}

static void tear_down(void) {
  tc_revocations_release(revoked);
  remove_all(folder);
}

TestSuite(revoked, .init = set_up, .fini = tear_down);

/* --- lists ------------------------------------------------------------------------------------- */

static X509 *cert_of(const char *file) {
  FILE *f = fopen(in_folder(file), "r");
  cr_assert_not_null(f, "%s", file);
  X509 *cert = PEM_read_X509(f, NULL, NULL, NULL);
  fclose(f);
  cr_assert_not_null(cert);
  return cert;
}

struct draft {
  const char *authority; /* folder */
  long serials;          /* 1..serials are revoked */
  const char *cert;      /* and this certificate's serial */
  long next_s;           /* from now on */
  bool is_delta;
};

static void add(X509_CRL *list, const ASN1_INTEGER *serial) {
  X509_REVOKED *entry = X509_REVOKED_new();
  ASN1_TIME *now = X509_gmtime_adj(NULL, 0);

  X509_REVOKED_set_serialNumber(entry, (ASN1_INTEGER *)(uintptr_t)serial);
  X509_REVOKED_set_revocationDate(entry, now);
  cr_assert_eq(X509_CRL_add0_revoked(list, entry), 1);
  ASN1_TIME_free(now);
}

static void add_serials(X509_CRL *list, long n) {
  ASN1_INTEGER *serial = ASN1_INTEGER_new();

  for (long i = 1; i <= n; i++) {
    ASN1_INTEGER_set(serial, i);
    add(list, serial);
  }
  ASN1_INTEGER_free(serial);
}

static void sign(X509_CRL *list, const char *authority) {
  char path[64];

  snprintf(path, sizeof path, "%s/ca.key", authority);
  FILE *f = fopen(in_folder(path), "r");
  cr_assert_not_null(f);
  EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
  fclose(f);
  X509_CRL_sort(list);
  cr_assert_neq(X509_CRL_sign(list, key, EVP_sha256()), 0);
  EVP_PKEY_free(key);
}

static X509_CRL *make(struct draft d) {
  X509_CRL *list = X509_CRL_new();
  char path[64];

  snprintf(path, sizeof path, "%s/ca.pem", d.authority);
  X509 *ca = cert_of(path);
  ASN1_TIME *from = X509_gmtime_adj(NULL, -7200), *next = X509_gmtime_adj(NULL, d.next_s);
  X509_CRL_set_version(list, X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list, X509_get_subject_name(ca));
  X509_CRL_set1_lastUpdate(list, from);
  X509_CRL_set1_nextUpdate(list, next);
  add_serials(list, d.serials);
  if (d.cert != NULL) {
    X509 *cert = cert_of(d.cert);
    add(list, X509_get0_serialNumber(cert));
    X509_free(cert);
  }
  if (d.is_delta) {
    ASN1_INTEGER *base = ASN1_INTEGER_new();
    ASN1_INTEGER_set(base, 1);
    cr_assert_eq(X509_CRL_add1_ext_i2d(list, NID_delta_crl, base, 1, 0), 1);
    ASN1_INTEGER_free(base);
  }
  sign(list, d.authority);
  ASN1_TIME_free(from);
  ASN1_TIME_free(next);
  X509_free(ca);
  return list;
}

static const struct draft usual = { .authority = "a", .cert = "a/agent.pem", .next_s = 86400 };

static void write_text(const char *mode, const char *text) {
  FILE *f = fopen(list_path, mode);
  cr_assert_not_null(f);
  fputs(text, f);
  fclose(f);
}

static void write_list(const char *mode, struct draft d) {
  X509_CRL *list = make(d);
  FILE *f = fopen(list_path, mode);
  cr_assert_not_null(f);
  cr_assert_eq(PEM_write_X509_CRL(f, list), 1);
  fclose(f);
  X509_CRL_free(list);
}

static tb_rc read_it(void) {
  STACK_OF(X509_CRL) *lists = NULL;

  tb_diag_clear(&diag);
  tb_rc rc = tc_revocations_read(revoked, &diag, &lists);
  if (rc == TB_OK) tc_revocations_take(revoked, lists);
  return rc;
}

static void expect_refused(tb_rc rc, const char *words) {
  cr_expect_eq(read_it(), rc, "%s: %s", words, diag.text);
  cr_expect_not_null(strstr(diag.text, words), "\"%s\" is not in \"%s\"", words, diag.text);
  cr_expect_not_null(strstr(diag.text, "/tmp/tc_revoked_"), "%s", diag.text);
}

static bool has(const char *file) {
  X509 *cert = cert_of(file);
  bool answer = tc_revocations_have(revoked, cert);

  X509_free(cert);
  return answer;
}

static uint64_t listed(void) {
  struct tc_revocations_facts facts;

  tc_revocations_facts(revoked, &facts);
  return facts.certificates;
}

/* --- what is taken over ------------------------------------------------------------------------ */

Test(revoked, what_the_list_names_is_revoked_and_nothing_else) {
  cr_expect_not(has("a/agent.pem"));
  write_list("w", usual);
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect(has("a/agent.pem"));
  cr_expect_not(has("a/reader.pem"));
  cr_expect_eq(listed(), 1);
}

Test(revoked, nobody_is_revoked_where_there_is_no_object_or_no_certificate) {
  X509 *cert = cert_of("a/agent.pem");
  STACK_OF(X509) *chain = sk_X509_new_null();

  write_list("w", usual);
  cr_assert_eq(read_it(), TB_OK);
  cr_expect_not(tc_revocations_have(NULL, cert));
  cr_expect_not(tc_revocations_have(revoked, NULL));
  cr_expect_not(tc_revocations_have_any(revoked, NULL));
  cr_expect_not(tc_revocations_have_any(revoked, chain));
  sk_X509_push(chain, cert);
  cr_expect(tc_revocations_have_any(revoked, chain));
  sk_X509_pop_free(chain, X509_free);
}

Test(revoked, a_list_past_its_next_update_counts_and_says_so) {
  struct tc_revocations_facts facts;
  struct draft old = usual;

  old.next_s = -3600;
  write_list("w", old);
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect(has("a/agent.pem"));
  tc_revocations_facts(revoked, &facts);
  cr_expect_lt(facts.next_update_s, (uint64_t)time(NULL));
  cr_expect_gt(facts.next_update_s, (uint64_t)time(NULL) - 7200);
}

Test(revoked, text_and_other_pem_around_a_list_are_skipped) {
  char command[512];

  write_text("w", "Certificate Revocation List (CRL):\n    Version 2 (0x1)\n");
  snprintf(command, sizeof command, "cat %s >>%s", in_folder("a/ca.pem"), list_path);
  cr_assert_eq(system(command), 0);
  write_list("a", usual);
  write_text("a", "\r\nno line of PEM, and no end of line");
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect(has("a/agent.pem"));
  cr_expect_eq(listed(), 1);
}

Test(revoked, lists_of_two_authorities_in_one_file_count_each_for_its_own) {
  char command[512];
  struct draft second = { .authority = "b", .cert = "a/reader.pem", .next_s = 60 };
  struct tc_revocations_facts facts;

  cr_assert_eq(tc_certs_init(in_folder("b"), default_days, &diag), TB_OK, "%s", diag.text);
  snprintf(command, sizeof command, "cat %s >>%s", in_folder("b/ca.pem"), ca_path);
  cr_assert_eq(system(command), 0);
  X509 *other = cert_of("b/agent.pem");
  write_list("w", usual);
  write_list("a", second); /* the serial of a's reader, but in b's list */
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect(has("a/agent.pem"));
  bool same_issuer = false;
  X509 *reader = cert_of("a/reader.pem");
  same_issuer = X509_NAME_cmp(X509_get_issuer_name(reader), X509_get_issuer_name(other)) == 0;
  cr_expect_eq(has("a/reader.pem"), same_issuer);
  cr_expect_not(tc_revocations_have(revoked, other));
  tc_revocations_facts(revoked, &facts);
  cr_expect_eq(facts.certificates, 2);
  cr_expect_lt(facts.next_update_s, (uint64_t)time(NULL) + 3600, "the earliest of both");
  X509_free(other);
  X509_free(reader);
}

Test(revoked, thousands_are_found_each_and_others_are_not) {
  enum { LISTED = TT_LESS(5000, 2000) };
  struct draft many = usual;
  X509 *cert = cert_of("a/reader.pem");
  ASN1_INTEGER *serial = ASN1_INTEGER_new();

  many.serials = LISTED;
  write_list("w", many);
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect_eq(listed(), LISTED + 1);
  for (long i = 0; i <= LISTED + 1; i++) {
    ASN1_INTEGER_set(serial, i);
    X509_set_serialNumber(cert, serial);
    cr_assert_eq(tc_revocations_have(revoked, cert), i >= 1 && i <= LISTED, "%ld", i);
  }
  cr_expect(has("a/agent.pem"));
  ASN1_INTEGER_free(serial);
  X509_free(cert);
}

/* --- what is refused, and changes nothing ------------------------------------------------------ */

Test(revoked, what_is_no_list_of_the_authority_is_refused_by_reason_and_the_old_one_stays) {
  struct draft delta = usual, foreign = { .authority = "b", .serials = 3, .next_s = 60 };

  cr_assert_eq(tc_certs_init(in_folder("b"), default_days, &diag), TB_OK, "%s", diag.text);
  write_list("w", usual);
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);

  write_text("w", "");
  expect_refused(TB_CORRUPT, "holds no revocation list in PEM");
  write_text("w", "no list\n");
  expect_refused(TB_CORRUPT, "holds no revocation list in PEM");
  write_list("w", foreign);
  expect_refused(TB_CORRUPT, "list 1: not signed by an authority");
  write_list("w", usual);
  write_list("a", foreign);
  expect_refused(TB_CORRUPT, "list 2: not signed by an authority");
  delta.is_delta = true;
  write_list("w", delta);
  expect_refused(TB_CORRUPT, "not a complete list");
  write_text("w", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
  expect_refused(TB_CORRUPT, "not a revocation list in PEM");
  cr_expect(has("a/agent.pem"));
  cr_expect_eq(listed(), 1);
}

Test(revoked, a_list_with_another_signature_is_refused) {
  X509_CRL *list = make(usual);
  unsigned char *der = NULL;
  int n = i2d_X509_CRL(list, &der);
  BIO *pem = BIO_new_file(list_path, "w");

  der[n - 1] ^= 1;
  PEM_write_bio(pem, PEM_STRING_X509_CRL, "", der, n);
  BIO_free(pem);
  OPENSSL_free(der);
  X509_CRL_free(list);
  expect_refused(TB_CORRUPT, "not signed by an authority");
  cr_expect_not(has("a/agent.pem"));
}

/* At every length, the list is refused, or is read completely. */
Test(revoked, a_list_cut_anywhere_is_refused) {
  struct stat st;
  unsigned whole = 0;

  write_list("w", usual);
  cr_assert_eq(stat(list_path, &st), 0);
  for (off_t n = st.st_size - 1; n >= 0; n--) {
    cr_assert_eq(truncate(list_path, n), 0);
    if (read_it() != TB_OK) continue;
    whole++;
    cr_expect(has("a/agent.pem"), "cut at %ld", (long)n);
    cr_expect_geq(n, st.st_size - 2, "cut at %ld", (long)n);
  }
  cr_expect_leq(whole, 2);
}

Test(revoked, too_large_a_file_is_refused_before_it_is_read) {
  write_list("w", usual);
  cr_assert_eq(truncate(list_path, (off_t)TC_CRL_BYTES_MAX + 1), 0);
  expect_refused(TB_BUDGET, "larger than 64 MiB");
}

Test(revoked, what_is_not_a_file_is_refused_without_waiting) {
  cr_assert_eq(mkfifo(list_path, 0600), 0);
  expect_refused(TB_CORRUPT, "not a file");
  cr_assert_eq(unlink(list_path), 0);
  cr_assert_eq(mkdir(list_path, 0700), 0);
  expect_refused(TB_CORRUPT, "not a file");
}

Test(revoked, an_authority_file_that_is_missing_or_torn_is_named) {
  write_list("w", usual);
  cr_assert_eq(truncate(ca_path, 100), 0);
  expect_refused(TB_CORRUPT, "a/ca.pem");
  cr_assert_eq(unlink(ca_path), 0);
  expect_refused(TB_CORRUPT, "a/ca.pem: cannot be read");
}

Test(revoked, a_path_that_is_too_long_is_refused) {
  struct tc_revocations *none = NULL;
  char *path = calloc(1, 8192);

  memset(path, 'x', 8191);
  cr_expect_eq(tc_revocations_new(path, true, ca_path, &diag, &none), TB_IO);
  cr_expect_eq(tc_revocations_new(list_path, true, path, &diag, &none), TB_IO);
  cr_expect_null(none);
  free(path);
}

/* --- while it runs ----------------------------------------------------------------------------- */

static void reopen(bool optional) {
  tc_revocations_release(revoked);
  open_it(optional);
}

Test(revoked, a_list_that_may_be_missing_is_no_error_until_it_was_there) {
  reopen(true);
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect_eq(listed(), 0);
  cr_expect_not(tc_revocations_changed(revoked));
  write_list("w", usual);
  cr_expect(tc_revocations_changed(revoked));
  cr_assert_eq(read_it(), TB_OK, "%s", diag.text);
  cr_expect(has("a/agent.pem"));
  cr_assert_eq(unlink(list_path), 0);
  cr_expect(tc_revocations_changed(revoked));
  expect_refused(TB_IO, "No such file or directory");
  cr_expect(has("a/agent.pem"), "what was taken back stays so");
  cr_expect_not(tc_revocations_changed(revoked), "it was told once");
}

Test(revoked, a_list_that_is_named_must_be_there) {
  expect_refused(TB_IO, "No such file or directory");
}

Test(revoked, each_change_is_seen_once_and_a_new_list_replaces_the_old_one) {
  struct draft next = usual;

  next.cert = "a/reader.pem";
  write_list("w", usual);
  cr_expect(tc_revocations_changed(revoked));
  cr_expect_not(tc_revocations_changed(revoked));
  cr_assert_eq(read_it(), TB_OK);
  cr_expect_not(tc_revocations_changed(revoked));
  cr_assert_eq(unlink(list_path), 0);
  write_list("w", next);
  cr_expect(tc_revocations_changed(revoked));
  cr_expect(has("a/agent.pem"), "not before it is taken over");
  cr_assert_eq(read_it(), TB_OK);
  cr_expect_not(has("a/agent.pem"));
  cr_expect(has("a/reader.pem"));
}

static atomic_bool over;

static void *ask(void *self) {
  X509 *cert = self;
  unsigned long asked = 0;

  while (!atomic_load(&over)) {
    struct tc_revocations_facts facts;

    cr_assert(tc_revocations_have(revoked, cert), "it is on every list");
    tc_revocations_facts(revoked, &facts);
    asked++;
  }
  return (void *)(uintptr_t)(asked > 0);
}

/* libcrypto sorts at the first lookup, and asks without a lock whether it has: not what several threads may do. */
Test(revoked, a_list_is_sorted_before_others_look_into_it) {
  struct draft many = usual;
  STACK_OF(X509_CRL) * lists;

  many.serials = 200;
  write_list("w", many);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_revocations_read(revoked, &diag, &lists), TB_OK, "%s", diag.text);
  STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(sk_X509_CRL_value(lists, 0));
  cr_expect_gt(sk_X509_REVOKED_num(entries), 100);
  cr_expect(sk_X509_REVOKED_is_sorted(entries));
  tc_revocations_drop(lists);
}

Test(revoked, lists_are_replaced_while_others_ask) {
  enum { ASKERS = 4, TIMES = 50 };
  pthread_t threads[ASKERS];
  X509 *cert = cert_of("a/agent.pem");
  struct draft many = usual;

  many.serials = 200;
  write_list("w", many);
  cr_assert_eq(read_it(), TB_OK);
  for (int i = 0; i < ASKERS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, ask, cert), 0);
  for (int i = 0; i < TIMES; i++) cr_assert_eq(read_it(), TB_OK);
  atomic_store(&over, true);
  for (int i = 0; i < ASKERS; i++) pthread_join(threads[i], NULL);
  X509_free(cert);
}

static atomic_bool compared;

static void *compare_and_free(void *cert) {
  cr_assert_eq(X509_NAME_cmp(X509_get_subject_name(cert), X509_get_issuer_name(cert)), 0);
  X509_free(cert);
  atomic_store_explicit(&compared, true, memory_order_relaxed);
  return NULL;
}

/* Two loops share the certificates of one SSL_CTX in this way. OpenSSL counts references with atomics of its own. ThreadSanitizer
 * does not see them and reports the free as a race, unless its suppressions name libcrypto. */
Test(revoked, the_thread_that_drops_the_last_reference_frees) {
  X509 *cert = cert_of("a/ca.pem");
  pthread_t thread;

  X509_up_ref(cert);
  cr_assert_eq(pthread_create(&thread, NULL, compare_and_free, cert), 0);
  while (!atomic_load_explicit(&compared, memory_order_relaxed)) sched_yield();
  X509_free(cert);
  pthread_join(thread, NULL);
}
