/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a failed assertion in a shared helper name the line of the helper's caller, where Criterion names only the
 * helper's line.
 *
 *   static void expect(const char *text) { cr_assert(is_right(text), TT_CALLER); }
 *   #define expect(...) TT_CALL(expect(__VA_ARGS__))
 */
#ifndef TT_CALLER_H
#define TT_CALLER_H

static int tt_caller; /* the line of the call */

static inline void tt_called_in(int line) {
  tt_caller = line;
}

#define TT_CALL(call) (tt_called_in(__LINE__), call)
#define TT_CALLER     "called in line %d", tt_caller

#endif
