/* SPDX-License-Identifier: Apache-2.0 */
/* Checks event names, whose last word tells a reader of traces what the event is:
 *
 *   Begin, End                                      the two halves of a range
 *   Start, Stop, Create, Destroy, Block, Unblock    reserved for events declared as scheduling
 *   any other                                       something that happened
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/hash.h"
#include "tools/tracepoints/points.h"

/* Returns the last word of jobBegin, JOB_BEGIN and job_begin. */
static const char *last_word(const char *name) {
  const char *underscore = strrchr(name, '_'), *word = name;

  if (underscore != NULL && underscore[1] != '\0') return underscore + 1;
  for (const char *c = name + 1; *c != '\0'; c++)
    if (isupper((unsigned char)*c) && !isupper((unsigned char)c[-1])) word = c;
  return word;
}

static bool is_one_of(const char *word, const char *const *words) {
  for (; *words != NULL; words++)
    if (strcasecmp(word, *words) == 0) return true;
  return false;
}

static const char *const of_ranges[] = { "Begin", "End", NULL };
static const char *const of_scheduling[] = { "Start", "Stop",    "Create", "Destroy",
                                             "Block", "Unblock", NULL };

static void lint_words(struct tk_points *set, const struct tk_point *point) {
  const char *word = last_word(point->name);

  if (is_one_of(word, of_scheduling) && !point->scheduling)
    tk_points_fault(set, point->file, point->line,
                    "event %s: \"%s\" is kept for scheduling; the two ends of a range are called "
                    "Begin and End, "
                    "and an event of the scheduler is declared //trace:event scheduling %s(...)",
                    point->name, word, point->name);
  if (point->scheduling && !is_one_of(word, of_scheduling))
    tk_points_fault(set, point->file, point->line,
                    "event %s: of scheduling are names that end with Start, Stop, Create, Destroy, "
                    "Block or Unblock, not with \"%s\"",
                    point->name, word);
}

/* Compares all but the last word, which must be the other half in the same case. */
static bool is_other_half(const char *name, const char *other) {
  const char *word = last_word(name), *others = last_word(other);
  size_t stem = (size_t)(word - name);

  return stem == (size_t)(others - other) && strncmp(name, other, stem) == 0 &&
         is_one_of(others, of_ranges) && strcasecmp(word, others) != 0;
}

static void lint_range(struct tk_points *set, const struct tk_point *point) {
  const char *word = last_word(point->name);

  if (!is_one_of(word, of_ranges)) return;
  for (const struct tk_point *p = set->first; p != NULL; p = p->next)
    if (is_other_half(point->name, p->name)) return;
  bool begins = strcasecmp(word, "Begin") == 0;
  tk_points_fault(
      set, point->file, point->line, "event %s: it %s a range that nothing %s; there is no %.*s%s",
      point->name, begins ? "begins" : "ends", begins ? "ends" : "begins",
      (int)(word - point->name), point->name,
      isupper((unsigned char)*word) ? (begins ? "End" : "Begin") : (begins ? "end" : "begin"));
}

static void lint_twice(struct tk_points *set, const struct tk_point *point) {
  for (const struct tk_point *p = set->first; p != point; p = p->next)
    if (strcmp(p->name, point->name) == 0) {
      tk_points_fault(set, point->file, point->line, "event %s: declared before, at %s:%u",
                      point->name, p->file, p->line);
      return;
    }
}

void tk_points_lint(struct tk_points *set) {
  for (const struct tk_point *p = set->first; p != NULL; p = p->next) {
    lint_words(set, p);
    lint_range(set, p);
    lint_twice(set, p);
  }
}

/* Hashes the NUL, too, so that "ab", "c" and "a", "bc" differ. */
static uint64_t mix(uint64_t hash, const char *text) {
  return tb_hash(hash, text, strlen(text) + 1);
}

uint32_t tk_point_signature(const struct tk_point *point) {
  uint64_t hash = mix(mix(TB_HASH_START, point->module), point->name);

  for (unsigned i = 0; i < point->n; i++) hash = mix(hash, point->param[i].type);
  return (uint32_t)(hash ^ hash >> 32);
}

void tk_point_params(const struct tk_point *point, struct tb_buf *out) {
  tb_buf_byte(out, '(');
  for (unsigned i = 0; i < point->n; i++) {
    const struct tk_param *p = &point->param[i];
    bool glued = p->type[strlen(p->type) - 1] == '*';
    tb_buf_printf(out, "%s%s%s%s", i > 0 ? ", " : "", p->type, glued ? "" : " ", p->name);
  }
  tb_buf_text(out, point->n == 0 ? "void)" : ")");
}
