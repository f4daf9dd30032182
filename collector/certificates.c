/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's certificates and revocation lists: open, watch, reload. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/cert_path.h"
#include "collector/base/logger.h"
#include "collector/pipeline_private.h"
#include "tls/authority.h"
#include "tls/expiry.h"

enum { EXPIRY_WARNING_S = 86400 };

static void lists_freep(STACK_OF(X509_CRL) * *lists) {
  tc_revocations_drop(*lists);
}

/* Checks all open connections. The new lists are already in p->revoked and apply to connections made meanwhile. */
static void recheck_peers(struct tc_pipeline *p) {
  struct tc_order order = { .kind = TC_ORDER_RECHECK };

  for (unsigned i = 0; i < p->count; i++)
    if (!tc_worker_order(p->workers[i], &order))
      tc_log(TC_ERROR, "agents", "loop %u takes no orders: its revoked connections stay", i);
  unsigned readers = tc_nng_tls_recheck(); /* before the leases, which answer waiting readers */
  tc_leases_recheck(p->leases);
  if (readers > 0) tc_log(TC_WARN, "readers", "closed=%u: certificate revoked", readers);
  tc_metric_add(&p->metrics.revoked_ended_total, readers + tc_http_recheck(p->http));
}

static void count_revocations(struct tc_pipeline *p) {
  struct tc_revocations_facts facts;

  tc_revocations_facts(p->revoked, &facts);
  atomic_store(&p->metrics.revoked_certificates, facts.certificates);
  atomic_store(&p->metrics.revocation_next_update_seconds, facts.next_update_s);
}

static void use_revocations(struct tc_pipeline *p, STACK_OF(X509_CRL) * lists) {
  tc_revocations_take(p->revoked, lists);
  count_revocations(p);
  recheck_peers(p);
}

/* Makes the object with the path of the file, because other stages need a reference to it. The file is read later, when the
 * folder of certificates exists. */
tb_rc tc__pipeline_name_revocations(struct tc_pipeline *p, struct tb_diag *diag) {
  const char *certs = p->config->top_certs, *named = p->config->tls_crl;
  bool given = *named != '\0';
  char path[PATH_MAX], ca[PATH_MAX];

  TB_TRY(tb_cert_path(certs, "server", TB_CERT_CA, diag, ca));
  if (snprintf(path, sizeof path, "%s%s", given ? named : certs, given ? "" : "/crl.pem") >=
      PATH_MAX)
    return tb_fail(diag, TB_IO, "%.300s: path too long", certs);
  return tc_revocations_new(path, !given, ca, diag, &p->revoked);
}

/* A folder of our own, filled at the first start. */
static tb_rc make_certificates(const char *folder, struct tb_diag *diag) {
  char made[TC_FINGERPRINT_BYTES];

  TB_TRY(tc_certs_ensure(folder, diag, made));
  if (*made != '\0')
    tc_log(TC_WARN, "tls",
           "certificates=%s sha256=%s: a new authority was made, since there was none; agents need "
           "ca.pem, agent.pem and agent.key from there",
           folder, made);
  return TB_OK;
}

static void states_of_files(const struct tc_pipeline *p, struct tc_file_state out[TB_CERT_FILES]) {
  char path[PATH_MAX];
  struct tb_diag diag;

  for (int file = 0; file < TB_CERT_FILES; file++) {
    tb_diag_clear(&diag);
    out[file] = tb_cert_path(p->config->top_certs, "server", file, &diag, path) == TB_OK
                    ? tc_file_state_of(path)
                    : (struct tc_file_state){ .error = EEXIST };
  }
}

static void note_files(struct tc_pipeline *p) {
  states_of_files(p, p->certs_seen);
  p->certs_changed = false;
}

tb_rc tc__pipeline_open_certificates(struct tc_pipeline *p, struct tb_diag *diag) {
  STACK_OF(X509_CRL) * lists;

  if (p->config->certs_are_ours) TB_TRY(make_certificates(p->config->top_certs, diag));
  note_files(p);
  TB_TRY(tc_revocations_read(p->revoked, diag, &lists));
  tc_revocations_take(p->revoked, lists);
  count_revocations(p);
  return TB_OK;
}

static void warn_of(const char *what, uint64_t expires_s, const char *then) {
  int days;

  if (tc_expiry_is_near(expires_s, tc_wall_ns(), &days))
    tc_log(TC_WARN, "tls", "%s expires in %d days; %s", what, days, then);
}

void tc__pipeline_warn_of_expiry(struct tc_pipeline *p) {
  uint64_t next_s = atomic_load(&p->metrics.revocation_next_update_seconds);

  p->warned_mono_ns = tc_mono_ns();
  warn_of("the collector's certificate", atomic_load(&p->metrics.certificate_expires_seconds),
          "then no agent connects: renew it (tracectl certs renew) and reload");
  warn_of("the authority's certificate", atomic_load(&p->metrics.authority_expires_seconds),
          "no agent or reader can connect then: renew it (tracectl certs renew), give it to all, "
          "and reload");
  if (next_s != 0 && next_s < tc_wall_ns() / 1000000000)
    tc_log(TC_WARN, "tls", "%s should have been replaced by now; it stays in use",
           tc_revocations_path(p->revoked));
}

static void watch_revocations(struct tc_pipeline *p) {
  STACK_OF(X509_CRL) *lists = NULL;
  struct tb_diag diag;

  if (!tc_revocations_changed(p->revoked)) return;
  tb_diag_clear(&diag);
  bool done = tc_revocations_read(p->revoked, &diag, &lists) == TB_OK;
  tc_pipeline_count_reload(p, done);
  if (!done) {
    tc_log(TC_ERROR, "tls", "%s; the old revocations stay in use", diag.text);
    return;
  }
  use_revocations(p, lists);
  tc_log(TC_NOTICE, "tls", "revocations=%s certificates=%" PRIu64 ": read again",
         tc_revocations_path(p->revoked), (uint64_t)atomic_load(&p->metrics.revoked_certificates));
}

tb_rc tc__pipeline_agent_context(struct tc_pipeline *p, struct tb_diag *diag, SSL_CTX **out) {
  const struct tc_tls_terms terms = { .alpn = TP_ALPN, .revoked = p->revoked };

  return tc_tls_context_new(p->config->top_certs, &terms, diag, out);
}

void tc__pipeline_order_context(struct tc_pipeline *p, SSL_CTX *ctx) {
  atomic_store(&p->metrics.certificate_expires_seconds, tc_tls_context_expires_s(ctx));
  atomic_store(&p->metrics.authority_expires_seconds, tc_tls_context_authority_expires_s(ctx));
  for (unsigned i = 0; i < p->count; i++) {
    struct tc_order order = { .kind = TC_ORDER_CONTEXT, .context = ctx };

    SSL_CTX_up_ref(ctx);
    if (tc_worker_order(p->workers[i], &order)) continue;
    SSL_CTX_free(ctx);
    tc_log(TC_ERROR, "agents", "loop %u takes no orders: it keeps its old certificate", i);
  }
}

tb_rc tc__pipeline_reader_context(struct tc_pipeline *p, struct tb_diag *diag, SSL_CTX **out) {
  const struct tc_tls_terms terms = { .alpn = NULL, .revoked = p->revoked };

  return tc_tls_context_new(p->config->top_certs, &terms, diag, out);
}

static void context_freep(SSL_CTX **ctx) {
  SSL_CTX_free(*ctx);
}

/* The check of the configuration has read the file already. The reload can still fail if an added rule has the name of a rule
 * in the file. */
static void reload_triggers(struct tc_pipeline *p) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = tc_triggers_reload(p->triggers, &diag);
  if (rc == TB_OK) return;
  (void)tb_fail(&diag, rc, "%s", tb_rc_text(rc));
  tc_log(TC_ERROR, "trigger", "%s; the old rules stay in use", diag.text);
}

/* Steps that can fail come first: either all changes take effect or none. The state of the files is noted before they are
 * read, so that a change in between is seen. */
static tb_rc reload_certificates(struct tc_pipeline *p, struct tb_diag *diag) {
  TB_CLEANUP(context_freep) SSL_CTX *readers = NULL;
  TB_CLEANUP(context_freep) SSL_CTX *agents = NULL;
  TB_CLEANUP(lists_freep) STACK_OF(X509_CRL) *lists = NULL;

  note_files(p);
  TB_TRY(tc_revocations_read(p->revoked, diag, &lists));
  TB_TRY(tc__pipeline_reader_context(p, diag, &readers));
  TB_TRY(tc__pipeline_agent_context(p, diag, &agents));
  TB_TRY(tc_http_reload(p->http, diag));
  tc_nng_tls_swap(p->nng_tls, readers);
  tc__pipeline_order_context(p, agents);
  use_revocations(p, TB_MOVE(lists));
  return TB_OK;
}

tb_rc tc_pipeline_reload(struct tc_pipeline *p, struct tb_diag *diag) {
  TB_TRY(reload_certificates(p, diag));
  reload_triggers(p);
  tc__pipeline_warn_of_expiry(p);
  return TB_OK;
}

/* --- watching ---------------------------------------------------------------------------------- */

static bool files_changed(struct tc_pipeline *p) {
  struct tc_file_state now[TB_CERT_FILES];
  bool changed = false;

  states_of_files(p, now);
  for (int file = 0; file < TB_CERT_FILES; file++)
    changed |= !tc_file_state_equals(&now[file], &p->certs_seen[file]);
  memcpy(p->certs_seen, now, sizeof now);
  return changed;
}

/* A pair is two files, which may be replaced one after the other: they are read when nothing has changed for a second. */
static void watch_files(struct tc_pipeline *p) {
  const char *certs = p->config->top_certs;
  struct tb_diag diag;

  if (files_changed(p)) {
    p->certs_changed = true;
    return;
  }
  if (!p->certs_changed) return;
  tb_diag_clear(&diag);
  bool done = reload_certificates(p, &diag) == TB_OK;
  tc_pipeline_count_reload(p, done);
  if (!done) {
    tc_log(TC_ERROR, "tls", "%s; the old certificates stay in use", diag.text);
    return;
  }
  tc_log(TC_NOTICE, "tls", "certificates=%s: read again", certs);
  tc__pipeline_warn_of_expiry(p);
}

void tc__pipeline_watch_certificates(struct tc_pipeline *p) {
  watch_files(p);
  watch_revocations(p);
  if (tc_mono_ns() - p->warned_mono_ns >= EXPIRY_WARNING_S * UINT64_C(1000000000))
    tc__pipeline_warn_of_expiry(p);
}

void tc__pipeline_note_config(const struct tc_pipeline *p) {
  struct tb_diag note;

  tb_diag_clear(&note);
  if (tc_config_note(p->config, &note)) tc_log(TC_WARN, "config", "%s", note.text);
}

void tc_pipeline_config_changed(struct tc_pipeline *p, const char *key) {
  if (strcmp(key, "analysis.idle") != 0) return;
  tc__pipeline_note_config(p);
  for (unsigned i = 0; i < p->count; i++) {
    struct tc_order order = { .kind = TC_ORDER_IDLE, .text = strdup(p->config->analysis_idle) };

    if (order.text != NULL && tc_worker_order(p->workers[i], &order)) continue;
    free(order.text);
    tc_log(TC_ERROR, "analysis", "loop %u takes no orders: it keeps its old analysis.idle", i);
  }
}

void tc_pipeline_count_reload(struct tc_pipeline *p, bool done) {
  tc_metric_add(done ? &p->metrics.reloads_total : &p->metrics.reloads_failed_total, 1);
}
