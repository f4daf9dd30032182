/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of time that triggers and findings keep: retention spares segments that were traced in them. The rule of a finding's stretch
 * is "finding." and its kind.
 *
 * The file `kept` of the state folder has a line for each stretch:
 *
 *     1764271234000000000 1764271274000000000 1764271264000000000 slow-sched stream 07070707070707070707070707070707
 *     1764271234000000000 1764271274000000000 1764271264000000000 stuck service shop
 *     1764271234000000000 1764271274000000000 1764271264000000000 stuck all
 *
 * The columns: from and until (ns since 1970 of the trace's clock, both included); when it was noted, on the collector's
 * clock; the rule; the subject.
 *
 * Memory    at most TC_KEEPS_MAX stretches of 160 bytes. A further stretch replaces the oldest one (by the time when it was
 *           noted) of a rule that has more than 1/32 of all stretches: so a rule that fires all the time does not displace the
 *           stretches of other rules.
 * Threads   any, except for open and free.
 * Errors    TB_IO: the file cannot be read or written; TB_NOMEM.
 */
#ifndef TC_KEEP_KEEPS_H
#define TC_KEEP_KEEPS_H

#include <string.h>

#include "base/result.h"
#include "proto/names.h"

enum { TC_KEEPS_MAX = 10000, TC_KEEP_RULE_MAX = 32 };
#define TC_KEEP_FINDING "finding."

struct tc_keep {
  uint64_t from_ns, until_ns, noted_ns;
  char rule[TC_KEEP_RULE_MAX + 1];
  bool of_stream;
  unsigned char stream[TC_STREAM_BYTES];
  char service[TC_NAME_MAX + 1]; /* if not of_stream; "": all services */
};

struct tc_keeps;

/* Reads the file. Skips invalid lines, or all of an unreadable file, and reports this in *out_wrong (cleared first). */
TB_MUST tb_rc tc_keeps_open(int state_fd, struct tb_diag *diag, struct tb_diag *out_wrong,
                            struct tc_keeps **out);
void tc_keeps_free(struct tc_keeps *keeps); /* NULL is fine */

/* Adds a stretch, joined with overlapping ones of the same rule and subject. TB_NOMEM: it is not kept. */
TB_MUST tb_rc tc_keeps_add(struct tc_keeps *keeps, const struct tc_keep *keep);
static inline bool tc_keep_is_of_finding(const char *rule) {
  return strncmp(rule, TC_KEEP_FINDING, sizeof TC_KEEP_FINDING - 1) == 0;
}

/* Returns whether any stretch overlaps this one of that stream; out_rule (may be NULL): its rule, a finding's only if there is no other. */
bool tc_keeps_meets(struct tc_keeps *keeps, const unsigned char stream[TC_STREAM_BYTES],
                    const char *service, uint64_t from_ns, uint64_t until_ns,
                    char out_rule[TC_KEEP_RULE_MAX + 1]);
/* Removes stretches that were noted before before_ns. */
void tc_keeps_forget(struct tc_keeps *keeps, uint64_t before_ns);
size_t tc_keeps_count(struct tc_keeps *keeps);
/* Writes the file if anything has changed. */
TB_MUST tb_rc tc_keeps_save(struct tc_keeps *keeps, struct tb_diag *diag);

#endif
