/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/model/shortage.h"

#include <sys/statvfs.h>

static const uint64_t SECOND_NS = 1000000000, FIRST_PAUSE_NS = 100000000;
static const uint64_t CALM_NS_MAX = UINT64_C(60000000000), SAY_AGAIN_NS = UINT64_C(10000000000);

#define TC_SHORTAGE(id, label, kind, text) [TC_SHORT_##id] = (text),
static const char *const texts[TC_SHORTAGES] = {
  [TC_SHORT_NONE] = "nothing",
#include "collector/model/shortage.def"
};
#undef TC_SHORTAGE

#define TC_SHORTAGE(id, label, kind, text) [TC_SHORT_##id] = kind ": " text " (log)",
static const char *const of_log[TC_SHORTAGES] = {
  [TC_SHORT_NONE] = "ok",
#include "collector/model/shortage.def"
};
#undef TC_SHORTAGE

#define TC_SHORTAGE(id, label, kind, text) [TC_SHORT_##id] = kind ": " text " (archive)",
static const char *const of_archive[TC_SHORTAGES] = {
  [TC_SHORT_NONE] = "ok",
#include "collector/model/shortage.def"
};
#undef TC_SHORTAGE

const char *tc_shortage_text(enum tc_shortage why) {
  return texts[why];
}

const char *tc_shortage_of_log(enum tc_shortage why) {
  return of_log[why];
}

const char *tc_shortage_of_archive(enum tc_shortage why) {
  return of_archive[why];
}

/* ENOSPC does not tell inodes from space. A file system that creates inodes on demand reports f_files 0. */
static bool lacks_inodes(int fd) {
  struct statvfs fs;

  return fstatvfs(fd, &fs) == 0 && fs.f_files > 0 && fs.f_favail == 0;
}

enum tc_shortage tc_shortage_of(tb_rc rc, int fd) {
  switch ((int)rc) {
  case TB_NOSPACE: return lacks_inodes(fd) ? TC_SHORT_INODES : TC_SHORT_SPACE;
  case TB_QUOTA: return TC_SHORT_QUOTA;
  case TB_NOFILES: return TC_SHORT_FILES;
  case TB_NOMEM: return TC_SHORT_MEMORY;
  case TB_BUSY: return TC_SHORT_BUSY;
  default: return TC_SHORT_IO;
  }
}

static void begin_wait(struct tc_wait *wait, uint64_t now_ns) {
  bool soon = wait->ended_ns != 0 && now_ns - wait->ended_ns < CALM_NS_MAX;
  uint64_t calm_ns = soon ? 2 * wait->calm_ns : SECOND_NS;

  wait->calm_ns = calm_ns < CALM_NS_MAX ? calm_ns : CALM_NS_MAX;
  wait->began_ns = now_ns;
}

static void pause_longer(struct tc_wait *wait, uint64_t now_ns) {
  uint64_t pause_ns = wait->pause_ns == 0 ? FIRST_PAUSE_NS : 2 * wait->pause_ns;

  wait->pause_ns = pause_ns < SECOND_NS ? pause_ns : SECOND_NS;
  wait->retry_ns = now_ns + wait->pause_ns;
}

bool tc_wait_failed(struct tc_wait *wait, enum tc_shortage why, uint64_t now_ns) {
  bool begins = wait->why == TC_SHORT_NONE;
  bool changes = why != wait->said && now_ns - wait->said_ns >= SAY_AGAIN_NS;

  if (begins) begin_wait(wait, now_ns);
  wait->why = why;
  wait->wrote = false;
  wait->failed_ns = now_ns;
  pause_longer(wait, now_ns);
  if (!begins && !changes) return false;
  wait->said = why;
  wait->said_ns = now_ns;
  return true;
}

void tc_wait_goes_on(struct tc_wait *wait, uint64_t now_ns) {
  wait->wrote = false;
  wait->failed_ns = now_ns;
}

void tc_wait_no_pause(struct tc_wait *wait) {
  wait->pause_ns = wait->retry_ns = 0;
}

void tc_wait_wrote(struct tc_wait *wait) {
  wait->wrote = true;
  tc_wait_no_pause(wait);
}

bool tc_wait_is_pausing(const struct tc_wait *wait, uint64_t now_ns) {
  return now_ns < wait->retry_ns;
}

bool tc_wait_is_over(struct tc_wait *wait, uint64_t now_ns, uint64_t *out_ns) {
  if (wait->why == TC_SHORT_NONE || !wait->wrote || now_ns - wait->failed_ns < wait->calm_ns)
    return false;
  *out_ns = now_ns - wait->began_ns;
  wait->why = TC_SHORT_NONE;
  wait->ended_ns = now_ns;
  return true;
}
