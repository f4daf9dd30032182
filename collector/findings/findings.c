/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/findings/findings.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/text_file.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "collector/base/logger.h"
#include "collector/findings/line.h"

#define FILE_NAME "findings"

enum {
  LIST_BYTES = TC_FINDING_INSTANCES * (TC_NAME_MAX + 1) + TC_FINDING_TIMES * 66,
  LINE_BYTES = sizeof(struct tc_finding) + 12 * 21 + LIST_BYTES, /* more than the longest line */
  FILE_BYTES_MAX = TC_FINDINGS_MAX * LINE_BYTES,
  MEMORY_MAX = 2 * TC_FINDINGS_MAX * sizeof(struct tc_finding),
};
static const uint64_t SAVE_SOON_NS = UINT64_C(500000000), SAVE_LATER_NS = UINT64_C(60000000000);
/* After the end of what was seen, as rules keep it by default. */
static const uint64_t AFTER_NS = UINT64_C(10000000000);

struct of_service {
  char name[TC_NAME_MAX + 1];
  size_t n;
  struct of_service *next;
};

struct entry {
  struct tc_finding shown; /* the first field: a finding is its entry */
  struct of_service *service;
};

struct tc_findings {
  struct tc_findings_env env;
  struct tc_text_file file;
  pthread_mutex_t lock; /* protects the fields below */
  struct tb_mem mem;
  struct tb_map by_id; /* id -> struct entry */
  struct of_service *services;
  size_t n;
  uint64_t save_ns; /* when the file is to be written; 0: nothing has changed */
};

/* ---- the set */

static struct entry *next_of(const struct tc_findings *findings, size_t *pos) {
  uint64_t key, value;

  return tb_map_next(&findings->by_id, pos, &key, &value) ? (void *)(uintptr_t)value : NULL;
}

/* Finds or creates a service. */
static tb_rc service_of(struct tc_findings *findings, const char *name, struct of_service **out) {
  struct of_service *service = findings->services;

  while (service != NULL && strcmp(service->name, name) != 0) service = service->next;
  if (service == NULL) {
    TB_TRY(tb_mem_alloc(&findings->mem, sizeof *service, &service));
    snprintf(service->name, sizeof service->name, "%s", name);
    service->next = findings->services;
    findings->services = service;
  }
  *out = service;
  return TB_OK;
}

static void leave_service(struct tc_findings *findings, struct of_service *service) {
  struct of_service **at = &findings->services;

  if (service->n > 0) return;
  while (*at != service) at = &(*at)->next;
  *at = service->next;
  tb_mem_free(&findings->mem, service, sizeof *service);
}

static void remove_one(struct tc_findings *findings, struct entry *entry) {
  tb_map_remove(&findings->by_id, entry->shown.id);
  entry->service->n--;
  leave_service(findings, entry->service);
  tb_mem_free(&findings->mem, entry, sizeof *entry);
  findings->n--;
}

static struct of_service *service_with_most(const struct tc_findings *findings) {
  struct of_service *most = findings->services;

  for (struct of_service *service = most; service != NULL; service = service->next)
    if (service->n > most->n) most = service;
  return most;
}

static bool goes_first(const struct tc_finding *a, const struct tc_finding *b) {
  if ((a->ended_ns == 0) != (b->ended_ns == 0)) return a->ended_ns != 0;
  return a->seen_ns < b->seen_ns;
}

static void remove_first_of(struct tc_findings *findings, const struct of_service *service) {
  struct entry *entry, *first = NULL;

  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL;)
    if (entry->service == service && (first == NULL || goes_first(&entry->shown, &first->shown)))
      first = entry;
  if (first != NULL) remove_one(findings, first);
}

static tb_rc add_to(struct tc_findings *findings, const struct tc_finding *f,
                    struct of_service *service, struct tc_finding **out) {
  struct entry *entry;
  bool fresh;

  TB_TRY(tb_map_claim(&findings->by_id, f->id, sizeof *entry, &entry, &fresh));
  if (!fresh) return TB_BROKEN; /* a file with the same id twice */
  *entry = (struct entry){ *f, service };
  service->n++;
  findings->n++;
  *out = &entry->shown;
  return TB_OK;
}

static tb_rc add_one(struct tc_findings *findings, const struct tc_finding *f,
                     struct tc_finding **out) {
  struct of_service *service;

  TB_TRY(service_of(findings, f->service, &service));
  service->n++; /* keeps the service if its only other finding is removed now */
  if (service->n > findings->env.config->findings_max)
    remove_first_of(findings, service);
  else if (findings->n >= TC_FINDINGS_MAX)
    remove_first_of(findings, service_with_most(findings));
  service->n--;
  tb_rc rc = add_to(findings, f, service, out);
  if (rc != TB_OK) leave_service(findings, service);
  return rc;
}

/* ---- sightings */

/* Copies a text without control characters: they separate the fields of the file. */
static void set_text(char *out, size_t bytes, const char *text) {
  snprintf(out, bytes, "%s", text);
  for (char *c = out; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
}

static bool is_same(const struct tc_finding *a, const struct tc_finding *b) {
  return strcmp(a->service, b->service) == 0 && strcmp(a->kind, b->kind) == 0 &&
         strcmp(a->place, b->place) == 0 && strcmp(a->cause, b->cause) == 0;
}

static uint64_t hash_of(const struct tc_finding *f) {
  uint64_t hash = tb_hash(TB_HASH_START, f->service, strlen(f->service) + 1);

  hash = tb_hash(hash, f->kind, strlen(f->kind) + 1);
  hash = tb_hash(hash, f->place, strlen(f->place) + 1);
  return tb_hash(hash, f->cause, strlen(f->cause) + 1);
}

/* Returns the finding with these texts, or NULL and the id that it gets. */
static struct tc_finding *find_same(const struct tc_findings *findings, struct tc_finding *f) {
  struct tc_finding *found;

  for (f->id = hash_of(f);; f->id++) {
    if (f->id == 0) continue;
    found = tb_map_at(&findings->by_id, f->id);
    if (found == NULL || is_same(found, f)) return found;
  }
}

static bool is_at(const struct tc_finding *f, const char *service, const char *kind,
                  const char *place) {
  return strcmp(f->service, service) == 0 && strcmp(f->kind, kind) == 0 &&
         strcmp(f->place, place) == 0;
}

/* Finds an open one of any cause. */
static struct tc_finding *find_at(const struct tc_findings *findings, const char *service,
                                  const char *kind, const char *place) {
  struct entry *entry;

  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL;)
    if (entry->shown.ended_ns == 0 && is_at(&entry->shown, service, kind, place))
      return &entry->shown;
  return NULL;
}

bool tc_findings_is_open(struct tc_findings *findings, const char *service, const char *kind,
                         const char *place) {
  pthread_mutex_lock(&findings->lock);
  bool is_open = find_at(findings, service, kind, place) != NULL;
  pthread_mutex_unlock(&findings->lock);
  return is_open;
}

static struct tc_finding finding_of(const struct tc_sighting *s) {
  struct tc_finding f = { .is_time = s->is_time };

  set_text(f.kind, sizeof f.kind, s->kind);
  set_text(f.service, sizeof f.service, s->service);
  set_text(f.place, sizeof f.place, s->place);
  set_text(f.cause, sizeof f.cause, s->cause);
  return f;
}

/* Moves the instance to the end of the list; the first one makes room. */
static void note_instance(struct tc_finding *f, const char *name) {
  unsigned i = 0;

  while (i < f->instances && strcmp(f->instance[i], name) != 0) i++;
  if (i == TC_FINDING_INSTANCES) i = 0;
  if (i < f->instances) {
    f->instances--;
    memmove(f->instance[i], f->instance[i + 1], (f->instances - i) * sizeof f->instance[0]);
  }
  set_text(f->instance[f->instances++], sizeof f->instance[0], name);
}

static void begin_time(struct tc_finding *f, uint64_t began_ns) {
  if (f->times == TC_FINDING_TIMES) {
    f->times--;
    memmove(f->time, f->time + 1, f->times * sizeof *f->time);
  }
  f->time[f->times++] = (struct tc_finding_time){ .began_ns = began_ns, .last_ns = began_ns };
  f->ended_ns = 0;
}

static void note_part(struct tc_finding *f, const struct tc_sighting *s) {
  struct tc_part part;

  memcpy(f->stream, s->stream, sizeof f->stream);
  f->gen = s->gen;
  tc_part_times(&part, strcmp(f->kind, "leak") == 0, s->from_ns, s->until_ns);
  f->from_ns = part.from_ns;
  f->until_ns = part.until_ns;
  set_text(f->why, sizeof f->why, s->why != NULL ? s->why : "");
}

/* Returns true if the sighting explains the finding and what is kept does not, or if it does so of a longer queue: most sightings of
 * a convoy are of moments in which nobody can be named. peak: the most so far of the time that goes on. */
static bool says_more(const struct tc_finding *f, const struct tc_sighting *s, uint64_t peak) {
  bool explains = s->why != NULL && s->why[0] != '\0', is_explained = f->why[0] != '\0';

  return explains ? !is_explained || s->amount >= peak : !is_explained;
}

static void set_words(struct tc_finding *f, const struct tc_sighting *s) {
  const char *at = s->unknown != NULL && s->cause[0] == '\0' ? strstr(s->words, s->unknown) : NULL;
  char words[TC_FINDING_WORDS_BYTES];

  if (at != NULL && f->cause[0] != '\0')
    snprintf(words, sizeof words, "%.*s%s%s", (int)(at - s->words), s->words, f->cause,
             at + strlen(s->unknown));
  else
    snprintf(words, sizeof words, "%s", s->words);
  set_text(f->words, sizeof f->words, words);
}

/* Returns true if the finding begins, for the first time or again. */
static bool update(struct tc_finding *f, const struct tc_sighting *s, uint64_t now_ns) {
  uint64_t last = s->until_ns != 0 ? s->until_ns : now_ns;
  uint64_t began = s->from_ns != 0 && s->from_ns < last ? s->from_ns : last;
  bool begins = f->times == 0 || f->ended_ns != 0;

  if (f->ended_ns == 0) f->seen_ns = now_ns;
  if (last <= f->read_last_ns) return false; /* a restarted collector reads its log again */
  if (f->times == 0) f->began_ns = began;
  if (begins) begin_time(f, began);
  struct tc_finding_time *time = &f->time[f->times - 1];
  if (says_more(f, s, time->peak)) {
    if (begins || s->times > 0 || f->why[0] == '\0') note_part(f, s);
    set_words(f, s);
  }
  if (last > time->last_ns) time->last_ns = last;
  if (last > f->last_ns) f->last_ns = last;
  if (s->amount > time->peak) time->peak = s->amount;
  if (s->amount > f->peak) f->peak = s->amount;
  f->seen_ns = now_ns;
  f->count += begins && s->times == 0 ? 1 : s->times;
  note_instance(f, s->instance);
  return begins;
}

static void save_in(struct tc_findings *findings, uint64_t now_ns, uint64_t in_ns) {
  uint64_t at = now_ns + in_ns;

  tc_text_file_changed(&findings->file);
  if (findings->save_ns == 0 || at < findings->save_ns) findings->save_ns = at;
}

static tb_rc see(struct tc_findings *findings, const struct tc_sighting *s, struct tc_finding *out,
                 bool *out_begins) {
  struct tc_finding fresh = finding_of(s), *f = find_same(findings, &fresh);
  uint64_t now = tc_wall_ns();

  if (f == NULL && fresh.cause[0] == '\0' && fresh.place[0] != '\0')
    f = find_at(findings, fresh.service, fresh.kind, fresh.place);
  if (f == NULL) TB_TRY(add_one(findings, &fresh, &f));
  *out_begins = update(f, s, now);
  save_in(findings, now, *out_begins ? SAVE_SOON_NS : SAVE_LATER_NS);
  *out = *f;
  return TB_OK;
}

/* TB_NOMEM: not kept. */
static tb_rc keep_part(const struct tc_findings *findings, const struct tc_finding *f) {
  struct tc_keep keep = { .from_ns = f->from_ns,
                          .until_ns = f->until_ns + AFTER_NS,
                          .noted_ns = f->seen_ns,
                          .of_stream = true };

  if (f->until_ns == 0) return TB_OK;
  snprintf(keep.rule, sizeof keep.rule, TC_KEEP_FINDING "%s", f->kind);
  memcpy(keep.stream, f->stream, sizeof keep.stream);
  return tc_keeps_add(findings->env.keeps, &keep);
}

static void log_begin(const struct tc_finding *f) {
  char words[TC_ESCAPE_MAX + 1];

  tc_log_about(tc_log_subject_of(f->service), TC_WARN, "finding",
               "id=%016" PRIx64 " kind=%s service=%s instance=%s: begins%s: %s", f->id, f->kind,
               f->service, f->instance[f->instances - 1], f->times > 1 ? " again" : "",
               tc_escape(words, f->words, strlen(f->words)));
}

tb_rc tc_findings_see(struct tc_findings *findings, const struct tc_sighting *sighting,
                      struct tc_seen *out) {
  struct tc_finding f;
  bool begins;

  pthread_mutex_lock(&findings->lock);
  tb_rc rc = see(findings, sighting, &f, &begins);
  pthread_mutex_unlock(&findings->lock);
  if (rc != TB_OK) return rc;
  *out = (struct tc_seen){ f.id, tc_finding_is_muted(&f, f.seen_ns) };
  if (begins && keep_part(findings, &f) != TB_OK)
    tc_log(TC_ERROR, "finding", "id=%016" PRIx64 ": out of memory; its trace is not kept", f.id);
  if (begins && !out->is_muted) log_begin(&f);
  return TB_OK;
}

/* ---- the end of findings, and the file */

static void log_end(const struct tc_finding *f) {
  tc_log_about(tc_log_subject_of(f->service), TC_NOTICE, "finding",
               "id=%016" PRIx64 " kind=%s service=%s: ended", f->id, f->kind, f->service);
}

/* Clocks may be set back: then a finding counts as just seen. */
static uint64_t age_of(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Call with the lock. */
static void end_one(struct tc_findings *findings, struct tc_finding *f, uint64_t now_ns) {
  f->ended_ns = f->last_ns;
  save_in(findings, now_ns, SAVE_SOON_NS);
  if (!tc_finding_is_muted(f, now_ns)) log_end(f);
}

/* Returns a finding to be forgotten, or NULL. Ends all whose time has come. */
static struct entry *look_at_all(struct tc_findings *findings, uint64_t now_ns) {
  uint64_t quiet = findings->env.config->findings_quiet, keep = findings->env.config->findings_keep;
  struct entry *entry, *old = NULL;

  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL;) {
    struct tc_finding *f = &entry->shown;
    uint64_t age = age_of(f->seen_ns, now_ns);
    if (f->ended_ns == 0 && age >= quiet) end_one(findings, f, now_ns);
    if (f->ended_ns != 0 && keep != 0 && age >= keep) old = entry;
  }
  return old;
}

static void end_and_forget(struct tc_findings *findings, uint64_t now_ns) {
  struct entry *old;

  while ((old = look_at_all(findings, now_ns)) != NULL) {
    remove_one(findings, old);
    save_in(findings, now_ns, SAVE_LATER_NS);
  }
}

static void print_all(void *self, struct tb_buf *text) {
  struct tc_findings *findings = self;
  const struct entry *entry;

  pthread_mutex_lock(&findings->lock);
  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL;)
    tc__finding_print(&entry->shown, text);
  pthread_mutex_unlock(&findings->lock);
}

void tc_findings_turn(struct tc_findings *findings, uint64_t now_ns, bool is_end) {
  struct tb_diag diag;

  pthread_mutex_lock(&findings->lock);
  end_and_forget(findings, now_ns);
  bool is_due = findings->save_ns != 0 && (is_end || now_ns >= findings->save_ns);
  if (is_due) findings->save_ns = 0;
  pthread_mutex_unlock(&findings->lock);
  if (!is_due) return;
  tb_diag_clear(&diag);
  if (tc_text_file_save(&findings->file, findings, print_all, &diag) == TB_OK) return;
  tc_log(TC_ERROR, "finding", "the findings cannot be written: %s", diag.text);
  pthread_mutex_lock(&findings->lock);
  save_in(findings, now_ns, SAVE_LATER_NS);
  pthread_mutex_unlock(&findings->lock);
}

static tb_rc read_line(void *self, const char *line, bool *out_is_one) {
  struct tc_findings *findings = self;
  struct tc_finding read, *f;
  char *copy = strdup(line);

  if (copy == NULL) return TB_NOMEM;
  *out_is_one = tc__finding_parse(copy, &read);
  free(copy);
  if (!*out_is_one) return TB_OK;
  if (read.ended_ns == 0) read.seen_ns = tc_wall_ns();
  read.read_last_ns = read.last_ns;
  tb_rc rc = add_one(findings, &read, &f);
  *out_is_one = rc != TB_BROKEN;
  return *out_is_one ? rc : TB_OK;
}

tb_rc tc_findings_open(const struct tc_findings_env *env, struct tb_diag *diag,
                       struct tb_diag *out_wrong, struct tc_findings **out) {
  struct tc_findings *findings = calloc(1, sizeof *findings);

  if (findings == NULL) return TB_NOMEM;
  findings->env = *env;
  pthread_mutex_init(&findings->lock, NULL);
  tb_mem_init(&findings->mem, tb_mem_libc, NULL, MEMORY_MAX);
  tb_map_init(&findings->by_id, &findings->mem, tb_seed());
  tb_rc rc = tc_text_file_open(&findings->file, env->state_fd, FILE_NAME, FILE_BYTES_MAX, findings,
                               read_line, diag, out_wrong);
  if (rc == TB_OK)
    *out = findings;
  else
    tc_findings_free(findings);
  return rc;
}

void tc_findings_free(struct tc_findings *findings) {
  struct entry *entry;

  if (findings == NULL) return;
  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL; i = 0) remove_one(findings, entry);
  tb_map_fini(&findings->by_id);
  pthread_mutex_destroy(&findings->lock);
  tc_text_file_fini(&findings->file);
  free(findings);
}

/* ---- readers */

tb_rc tc_findings_mute(struct tc_findings *findings, uint64_t id, uint64_t until_ns,
                       const char *reason, struct tc_finding *out) {
  pthread_mutex_lock(&findings->lock);
  struct tc_finding *f = tb_map_at(&findings->by_id, id);
  if (f != NULL) {
    f->muted_until_ns = until_ns;
    set_text(f->mute_reason, sizeof f->mute_reason, until_ns != 0 ? reason : "");
    save_in(findings, tc_wall_ns(), SAVE_SOON_NS);
    *out = *f;
  }
  pthread_mutex_unlock(&findings->lock);
  return f != NULL ? TB_OK : TB_NOTFOUND;
}

static bool is_asked(const struct tc_finding *f, const struct tc_findings_ask *ask) {
  return (ask->service[0] == '\0' || strcmp(f->service, ask->service) == 0) &&
         (ask->id == 0 || f->id == ask->id) && f->last_ns >= ask->since_ns &&
         (!ask->is_open || f->ended_ns == 0);
}

static int by_last(const void *x, const void *y) {
  const struct tc_finding *a = *(const struct tc_finding *const *)x;
  const struct tc_finding *b = *(const struct tc_finding *const *)y;

  if ((a->ended_ns == 0) != (b->ended_ns == 0)) return a->ended_ns == 0 ? -1 : 1;
  if (a->last_ns != b->last_ns) return a->last_ns > b->last_ns ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

/* Call with the lock. */
static tb_rc each(struct tc_findings *findings, const struct tc_findings_ask *ask, void *self,
                  tb_rc (*take)(void *self, const struct tc_finding *finding)) {
  const struct tc_finding **asked = calloc(findings->n + 1, sizeof *asked);
  const struct entry *entry;
  tb_rc rc = TB_OK;
  size_t n = 0;

  if (asked == NULL) return TB_NOMEM;
  for (size_t i = 0; (entry = next_of(findings, &i)) != NULL;)
    if (is_asked(&entry->shown, ask)) asked[n++] = &entry->shown;
  qsort(asked, n, sizeof *asked, by_last);
  for (size_t i = 0; i < n && rc == TB_OK; i++) rc = take(self, asked[i]);
  free(asked);
  return rc;
}

tb_rc tc_findings_each(struct tc_findings *findings, const struct tc_findings_ask *ask, void *self,
                       tb_rc (*take)(void *self, const struct tc_finding *finding)) {
  pthread_mutex_lock(&findings->lock);
  tb_rc rc = each(findings, ask, self, take);
  pthread_mutex_unlock(&findings->lock);
  return rc;
}
