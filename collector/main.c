/* SPDX-License-Identifier: Apache-2.0 */
/* tracecollectd: command line, signals, the ready file and the service manager. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "collector/journal.h"
#include "collector/notify.h"
#include "collector/pipeline.h"
#include "collector/ready_file.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, STATUS_MS = 10000 };

struct command {
  const char *config, *ready_file;
  const char **sets; /* argv's strings */
  int set_count;
  bool check;
};

struct daemon {
  uv_loop_t *uv;
  const struct command *command;
  struct tc_config config;
  struct tc_pipeline *pipeline;
  uv_signal_t term, intr, hup;
  uv_timer_t watchdog, status;
  int exit_code;
  bool ending;
};

/* --- command line ------------------------------------------------------------------------------ */

static void print_help(FILE *to) {
  fputs("Usage: tracecollectd [OPTION]...\n"
        "Collects Go execution traces, orders and analyses them online, and keeps them.\n"
        "\n"
        "  --config FILE           read the configuration (YAML); none: defaults\n"
        "  --set KEY=VALUE         override a key; may be repeated, the last wins\n"
        "  --ready-file FILE       write the real addresses as key=value lines once all are open\n"
        "  --check-config          check the configuration and exit\n"
        "  --print-default-config  print every key with its default and exit\n"
        "  --version               print versions and exit\n"
        "  --help                  this text\n"
        "\n"
        "SIGTERM drains and exits 0; a second one exits at once. SIGHUP checks the configuration\n"
        "and reads the certificates anew; if either is wrong, all stays as it was.\n"
        "Exit: 0 done, 1 failed, 2 usage.\n",
        to);
}

static void print_version(void) {
  printf("tracecollectd %s\n%s\nlibuv %s\n", TC_VERSION, OpenSSL_version(OPENSSL_VERSION),
         uv_version_string());
}

/* Answers -1 to go on, else the exit code. */
static int parse(int argc, char **argv, struct command *out) {
  enum { CONFIG = 1, SET, READY, CHECK, PRINT, VERSION, HELP };
  static const struct option options[] = {
    { "config", required_argument, NULL, CONFIG },
    { "set", required_argument, NULL, SET },
    { "ready-file", required_argument, NULL, READY },
    { "check-config", no_argument, NULL, CHECK },
    { "print-default-config", no_argument, NULL, PRINT },
    { "version", no_argument, NULL, VERSION },
    { "help", no_argument, NULL, HELP },
    { 0 },
  };
  int option;

  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case CONFIG: out->config = optarg; break;
    case SET: out->sets[out->set_count++] = optarg; break;
    case READY: out->ready_file = optarg; break;
    case CHECK: out->check = true; break;
    case PRINT: return tc_config_print_default(STDOUT_FILENO) == TB_OK ? 0 : EXIT_FAILED;
    case VERSION: print_version(); return 0;
    case HELP: print_help(stdout); return 0;
    default: fputs("Try 'tracecollectd --help'.\n", stderr); return EXIT_USAGE;
    }
  }
  if (optind == argc) return -1;
  fprintf(stderr, "tracecollectd: '%s' is not an option; try --help\n", argv[optind]);
  return EXIT_USAGE;
}

static tb_rc configure(struct tc_config *config, const struct command *command,
                       struct tb_diag *diag) {
  if (command->config != NULL) TB_TRY(tc_config_load(config, command->config, diag));
  for (int i = 0; i < command->set_count; i++)
    TB_TRY(tc_config_set(config, command->sets[i], diag));
  return tc_config_finish(config, diag);
}

/* --- ready ------------------------------------------------------------------------------------- */

static tb_rc publish_ready(const struct daemon *d, struct tb_diag *diag) {
  struct tc_addresses a;

  if (d->command->ready_file == NULL) return TB_OK;
  tc_pipeline_addresses(d->pipeline, &a);
  return tc_ready_file_publish(d->command->ready_file, &a, diag);
}

static void announce(const struct daemon *d) {
  struct tc_addresses a;

  tc_pipeline_addresses(d->pipeline, &a);
  tc_log(TC_NOTICE, "main", "version=%s state=%s agents=%s archive=%s feed=%s http=%s: ready",
         TC_VERSION, d->config.top_state, a.agents, a.archive, a.feed,
         a.http[0] != '\0' ? a.http : "off");
  tc_notify("READY=1\nSTATUS=Listening for agents on %s", a.agents);
}

/* --- running ----------------------------------------------------------------------------------- */

static void end(struct daemon *d, const char *why) {
  if (d->ending) return;
  d->ending = true;
  tc_log(TC_NOTICE, "main", "%s: draining", why);
  tc_notify("STOPPING=1\nSTATUS=Draining");
  if (d->command->ready_file != NULL) unlink(d->command->ready_file);
  tc_pipeline_drain(d->pipeline);
}

static void on_failed(void *self, const char *why) {
  struct daemon *d = self;

  d->exit_code = EXIT_FAILED;
  tc_log(TC_ERROR, "main", "%s", why);
  end(d, "cannot go on");
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

  if (d->ending) _exit(EXIT_FAILED); /* asked twice: now */
  end(d, number == SIGINT ? "SIGINT" : "SIGTERM");
}

static bool key_differs(const struct tc_config_key *key, const struct tc_config *a,
                        const struct tc_config *b) {
  const void *at_a = (const char *)a + key->offset, *at_b = (const char *)b + key->offset;

  switch (key->type) {
  case TC_TYPE_STRING: return strcmp(*(char *const *)at_a, *(char *const *)at_b) != 0;
  case TC_TYPE_BOOL: return *(const bool *)at_a != *(const bool *)at_b;
  default: return *(const uint64_t *)at_a != *(const uint64_t *)at_b;
  }
}

/* Stages hold what they were opened with, so a changed key is a matter for the next start; whoever
 * changed it should hear now whether that start will succeed. */
static tb_rc reread_config(const struct daemon *d, struct tb_diag *diag) {
  struct tc_config fresh;
  tb_rc rc;

  tc_config_init(&fresh);
  rc = configure(&fresh, d->command, diag);
  for (size_t i = 0; rc == TB_OK && i < tc_config_keys_count; i++)
    if (key_differs(&tc_config_keys[i], &d->config, &fresh))
      tc_log(TC_NOTICE, "main", "key=%s: changed; takes effect at the next start",
             tc_config_keys[i].name);
  tc_config_fini(&fresh);
  return rc;
}

static void on_hangup(uv_signal_t *handle, int number) {
  struct daemon *d = handle->data;
  struct tb_diag diag;
  tb_rc rc;

  (void)number;
  if (d->ending) return;
  tb_diag_clear(&diag);
  tc_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, uv_hrtime() / 1000);
  rc = reread_config(d, &diag);
  if (rc == TB_OK) rc = tc_pipeline_reload(d->pipeline, &diag);
  if (rc == TB_OK)
    tc_log(TC_NOTICE, "main", "certificates=%s: read anew", d->config.top_certs);
  else
    tc_log(TC_ERROR, "main", "%s; the old configuration and certificates stay in use", diag.text);
  tc_notify("READY=1");
}

static void on_watchdog(uv_timer_t *timer) {
  struct daemon *d = timer->data;

  if (d->ending || tc_pipeline_is_alive(d->pipeline)) tc_notify("WATCHDOG=1");
}

static void on_status(uv_timer_t *timer) {
  struct daemon *d = timer->data;
  struct tc_totals t;

  if (d->ending) return;
  tc_pipeline_totals(d->pipeline, &t);
  tc_notify("STATUS=%" PRIu64 " connections so far, %" PRIu64 " MB of records, %" PRIu64
            " generations analysed",
            t.connections, t.record_bytes / 1000000, t.generations);
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

/* Every connection is a descriptor: take what the system allows us. */
static void raise_file_limit(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void say_goodbye(const struct daemon *d) {
  struct tc_totals t;

  tc_pipeline_totals(d->pipeline, &t);
  tc_log_flush();
  tc_log(TC_NOTICE, "main",
         "connections=%" PRIu64 " records=%" PRIu64 " bytes=%" PRIu64 " segments=%" PRIu64
         " generations=%" PRIu64 " events=%" PRIu64 ": ended",
         t.connections, t.records, t.record_bytes, t.segments, t.generations, t.events);
}

static int run(struct daemon *d) {
  struct tc_pipeline_sink sink = { d, on_ended, on_failed };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  raise_file_limit();
  signal(SIGPIPE, SIG_IGN);
  if (d->command->ready_file != NULL) tc_ready_file_drop_stale(d->command->ready_file);
  if (tc_pipeline_open(d->uv, &d->config, TC_VERSION, sink, &diag, &d->pipeline) != TB_OK) {
    tc_log(TC_ERROR, "main", "%s", diag.text);
    return EXIT_FAILED;
  }
  watch(d);
  if (publish_ready(d, &diag) != TB_OK)
    on_failed(d, diag.text);
  else
    announce(d);
  uv_run(d->uv, UV_RUN_DEFAULT);
  say_goodbye(d);
  tc_pipeline_free(d->pipeline);
  return d->exit_code;
}

int main(int argc, char **argv) {
  struct command command = { .sets = calloc((size_t)argc, sizeof(char *)) };
  struct daemon d = { .uv = uv_default_loop(), .command = &command };
  struct tb_diag diag;
  int code;

  if (command.sets == NULL || d.uv == NULL) return EXIT_FAILED;
  code = parse(argc, argv, &command);
  if (code < 0) {
    tb_diag_clear(&diag);
    tc_config_init(&d.config);
    if (configure(&d.config, &command, &diag) != TB_OK) {
      fprintf(stderr, "tracecollectd: %s\n", diag.text);
      code = EXIT_FAILED;
    } else {
      code = command.check ? 0 : run(&d);
    }
    tc_config_fini(&d.config);
  }
  uv_loop_close(d.uv);
  free(command.sets);
  return code;
}
