/* SPDX-License-Identifier: Apache-2.0 */
/* Expands EACH(returns, name, parameters) for every row of calls.def. The includer defines EACH; it is undefined at the end.
 * No guard: the file is included more than once. */
#define CALL(what, ret, name, params, args)    EACH(ret, name, params)
#define CALL_IF(ret, name, params, args, when) EACH(ret, name, params)
#define COND(ret, name, params, args)          EACH(ret, name, params)
#define LOCK(what, ret, name, params, args, for, holder, attempt) EACH(ret, name, params)
#define WAKE(what, ret, name, params, args, for, how) EACH(ret, name, params)
#define OWN(ret, name, params)   EACH(ret, name, params)
#define PLAIN(ret, name, params) EACH(ret, name, params)
#include "agent/preload/calls.def"
#undef CALL
#undef CALL_IF
#undef COND
#undef LOCK
#undef WAKE
#undef OWN
#undef PLAIN
#undef EACH
