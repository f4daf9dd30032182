/* SPDX-License-Identifier: Apache-2.0 */
/* The wait of the log (commit/thread.c) or the archive (sealer/thread.c) for a shortage to end.
 *
 * A wait is logged when it begins and when it ends. It ends when something was written since the last failure and nothing
 * has failed for a second. This second doubles, up to a minute, with each wait that begins within a minute of the last one,
 * so that a disk at its limit does not fill the log. The first retry is after 100 ms, later ones are rarer, at least one
 * a second.
 *
 * Threads   use each object from one thread at a time.
 * Time      monotonic, given by the caller.
 */
#ifndef TC_MODEL_SHORTAGE_H
#define TC_MODEL_SHORTAGE_H

#include "base/result.h"

#define TC_SHORTAGE(id, label, kind, text) TC_SHORT_##id,
enum tc_shortage {
  TC_SHORT_NONE,
#include "collector/model/shortage.def"
  TC_SHORTAGES
};
#undef TC_SHORTAGE

/* Returns the shortage that an rc (of tc_errno_rc() or our own) reports. fd: any file on the disk, to check its inodes. */
enum tc_shortage tc_shortage_of(tb_rc rc, int fd);

const char *tc_shortage_text(enum tc_shortage why);
/* Return a static text like "full: no space left on the disk (log)"; NONE: "ok". */
const char *tc_shortage_of_log(enum tc_shortage why);
const char *tc_shortage_of_archive(enum tc_shortage why);

struct tc_wait {                /* zeroed: no wait */
  enum tc_shortage why, said;   /* said: the reason in the last log line */
  bool wrote;                   /* a write succeeded since the last failure */
  uint64_t began_ns, failed_ns; /* times of the first and the last failure */
  uint64_t said_ns;             /* time of the last log line */
  uint64_t pause_ns, retry_ns;  /* last pause; time of the next attempt, 0: at once */
  uint64_t ended_ns, calm_ns;   /* end of the last wait; time without a failure that ends a wait */
};

/* Call after a failure. Returns true if it is to be logged, because the wait begins or its reason changes. */
bool tc_wait_failed(struct tc_wait *wait, enum tc_shortage why, uint64_t now_ns);
/* Call if the reason is seen to last, without an attempt to write. */
void tc_wait_goes_on(struct tc_wait *wait, uint64_t now_ns);
void tc_wait_wrote(struct tc_wait *wait);    /* call after a successful write */
void tc_wait_no_pause(struct tc_wait *wait); /* allows the next attempt at once */
bool tc_wait_is_pausing(const struct tc_wait *wait, uint64_t now_ns);
/* Ends a wait if it is over. Returns true if so, which is to be logged; *out_ns: its duration. */
bool tc_wait_is_over(struct tc_wait *wait, uint64_t now_ns, uint64_t *out_ns);

#endif
