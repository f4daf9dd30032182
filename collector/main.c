/* SPDX-License-Identifier: Apache-2.0 */
/* tracecollectd: signals, the ready file and the service manager. */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "archive/signature.h"
#include "collector/base/logger.h"
#include "collector/daemon/options.h"
#include "collector/daemon/sd_notify.h"
#include "collector/http/server.h"
#include "collector/pipeline.h"
#include "collector/ready_file.h"
#include "tls/authority.h"

enum { STATUS_MS = 5000, ADDRESSES_TEXT_BYTES = TC_URLS_MAX * TC_URL_BYTES };

struct daemon {
  uv_loop_t *uv;
  const struct tc_command *command;
  struct tc_config config;
  struct tc_pipeline *pipeline;
  uv_signal_t term, intr, hup;
  uv_timer_t watchdog, status;
  int exit_code;
  bool ending;
  uint64_t reported_bytes; /* record bytes at the last status */
};

/* --- ready ------------------------------------------------------------------------------------- */

static tb_rc publish_ready(const struct daemon *d, struct tb_diag *diag) {
  struct tc_addresses a;

  if (d->command->ready_file == NULL) return TB_OK;
  tc_pipeline_addresses(d->pipeline, &a);
  return tc_ready_file_publish(d->command->ready_file, &a, diag);
}

static const char *joined(const char *const *urls, char out[ADDRESSES_TEXT_BYTES]) {
  size_t len = 0;

  *out = '\0';
  for (; *urls != NULL && len < ADDRESSES_TEXT_BYTES; urls++)
    len +=
        (size_t)snprintf(out + len, ADDRESSES_TEXT_BYTES - len, "%s%s", len > 0 ? "," : "", *urls);
  return out;
}

static void announce(const struct daemon *d) {
  char feed[ADDRESSES_TEXT_BYTES];
  struct tc_addresses a;

  tc_pipeline_addresses(d->pipeline, &a);
  tc_log(TC_NOTICE, "main", "version=%s state=%s agents=%s feed=%s http=%s sock=%s: ready",
         TC_VERSION, d->config.top_state, a.agents, joined(a.feed, feed),
         a.http[0] != '\0' ? a.http : "off", a.sock);
  tc_notify("READY=1\nSTATUS=Listening for agents on %s", a.agents);
}

/* --- running ----------------------------------------------------------------------------------- */

static void begin_drain(struct daemon *d, const char *why) {
  if (d->ending) return;
  d->ending = true;
  tc_log(TC_NOTICE, "main", "%s: draining", why);
  tc_notify("STOPPING=1\nSTATUS=Draining");
  if (d->command->ready_file != NULL) unlink(d->command->ready_file);
  tc_pipeline_drain(d->pipeline);
}

static void on_failed(void *self, const char *why) {
  struct daemon *d = self;

  d->exit_code = TC_EXIT_FAILED;
  tc_log(TC_FATAL, "main", "%s", why);
  begin_drain(d, "cannot go on");
}

static void close_handle(uv_handle_t *handle, void *arg) {
  (void)arg;
  if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void on_ended(void *self) {
  struct daemon *d = self;
  uv_handle_t *ours[] = { (uv_handle_t *)&d->term, (uv_handle_t *)&d->intr, (uv_handle_t *)&d->hup,
                          (uv_handle_t *)&d->watchdog, (uv_handle_t *)&d->status };

  for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) close_handle(ours[i], NULL);
}

static void on_end_signal(uv_signal_t *handle, int number) {
  struct daemon *d = handle->data;

  if (d->ending) _exit(TC_EXIT_FAILED); /* second signal: exit now */
  begin_drain(d, number == SIGINT ? "SIGINT" : "SIGTERM");
}

/* --- reload ------------------------------------------------------------------------------------ */

static void on_changed(void *self, const char *key, bool applied) {
  struct daemon *d = self;

  if (applied) tc_pipeline_config_changed(d->pipeline, key);
  tc_log(TC_NOTICE, "main", "key=%s: changed%s", key,
         applied ? "" : "; takes effect at the next start");
}

/* A folder named by the operator is never filled: under a new authority every agent would be refused. */
static tb_rc require_certs(const struct tc_config *config, struct tb_diag *diag) {
  return config->certs_are_ours ? TB_OK : tc_certs_require(config->top_certs, diag);
}

/* The configuration comes last, because its reload cannot fail. */
static tb_rc reload(struct daemon *d, struct tb_diag *diag) {
  struct tc_config fresh;
  tb_rc rc;

  tc_config_init(&fresh);
  rc = tc_command_configure(d->command, &fresh, diag);
  if (rc == TB_OK) rc = require_certs(&fresh, diag);
  if (rc == TB_OK) rc = tc_pipeline_reload(d->pipeline, diag);
  if (rc == TB_OK) tc_config_reload(&d->config, &fresh, on_changed, d);
  tc_config_fini(&fresh);
  return rc;
}

static void on_hangup(uv_signal_t *handle, int number) {
  struct daemon *d = handle->data;
  struct tb_diag diag;

  (void)number;
  if (d->ending) return;
  tb_diag_clear(&diag);
  tc_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, uv_hrtime() / 1000);
  bool done = reload(d, &diag) == TB_OK;
  tc_pipeline_count_reload(d->pipeline, done);
  if (done)
    tc_log(TC_NOTICE, "main", "certificates=%s: reloaded", d->config.top_certs);
  else
    tc_log(TC_ERROR, "main", "%s; the old configuration and certificates stay in use", diag.text);
  tc_notify("READY=1");
}

/* --- watched ----------------------------------------------------------------------------------- */

/* During a drain WATCHDOG=1 is always sent: the drain has a deadline of its own. */
static void on_watchdog(uv_timer_t *timer) {
  struct daemon *d = timer->data;
  char stuck[TC_THREAD_NAME_MAX + 1];

  if (d->ending || tc_pipeline_turns(d->pipeline, stuck))
    tc_notify("WATCHDOG=1");
  else
    tc_log(TC_ERROR, "main", "thread=%s: is stuck; the watchdog is not fed", stuck);
}

static void on_status(uv_timer_t *timer) {
  struct daemon *d = timer->data;
  struct tc_totals t;

  if (d->ending) return;
  tc_pipeline_totals(d->pipeline, &t);
  double rate = (double)(t.record_bytes - d->reported_bytes) / ((double)STATUS_MS * 1000);
  d->reported_bytes = t.record_bytes;
  tc_notify("STATUS=%" PRIu64 " streams, %.1f MB/s, %s", t.streams_live, rate, t.health);
}

static void watch(struct daemon *d) {
  uint64_t watchdog_ms = tc_notify_watchdog_ms();

  uv_signal_init(d->uv, &d->term);
  uv_signal_init(d->uv, &d->intr);
  uv_signal_init(d->uv, &d->hup);
  uv_timer_init(d->uv, &d->watchdog);
  uv_timer_init(d->uv, &d->status);
  d->term.data = d->intr.data = d->hup.data = d->watchdog.data = d->status.data = d;
  uv_signal_start(&d->term, on_end_signal, SIGTERM);
  uv_signal_start(&d->intr, on_end_signal, SIGINT);
  uv_signal_start(&d->hup, on_hangup, SIGHUP);
  if (watchdog_ms > 0) uv_timer_start(&d->watchdog, on_watchdog, watchdog_ms, watchdog_ms);
  uv_timer_start(&d->status, on_status, STATUS_MS, STATUS_MS);
}

/* Every connection needs a descriptor. */
static void raise_file_limit(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void log_totals(const struct daemon *d) {
  struct tc_totals t;

  tc_pipeline_totals(d->pipeline, &t);
  tc_log_flush();
  tc_log(TC_NOTICE, "main",
         "connections=%" PRIu64 " records=%" PRIu64 " bytes=%" PRIu64 " segments=%" PRIu64
         " generations=%" PRIu64 " events=%" PRIu64 ": ended",
         t.connections, t.records, t.record_bytes, t.segments, t.generations, t.events);
}

static int run_daemon(struct daemon *d) {
  struct tc_pipeline_sink sink = { d, on_ended, on_failed };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  raise_file_limit();
  signal(SIGPIPE, SIG_IGN);
  if (d->command->ready_file != NULL) tc_ready_file_drop_stale(d->command->ready_file);
  if (tc_pipeline_open(d->uv, &d->config, &d->command->sockets, TC_VERSION, sink, &diag,
                       &d->pipeline) != TB_OK) {
    tc_log(TC_FATAL, "main", "%s", diag.text);
    return TC_EXIT_FAILED;
  }
  watch(d);
  if (publish_ready(d, &diag) != TB_OK)
    on_failed(d, diag.text);
  else
    announce(d);
  uv_run(d->uv, UV_RUN_DEFAULT);
  log_totals(d);
  tc_pipeline_free(d->pipeline);
  return d->exit_code;
}

/* Fails before anything is created; the sealer reads the key again. */
static tb_rc require_signer(const struct tc_config *config, struct tb_diag *diag) {
  struct tc_keys *keys;

  TB_TRY(tc_keys_read_signer(config->archive_sign, diag, &keys));
  tc_keys_free(keys);
  return TB_OK;
}

static tb_rc configure(struct tc_command *command, struct tc_config *config, struct tb_diag *diag) {
  TB_TRY(tc_activation_take(&command->sockets, diag));
  TB_TRY(tc_command_configure(command, config, diag));
  TB_TRY(require_certs(config, diag));
  return require_signer(config, diag);
}

int main(int argc, char **argv) {
  struct tc_command command;
  struct daemon d = { .uv = uv_default_loop(), .command = &command };
  struct tb_diag diag;

  tc_http_set_workers();
  /* nng's threads may still end connections while the process exits. */
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  int code = tc_command_parse(argc, argv, &command);

  if (code < 0) {
    tb_diag_clear(&diag);
    tc_config_init(&d.config);
    if (d.uv == NULL || configure(&command, &d.config, &diag) != TB_OK) {
      fprintf(stderr, "tracecollectd: %s\n", diag.text);
      code = TC_EXIT_FAILED;
    } else {
      code = command.check ? 0 : run_daemon(&d);
    }
    tc_config_fini(&d.config);
  }
  if (d.uv != NULL) uv_loop_close(d.uv);
  tc_command_fini(&command);
  return code;
}
