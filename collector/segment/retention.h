/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which segments retention may delete, and when; without I/O, with clocks from the caller.
 *
 * Segments are deleted by age, by the archive's size, by free disk space and by their service's size, oldest first. For
 * size and free space this happens at once; by age and service at most a tenth of the archive's bytes are deleted per
 * minute. Age is measured by the wall clock; if that jumps more than an hour against the monotonic clock, nothing is
 * deleted by age for an hour.
 *
 * Threads   use each object from one thread at a time.
 */
#ifndef TC_SEGMENT_RETENTION_H
#define TC_SEGMENT_RETENTION_H

#include "base/result.h"

struct tc_retention {
  uint64_t last_mono_ns, last_wall_ns;
  uint64_t age_from_mono_ns; /* no deletion by age before this */
  uint64_t minute_mono_ns;   /* start of the current minute */
  uint64_t minute_bytes;     /* deleted in this minute */
  uint64_t minute_bytes_max;
  uint64_t due_mono_ns;
  bool clock_jumped;
};

struct tc_retention_rules { /* 0: no such rule */
  uint64_t age_ns, bytes, free_bytes, service_bytes;
  uint64_t floor_ns; /* segments received within this time before the newest are protected */
};

void tc_retention_init(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns);
bool tc_retention_is_due(struct tc_retention *retention, uint64_t every_ns, uint64_t mono_ns);
/* Begins a round: checks the clocks, and starts a new minute's allowance if due. */
void tc_retention_round(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns,
                        uint64_t archive_bytes);

/* Returns the arrival time before which segments are too old; 0: none is. age_ns 0: no limit. */
uint64_t tc_retention_old_before(const struct tc_retention *retention, uint64_t age_ns);
/* May the oldest segment be deleted? Ask again after each, with new figures. */
bool tc_retention_takes(const struct tc_retention *retention,
                        const struct tc_retention_rules *rules, uint64_t archive_bytes,
                        uint64_t disk_free_bytes, uint64_t segment_wall_ns);
/* Is the archive above its size, or the disk short of space? Then the minute's allowance does not apply, because more is
 * being written. */
bool tc_retention_is_over(const struct tc_retention_rules *rules, uint64_t archive_bytes);
bool tc_retention_is_short(const struct tc_retention_rules *rules, uint64_t disk_free_bytes);
bool tc_retention_is_pressed(const struct tc_retention_rules *rules, uint64_t archive_bytes,
                             uint64_t disk_free_bytes); /* either */
/* Does the floor apply when the disk is short? Other programs may have filled the disk, and deleting segments does not help
 * then. False if the collector's own files use more than half of the disk. */
bool tc_retention_has_floor(const struct tc_retention_rules *rules, uint64_t own_bytes,
                            uint64_t disk_bytes);
/* Returns false if the minute's allowance is used up. */
bool tc_retention_allows(const struct tc_retention *retention, uint64_t segment_bytes);
void tc_retention_took(struct tc_retention *retention, uint64_t segment_bytes);

#endif
