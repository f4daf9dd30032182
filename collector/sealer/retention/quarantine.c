/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/retention/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/walk.h"
#include "base/clock.h"
#include "base/grow.h"

/* The least that a file counts, so that the number of small files is bounded, too. */
enum { FILE_BYTES_MIN = 4096 };

struct part {
  uint64_t wall_ns, bytes;
  char name[TC_FILE_NAME_BYTES];
};

/* A pass over quarantine/, in slices: first lists all parts, then deletes the oldest. */
struct tc__quarantine_pass {
  struct tc_retention_rules rules;
  DIR *dir;           /* NULL: all are listed */
  struct part *parts; /* a heap, the oldest first */
  size_t n, cap, gone;
  uint64_t bytes;
  bool unseen; /* the stat of a part failed */
};

static bool is_older(const struct part *x, const struct part *y) {
  return x->wall_ns != y->wall_ns ? x->wall_ns < y->wall_ns : strcmp(x->name, y->name) < 0;
}

static void swap(struct part *x, struct part *y) {
  struct part other = *x;

  *x = *y;
  *y = other;
}

static void heap_up(struct part *parts, size_t at) {
  for (size_t above; at > 0 && is_older(&parts[at], &parts[above = (at - 1) / 2]); at = above)
    swap(&parts[at], &parts[above]);
}

static void heap_down(struct part *parts, size_t n) {
  for (size_t at = 0, below; (below = 2 * at + 1) < n; at = below) {
    if (below + 1 < n && is_older(&parts[below + 1], &parts[below])) below++;
    if (!is_older(&parts[below], &parts[at])) return;
    swap(&parts[at], &parts[below]);
  }
}

static tb_rc add_part(struct tc__quarantine_pass *pass, const char *name, const struct stat *st) {
  TB_TRY(TB_GROW(pass->parts, pass->cap, pass->n));
  struct part *part = &pass->parts[pass->n++];
  uint64_t bytes = (uint64_t)st->st_size;
  *part = (struct part){
    .wall_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
    .bytes = bytes > FILE_BYTES_MIN ? bytes : FILE_BYTES_MIN,
  };
  strcpy(part->name, name);
  pass->bytes += part->bytes;
  heap_up(pass->parts, pass->n - 1);
  return TB_OK;
}

static bool is_part(const char *name) {
  return strlen(name) < TC_FILE_NAME_BYTES && tc_name_ends(name, ".part");
}

/* If the stat of a part fails the pass goes on, and the next one tries again. */
static tb_rc look_at(struct tc__retaining *retaining, const char *name, struct tb_diag *diag) {
  struct tc__quarantine_pass *pass = retaining->quarantine.pass;
  struct stat st;

  if (!is_part(name)) return TB_OK;
  if (fstatat(retaining->env->opt.dirs->quarantine, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return TB_OK;
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: quarantine/%s: %s", name, strerror(errno));
    pass->unseen = true;
  } else if (S_ISREG(st.st_mode) && add_part(pass, name, &st) != TB_OK) {
    return tb_fail(diag, TB_NOMEM, "quarantine: no memory for its names");
  }
  return TB_OK;
}

/* Returns TB_AGAIN if time is over and more are left. */
static tb_rc list_some(struct tc__retaining *retaining, uint64_t until_ns, struct tb_diag *diag) {
  struct tc__quarantine_pass *pass = retaining->quarantine.pass;
  const char *name;

  while (pass->dir != NULL) {
    if (tc_mono_ns() >= until_ns) return TB_AGAIN;
    TB_TRY(tc_dir_next(pass->dir, "quarantine", diag, &name));
    if (name != NULL)
      TB_TRY(look_at(retaining, name, diag));
    else
      closedir(TB_MOVE(pass->dir));
  }
  return TB_OK;
}

/* Deletes the oldest parts that the rules do not allow. */
static tb_rc delete_some(struct tc__retaining *retaining, uint64_t until_ns) {
  struct tc__quarantine_pass *pass = retaining->quarantine.pass;
  uint64_t disk_free = tc__disk_free(retaining->env);

  while (pass->n > 0) {
    struct part *oldest = &pass->parts[0];
    if (!tc_retention_takes(&retaining->pace, &pass->rules, pass->bytes, disk_free,
                            oldest->wall_ns))
      return TB_OK;
    if (tc_mono_ns() >= until_ns) return TB_AGAIN;
    if (unlinkat(retaining->env->opt.dirs->quarantine, oldest->name, 0) != 0 && errno != ENOENT) {
      tc__note_as(retaining->env, TC_ERROR, 0, "quarantine/%s: %s", oldest->name, strerror(errno));
      return TB_OK;
    }
    pass->bytes -= oldest->bytes;
    disk_free += oldest->bytes;
    pass->gone++;
    *oldest = pass->parts[--pass->n];
    heap_down(pass->parts, pass->n);
  }
  return TB_OK;
}

static void end_pass(struct tc__retaining *retaining) {
  struct tc__quarantine *seen = &retaining->quarantine;
  const struct tc__quarantine_pass *pass = seen->pass;

  seen->files = pass->n;
  seen->bytes = pass->bytes;
  retaining->aside->changed |= pass->unseen;
  if (pass->n > 0) seen->oldest_wall_ns = pass->parts[0].wall_ns;
  tc_gauge(&retaining->env->opt.stats->quarantine_bytes, seen->bytes);
  tc_gauge(&retaining->env->opt.stats->quarantine_files, seen->files);
  tc_count(&retaining->env->opt.stats->quarantine_expired, pass->gone);
  if (pass->gone > 0)
    tc__note(retaining->env, "retention: %zu unfinished generations deleted from quarantine",
             pass->gone);
}

void tc__quarantine_free(struct tc__quarantine *quarantine) {
  struct tc__quarantine_pass *pass = TB_MOVE(quarantine->pass);

  if (pass == NULL) return;
  if (pass->dir != NULL) closedir(pass->dir);
  free(pass->parts);
  free(pass);
}

void tc__quarantine_go_on(struct tc__retaining *retaining, uint64_t until_ns) {
  struct tb_diag diag = { 0 };
  tb_rc rc = list_some(retaining, until_ns, &diag);

  if (rc == TB_OK) rc = delete_some(retaining, until_ns);
  if (rc == TB_AGAIN) return;
  if (rc == TB_OK) {
    end_pass(retaining);
  } else {
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: %s", diag.text);
    retaining->aside->changed = true; /* try again */
  }
  tc__quarantine_free(&retaining->quarantine);
}

void tc__quarantine_begin(struct tc__retaining *retaining) {
  const struct tc_config *config = retaining->env->opt.config;
  struct tc__quarantine *seen = &retaining->quarantine;
  const struct tc_retention_rules rules = { .age_ns = config->retention_age,
                                            .bytes = config->retention_quarantine_bytes,
                                            .free_bytes = config->retention_free_bytes };
  struct tb_diag diag = { 0 };
  DIR *dir;

  if (seen->pass != NULL) return;
  if (!retaining->aside->changed &&
      (seen->files == 0 ||
       !tc_retention_takes(&retaining->pace, &rules, seen->bytes, tc__disk_free(retaining->env),
                           seen->oldest_wall_ns)))
    return;
  if (tc_dir_open(retaining->env->opt.dirs->quarantine, "quarantine", &diag, &dir) != TB_OK) {
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: %s", diag.text);
    return;
  }
  seen->pass = calloc(1, sizeof *seen->pass);
  if (seen->pass == NULL) {
    closedir(dir);
    return;
  }
  *seen->pass = (struct tc__quarantine_pass){ .rules = rules, .dir = dir };
  retaining->aside->changed = false; /* this pass may miss files added from here on */
}
