/* SPDX-License-Identifier: Apache-2.0 */
/* The calls by which a store changes its folder, watched and made to fail: functions of the C library's names, so this
 * file is compiled into the test.
 *
 * While a store is watched each of its calls is a line, the names in it relative to the state folder:
 *
 *     create open/07…-01.part     write wal/0000000000000000.wal     read open/07…-01.part      open archive/…/01.meta
 *     sync archive/2026-01-01     sync .     truncate open/07…-01.part          unlink reserve             rename
 *     open/… archive/…     list wal (each entry, and the end)     look catalog.stale
 *     stat quarantine/07…-01.part
 *
 * Patterns are fnmatch(3)'s, a '*' for slashes too. A call that is made to fail is no line.
 *
 * Threads   any.
 */
#ifndef TT_STORE_CALLS_H
#define TT_STORE_CALLS_H

#include "support/store_driver.h"

enum { TT_CALLS_MAX = 16384 };

/* From now on, this store only; what was seen before is forgotten, nothing fails or is held. NULL: none. */
void tt_calls_watch(const struct tt_store *t);

/* The next `times` calls that match fail with `error`. One pattern at a time; times 0: none. */
void tt_calls_fail(const char *pattern, int error, unsigned times);
/* The same, from the next line on that matches `after`. */
void tt_calls_fail_after(const char *after, const char *pattern, int error, unsigned times);
unsigned tt_calls_failed(void); /* since tt_calls_watch() */

/* From now on a call that matches waits until another pattern, or NULL, lets it go. Then it is a line. */
void tt_calls_hold(const char *pattern);
unsigned tt_calls_held(void); /* that wait now */

/* The first line from number `from` on that matches; -1: none. */
int tt_call(const char *pattern, int from);

#endif
