/* SPDX-License-Identifier: Apache-2.0 */
/* The file is a mapping of keys to values (scalars or lists of URLs) and to sections, which are mappings of keys to
 * values. The parser uses libyaml's events, because only they have the line of each key. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/small_file.h"
#include "config/internal.h"
#include "config/table.h"
#include "config/url_list.h"

#define TC_KEY(...) +1
enum {
  KEYS = /* number of rows */
#include "config/table.def"
};
#undef TC_KEY

struct loader {
  struct tc_config *config;
  struct tb_diag *diag;
  const char *path;
  yaml_parser_t parser;
  yaml_event_t event; /* current event; deleted by the next advance() */
  bool has_event;
  size_t seen_line[KEYS]; /* line where each row of tc_config_keys was set; 0: not yet */
};

static struct tc__origin here(const struct loader *l) {
  return (struct tc__origin){ l->path, l->event.start_mark.line + 1 };
}

static tb_rc advance(struct loader *l) {
  if (l->has_event) yaml_event_delete(&l->event);
  l->has_event = yaml_parser_parse(&l->parser, &l->event) != 0;
  if (l->has_event) return TB_OK;

  struct tc__origin at = { l->path, l->parser.problem_mark.line + 1 };
  if (l->parser.error == YAML_MEMORY_ERROR)
    return tb_fail(l->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  return tc__config_fail(l->diag, at, "", "not YAML: %s; sections are indented evenly, with spaces",
                         l->parser.problem);
}

static const char *scalar(const struct loader *l) {
  return (const char *)l->event.data.scalar.value;
}

/* A section such as `listen:` is null if all its keys are commented out. */
static bool is_null(const struct loader *l) {
  return l->event.type == YAML_SCALAR_EVENT &&
         l->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
         (*scalar(l) == '\0' || strcmp(scalar(l), "~") == 0 || strcmp(scalar(l), "null") == 0);
}

static tb_rc take_scalar(struct loader *l, const struct tc_config_key *key, struct tc__origin at) {
  if (l->event.type != YAML_SCALAR_EVENT)
    return tc__config_fail(l->diag, at, key->name, "expected a %s, not a list or section",
                           tc_config_type_name(key->type));
  if (is_null(l) && !tc_config_is_text(key->type))
    return tc__config_fail(l->diag, at, key->name, "has no value");
  if (strlen(scalar(l)) != l->event.data.scalar.length)
    return tc__config_fail(l->diag, at, key->name, "contains a NUL byte");
  return tc__config_assign(l->config, key, is_null(l) ? "" : scalar(l), at, l->diag);
}

/* Joins the items with newlines: a text as --set accepts. */
static tb_rc take_list(struct loader *l, const struct tc_config_key *key, struct tc__origin at) {
  char list[TC_URLS_MAX * TC_URL_BYTES];
  size_t len = 0;

  TB_TRY(advance(l));
  while (l->event.type != YAML_SEQUENCE_END_EVENT) {
    struct tc__origin item = here(l);
    if (l->event.type != YAML_SCALAR_EVENT || is_null(l))
      return tc__config_fail(l->diag, item, key->name, "an item of the list is not a URL");
    if (strlen(scalar(l)) != l->event.data.scalar.length)
      return tc__config_fail(l->diag, item, key->name, "contains a NUL byte");
    if (len + l->event.data.scalar.length + 2 > sizeof list)
      return tc__config_fail(l->diag, item, key->name, "the list is too long");
    len += (size_t)snprintf(list + len, sizeof list - len, "%s\n", scalar(l));
    TB_TRY(advance(l));
  }
  if (len == 0) return tc__config_fail(l->diag, at, key->name, "the list is empty");
  return tc__config_assign(l->config, key, list, at, l->diag);
}

/* The current event is the value of `name`; the key is at `at`. */
static tb_rc take_value(struct loader *l, const char *name, struct tc__origin at) {
  const struct tc_config_key *key = tc__config_find(name);

  if (key == NULL) return tc__config_unknown(l->diag, at, name);
  size_t *seen = &l->seen_line[key - tc_config_keys];
  if (*seen != 0)
    return tc__config_fail(l->diag, at, name, "repeated; first set on line %zu", *seen);
  *seen = at.line;
  if (key->type == TC_TYPE_URLS && l->event.type == YAML_SEQUENCE_START_EVENT)
    return take_list(l, key, at);
  return take_scalar(l, key, at);
}

/* Writes the dotted name of the key in the current event to name and advances to the value. section: "" at the top. */
static tb_rc take_key(struct loader *l, const char *section, char *name, size_t name_bytes,
                      struct tc__origin *out_at) {
  *out_at = here(l);
  if (l->event.type != YAML_SCALAR_EVENT)
    return tc__config_fail(l->diag, *out_at, section, "expected a key");
  snprintf(name, name_bytes, "%s%s%s", section, *section != '\0' ? "." : "", scalar(l));
  return advance(l);
}

static tb_rc take_section(struct loader *l, const char *section) {
  char name[128];
  struct tc__origin at;

  TB_TRY(advance(l));
  while (l->event.type != YAML_MAPPING_END_EVENT) {
    TB_TRY(take_key(l, section, name, sizeof name, &at));
    TB_TRY(take_value(l, name, at));
    TB_TRY(advance(l));
  }
  return TB_OK;
}

static tb_rc take_top(struct loader *l) {
  char name[64];
  struct tc__origin at;

  TB_TRY(advance(l));
  while (l->event.type != YAML_MAPPING_END_EVENT) {
    TB_TRY(take_key(l, "", name, sizeof name, &at));
    if (!tc__config_is_section(name))
      TB_TRY(take_value(l, name, at));
    else if (l->event.type == YAML_MAPPING_START_EVENT)
      TB_TRY(take_section(l, name));
    else if (!is_null(l))
      return tc__config_fail(l->diag, at, name, "is a section: indent its keys on the lines below");
    TB_TRY(advance(l));
  }
  return TB_OK;
}

static tb_rc take_file(struct loader *l) {
  TB_TRY(advance(l)); /* stream start */
  TB_TRY(advance(l));
  if (l->event.type == YAML_STREAM_END_EVENT) return TB_OK; /* nothing but comments */

  TB_TRY(advance(l)); /* past the document's start */
  if (l->event.type == YAML_MAPPING_START_EVENT)
    TB_TRY(take_top(l));
  else if (!is_null(l))
    return tc__config_fail(l->diag, here(l), "", "the file must be KEY: VALUE lines and sections");

  TB_TRY(advance(l)); /* document end */
  TB_TRY(advance(l));
  if (l->event.type != YAML_STREAM_END_EVENT)
    return tc__config_fail(l->diag, here(l), "", "a second document is not allowed");
  return TB_OK;
}

tb_rc tc_config_load(struct tc_config *config, const char *path, struct tb_diag *diag) {
  struct loader l = { .config = config, .diag = diag, .path = path };
  FILE *file = tb_small_file(path);
  tb_rc rc;

  if (file == NULL) return tb_fail(diag, TB_IO, "%.120s: %s", path, tb_small_file_fault(errno));
  if (yaml_parser_initialize(&l.parser) == 0) {
    fclose(file);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  yaml_parser_set_input_file(&l.parser, file);
  errno = 0;
  rc = take_file(&l);
  if (ferror(file)) { /* a folder, for example: libyaml reports only "input error" */
    tb_diag_clear(diag);
    rc = tb_fail(diag, TB_IO, "%.120s: %s", path, strerror(errno));
  }
  if (l.has_event) yaml_event_delete(&l.event);
  yaml_parser_delete(&l.parser);
  fclose(file);
  return rc;
}
