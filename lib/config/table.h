/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's configuration: lib/config/table.def as a struct, filled from YAML, the environment and --set.
 *
 * init sets the defaults; load, environment and set override them in the order of the calls; finish checks keys against each
 * other and computes defaults that depend on other keys. A reload fills a second struct and passes it to tc_config_reload().
 *
 * Memory    strings belong to the struct; tc_config_fini() frees them.
 * Threads   any thread may read a finished struct, even during tc_config_reload(). But texts marked RELOAD in table.def
 *           may be read only by the thread that reloads. The other functions need exclusive access.
 * Errors    TB_BROKEN with "FILE:LINE: key: reason" in diag: unknown or repeated key, wrong type, out
 *           of bounds. TB_IO: the file cannot be read. TB_NOMEM.
 */
#ifndef TC_CONFIG_TABLE_H
#define TC_CONFIG_TABLE_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/result.h"

/* Numbers are atomic: a reload changes them while threads read them. */
#define TC_FIELD_STRING char *
#define TC_FIELD_URLS   char * /* lib/config/url_list.h */
#define TC_FIELD_COUNT  _Atomic uint64_t
#define TC_FIELD_BYTES  _Atomic uint64_t
#define TC_FIELD_TIME   _Atomic uint64_t /* ns */
#define TC_FIELD_BOOL   atomic_bool

/* Field names join section and key: listen_agents, retention_age, top_state. */
#define TC_JOIN_(a, b) a##_##b
#define TC_KEY(section, key, type, def, min, max, applies, text)                                   \
  TC_FIELD_##type TC_JOIN_(section, key);
struct tc_config {
#include "config/table.def"
  bool certs_are_ours; /* top_certs is STATE/certs by default: the daemon makes its own CA there */
};
#undef TC_KEY

void tc_config_init(struct tc_config *config); /* all defaults */
void tc_config_fini(struct tc_config *config);
TB_MUST tb_rc tc_config_load(struct tc_config *config, const char *path, struct tb_diag *diag);
TB_MUST tb_rc tc_config_set(struct tc_config *config, const char *assignment,
                            struct tb_diag *diag); /* KEY=VALUE */
/* Takes TRACECOLLECTD_SET_LISTEN_HTTP=VALUE as set takes listen.http=VALUE, and ignores variables without that prefix. */
TB_MUST tb_rc tc_config_environment(struct tc_config *config, const char *const *environment,
                                    struct tb_diag *diag);
/* Afterwards state and certs are absolute paths, loops is at least 1, and listen.feed has 1 to TC_URLS_MAX complete and
 * different URLs, one per line. */
TB_MUST tb_rc tc_config_finish(struct tc_config *config, struct tb_diag *diag);
/* Does the configuration have a value that is accepted but may be a mistake? Then note describes it. */
bool tc_config_note(const struct tc_config *config, struct tb_diag *note);
void tc_config_print_default(FILE *to); /* commented YAML that loads back to the defaults */

/* Copies keys that differ and are RELOAD from fresh to running. Calls changed() for each key that differs; applied false:
 * the key is START, and running keeps its value. fresh gets the old texts. */
void tc_config_reload(struct tc_config *running, struct tc_config *fresh,
                      void (*changed)(void *self, const char *key, bool applied), void *self);

/* The table as data, to print or walk it. */
enum tc_config_type {
  TC_TYPE_STRING,
  TC_TYPE_URLS,
  TC_TYPE_COUNT,
  TC_TYPE_BYTES,
  TC_TYPE_TIME,
  TC_TYPE_BOOL,
};
bool tc_config_is_text(enum tc_config_type type); /* is the field a char *? */

struct tc_config_key {
  const char *section; /* "" at the top level */
  const char *name;    /* dotted: "retention.age" */
  const char *key;     /* "age" */
  enum tc_config_type type;
  uint64_t def, min, max; /* max 0: no upper bound */
  const char *def_text;   /* default of a text */
  bool reloads;           /* RELOAD, see table.def */
  const char *text;
  size_t offset; /* in struct tc_config */
};

extern const struct tc_config_key tc_config_keys[];
extern const size_t tc_config_keys_count;

/* Writes the name of the key's environment variable: TRACECOLLECTD_SET_LISTEN_HTTP. */
enum { TC_VARIABLE_BYTES = 96 };
void tc_config_variable(const struct tc_config_key *key, char out[TC_VARIABLE_BYTES]);

const char *tc_config_type_name(enum tc_config_type type);

/* Formats a number as in the file: 256MiB, 10ms, true. Returns the length. */
enum { TC_VALUE_BYTES = 32 };
int tc_config_format(enum tc_config_type type, uint64_t value, char out[TC_VALUE_BYTES]);

/* Parse 256MiB, 64KiB, 1GB, plain bytes; 10ms, 30s, 5m, 24h, 7d, 1h30m, plain 0. Return false if text is invalid. */
TB_MUST bool tc_parse_bytes(const char *text, uint64_t *out);
TB_MUST bool tc_parse_time_ns(const char *text, uint64_t *out);

#endif
