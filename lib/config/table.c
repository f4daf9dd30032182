/* SPDX-License-Identifier: Apache-2.0 */
/* The struct, the parser and the printed default file are made from one table, table.def. Values from YAML, the environment and
 * --set are text and pass through tc__config_assign(). */
#include "config/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/nearest.h"
#include "config/internal.h"

#define SECTION_IS_TOP(section)                                                                    \
  (sizeof #section == sizeof "top" && #section[0] == 't' && #section[1] == 'o')
#define NUMBER_STRING(def) 0
#define NUMBER_URLS(def)   0
#define NUMBER_COUNT(def)  (def)
#define NUMBER_BYTES(def)  (def)
#define NUMBER_TIME(def)   (def)
#define NUMBER_BOOL(def)   (def)
#define TEXT_STRING(def)   (def)
#define TEXT_URLS(def)     (def)
#define TEXT_COUNT(def)    NULL
#define TEXT_BYTES(def)    NULL
#define TEXT_TIME(def)     NULL
#define TEXT_BOOL(def)     NULL
#define APPLIES_RELOAD     true
#define APPLIES_START      false
#define TC_KEY(sect, ky, ty, deflt, lo, hi, applies, sentence)                                     \
  { .section = SECTION_IS_TOP(sect) ? "" : #sect,                                                  \
    .name = SECTION_IS_TOP(sect) ? #ky : #sect "." #ky,                                            \
    .key = #ky,                                                                                    \
    .type = TC_TYPE_##ty,                                                                          \
    .def = NUMBER_##ty(deflt),                                                                     \
    .min = (lo),                                                                                   \
    .max = (hi),                                                                                   \
    .def_text = TEXT_##ty(deflt),                                                                  \
    .reloads = APPLIES_##applies,                                                                  \
    .text = (sentence),                                                                            \
    .offset = offsetof(struct tc_config, TC_JOIN_(sect, ky)) },
const struct tc_config_key tc_config_keys[] = {
#include "config/table.def"
};
#undef TC_KEY
const size_t tc_config_keys_count = sizeof tc_config_keys / sizeof tc_config_keys[0];

static const char *const type_names[] = {
  [TC_TYPE_STRING] = "text", [TC_TYPE_URLS] = "URLs", [TC_TYPE_COUNT] = "count",
  [TC_TYPE_BYTES] = "size",  [TC_TYPE_TIME] = "time", [TC_TYPE_BOOL] = "bool",
};

const char *tc_config_type_name(enum tc_config_type type) {
  return type_names[type];
}

bool tc_config_is_text(enum tc_config_type type) {
  return type == TC_TYPE_STRING || type == TC_TYPE_URLS;
}

static void *field(struct tc_config *config, const struct tc_config_key *key) {
  return (char *)config + key->offset;
}

/* A string that could not be copied stays NULL; tc_config_finish() then returns TB_NOMEM. */
void tc_config_init(struct tc_config *config) {
  *config = (struct tc_config){ 0 };
  for (const struct tc_config_key *key = tc_config_keys;
       key < tc_config_keys + tc_config_keys_count; key++) {
    if (tc_config_is_text(key->type))
      *(char **)field(config, key) = strdup(key->def_text);
    else if (key->type == TC_TYPE_BOOL)
      *(atomic_bool *)field(config, key) = key->def != 0;
    else
      *(_Atomic uint64_t *)field(config, key) = key->def;
  }
}

void tc_config_fini(struct tc_config *config) {
  for (const struct tc_config_key *key = tc_config_keys;
       key < tc_config_keys + tc_config_keys_count; key++)
    if (tc_config_is_text(key->type)) free(*(char **)field(config, key));
  *config = (struct tc_config){ 0 };
}

static tb_rc replace_string(char **place, const char *value, struct tb_diag *diag) {
  char *copy = strdup(value);

  if (copy == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  free(*place);
  *place = copy;
  return TB_OK;
}

static tb_rc assign_bool(atomic_bool *place, const struct tc_config_key *key, const char *value,
                         struct tc__origin at, struct tb_diag *diag) {
  static const char *const words[][2] = { { "false", "true" }, { "no", "yes" }, { "off", "on" } };

  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    for (int truth = 0; truth < 2; truth++)
      if (strcmp(value, words[i][truth]) == 0) {
        *place = truth;
        return TB_OK;
      }
  return tc__config_fail(diag, at, key->name, "\"%.40s\" is neither true nor false", value);
}

static bool parse_number(enum tc_config_type type, const char *value, uint64_t *out) {
  char *end;

  if (type == TC_TYPE_BYTES) return tc_parse_bytes(value, out);
  if (type == TC_TYPE_TIME) return tc_parse_time_ns(value, out);
  if (*value < '0' || *value > '9') return false; /* strtoull() accepts signs and blanks */
  errno = 0;
  *out = strtoull(value, &end, 10);
  return errno == 0 && *end == '\0';
}

static tb_rc assign_number(_Atomic uint64_t *place, const struct tc_config_key *key,
                           const char *value, struct tc__origin at, struct tb_diag *diag) {
  static const char *const wanted[] = {
    [TC_TYPE_COUNT] = "a whole number",
    [TC_TYPE_BYTES] = "a size: 4096, 64KiB, 256MiB, 1GB",
    [TC_TYPE_TIME] = "a time: 10ms, 30s, 5m, 24h, 7d",
  };
  char low[TC_VALUE_BYTES], high[TC_VALUE_BYTES];
  uint64_t number;

  if (!parse_number(key->type, value, &number))
    return tc__config_fail(diag, at, key->name, "\"%.40s\" is not %s", value, wanted[key->type]);

  tc_config_format(key->type, key->min, low);
  tc_config_format(key->type, key->max, high);
  if (number < key->min)
    return tc__config_fail(diag, at, key->name, "%.40s is too small: at least %s", value, low);
  if (key->max != 0 && number > key->max)
    return tc__config_fail(diag, at, key->name, "%.40s is too large: at most %s", value, high);
  *place = number;
  return TB_OK;
}

tb_rc tc__config_assign(struct tc_config *config, const struct tc_config_key *key,
                        const char *value, struct tc__origin at, struct tb_diag *diag) {
  if (tc_config_is_text(key->type)) return replace_string(field(config, key), value, diag);
  if (key->type == TC_TYPE_BOOL) return assign_bool(field(config, key), key, value, at, diag);
  return assign_number(field(config, key), key, value, at, diag);
}

tb_rc tc_config_set(struct tc_config *config, const char *assignment, struct tb_diag *diag) {
  const struct tc__origin at = { "--set", 0 };
  const char *equals = strchr(assignment, '=');
  char name[64];

  if (equals == NULL)
    return tb_fail(diag, TB_BROKEN, "--set: \"%.80s\" is not KEY=VALUE", assignment);
  snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);

  const struct tc_config_key *key = tc__config_find(name);
  if (key == NULL) return tc__config_unknown(diag, at, name);
  return tc__config_assign(config, key, equals + 1, at, diag);
}

const struct tc_config_key *tc__config_find(const char *name) {
  for (size_t i = 0; i < tc_config_keys_count; i++)
    if (strcmp(tc_config_keys[i].name, name) == 0) return &tc_config_keys[i];
  return NULL;
}

bool tc__config_is_section(const char *name) {
  for (size_t i = 0; i < tc_config_keys_count; i++)
    if (*name != '\0' && strcmp(tc_config_keys[i].section, name) == 0) return true;
  return false;
}

tb_rc tc__config_fail(struct tb_diag *diag, struct tc__origin at, const char *key, const char *fmt,
                      ...) {
  char reason[160], line[24] = "";
  size_t n = strlen(at.file);
  va_list args;

  va_start(args, fmt);
  vsnprintf(reason, sizeof reason, fmt, args);
  va_end(args);
  if (at.line != 0) snprintf(line, sizeof line, ":%zu", at.line);
  /* The end of a long path is more useful than its beginning, and the reason must fit after it. */
  return tb_fail(diag, TB_BROKEN, "%s%s%s: %s%s%s", n > 60 ? "..." : "",
                 at.file + (n > 60 ? n - 57 : 0), line, key, *key != '\0' ? ": " : "", reason);
}

tb_rc tc__config_unknown(struct tb_diag *diag, struct tc__origin at, const char *name) {
  const char *last = strrchr(name, '.');
  const char *tail = last != NULL ? last + 1 : name;
  const struct tc_config_key *near = NULL;
  size_t best = SIZE_MAX;

  for (const struct tc_config_key *key = tc_config_keys;
       key < tc_config_keys + tc_config_keys_count; key++) {
    /* A correct key in the wrong section counts as near. */
    size_t far = strcmp(key->key, tail) == 0 ? 1 : tb_nearest_distance(name, key->name);
    if (far < best) {
      best = far;
      near = key;
    }
  }
  if (best > 1 + strlen(name) / 4) return tc__config_fail(diag, at, name, "unknown key");
  return tc__config_fail(diag, at, name, "unknown key; did you mean %s?", near->name);
}

void tc_config_print_default(FILE *to) {
  const char *section = "";

  fputs("# tracecollectd: every key with its default. Sizes: 64KiB, 256MiB, 1GB. Times: "
        "10ms, 30s, 5m, 24h, 7d.\n"
        "# A changed key is in use after SIGHUP; a key marked [start] after the next start.\n"
        "# The environment overrides this file (listen.http: TRACECOLLECTD_SET_LISTEN_HTTP), --set "
        "both.\n",
        to);
  for (const struct tc_config_key *key = tc_config_keys;
       key < tc_config_keys + tc_config_keys_count; key++) {
    const char *indent = *key->section != '\0' ? "  " : "";
    const char *quote = tc_config_is_text(key->type) ? "\"" : "";
    char value[TC_VALUE_BYTES];

    if (strcmp(section, key->section) != 0) fprintf(to, "\n%s:\n", key->section);
    section = key->section;
    tc_config_format(key->type, key->def, value);
    fprintf(to, "%s# %s%s\n", indent, key->text, key->reloads ? "" : " [start]");
    /* No default needs escaping (a test loads this text back). */
    fprintf(to, "%s%s: %s%s%s\n", indent, key->key, quote, *quote != '\0' ? key->def_text : value,
            quote);
  }
}
