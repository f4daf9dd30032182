/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/tracectl/term/plain.h"
#include "tools/tracectl/term/tracectl.h"

const char *tk_program = "tracectl ";

/* Makes the text printable: it may quote a trace or a peer. */
void tk_say(const char *verb, const char *fmt, va_list args) {
  char *text;

  fflush(stdout); /* output so far comes before the error */
  if (vasprintf(&text, fmt, args) < 0) text = NULL;
  if (text != NULL) tk_plain_text(text);
  fprintf(stderr, "%s%s: %s\n", tk_program, verb, text != NULL ? text : fmt);
  free(text);
}

void tk_note(const char *verb, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  tk_say(verb, fmt, args);
  va_end(args);
}

int tk_fail(const char *verb, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  tk_say(verb, fmt, args);
  va_end(args);
  return TK_FAILED;
}

int tk_usage(const char *verb, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  tk_say(verb, fmt, args);
  va_end(args);
  fprintf(stderr, *tk_program != '\0' ? "Try 'tracectl help %s'.\n" : "Try '%s --help'.\n", verb);
  return TK_USAGE;
}

bool tk_reader_is_gone(void) {
  struct pollfd out = { .fd = STDOUT_FILENO };

  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

const char *tk_plural(uint64_t n) {
  return n == 1 ? "" : "s";
}
