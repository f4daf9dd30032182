/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: every event is counted once, under the stack that led to it, as tools for pprof read
 * it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "profiled.trace.h"
#include "proto/pprof.pb-c.h"

//trace:event hot(int n)
//trace:event cold()

typedef Tracecollect__Pprof__Profile message;

/* A single call site, however the compiler unrolls loops. */
static __attribute__((noinline)) void repeat(volatile int n, void (*from)(int n)) {
  for (int i = 0; i < n; i++) from(i);
}

static __attribute__((noinline)) void from_here(int n) {
  hot(n);
}
static __attribute__((noinline)) void from_there(int n) {
  hot(n);
  cold();
}

static message *read_back(const ta_profile *profile) {
  static unsigned char bytes[4 << 20];
  char path[] = "/tmp/test_profile.XXXXXX";

  int fd = mkstemp(path);
  cr_assert_geq(fd, 0);
  close(fd);
  cr_assert_eq(ta_profile_write(profile, path), TA_OK);
  gzFile file = gzopen(path, "rb");
  int n = gzread(file, bytes, sizeof bytes);
  cr_assert_gt(n, 0);
  cr_assert_eq(gzdirect(file), 0);
  cr_assert_eq(gzclose(file), Z_OK); /* its checksum is right */
  unlink(path);
  message *m = tracecollect__pprof__profile__unpack(NULL, (size_t)n, bytes);
  cr_assert_not_null(m);
  return m;
}

static const char *name_of(const message *m, uint64_t location) {
  const Tracecollect__Pprof__Location *l = m->location[location - 1];

  if (l->n_line == 0) return "";
  return m->string_table[m->function[l->line[0]->function_id - 1]->name];
}

/* Returns how often an event was counted; *stacks is the number of its stacks. */
static int64_t count_of(const message *m, const char *event, unsigned *stacks) {
  int64_t sum = 0;

  *stacks = 0;
  for (size_t i = 0; i < m->n_sample; i++) {
    if (strcmp(name_of(m, m->sample[i]->location_id[0]), event) != 0) continue;
    sum += m->sample[i]->value[0];
    ++*stacks;
  }
  return sum;
}

static ta_profile *begin(struct ta_probe_group *group, unsigned stacks_max) {
  static struct ta_probe probe[2];
  ta_profile *profile;

  cr_assert_eq(ta_profile_open(stacks_max, &profile), TA_OK);
  ta_lock();
  cr_assert_eq(ta_profile_attach(group, hot_point(), &probe[0], profile), TA_OK);
  cr_assert_eq(ta_profile_attach(group, cold_point(), &probe[1], profile), TA_OK);
  ta_unlock();
  return profile;
}

Test(profile, events_are_counted_under_their_stacks) {
  struct ta_probe_group group = { 0 };
  ta_profile *profile = begin(&group, 0);
  unsigned stacks;

  repeat(5, from_here);
  repeat(7, from_there);
  ta_probe_group_done(&group);
  message *m = read_back(profile);
  cr_assert_eq(count_of(m, "profiled.hot", &stacks), 12);
  cr_assert_eq(stacks, 2);
  cr_assert_eq(count_of(m, "profiled.cold", &stacks), 7);
  cr_assert_eq(stacks, 1);
  for (size_t i = 0; i < m->n_location; i++) /* every address is in a file that has a name */
    cr_assert(m->location[i]->address == 0 || m->location[i]->mapping_id != 0);
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  ta_profile_close(profile);
}

static void pack(void) {}

/* The names of a plugin that is unloaded before the profile is written. */
Test(profile, names_are_lent_for_the_call) {
  static char module[] = "plugin",
              name[] = "an_event_of_a_name_that_is_longer_than_what_is_kept_of_it_in_a_profile";
  static struct ta_tracepoint at = { .module = module, .name = name, .pack = pack };
  struct ta_probe_group group = { 0 };
  struct ta_probe probe = { 0 };
  ta_profile *profile;
  unsigned stacks;

  cr_assert_eq(ta_profile_open(0, &profile), TA_OK);
  ta_lock();
  cr_assert_eq(ta_profile_attach(&group, &at, &probe, profile), TA_OK);
  ta_unlock();
  ta_call_run(&probe, NULL);
  ta_probe_group_done(&group);
  memset(module, 'x', sizeof module - 1);
  memset(name, 'x', sizeof name - 1);
  message *m = read_back(profile);
  cr_assert_eq(count_of(m, "plugin.an_event_of_a_name_that_is_longer_than_what_is_kept_of_it_in_a_",
                        &stacks),
               1);
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  ta_profile_close(profile);
}

static void *many(void *self) {
  repeat(2000, from_here);
  return self;
}

Test(profile, threads_count_at_once_while_it_is_written) {
  enum { THREADS = 4 };
  struct ta_probe_group group = { 0 };
  ta_profile *profile = begin(&group, 0);
  pthread_t thread[THREADS];
  unsigned stacks;

  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, many, NULL);
  message *m = read_back(profile);
  cr_assert_leq(count_of(m, "profiled.hot", &stacks), THREADS * 2000);
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  ta_probe_group_done(&group);
  m = read_back(profile);
  cr_assert_eq(count_of(m, "profiled.hot", &stacks), THREADS * 2000);
  cr_assert_eq(stacks, 1);
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  ta_profile_close(profile);
}

Test(profile, what_finds_no_room_is_counted_all_the_same) {
  struct ta_probe_group group = { 0 };
  ta_profile *profile = begin(&group, 1);
  unsigned stacks;

  from_here(1);
  repeat(3, from_there);
  ta_probe_group_done(&group);
  message *m = read_back(profile);
  cr_assert_eq(count_of(m, "profiled.hot", &stacks), 1);
  cr_assert_eq(count_of(m, "(other stacks)", &stacks), 6);
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  cr_assert_eq(ta_profile_write(profile, "/nonexistent/profile"), TA_E_FILE);
  ta_profile_close(profile);
  ta_profile_close(NULL);
}

Test(profile, one_without_events_is_a_profile) {
  ta_profile *profile;

  cr_assert_eq(ta_profile_open(0, &profile), TA_OK);
  message *m = read_back(profile);
  cr_assert_eq(m->n_sample, 0);
  cr_assert_str_eq(m->string_table[m->sample_type[0]->type], "events");
  tracecollect__pprof__profile__free_unpacked(m, NULL);
  ta_profile_close(profile);
}
