/* SPDX-License-Identifier: Apache-2.0 */
/* A spool on disk as the host sees it: nobody listens at the stream's address. Row 5 of
 * tests/fault shows how another process takes over, test_spool_disk what is in the files. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/api/forward.h"
#include "agent/persist/directory.h"
#include "tests/support/patience.h"
#include "tests/unit/agent/forward_scene.h"

enum { MIB = 1 << 20 };

struct host {
  char certs[64], spool[64];
  struct ta_forward_config config;
};

static struct host begin(void) {
  struct host h = { .certs = "/tmp/tt-disk-XXXXXX", .spool = "/tmp/tt-spool-XXXXXX" };

  cr_assert_not_null(mkdtemp(h.certs));
  cr_assert_not_null(mkdtemp(h.spool));
  tt_certs_make(h.certs);
  return h;
}

static ta_forward *open_stream(struct host *h, uint64_t spool_dir_bytes) {
  ta_forward *f = NULL;

  h->config = (struct ta_forward_config){ .size = sizeof h->config,
                                          .server = "127.0.0.1:9",
                                          .certs = h->certs,
                                          .service = "shop",
                                          .instance = "a:1",
                                          .spool_bytes = 4 * MIB,
                                          .spool_dir = h->spool,
                                          .spool_dir_bytes = spool_dir_bytes };
  cr_assert_eq(ta_forward_open(&h->config, &f), TA_OK);
  return f;
}

static void remove_name(void *self, const char *name) {
  unlinkat(*(int *)self, name, 0);
}

struct streams {
  int root;
  unsigned n;
  char name[TA_SPOOL_DIR_NAME];
};

static void note_stream(void *self, const char *name) {
  struct streams *all = self;

  cr_assert(ta_spool_dir_is_stream(name));
  strcpy(all->name, name);
  all->n++;
}

static struct streams streams_of(struct host *h) {
  struct streams all = { .root = open(h->spool, O_RDONLY | O_DIRECTORY) };

  ta_spool_dir_list(all.root, note_stream, &all);
  close(all.root);
  return all;
}

static void end(struct host *h) {
  struct streams all;

  while ((all = streams_of(h)).n > 0) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", h->spool, all.name);
    int dir = open(path, O_RDONLY | O_DIRECTORY);
    ta_spool_dir_list(dir, remove_name, &dir);
    close(dir);
    rmdir(path); /* or the stream's thread was still working in it: then once more */
  }
  rmdir(h->spool);
  remove_certs(h->certs);
}

/* Counts the agent's threads. A thread whose close timed out runs on until it ends, which must
 * happen before the process ends. */
static unsigned agents(void) {
  char path[300], name[32];
  unsigned found = 0;
  DIR *tasks = opendir("/proc/self/task");

  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    found += fgets(name, sizeof name, file) != NULL && strncmp(name, "traceagent", 10) == 0;
    fclose(file);
  }
  closedir(tasks);
  return found;
}

static void write_generations(ta_forward *f, unsigned n) {
  struct tt_stream t = tt_stream_make(26, n, 8, 60000);

  write_all(f, &t, 100000);
  tt_stream_free(&t);
}

static bool becomes_kept(ta_forward *f) {
  for (int left = TT_PATIENCE_S * 20; left > 0; left--)
    if (ta_forward_sync(f, 50) == TA_E_KEPT) return true;
  return false;
}

/* Closes the stream with all of it on disk, CLOSE too: this function waits for the disk, as
 * close() does not. */
static void close_kept(ta_forward *f) {
  ta_forward_finish(f);
  cr_assert(becomes_kept(f));
  cr_assert_eq(ta_forward_close(f, 0), TA_E_KEPT);
}

Test(forward_disk, what_is_not_acked_is_kept) {
  struct host h = begin();
  ta_forward *f = open_stream(&h, 0);
  struct stat st;
  char path[256];

  write_generations(f, 2);
  cr_assert(becomes_kept(f));
  struct streams all = streams_of(&h);
  cr_assert_eq(all.n, 1);
  cr_assert_str_eq(all.name, status_of(f).stream);
  cr_assert_gt(status_of(f).disk_bytes, 2 * 8 * 50000);
  snprintf(path, sizeof path, "%s/%s", h.spool, all.name);
  cr_assert_eq(stat(path, &st), 0);
  cr_assert_eq(st.st_mode & 0777, 0700);
  snprintf(path, sizeof path, "%s/%s/state", h.spool, all.name);
  cr_assert_eq(stat(path, &st), 0);
  cr_assert_eq(st.st_mode & 0777, 0600);
  close_kept(f);
  cr_assert_eq(streams_of(&h).n, 1);
  end(&h);
}

/* Waits until the owner's thread releases the folder, which it does when it ends. */
static bool becomes_free(struct ta_spool_dir *dir, const char *name,
                         struct ta_spool_dir_state *out) {
  struct tb_diag diag;

  for (int left = TT_PATIENCE_S * 20; left > 0; left--) {
    tb_diag_clear(&diag);
    if (ta_spool_dir_take(dir, name, &diag, out) == TB_OK) return true;
    ta_spool_dir_leave(dir);
    usleep(50000);
  }
  return false;
}

Test(forward_disk, nobody_takes_what_has_an_owner) {
  struct host h = begin();
  ta_forward *f = open_stream(&h, 0);
  struct ta_spool_dir_state state;
  struct ta_spool_dir dir;
  struct tb_diag diag;

  write_generations(f, 1);
  cr_assert(becomes_kept(f));
  tb_diag_clear(&diag);
  int root = open(h.spool, O_RDONLY | O_DIRECTORY);
  ta_spool_dir_init(&dir, root, 0);
  cr_assert_eq(ta_spool_dir_take(&dir, status_of(f).stream, &diag, &state), TB_AGAIN);
  ta_spool_dir_leave(&dir);
  char name[TA_SPOOL_DIR_NAME];
  strcpy(name, status_of(f).stream);
  close_kept(f);
  cr_assert(becomes_free(&dir, name, &state));
  cr_assert_str_eq(state.service, "shop");
  ta_spool_dir_leave(&dir);
  close(root);
  end(&h);
}

static bool has_disk_fault(const struct ta_forward_status *s, const char *arg) {
  (void)arg;
  return s->disk_faults > 0;
}

Test(forward_disk, a_directory_that_is_full_loses_nothing) {
  struct host h = begin();
  ta_forward *f = open_stream(&h, 2 * MIB); /* half of it is this stream's */
  struct tt_stream t = tt_stream_make(26, 4, 8, 60000);
  struct tt_stream first = { t.bytes, t.n / 4, 0 }, rest = { t.bytes + first.n, t.n - first.n, 0 };

  write_all(f, &first, 100000);
  cr_assert(becomes_kept(f));
  write_all(f, &rest, 100000);
  tt_stream_free(&t);
  cr_assert(until(f, has_disk_fault, NULL));
  struct ta_forward_status s = status_of(f);
  cr_assert_eq(s.lost_batches, 0);
  cr_assert_eq(s.spool_bytes, s.produced_bytes);
  cr_assert_leq(s.disk_bytes, MIB);
  cr_assert_eq(ta_forward_sync(f, 0), TA_E_TIMEOUT);
  cr_assert_eq(ta_forward_close(f, 0), TA_E_TIMEOUT);
  cr_assert_eq(streams_of(&h).n, 1); /* the part that the disk had room for */
  end(&h);
}

static bool has_looked(const struct ta_forward_status *s, const char *arg) {
  (void)arg;
  return s->old_streams == 0;
}

/* Programs that died while they created their folders. */
Test(forward_disk, what_was_never_begun_is_cleared_away) {
  struct host h = begin();
  char path[128];

  snprintf(path, sizeof path, "%s/00000000000000000000000000000001", h.spool);
  cr_assert_eq(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/00000000000000000000000000000002", h.spool);
  cr_assert_eq(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/00000000000000000000000000000002/state", h.spool);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  ta_forward *f = open_stream(&h, 0);
  cr_assert(until(f, has_looked, NULL));
  write_generations(f, 1);
  cr_assert(becomes_kept(f));
  struct streams all = streams_of(&h);
  cr_assert_eq(all.n, 1);
  cr_assert_str_eq(all.name, status_of(f).stream);
  cr_assert_eq(status_of(f).old_streams_sent, 0);
  ta_forward_close(f, 0);
  end(&h);
}

static void expect_fault(const struct ta_forward_config *config, const char *words) {
  ta_forward *f = NULL;

  cr_assert_eq(ta_forward_open(config, &f), TA_E_CONFIG);
  cr_assert_not_null(strstr(ta_strerror(TA_E_CONFIG), words), "%s", ta_strerror(TA_E_CONFIG));
}

Test(forward_disk, mistakes_are_named) {
  struct host h = begin();
  ta_forward *f = open_stream(&h, 0);
  char path[128];

  close_kept(f);
  snprintf(path, sizeof path, "%s/agent.pem", h.certs);
  struct ta_forward_config c = h.config;
  c.spool_dir = path;
  expect_fault(&c, "agent.pem");
  c.spool_dir = "/nowhere/at/all";
  expect_fault(&c, "/nowhere/at/all");
  c.spool_dir = h.spool;
  c.spool_dir_bytes = 1000;
  expect_fault(&c, "spool_dir_bytes");
  c.spool_dir_bytes = 0;
  chmod(h.spool, 0777);
  expect_fault(&c, "others may write");
  chmod(h.spool, 0700);
  end(&h);
}

/* A host compiled with an older header has no such field, whatever is after its struct; a host
 * that leaves the size out has all fields of 0.1.0. */
Test(forward_disk, an_older_host_has_no_spool_on_disk) {
  struct host h = begin();
  ta_forward *f = open_stream(&h, 0);

  close_kept(f);
  end(&h);
  h = begin();
  h.config.certs = h.certs;
  h.config.spool_dir = "/nowhere/at/all";
  h.config.server = "127.0.0.1:9";
  h.config.service = "shop";
  h.config.size = offsetof(struct ta_forward_config, spool_dir);
  cr_assert_eq(ta_forward_open(&h.config, &f), TA_OK);
  cr_assert_eq(ta_forward_close(f, 0), TA_E_TIMEOUT);
  h.config.size = 0;
  cr_assert_eq(ta_forward_open(&h.config, &f), TA_E_CONFIG);
  h.config.spool_dir = NULL;
  h.config.record_ms = 1000;
  cr_assert_eq(ta_forward_open(&h.config, &f), TA_OK);
  cr_assert(ta_forward_records(f));
  cr_assert_eq(ta_forward_close(f, 0), TA_E_TIMEOUT);
  TT_WAIT_UNTIL(agents() == 0);
  end(&h);
}
