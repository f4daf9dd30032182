/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/retention.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000), MINUTE_NS = UINT64_C(60000000000);

void tc_retention_init(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns) {
  *retention = (struct tc_retention){ .last_mono_ns = mono_ns, .last_wall_ns = wall_ns };
}

bool tc_retention_is_due(struct tc_retention *retention, uint64_t every_ns, uint64_t mono_ns) {
  if (mono_ns < retention->due_mono_ns) return false;
  retention->due_mono_ns = mono_ns + every_ns;
  return true;
}

void tc_retention_round(struct tc_retention *retention, uint64_t wall_ns, uint64_t mono_ns,
                        uint64_t archive_bytes) {
  uint64_t expected = retention->last_wall_ns + (mono_ns - retention->last_mono_ns);
  uint64_t off = wall_ns > expected ? wall_ns - expected : expected - wall_ns;

  retention->clock_jumped = off > HOUR_NS;
  if (retention->clock_jumped) retention->age_from_mono_ns = mono_ns + HOUR_NS;
  retention->last_wall_ns = wall_ns;
  retention->last_mono_ns = mono_ns;
  if (retention->minute_bytes_max == 0 || mono_ns - retention->minute_mono_ns >= MINUTE_NS) {
    retention->minute_mono_ns = mono_ns;
    retention->minute_bytes = 0;
    retention->minute_bytes_max = archive_bytes / 10;
  }
}

bool tc_retention_is_over(const struct tc_retention_rules *rules, uint64_t archive_bytes) {
  return rules->bytes != 0 && archive_bytes > rules->bytes;
}

bool tc_retention_is_short(const struct tc_retention_rules *rules, uint64_t disk_free_bytes) {
  return rules->free_bytes != 0 && disk_free_bytes < rules->free_bytes;
}

bool tc_retention_is_pressed(const struct tc_retention_rules *rules, uint64_t archive_bytes,
                             uint64_t disk_free_bytes) {
  return tc_retention_is_over(rules, archive_bytes) ||
         tc_retention_is_short(rules, disk_free_bytes);
}

bool tc_retention_has_floor(const struct tc_retention_rules *rules, uint64_t own_bytes,
                            uint64_t disk_bytes) {
  return rules->floor_ns != 0 && own_bytes <= disk_bytes / 2;
}

uint64_t tc_retention_old_before(const struct tc_retention *retention, uint64_t age_ns) {
  bool counts = age_ns != 0 && retention->last_mono_ns >= retention->age_from_mono_ns;

  return counts && retention->last_wall_ns > age_ns ? retention->last_wall_ns - age_ns : 0;
}

bool tc_retention_takes(const struct tc_retention *retention,
                        const struct tc_retention_rules *rules, uint64_t archive_bytes,
                        uint64_t disk_free_bytes, uint64_t segment_wall_ns) {
  return tc_retention_is_pressed(rules, archive_bytes, disk_free_bytes) ||
         segment_wall_ns < tc_retention_old_before(retention, rules->age_ns);
}

bool tc_retention_allows(const struct tc_retention *retention, uint64_t segment_bytes) {
  /* The first segment of a minute is always allowed: in a small archive one may be more than a tenth. */
  return retention->minute_bytes == 0 ||
         retention->minute_bytes + segment_bytes <= retention->minute_bytes_max;
}

void tc_retention_took(struct tc_retention *retention, uint64_t segment_bytes) {
  retention->minute_bytes += segment_bytes;
}
