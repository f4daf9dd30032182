/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all verbs of tracectl.
 *
 * A verb is one cmd_<name>.c with one function tk_cmd_<name>(argc, argv), argv[0] being the verb, and
 * one row in commands.def. Data goes to stdout, words to stderr. main() answers --help and -h before
 * the verb sees them, and afterwards flushes stdout: a broken pipe is silent, a full disk is not.
 * Options may follow arguments (args/options.h).
 */
#ifndef TK_TERM_TRACECTL_H
#define TK_TERM_TRACECTL_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/mem.h"

enum tk_exit {
  TK_DONE = 0,
  TK_FAILED = 1, /* the input is broken or the work failed */
  TK_USAGE = 2,
  TK_CONDITION = 3,  /* --fail-on is met */
  TK_INCOMPLETE = 4, /* data is incomplete and --strict was given */
  TK_INTERRUPTED = 130,
};

/* "tracectl VERB: text" on stderr; answers TK_FAILED or TK_USAGE, so that a verb can return it. */
int tk_fail(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
int tk_usage(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
void tk_say(const char *verb, const char *fmt, va_list args) TB_PRINTF(2, 0);
/* The same of what is no failure. */
void tk_note(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
/* What precedes the verb in messages: "tracectl ", or "" in a program without verbs, whose name is
 * the verb then. */
extern const char *tk_program;

/* Standard output is a pipe without a reader: its reader has seen enough, which is no fault. */
bool tk_reader_is_gone(void);

const char *tk_plural(uint64_t n); /* "s", but for 1 */
extern struct tb_mem tk_mem;       /* the C library, without limit unless a verb sets one */

#endif
