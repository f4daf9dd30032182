/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all verbs of tracectl.
 *
 * A verb is one cmd_NAME.c with one function tk_cmd_NAME(argc, argv), argv[0] being the verb, and one row in
 * commands.def. Data goes to stdout, messages to stderr. main() handles --help and -h before the verb, and flushes stdout
 * after it: a broken pipe is not an error, a full disk is. Options may follow arguments (args/options.h).
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
  TK_CONDITION = 3,  /* condition of --fail-on met */
  TK_INCOMPLETE = 4, /* data is incomplete and --strict was given */
  TK_INTERRUPTED = 130,
};

/* Print "tracectl VERB: text" on stderr. Return TK_FAILED or TK_USAGE, for use in a verb's return. */
int tk_fail(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
int tk_usage(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
void tk_say(const char *verb, const char *fmt, va_list args) TB_PRINTF(2, 0);
/* Prints like tk_fail(), for what is not an error. */
void tk_note(const char *verb, const char *fmt, ...) TB_PRINTF(2, 3);
/* Printed before the verb in messages: "tracectl ", or "" in a program without verbs, whose name then
 * replaces the verb. */
extern const char *tk_program;

/* Returns true if standard output is a pipe whose reader is gone, which is not an error. */
bool tk_reader_is_gone(void);

const char *tk_plural(uint64_t n); /* "s" unless n is 1 */
extern struct tb_mem tk_mem;       /* from the C library, without limit unless a verb sets one */

#endif
