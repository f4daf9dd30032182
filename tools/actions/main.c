/* SPDX-License-Identifier: Apache-2.0 */
/* tracecollect-actions: runs the commands and calls the URLs that trigger rules name.
 *
 *   collector ──firings──> main ──> a line an action ──> a command, a URL
 *
 * A program of its own, so that the collector's sandbox needs neither to start programs nor to connect out. It polls the
 * collector for firings once a second. The collector stores firings, so none is missed while either of them is down. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collector/base/logger.h"
#include "tools/actions/deliver.h"
#include "tools/tracectl/remote/client.h"
#include "tools/tracectl/remote/post.h"
#include "tools/tracectl/term/tracectl.h"

#define CONFIG_DEFAULT "/etc/tracecollect/actions"

enum { TURN_MS = 1000 };

struct tb_mem tk_mem; /* required by the client library */

struct program {
  const char *config_path, *state;
  bool only_checks, shows_version, shows_help;
  struct tk_client_args where;
  struct ac_config config;
  struct ac_progress *progress;
  struct ac_line *line[AC_ACTIONS_MAX];
  int stop_fd; /* signalfd of SIGTERM and SIGINT */
  struct tk_client *client;
  bool has_begun, is_away;
  uint64_t last; /* firings up to here are queued */
};

static tb_rc ask_firings(struct program *p, uint64_t after, uint32_t newest, struct tb_diag *diag,
                         const Tracecollect__V1__FiringsReply **out) {
  Tracecollect__V1__FiringsRequest ask = TRACECOLLECT__V1__FIRINGS_REQUEST__INIT;

  ask.after = after;
  ask.newest = newest;
  if (p->client == NULL) TB_TRY(tk_client_open(&p->where, diag, &p->client));
  return tk_client_ask(p->client, TP_ROUTE_FIRINGS, "", &ask.base, diag, out);
}

/* A new action skips earlier firings. Its start is stored, so that it is not new again. */
static tb_rc begin_action(struct program *p, unsigned i, uint64_t newest, struct tb_diag *diag) {
  const struct ac_action *action = &p->config.action[i];
  uint64_t done = ac_progress_of(p->progress, action->id, "");

  if (done == 0) {
    done = newest != 0 ? newest : 1;
    TB_TRY(ac_progress_note(p->progress, action->id, "", done, diag));
  }
  if (done < p->last) p->last = done;
  if (p->line[i] != NULL) return TB_OK; /* a previous try began it and failed later */
  return ac_line_start(action, p->progress, p->stop_fd, &p->line[i]);
}

static tb_rc begin_actions(struct program *p, struct tb_diag *diag) {
  const Tracecollect__V1__FiringsReply *reply;

  TB_TRY(ask_firings(p, 0, 1, diag, &reply));
  uint64_t newest = reply->n_firings > 0 ? reply->firings[0]->id : 0;
  p->last = UINT64_MAX;
  for (unsigned i = 0; i < p->config.n; i++) TB_TRY(begin_action(p, i, newest, diag));
  p->has_begun = true;
  return TB_OK;
}

static tb_rc put_firing(struct program *p, const Tracecollect__V1__Firing *firing) {
  for (unsigned i = 0; i < p->config.n; i++) TB_TRY(ac_line_add(p->line[i], firing));
  p->last = firing->id;
  return TB_OK;
}

static bool has_action(const struct program *p, const char *id) {
  for (unsigned i = 0; i < p->config.n; i++)
    if (strcmp(p->config.action[i].id, id) == 0) return true;
  return false;
}

static void say_unknown(const struct program *p, const Tracecollect__V1__Firing *firing) {
  for (size_t i = 0; i < firing->n_actions; i++)
    if (!has_action(p, firing->actions[i]))
      tc_log(TC_ERROR, "actions", "rule=%s: no action \"%.60s\" in %s", firing->rule,
             firing->actions[i], p->config_path);
}

static tb_rc take_firings(struct program *p, struct tb_diag *diag) {
  const Tracecollect__V1__FiringsReply *reply;
  bool more = true;

  if (!p->has_begun) TB_TRY(begin_actions(p, diag));
  while (more) {
    TB_TRY(ask_firings(p, p->last, 0, diag, &reply));
    for (size_t i = 0; i < reply->n_firings; i++) {
      say_unknown(p, reply->firings[i]);
      TB_TRY(put_firing(p, reply->firings[i]));
    }
    more = reply->more;
  }
  return TB_OK;
}

static void take_or_say(struct program *p) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = take_firings(p, &diag);
  if (rc != TB_OK) {
    tk_client_close(p->client);
    p->client = NULL;
  }
  if (rc != TB_OK && !p->is_away)
    tc_log(TC_WARN, "actions", "collector: %s; asked again each second",
           diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
  if (rc == TB_OK && p->is_away) tc_log(TC_NOTICE, "actions", "collector: back");
  p->is_away = rc != TB_OK;
}

static int catch_signals(void) {
  sigset_t ends;

  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  return signalfd(-1, &ends, SFD_CLOEXEC);
}

static void run_program(struct program *p) {
  struct pollfd stop = { .fd = p->stop_fd, .events = POLLIN };

  tc_log(TC_NOTICE, "actions", "version=" TC_VERSION " config=%s: %u actions", p->config_path,
         p->config.n);
  do take_or_say(p);
  while (poll(&stop, 1, TURN_MS) <= 0);
  tc_log(TC_NOTICE, "actions", "ends");
  for (unsigned i = 0; i < p->config.n; i++) ac_line_stop(p->line[i]);
  tk_client_close(p->client);
}

static tb_rc open_state(struct program *p, struct tb_diag *diag) {
  struct tb_diag wrong;

  TB_TRY(ac_progress_open(p->state, diag, &wrong, &p->progress));
  if (wrong.rc != TB_OK) tc_log(TC_ERROR, "actions", "left out of the progress: %s", wrong.text);
  return TB_OK;
}

static tb_rc start(struct program *p, struct tb_diag *diag) {
  TB_TRY(ac_config_read(p->config_path, diag, &p->config));
  if (p->only_checks) return TB_OK;
  TB_TRY(open_state(p, diag));
  TB_TRY(tp_post_init());
  p->stop_fd = catch_signals();
  if (p->stop_fd < 0) return tb_fail(diag, TB_IO, "signalfd: %s", strerror(errno));
  run_program(p);
  close(p->stop_fd);
  return TB_OK;
}

#define AT(member) offsetof(struct program, member)
static const struct tk_option options[] = {
  TK_OPTION(0, "config", "FILE", tk_read_text, AT(config_path),
            "actions, one a line; default: " CONFIG_DEFAULT),
  TK_OPTION(0, "state", "DIR", tk_read_text, AT(state),
            "where the progress is stored; default: STATE_DIRECTORY"),
  TK_OPTION(0, "check-config", NULL, tk_read_flag, AT(only_checks), "check the file and exit"),
  TK_GROUP(tk_client_options, AT(where)),
  TK_OPTION(0, "version", NULL, tk_read_flag, AT(shows_version), "print the version and exit"),
  TK_OPTION(0, "help", NULL, tk_read_flag, AT(shows_help), "this text"),
  { 0 },
};

static int print_help(void) {
  puts("Usage: tracecollect-actions [OPTION]...\n"
       "Runs the commands and calls the URLs that rules of triggers name\n"
       "(TRIGGERS.md in /usr/share/doc/tracecollect-tools, in a checkout in docs).\n");
  tk_options_print(options, NULL, NULL);
  return TK_DONE;
}

/* Returns -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct program *p) {
  static char name[] = "tracecollect-actions";

  tk_program = "";
  argv[0] = name;
  int code = tk_options_read_all(argc, argv, options, p);
  if (code != TK_DONE) return code;
  if (p->shows_version) return puts("tracecollect-actions " TC_VERSION) < 0;
  if (p->shows_help) return print_help();
  if (p->state == NULL && !p->only_checks)
    return tk_usage(name, "--state DIR is required, or STATE_DIRECTORY");
  return -1;
}

int main(int argc, char **argv) {
  struct program p = { .config_path = CONFIG_DEFAULT, .state = getenv("STATE_DIRECTORY") };
  struct tb_diag diag;

  tb_mem_init(&tk_mem, tb_mem_libc, NULL, SIZE_MAX);
  int code = parse(argc, argv, &p);
  if (code >= 0) return code;
  tb_diag_clear(&diag);
  tb_rc rc = start(&p, &diag);
  if (rc != TB_OK)
    fprintf(stderr, "tracecollect-actions: %s\n",
            diag.text[0] != '\0' ? diag.text : tb_rc_text(rc));
  ac_progress_free(p.progress);
  ac_config_free(&p.config);
  return rc == TB_OK ? 0 : 1;
}
