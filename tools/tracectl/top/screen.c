/* SPDX-License-Identifier: Apache-2.0 */
/* Draws with ncurses. A crash (assert, sanitizer, bad pointer) must leave a usable terminal, so a
 * signal handler writes the few sequences for that itself, without ncurses. */
#include "tools/tracectl/top/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

static SCREEN *screen;
static struct termios before; /* the terminal's original modes */
static int wake_pipe[2] = { -1, -1 };
static volatile sig_atomic_t ended;
static attr_t looks[TK_LOOK_DIM + 1];

static void on_crash(int sig) {
  static const char restore[] = "\033[?1049l\033[?25h\033[0m\033[?1l\033>\r\n";

  ssize_t ignored = write(STDOUT_FILENO, restore, sizeof restore - 1);
  (void)ignored;
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
  signal(sig, SIG_DFL);
  raise(sig);
}

static void on_end(int sig) {
  int saved = errno;

  (void)sig;
  ended = 1;
  tk_screen_wake();
  errno = saved;
}

static void catch_signals(void) {
  static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
  static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
  struct sigaction end = { .sa_handler = on_end };

  for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) signal(crashes[i], on_crash);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaction(ends[i], &end, NULL);
}

void tk_screen_wake(void) {
  ssize_t ignored = write(wake_pipe[1], "", 1); /* if the pipe is full, it is awake anyway */
  (void)ignored;
}

static void choose_looks(void) {
  const char *no_color = getenv("NO_COLOR");

  looks[TK_LOOK_TITLE] = A_REVERSE;
  looks[TK_LOOK_HEADING] = A_BOLD;
  looks[TK_LOOK_BAD] = A_BOLD;
  looks[TK_LOOK_DIM] = A_DIM;
  if ((no_color != NULL && no_color[0] != '\0') || !has_colors() || start_color() == ERR) return;
  use_default_colors();
  init_pair(1, COLOR_CYAN, -1);
  init_pair(2, COLOR_YELLOW, -1);
  init_pair(3, COLOR_RED, -1);
  looks[TK_LOOK_HEADING] = A_BOLD | (attr_t)COLOR_PAIR(1);
  looks[TK_LOOK_WARN] = (attr_t)COLOR_PAIR(2);
  looks[TK_LOOK_BAD] = A_BOLD | (attr_t)COLOR_PAIR(3);
}

bool tk_screen_open(const char **why) {
  setlocale(LC_CTYPE, ""); /* only this category: numbers are formatted as before */
  if (pipe2(wake_pipe, O_NONBLOCK | O_CLOEXEC) != 0 || tcgetattr(STDIN_FILENO, &before) != 0) {
    *why = strerror(errno);
    return false;
  }
  screen = newterm(NULL, stdout, stdin);
  if (screen == NULL) {
    *why = getenv("TERM") == NULL ? "TERM is not set"
                                  : "nothing is known of a terminal of that name (TERM)";
    return false;
  }
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  choose_looks();
  catch_signals();
  return true;
}

void tk_screen_close(void) {
  if (screen == NULL) return;
  endwin();
  delscreen(screen);
  screen = NULL;
}

void tk_screen_size(struct tk_page *page) {
  page->rows = (unsigned)LINES;
  page->columns = (unsigned)COLS;
}

/* Shows text of a traced program without control characters, cut to the screen's width. */
static void show_line(int row, const struct tk_page_line *line) {
  const char *at = line->text, *end = at + strlen(at);
  mbstate_t state = { 0 };
  int column = 0;

  move(row, 0);
  attrset(looks[line->look]);
  while (at < end) {
    wchar_t c[2] = { 0 };
    size_t n = mbrtowc(c, at, (size_t)(end - at), &state);
    if (n == 0 || n > (size_t)(end - at)) { /* not a character of this locale */
      state = (mbstate_t){ 0 };
      n = 1;
      c[0] = L'?';
    }
    int width = wcwidth(c[0]);
    if (width < 0) {
      c[0] = L'?';
      width = 1;
    }
    if (column + width > COLS) break;
    addwstr(c);
    column += width;
    at += n;
  }
  if (line->look == TK_LOOK_TITLE)
    for (; column < COLS; column++) addch(' ');
  attrset(A_NORMAL);
}

void tk_screen_show(const struct tk_page *page) {
  erase();
  for (unsigned i = 0; i < page->n; i++) show_line((int)i, &page->line[i]);
  refresh();
}

static int key_of(int c) {
  switch (c) {
  case ERR: return TK_KEY_NONE;
  case KEY_RESIZE: return TK_KEY_RESIZED;
  case KEY_UP:
  case 'k': return TK_KEY_UP;
  case KEY_DOWN:
  case 'j': return TK_KEY_DOWN;
  case KEY_PPAGE: return TK_KEY_PAGE_UP;
  case KEY_NPAGE: return TK_KEY_PAGE_DOWN;
  case KEY_HOME: return TK_KEY_HOME;
  case 3: return TK_KEY_END; /* ^C, if the terminal sends it as a byte */
  default: return c;
  }
}

int tk_screen_key(int timeout_ms) {
  struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
                           { .fd = wake_pipe[0], .events = POLLIN } };
  char drained[64];

  if (ended) return TK_KEY_END;
  int key = key_of(getch()); /* keys typed earlier, or a new size */
  if (key != TK_KEY_NONE) return key;
  poll(fds, 2, timeout_ms);
  if (ended || (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))) return TK_KEY_END;
  bool woken = (fds[1].revents & POLLIN) && read(wake_pipe[0], drained, sizeof drained) > 0;
  key = key_of(getch());
  return key == TK_KEY_NONE && woken ? TK_KEY_WOKEN : key;
}
