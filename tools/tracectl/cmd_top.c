/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl top: a full-screen view of the collector's streams, until q. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/top/poll.h"
#include "tools/tracectl/top/screen.h"

enum { AGAIN_MS = 1000 };

struct top {
  struct tk_client_args client;
  struct tk_selector selector;
  unsigned window;            /* enum to_window */
  enum to_analysis_kind kind; /* TO_ANALYSIS_KINDS: no report is shown */
  struct tk_poll *poll;
  struct tk_page *page;
  bool paused, help, over;
  int code;
};

static void show(struct top *t) {
  if (t->paused && !t->help && t->page->n > 0) {
    tk_screen_show(t->page);
    return;
  }
  tk_screen_size(t->page);
  const struct tk_top_model *model = tk_poll_look(t->poll);
  const struct tk_page_about about = { .window = to_window_name((enum to_window)t->window),
                                       .trouble = tk_poll_trouble(t->poll),
                                       .alert_error = tk_poll_deafness(t->poll),
                                       .paused = t->paused,
                                       .help = t->help };
  tk_page_fill(t->page, model, &about);
  tk_poll_done(t->poll);
  tk_screen_show(t->page);
}

static void scroll_by(struct top *t, int lines) {
  int to = (int)t->page->scroll + lines;

  t->page->scroll = to < 0 ? 0 : (unsigned)to;
  t->page->n = 0; /* redraw even a paused page */
}

static void take_key(struct top *t, int key) {
  switch (key) {
  case TK_KEY_END:
    t->code = TK_INTERRUPTED;
    t->over = true;
    break;
  case 'q':
  case 'Q': t->over = true; break;
  case 'w':
    t->window = (t->window + 1) % TO_WINDOWS;
    tk_poll_set_window(t->poll, (enum to_window)t->window);
    break;
  case 'r':
    t->kind = (enum to_analysis_kind)((t->kind + 1) % (TO_ANALYSIS_KINDS + 1));
    tk_poll_set_report(t->poll, t->kind, t->page->columns);
    break;
  case ' ':
    t->paused = !t->paused;
    t->page->n = 0;
    break;
  case '?':
  case 'h':
    t->help = !t->help;
    t->page->n = 0;
    break;
  case TK_KEY_RESIZED:
    t->page->n = 0;
    tk_screen_size(t->page);
    tk_poll_set_report(t->poll, t->kind, t->page->columns);
    break;
  case TK_KEY_UP: scroll_by(t, -1); break;
  case TK_KEY_DOWN: scroll_by(t, 1); break;
  case TK_KEY_PAGE_UP: scroll_by(t, -10); break;
  case TK_KEY_PAGE_DOWN: scroll_by(t, 10); break;
  case TK_KEY_HOME: scroll_by(t, -(int)t->page->scroll); break;
  default: break;
  }
}

static int run_top(struct top *t) {
  struct tb_diag diag;
  const char *why;

  tb_diag_clear(&diag);
  if (!tk_screen_open(&why)) return tk_fail("top", "the terminal: %s", why);
  tb_rc rc = tk_poll_start(&t->client, &t->selector, (enum to_window)t->window, tk_screen_wake,
                           &diag, &t->poll);
  if (rc != TB_OK) {
    tk_screen_close();
    return tk_remote_fail("top", rc, &diag);
  }
  while (!t->over) {
    show(t);
    take_key(t, tk_screen_key(AGAIN_MS));
  }
  tk_screen_close();
  if (!tk_poll_stop(t->poll)) {
    fflush(stdout);
    _exit(t->code); /* do not wait for the poller's request */
  }
  return t->code;
}

#define AT(member) offsetof(struct top, member)
const struct tk_option tk_top_options[] = {
  TK_GROUP(tk_stream_options, AT(selector)),
  TK_OPTION(0, "window", "10s|1m|5m|all", tk_read_word, AT(window),
            "time span of calls and stops; default: 10s"),
  TK_GROUP(tk_client_options, AT(client)),
  { 0 },
};

int tk_cmd_top(int argc, char **argv) {
  struct top t = { .window = TO_WINDOW_10S, .kind = TO_ANALYSIS_KINDS };
  struct tb_diag diag;

  int code = tk_options_read_all(argc, argv, tk_top_options, &t);
  if (code != TK_DONE) return code;
  if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
    return tk_usage(
        "top",
        "this is for a terminal; 'tracectl status' and 'tracectl report' are for pipes and files");
  tb_diag_clear(&diag);
  tb_rc rc = tk_remote_find_stream(&t.client, &t.selector, &diag);
  if (rc != TB_OK) return tk_remote_fail("top", rc, &diag);
  t.page = calloc(1, sizeof *t.page);
  if (t.page == NULL) return tk_fail("top", "out of memory");
  code = run_top(&t);
  free(t.page);
  return code;
}
