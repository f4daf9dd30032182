/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tail: live messages and events. Feed and lease are followed on threads of their own, while
 * this thread waits for ^C or the first of them to end; it does not wait for the other, whose request
 * may take seconds. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

struct part {
  tb_rc (*follow)(const struct tk_tail_ask *ask, struct tk_lines *lines, struct tb_diag *diag);
  const struct tk_tail_ask *ask;
  struct tk_lines *lines;
  pthread_t thread;
  int ended; /* eventfd shared by all parts */
  atomic_bool done;
  tb_rc rc;
  struct tb_diag diag;
};

struct tailing {
  struct tk_tail_ask ask;
  struct tk_lines lines;
  uint64_t limit;
  bool strict;
  struct part parts[2];
  size_t n;
};

static tb_rc read_kind(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  if (tk_tail_kind(field, value)) return TB_OK;
  return tk_option_needs(option, "a kind of `tracectl tables kinds events`", value, diag);
}

#define AT(member) offsetof(struct tailing, member)
const struct tk_option tk_tail_options[] = {
  TK_OPTION('n', NULL, "N", tk_read_count, AT(limit), "end after N lines"),
  TK_OPTION(0, "kind", "K", read_kind, AT(ask),
            "report, generation, alert, all, or events: by kind (`tracectl tables kinds`) or by "
            "name (GoBlock); may be given several times"),
  TK_OPTION(0, "goroutine", "N", tk_read_count, AT(ask.goroutine),
            "only events of this goroutine, or about it"),
  TK_OPTION(0, "min-duration", "SPAN", tk_read_span, AT(ask.duration_ns),
            "only events that end what lasted so long: 10ms, 1s"),
  TK_OPTION(
      0, "since", "T", tk_read_time, AT(ask.selector.since_wall_ns),
      "events from the archive first, of generations traced at T or later, by the program's "
      "own clock: RFC 3339, -5m or @UNIX; with --kind alert alone: what was found since then"),
  TK_GROUP(tk_stream_options, AT(ask.selector)),
  TK_OPTION(0, "strict", NULL, tk_read_flag, AT(strict), "exit 4 if something was lost"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(ask.json), "one object a line"),
  TK_GROUP(tk_client_options, AT(ask.client)),
  { 0 },
};

static void *run_part(void *self) {
  struct part *part = self;
  const uint64_t one = 1;

  tb_diag_clear(&part->diag);
  part->rc = part->follow(part->ask, part->lines, &part->diag);
  atomic_store(&part->done, true);
  ssize_t n = write(part->ended, &one, sizeof one);
  (void)n; /* the counter cannot overflow */
  return NULL;
}

static int start_part(struct part *part) {
  int rv = pthread_create(&part->thread, NULL, run_part, part);

  return rv == 0 ? TK_DONE : tk_fail("tail", "thread: %s", strerror(rv));
}

/* Returns the exit code for a part that ended. */
static int code_of(struct tailing *t, const struct part *part) {
  if (part->rc != TB_END) return tk_remote_fail("tail", part->rc, &part->diag);
  return t->strict && (t->lines.lost != 0 || t->lines.missing) ? TK_INCOMPLETE : TK_DONE;
}

static int wait_for_end(struct tailing *t, int ended, int signals) {
  struct pollfd fds[] = { { .fd = ended, .events = POLLIN }, { .fd = signals, .events = POLLIN } };

  while (poll(fds, 2, -1) < 0) {
  }
  if (fds[1].revents != 0) return TK_INTERRUPTED;
  for (size_t i = 0; i < t->n; i++)
    if (atomic_load(&t->parts[i].done)) return code_of(t, &t->parts[i]);
  return TK_FAILED;
}

static void leave_parts(struct tailing *t) {
  for (size_t i = 0; i < t->n; i++) {
    if (atomic_load(&t->parts[i].done))
      pthread_join(t->parts[i].thread, NULL);
    else
      pthread_detach(t->parts[i].thread);
  }
}

/* Blocks signals before threads are started, so that this thread gets all. */
static int follow_all(struct tailing *t) {
  sigset_t set;
  int ended = eventfd(0, EFD_CLOEXEC);

  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, SFD_CLOEXEC);
  if (ended < 0 || signals < 0) return tk_fail("tail", "%s", strerror(errno));

  if (t->ask.feed) t->parts[t->n++].follow = tk_tail_feed;
  if (t->ask.lease) t->parts[t->n++].follow = tk_tail_lease;
  for (size_t i = 0; i < t->n; i++) {
    t->parts[i].ask = &t->ask;
    t->parts[i].lines = &t->lines;
    t->parts[i].ended = ended;
    int code = start_part(&t->parts[i]);
    if (code != TK_DONE) return code;
  }
  int code = wait_for_end(t, ended, signals);
  leave_parts(t);
  return code;
}

/* A program may start later, so an unknown name is no error. */
static void note_unknown(struct tk_tail_ask *ask) {
  const struct tk_selector which = {
    .service = *ask->service != '\0' && !ask->service_is_prefix ? ask->service : NULL,
    .instance = *ask->instance != '\0' && !ask->instance_is_prefix ? ask->instance : NULL,
  };
  struct tk_client *client;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tk_client_open(&ask->client, &diag, &client) != TB_OK) return; /* what follows reports it */
  if (tk_remote_check_names(client, &which, &diag) == TB_NOTFOUND)
    tk_note("tail", "%s; waiting until there is", diag.text);
  tk_client_close(client);
}

int tk_cmd_tail(int argc, char **argv) {
  /* static: threads may outlive this call. */
  static struct tailing t = { .ask = { .topic = "" } };
  struct tb_diag diag;
  int code = tk_options_read(argc, argv, tk_tail_options, &t);

  if (code != TK_DONE) return code;
  if (optind < argc) t.ask.topic = argv[optind++];
  if (optind < argc) return tk_usage("tail", "unexpected argument '%s'", argv[optind]);
  tb_diag_clear(&diag);
  tb_rc rc = tk_selector_check(&t.ask.selector, &diag);
  if (rc == TB_OK) rc = tk_tail_resolve(&t.ask, &diag);
  if (rc == TB_OK) rc = tk_remote_find_stream(&t.ask.client, &t.ask.selector, &diag);
  if (rc != TB_OK) return tk_remote_fail("tail", rc, &diag);
  note_unknown(&t.ask);
  tk_lines_init(&t.lines, t.ask.json, t.limit);
  code = follow_all(&t);

  /* _exit(), because a part may still run and exit() would free what it uses. */
  tk_lines_flush(&t.lines);
  int error = t.lines.out.error;
  if (error != 0 && error != EPIPE && code == TK_DONE)
    code = tk_fail("tail", "%s", strerror(error));
  fflush(stderr);
  _exit(code);
}
