/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's own check (X509_V_FLAG_CRL_CHECK) is not used: it refuses everybody once a list is past its next update, its store
 * cannot remove a list, and of two lists of the same second it keeps the older one. Single lists are queried by OpenSSL. */
#include "tls/revocations.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tls/file_state.h"
#include "tls/pem_fault.h"

struct tc_revocations {
  atomic_uint refs;
  char path[PATH_MAX], authorities[PATH_MAX];
  bool optional;
  bool read; /* the file was read at least once */
  struct tc_file_state seen;
  pthread_rwlock_t lock; /* for lists */
  STACK_OF(X509_CRL) * lists;
};

static void bio_freep(BIO **bio) {
  BIO_free(*bio);
}

static void certs_freep(STACK_OF(X509) * *certs) {
  sk_X509_pop_free(*certs, X509_free);
}

static void lists_freep(STACK_OF(X509_CRL) * *lists) {
  tc_revocations_drop(*lists);
}

void tc_revocations_drop(STACK_OF(X509_CRL) * lists) {
  sk_X509_CRL_pop_free(lists, X509_CRL_free);
}

uint64_t tc_asn1_time_s(const ASN1_TIME *time) {
  struct tm at;

  if (time == NULL || ASN1_TIME_to_tm(time, &at) != 1) return 0;
  time_t s = timegm(&at);
  return s > 0 ? (uint64_t)s : 0;
}

/* --- the file ---------------------------------------------------------------------------------- */

bool tc_revocations_changed(struct tc_revocations *r) {
  struct tc_file_state now = tc_file_state_of(r->path);

  if (tc_file_state_equals(&now, &r->seen)) return false;
  r->seen = now;
  return r->read || now.error != ENOENT;
}

static tb_rc openssl_fail(struct tb_diag *diag, const char *path, const char *what) {
  const char *why = ERR_reason_error_string(ERR_peek_last_error());
  tb_rc rc = tb_fail(diag, TB_CORRUPT, "%.300s: %s: %s", path, what,
                     why != NULL ? why : "no reason given");

  ERR_clear_error();
  return rc;
}

/* PEM readers fail with this error at the end of a file. */
static bool is_at_end(void) {
  unsigned long error = ERR_peek_last_error();
  bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;

  if (end) ERR_clear_error();
  return end;
}

/* Reads the whole file into memory: a file BIO treats a read error as the end of the file. */
static tb_rc load(const char *path, int fd, size_t bytes, struct tb_diag *diag, BIO **out) {
  BIO *all = BIO_new(BIO_s_mem());
  char piece[16 << 10];
  ssize_t n = 0;

  while (all != NULL && bytes > 0 &&
         (n = read(fd, piece, bytes < sizeof piece ? bytes : sizeof piece)) > 0) {
    if (BIO_write(all, piece, (int)n) != n) break;
    bytes -= (size_t)n;
  }
  if (all != NULL && bytes == 0) {
    *out = all;
    return TB_OK;
  }
  BIO_free(all);
  if (n > 0 || all == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  return tb_fail(diag, TB_IO, "%.300s: %s", path, n < 0 ? strerror(errno) : "became shorter");
}

/* *out NULL: the file is missing, which is allowed. */
static tb_rc open_file(struct tc_revocations *r, struct tb_diag *diag, BIO **out) {
  int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a FIFO */
  struct stat st;

  *out = NULL;
  if (fd < 0 && errno == ENOENT && r->optional && !r->read) {
    r->seen = (struct tc_file_state){ .error = ENOENT };
    return TB_OK;
  }
  if (fd < 0) return tb_fail(diag, TB_IO, "%.300s: %s", r->path, strerror(errno));
  tb_rc rc = TB_OK;
  if (fstat(fd, &st) != 0)
    rc = tb_fail(diag, TB_IO, "%.300s: %s", r->path, strerror(errno));
  else if (!S_ISREG(st.st_mode))
    rc = tb_fail(diag, TB_CORRUPT, "%.300s: not a file", r->path);
  else if (st.st_size > TC_CRL_BYTES_MAX)
    rc = tb_fail(diag, TB_BUDGET, "%.300s: larger than %d MiB", r->path, TC_CRL_BYTES_MAX >> 20);
  if (rc == TB_OK) {
    r->seen = tc_file_state_from(&st);
    rc = load(r->path, fd, (size_t)st.st_size, diag, out);
  }
  close(fd);
  return rc;
}

static tb_rc read_authorities(const struct tc_revocations *r, struct tb_diag *diag,
                              STACK_OF(X509) * *out) {
  const char *unfit = tc_pem_unfit(r->authorities);
  if (unfit != NULL)
    return tb_fail(diag, TB_CORRUPT, "%.300s: cannot be read: %s", r->authorities, unfit);
  TB_CLEANUP(bio_freep) BIO *in = BIO_new_file(r->authorities, "r");
  TB_CLEANUP(certs_freep) STACK_OF(X509) *certs = sk_X509_new_null();
  X509 *cert;

  if (in == NULL || certs == NULL) return openssl_fail(diag, r->authorities, "cannot be read");
  while ((cert = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)) != NULL)
    if (sk_X509_push(certs, cert) <= 0) {
      X509_free(cert);
      return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
    }
  if (!is_at_end()) return openssl_fail(diag, r->authorities, "not a file of certificates");
  *out = TB_MOVE(certs);
  return TB_OK;
}

/* --- one list ---------------------------------------------------------------------------------- */

static bool signed_by(X509_CRL *list, X509 *authority) {
  bool may = (X509_get_key_usage(authority) & KU_CRL_SIGN) != 0;
  bool is = may &&
            X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority)) == 0 &&
            X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1;

  ERR_clear_error();
  return is;
}

static bool has_critical_extension(const X509_CRL *list) {
  for (int i = 0; i < X509_CRL_get_ext_count(list); i++)
    if (X509_EXTENSION_get_critical(X509_CRL_get_ext(list, i))) return true;
  return false;
}

static tb_rc check(const struct tc_revocations *r, X509_CRL *list, int number,
                   const STACK_OF(X509) * authorities, struct tb_diag *diag) {
  char issuer[128] = "";

  if (has_critical_extension(list))
    return tb_fail(diag, TB_CORRUPT,
                   "%.300s: list %d: not a complete list: it is a partial or delta list", r->path,
                   number);
  for (int i = 0; i < sk_X509_num(authorities); i++)
    if (signed_by(list, sk_X509_value(authorities, i))) return TB_OK;
  X509_NAME_oneline(X509_CRL_get_issuer(list), issuer, sizeof issuer);
  return tb_fail(diag, TB_CORRUPT,
                 "%.200s: list %d: not signed by an authority of %.200s; its issuer is %s", r->path,
                 number, r->authorities, issuer);
}

tb_rc tc_revocations_read(struct tc_revocations *r, struct tb_diag *diag,
                          STACK_OF(X509_CRL) * *out) {
  TB_CLEANUP(lists_freep) STACK_OF(X509_CRL) *lists = sk_X509_CRL_new_null();
  TB_CLEANUP(certs_freep) STACK_OF(X509) *authorities = NULL;
  TB_CLEANUP(bio_freep) BIO *in = NULL;
  X509_CRL *list;

  if (lists == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  ERR_clear_error();
  TB_TRY(open_file(r, diag, &in));
  if (in == NULL) {
    *out = TB_MOVE(lists);
    return TB_OK;
  }
  TB_TRY(read_authorities(r, diag, &authorities));
  while ((list = PEM_read_bio_X509_CRL(in, NULL, NULL, NULL)) != NULL) {
    if (sk_X509_CRL_push(lists, list) <= 0) {
      X509_CRL_free(list);
      return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
    }
    TB_TRY(check(r, list, sk_X509_CRL_num(lists), authorities, diag));
    /* A lookup sorts the entries at first use, and reads without a lock whether they are sorted: not for several threads. */
    sk_X509_REVOKED_sort(X509_CRL_get_REVOKED(list));
  }
  if (!is_at_end()) return openssl_fail(diag, r->path, "not a revocation list in PEM");
  if (sk_X509_CRL_num(lists) == 0)
    return tb_fail(diag, TB_CORRUPT, "%.300s: holds no revocation list in PEM", r->path);
  *out = TB_MOVE(lists);
  return TB_OK;
}

void tc_revocations_take(struct tc_revocations *r, STACK_OF(X509_CRL) * lists) {
  pthread_rwlock_wrlock(&r->lock);
  STACK_OF(X509_CRL) *old = r->lists;
  r->lists = lists;
  pthread_rwlock_unlock(&r->lock);
  r->read = r->read || sk_X509_CRL_num(lists) > 0;
  tc_revocations_drop(old);
}

/* --- questions --------------------------------------------------------------------------------- */

static bool list_has(X509_CRL *list, const X509 *cert) {
  X509_REVOKED *entry;

  return X509_CRL_get0_by_cert(list, &entry, (X509 *)(uintptr_t)cert) == 1;
}

bool tc_revocations_have(struct tc_revocations *r, const X509 *cert) {
  bool has = false;

  if (r == NULL || cert == NULL) return false;
  pthread_rwlock_rdlock(&r->lock);
  for (int i = 0; !has && i < sk_X509_CRL_num(r->lists); i++)
    has = list_has(sk_X509_CRL_value(r->lists, i), cert);
  pthread_rwlock_unlock(&r->lock);
  return has;
}

bool tc_revocations_have_any(struct tc_revocations *r, const STACK_OF(X509) * chain) {
  if (chain == NULL) return false;
  for (int i = 0; i < sk_X509_num(chain); i++)
    if (tc_revocations_have(r, sk_X509_value(chain, i))) return true;
  return false;
}

void tc_revocations_facts(struct tc_revocations *r, struct tc_revocations_facts *out) {
  *out = (struct tc_revocations_facts){ 0 };
  pthread_rwlock_rdlock(&r->lock);
  for (int i = 0; i < sk_X509_CRL_num(r->lists); i++) {
    X509_CRL *list = sk_X509_CRL_value(r->lists, i);
    uint64_t next_s = tc_asn1_time_s(X509_CRL_get0_nextUpdate(list));
    int entries = sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list));

    if (entries > 0) out->certificates += (uint64_t)entries;
    if (next_s != 0 && (out->next_update_s == 0 || next_s < out->next_update_s))
      out->next_update_s = next_s;
  }
  pthread_rwlock_unlock(&r->lock);
}

const char *tc_revocations_path(const struct tc_revocations *r) {
  return r->path;
}

/* --- life -------------------------------------------------------------------------------------- */

/* glibc's default prefers readers: a flood of handshakes could delay a new list forever. */
static void init_lock(pthread_rwlock_t *lock) {
  pthread_rwlockattr_t attr;

  pthread_rwlockattr_init(&attr);
  pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock, &attr);
  pthread_rwlockattr_destroy(&attr);
}

tb_rc tc_revocations_new(const char *path, bool optional, const char *authorities,
                         struct tb_diag *diag, struct tc_revocations **out) {
  struct tc_revocations *r = calloc(1, sizeof *r);

  if (r == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  atomic_init(&r->refs, 1);
  init_lock(&r->lock);
  r->optional = optional;
  if (snprintf(r->path, sizeof r->path, "%s", path) >= PATH_MAX ||
      snprintf(r->authorities, sizeof r->authorities, "%s", authorities) >= PATH_MAX) {
    tc_revocations_release(r);
    return tb_fail(diag, TB_IO, "%.300s: path too long", path);
  }
  *out = r;
  return TB_OK;
}

struct tc_revocations *tc_revocations_hold(struct tc_revocations *r) {
  if (r != NULL) atomic_fetch_add(&r->refs, 1);
  return r;
}

void tc_revocations_release(struct tc_revocations *r) {
  if (r == NULL || atomic_fetch_sub(&r->refs, 1) > 1) return;
  tc_revocations_drop(r->lists);
  pthread_rwlock_destroy(&r->lock);
  free(r);
}
