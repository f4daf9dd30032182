/* SPDX-License-Identifier: Apache-2.0 */
/* The shortage of the log (commit/thread.c) or the archive (sealer/thread.c), from the first failed try until it is over.
 *
 * A wait is logged when it begins and when it is over. It is over when something was written since the last
 * failure, and nothing has failed for a second. This time doubles, to a minute at most, with each wait that
 * follows the one before it within a minute, so that a disk at its limit does not fill the log.
 * Tries come after 100 ms, then less often, at least once a second.
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

/* rc: a failure that tc_errno_rc() named, or one of our own. fd: of the disk, which knows if it lacks inodes. */
enum tc_shortage tc_shortage_of(tb_rc rc, int fd);

const char *tc_shortage_text(enum tc_shortage why);
/* For people, static: "full: no space left on the disk (log)". NONE: "ok". */
const char *tc_shortage_of_log(enum tc_shortage why);
const char *tc_shortage_of_archive(enum tc_shortage why);

struct tc_wait {                /* zeroed: nothing is waited for */
  enum tc_shortage why, said;   /* said: in the last line */
  bool wrote;                   /* since the last failure */
  uint64_t began_ns, failed_ns; /* the first failure, the last one */
  uint64_t said_ns;             /* the last line */
  uint64_t pause_ns, retry_ns;  /* 0: the next try need not wait */
  uint64_t ended_ns, calm_ns;   /* the last wait ended then, and after so long without a failure */
};

/* A try failed. True: to be logged, because the wait begins, or has another reason now. */
bool tc_wait_failed(struct tc_wait *wait, enum tc_shortage why, uint64_t now_ns);
/* The reason is still there, which was seen without a try. */
void tc_wait_goes_on(struct tc_wait *wait, uint64_t now_ns);
void tc_wait_wrote(struct tc_wait *wait);    /* a try went well */
void tc_wait_no_pause(struct tc_wait *wait); /* the next try may come at once */
bool tc_wait_is_pausing(const struct tc_wait *wait, uint64_t now_ns);
/* True: it is over, which is to be logged; *out_ns: it took so long. */
bool tc_wait_is_over(struct tc_wait *wait, uint64_t now_ns, uint64_t *out_ns);

#endif
