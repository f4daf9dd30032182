/* SPDX-License-Identifier: Apache-2.0 */
/* The files that retention may take, and when: decisions without I/O, on clocks that are handed in.
 *
 * Segments go by age, by the archive's size, by free disk space and by their service's share, the oldest
 * first. Sizes hold at once; by age and service never more than a tenth of the archive's bytes go in a minute. Age
 * is measured by the wall clock; when that jumps more than an hour against the monotonic clock, age takes nothing
 * for an hour.
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TC_SEGMENT_RETENTION_H
#define TC_SEGMENT_RETENTION_H

#include "base/result.h"

struct tc_retention {
  uint64_t last_mono_ns, last_wall_ns;
  uint64_t age_from_mono_ns; /* age is suspended until then */
  uint64_t minute_mono_ns;   /* begin of the minute that is counted */
  uint64_t minute_bytes;     /* taken in it */
  uint64_t minute_bytes_max;
  uint64_t due_mono_ns;
  bool clock_jumped;
};

struct tc_retention_rules { /* 0: no such rule */
  uint64_t age_ns, bytes, free_bytes, service_bytes;
  uint64_t floor_ns; /* what came within so long before the newest is in the floor */
};

void tc_retention_init(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns);
bool tc_retention_is_due(struct tc_retention *retention, uint64_t every_ns, uint64_t mono_ns);
/* Begins a round: looks at the clocks, opens a new minute's allowance. */
void tc_retention_round(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns,
                        uint64_t archive_bytes);

/* By age what came before this is too old; 0: nothing is. age_ns 0: no such rule. */
uint64_t tc_retention_old_before(const struct tc_retention *retention, uint64_t age_ns);
/* May the oldest segment go? Ask again after each, with the figures as they are then. */
bool tc_retention_takes(const struct tc_retention *retention,
                        const struct tc_retention_rules *rules, uint64_t archive_bytes,
                        uint64_t disk_free_bytes, uint64_t segment_wall_ns);
/* Is the archive above its size, or the disk short? Then the minute's allowance does not matter: more comes
 * meanwhile. */
bool tc_retention_is_over(const struct tc_retention_rules *rules, uint64_t archive_bytes);
bool tc_retention_is_short(const struct tc_retention_rules *rules, uint64_t disk_free_bytes);
bool tc_retention_is_pressed(const struct tc_retention_rules *rules, uint64_t archive_bytes,
                             uint64_t disk_free_bytes); /* either */
/* A disk that is short may be filled by others: no deleting helps then. Has the archive a floor below which it is not made smaller for it?
 * Not where most of the disk is the collector's own. */
bool tc_retention_has_floor(const struct tc_retention_rules *rules, uint64_t own_bytes,
                            uint64_t disk_bytes);
/* False: the minute's allowance is used up. */
bool tc_retention_allows(const struct tc_retention *retention, uint64_t segment_bytes);
void tc_retention_took(struct tc_retention *retention, uint64_t segment_bytes);

#endif
