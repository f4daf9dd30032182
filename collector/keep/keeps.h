/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of time that triggers keep: retention spares what was traced in them.
 *
 * They lie in the file `kept` of the state folder, a stretch a line:
 *
 *     1764271234000000000 1764271274000000000 1764271264000000000 slow-sched stream 07070707070707070707070707070707
 *     1764271234000000000 1764271274000000000 1764271264000000000 stuck service shop
 *     1764271234000000000 1764271274000000000 1764271264000000000 stuck all
 *
 * from and until in ns since 1970 as traced, both included; when that was noted, on the collector's clock; the rule; what it is
 * about.
 *
 * Memory    at most TC_KEEPS_MAX stretches, 160 bytes each. One more takes the place of the one that was noted first, of a rule that
 *           has more than a 32nd: rules that fire all the time take none of another's.
 * Threads   any, but for open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_NOMEM.
 */
#ifndef TC_KEEP_KEEPS_H
#define TC_KEEP_KEEPS_H

#include "base/result.h"
#include "proto/names.h"

enum { TC_KEEPS_MAX = 10000, TC_KEEP_RULE_MAX = 32 };

struct tc_keep {
  uint64_t from_ns, until_ns, noted_ns;
  char rule[TC_KEEP_RULE_MAX + 1];
  bool of_stream;
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1]; /* unless it is of a stream; "": all there are */
};

struct tc_keeps;

/* A line that is wrong is left out, or all of a file that the disk has lost; *out_wrong says so, and is cleared first. */
TB_MUST tb_rc tc_keeps_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                            struct tc_keeps **out);
void tc_keeps_free(struct tc_keeps *keeps); /* NULL is fine */

/* Joined with a stretch of the same rule about the same that it meets. TB_NOMEM: it is not kept. */
TB_MUST tb_rc tc_keeps_add(struct tc_keeps *keeps, const struct tc_keep *keep);
/* Any of them that meets this stretch of that stream; out_rule: the first one's, or NULL. */
bool tc_keeps_meets(struct tc_keeps *keeps, const unsigned char stream[TC_STREAM_BYTES],
                    const char *service, uint64_t from_ns, uint64_t until_ns,
                    char out_rule[TC_KEEP_RULE_MAX + 1]);
/* Those that were noted before. */
void tc_keeps_forget(struct tc_keeps *keeps, uint64_t before_ns);
size_t tc_keeps_count(struct tc_keeps *keeps);
/* Writes the file if they are others than it has. */
TB_MUST tb_rc tc_keeps_save(struct tc_keeps *keeps, struct tb_diag *diag);

#endif
