/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the calls by which a store changes its folder, and makes them fail. These functions replace the C library's,
 * so this file is compiled into the test.
 *
 * While a store is watched each of its calls is recorded as a line, the names in it relative to the state folder:
 *
 *     create open/07…-01.part     write wal/0000000000000000.wal     read open/07…-01.part      open archive/…/01.meta
 *     sync archive/2026-01-01     sync .     truncate open/07…-01.part          unlink reserve             rename
 *     open/… archive/…     list wal (each entry, and the end)     look catalog.stale
 *     stat quarantine/07…-01.part
 *
 * Patterns are those of fnmatch(3); '*' matches slashes too. A call that is made to fail is not
 * recorded.
 *
 * Threads   any.
 */
#ifndef TT_STORE_CALLS_H
#define TT_STORE_CALLS_H

#include "support/store_driver.h"

enum { TT_CALLS_MAX = 16384 };

/* Watches this store only, from now on; clears the recorded lines, failures and holds. NULL: no store. */
void tt_calls_watch(const struct tt_store *t);

/* The next `times` calls that match fail with `error`. One pattern at a time; times 0: none. */
void tt_calls_fail(const char *pattern, int error, unsigned times);
/* Fails calls as tt_calls_fail() does, from the next line that matches `after`. */
void tt_calls_fail_after(const char *after, const char *pattern, int error, unsigned times);
unsigned tt_calls_failed(void); /* since tt_calls_watch() */

/* Blocks calls that match until another pattern, or NULL, is set; then they are recorded. */
void tt_calls_hold(const char *pattern);
unsigned tt_calls_held(void); /* calls blocked now */

/* Returns the first line from number `from` on that matches; -1: none. */
int tt_call(const char *pattern, int from);

#endif
