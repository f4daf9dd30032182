/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults that depend on other keys, limits that must agree, and addresses that need TLS. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/hostport.h"
#include "config/table.h"
#include "config/url_list.h"
#include "online/spans/stacks/idle.h"
#include "pack/topic.h"
#include "trigger/rule.h"

/* Replaces *place by text, which it owns from then on. NULL: TB_NOMEM. */
static tb_rc set_text(char **place, char *text, struct tb_diag *diag) {
  if (text == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  free(*place);
  *place = text;
  return TB_OK;
}

__attribute__((format(printf, 1, 2))) static char *format_text(const char *fmt, ...) {
  va_list args;
  char *text;

  va_start(args, fmt);
  if (vasprintf(&text, fmt, args) < 0) text = NULL;
  va_end(args);
  return text;
}

/* Readers take paths from the ready file and may run in another folder. */
static tb_rc make_absolute(char **path, struct tb_diag *diag) {
  const char *rest = *path;

  if (*rest == '/') return TB_OK;
  if (strncmp(rest, "./", 2) == 0) rest += 2;
  char *folder = getcwd(NULL, 0);
  if (folder == NULL) return tb_fail(diag, TB_IO, "current folder: %s", strerror(errno));
  char *text = format_text("%s/%s", strcmp(folder, "/") == 0 ? "" : folder, rest);
  free(folder);
  return set_text(path, text, diag);
}

/* Returns the folder that the service manager made for this daemon, the first one if the variable has several (separated by
 * colons), or `otherwise` if it has none. */
static char *managed_folder(const char *variable, const char *otherwise) {
  const char *folder = getenv(variable);

  if (folder == NULL || *folder == '\0') return strdup(otherwise);
  return strndup(folder, strcspn(folder, ":"));
}

static bool holds(const char *folder, const char *name) {
  char path[PATH_MAX];

  return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX && access(path, R_OK) == 0;
}

/* An incomplete set of credentials is an error, not a reason to make an own CA. */
static tb_rc set_certs(struct tc_config *c, struct tb_diag *diag) {
  static const char *const files[] = { "ca.pem", "server.pem", "server.key" };
  enum { FILES = sizeof files / sizeof files[0] };
  const char *folder = getenv("CREDENTIALS_DIRECTORY"), *missing = NULL;
  unsigned found = 0;

  for (unsigned i = 0; folder != NULL && i < FILES; i++) {
    if (holds(folder, files[i]))
      found++;
    else
      missing = files[i];
  }
  if (found == FILES) return set_text(&c->top_certs, strdup(folder), diag);
  if (found > 0)
    return tb_fail(diag, TB_BROKEN, "certs: the service manager's credentials lack %s", missing);
  c->certs_are_ours = true;
  return set_text(&c->top_certs, format_text("%s/certs", c->top_state), diag);
}

static tb_rc check_hostport(const char *name, const char *value, struct tb_diag *diag) {
  struct tb_diag why;
  struct tb_hostport got;

  tb_diag_clear(&why);
  if (tb_hostport_parse(value, &why, &got) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "%s: %s", name, why.text);
}

static tb_rc check_url(const char *name, const char *url, struct tb_diag *diag) {
  static const char tls[] = "tls+tcp://", tcp[] = "tcp://", ipc[] = "ipc://";
  struct tb_hostport at;
  struct tb_diag why;

  if (tc_url_is_ipc(url)) {
    size_t n = strlen(url) - (sizeof ipc - 1);
    /* "ipc://, 0.0.0.0:7071" is a list whose second URL has no scheme. */
    if (n == 0 || strchr(", \t\r\n", url[sizeof ipc - 1]) != NULL)
      return tb_fail(diag, TB_BROKEN, "%s: \"%.120s\" has no path%s", name, url,
                     n > 0 ? "; each URL needs its scheme" : "");
    if (n < sizeof((struct sockaddr_un){ 0 }).sun_path) return TB_OK;
    return tb_fail(
        diag, TB_BROKEN,
        "%s: the socket's path is %zu bytes, the system takes %zu: set %s to a shorter ipc:// path",
        name, n, sizeof((struct sockaddr_un){ 0 }).sun_path - 1, name);
  }
  if (tc_url_is_tls(url)) return check_hostport(name, url + sizeof tls - 1, diag);
  if (strncmp(url, tcp, sizeof tcp - 1) == 0) {
    TB_TRY(check_hostport(name, url + sizeof tcp - 1, diag));
    tb_diag_clear(&why);
    if (tb_hostport_parse(url + sizeof tcp - 1, &why, &at) == TB_OK && tb_host_is_loopback(at.host))
      return TB_OK;
    return tb_fail(diag, TB_BROKEN,
                   "%s: plain tcp:// would send traces unencrypted: use tls+tcp:// for %.100s",
                   name, at.host);
  }
  return tb_fail(diag, TB_BROKEN, "%s: \"%.80s\" is not an ipc:// or tls+tcp:// URL", name, url);
}

/* --- lists of URLs ----------------------------------------------------------------------------- */

static bool has_line(const char *lines, const char *line) {
  size_t len = strlen(line);

  for (const char *at = lines; (at = strstr(at, line)) != NULL; at += len)
    if ((at == lines || at[-1] == '\n') && (at[len] == '\n' || at[len] == '\0')) return true;
  return false;
}

static tb_rc add_url(const char *name, const char *url, char **lines, struct tb_diag *diag) {
  TB_TRY(check_url(name, url, diag));
  if (has_line(*lines, url) && !tc_url_takes_any_port(url))
    return tb_fail(diag, TB_BROKEN, "%s: %.120s appears twice", name, url);
  return set_text(lines, format_text("%s%s%s", *lines, **lines != '\0' ? "\n" : "", url), diag);
}

/* Writes *list as one complete URL per line. "ipc://" alone, or an empty list, becomes default_url. */
static tb_rc expand_urls(const char *name, const char *default_url, char **list,
                         struct tb_diag *diag) {
  const char *rest = **list != '\0' ? *list : "ipc://";
  char url[TC_URL_BYTES], *lines = strdup("");
  unsigned count = 0;
  tb_rc rc = lines != NULL ? TB_OK : tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));

  while (rc == TB_OK && tc_urls_next(&rest, url)) {
    if (++count > TC_URLS_MAX)
      rc = tb_fail(diag, TB_BROKEN, "%s: more than %d URLs", name, TC_URLS_MAX);
    else
      rc = add_url(name, strcmp(url, "ipc://") == 0 ? default_url : url, &lines, diag);
  }
  if (rc == TB_OK && count == 0) rc = tb_fail(diag, TB_BROKEN, "%s: has no URL", name);
  if (rc == TB_OK) return set_text(list, lines, diag);
  free(lines);
  return rc;
}

static tb_rc check_path(const char *name, const char *path, struct tb_diag *diag) {
  const size_t room = sizeof((struct sockaddr_un){ 0 }).sun_path;

  if (strlen(path) < room) return TB_OK;
  return tb_fail(
      diag, TB_BROKEN,
      "%s: the socket's path is %zu bytes, the system takes %zu: set %s to a shorter path", name,
      strlen(path), room - 1, name);
}

static tb_rc set_listen_sock(struct tc_config *c, const char *folder, struct tb_diag *diag) {
  if (*c->listen_sock == '\0')
    TB_TRY(set_text(&c->listen_sock, format_text("%s/http.sock", folder), diag));
  TB_TRY(make_absolute(&c->listen_sock, diag));
  return check_path("listen.sock", c->listen_sock, diag);
}

static tb_rc set_sockets(struct tc_config *c, struct tb_diag *diag) {
  char *folder = managed_folder("RUNTIME_DIRECTORY", c->top_state);
  char *feed = folder != NULL ? format_text("ipc://%s/feed.sock", folder) : NULL;
  tb_rc rc = TB_OK;

  if (feed == NULL) rc = tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  if (rc == TB_OK) rc = expand_urls("listen.feed", feed, &c->listen_feed, diag);
  if (rc == TB_OK) rc = set_listen_sock(c, folder, diag);
  free(feed);
  free(folder);
  return rc;
}

static tb_rc check_idle(const struct tc_config *c, struct tb_diag *diag) {
  struct tb_diag why;

  tb_diag_clear(&why);
  tb_rc rc = to_idle_check(c->analysis_idle, &why);
  return rc == TB_OK ? rc : tb_fail(diag, rc, "analysis.idle: %s", why.text);
}

bool tc_config_note(const struct tc_config *c, struct tb_diag *note) {
  struct tb_diag why;

  tb_diag_clear(&why);
  if (!to_idle_unknown(c->analysis_idle, &why)) return false;
  (void)!tb_fail(note, why.rc, "analysis.idle: %s", why.text);
  return true;
}

/* Parses the rules only to find errors before the start; the collector reads the file itself. */
static tb_rc check_triggers(const struct tc_config *c, struct tb_diag *diag) {
  struct tr_rules *rules;
  struct tb_diag why;

  if (*c->trigger_file == '\0') return TB_OK;
  tb_diag_clear(&why);
  TB_TRY(tr_rules_new(&rules));
  tb_rc rc = tr_rules_read(rules, c->trigger_file, &why);
  tr_rules_release(rules);
  return rc == TB_OK ? rc : tb_fail(diag, rc, "trigger.file: %s", why.text);
}

static tb_rc check_words(const struct tc_config *c, struct tb_diag *diag) {
  unsigned bits;

  if (strcmp(c->top_sync, "durable") != 0 && strcmp(c->top_sync, "process") != 0)
    return tb_fail(diag, TB_BROKEN, "sync: \"%.40s\" is neither durable nor process", c->top_sync);
  if (strcmp(c->archive_hash, "xxh3") != 0 && strcmp(c->archive_hash, "sha256") != 0)
    return tb_fail(diag, TB_BROKEN, "archive.hash: \"%.40s\" is neither xxh3 nor sha256",
                   c->archive_hash);
  if (*c->archive_sign != '\0' && strcmp(c->archive_hash, "sha256") != 0)
    return tb_fail(diag, TB_BROKEN,
                   "archive.sign: needs archive.hash: sha256, as XXH3 does not detect deliberate "
                   "changes");
  if (strcmp(c->http_metrics, "reader") != 0 && strcmp(c->http_metrics, "open") != 0)
    return tb_fail(diag, TB_BROKEN, "http.metrics: \"%.40s\" is neither reader nor open",
                   c->http_metrics);
  TB_TRY(tc_feed_event_list(c->feed_events, diag, &bits));
  TB_TRY(tc_feed_window_list(c->feed_windows, diag, &bits));
  TB_TRY(tc_feed_finding_list(c->alert_findings, diag, &bits));
  TB_TRY(check_idle(c, diag));
  return check_triggers(c, diag);
}

static tb_rc check_limits(const struct tc_config *c, struct tb_diag *diag) {
  if (c->log_group_bytes > c->log_file_bytes / 2)
    return tb_fail(diag, TB_BROKEN, "log.group_bytes: must be at most half of log.file_bytes");
  if (c->log_held_bytes_max < 2 * c->log_file_bytes)
    return tb_fail(diag, TB_BROKEN, "log.held_bytes_max: must be at least twice log.file_bytes");
  if (c->log_held_bytes_max < c->agents_generation_bytes_max)
    return tb_fail(diag, TB_BROKEN,
                   "log.held_bytes_max: must be at least agents.generation_bytes_max");
  if (c->feed_queue_bytes < c->feed_message_bytes_max)
    return tb_fail(diag, TB_BROKEN, "feed.queue_bytes: must be at least feed.message_bytes_max");
  if (c->feed_backlog_bytes < 4 * c->feed_message_bytes_max)
    return tb_fail(diag, TB_BROKEN,
                   "feed.backlog_bytes: must be at least four times feed.message_bytes_max");
  if (c->agents_abandon_after < 3 * c->agents_heartbeat)
    return tb_fail(diag, TB_BROKEN,
                   "agents.abandon_after: must be at least three times agents.heartbeat");
  if (c->retention_bytes != 0 && c->retention_service_bytes > c->retention_bytes)
    return tb_fail(diag, TB_BROKEN, "retention.service_bytes: must be at most retention.bytes");
  return TB_OK;
}

static tb_rc check_addresses(const struct tc_config *c, struct tb_diag *diag) {
  TB_TRY(check_hostport("listen.agents", c->listen_agents, diag));
  if (*c->listen_metrics != '\0') TB_TRY(check_hostport("listen.metrics", c->listen_metrics, diag));
  return *c->listen_http != '\0' ? check_hostport("listen.http", c->listen_http, diag) : TB_OK;
}

static tb_rc check_memory(const struct tc_config *c, struct tb_diag *diag) {
  for (const struct tc_config_key *key = tc_config_keys;
       key < tc_config_keys + tc_config_keys_count; key++)
    if (tc_config_is_text(key->type) && *(char *const *)((const char *)c + key->offset) == NULL)
      return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  return TB_OK;
}

tb_rc tc_config_finish(struct tc_config *c, struct tb_diag *diag) {
  TB_TRY(check_memory(c, diag));

  if (*c->top_state == '\0')
    TB_TRY(set_text(&c->top_state, managed_folder("STATE_DIRECTORY", "tracecollect-data"), diag));
  TB_TRY(make_absolute(&c->top_state, diag));
  if (*c->top_certs == '\0') TB_TRY(set_certs(c, diag));
  TB_TRY(make_absolute(&c->top_certs, diag));
  if (*c->tls_crl != '\0') TB_TRY(make_absolute(&c->tls_crl, diag));
  if (*c->archive_sign != '\0') TB_TRY(make_absolute(&c->archive_sign, diag));
  TB_TRY(set_sockets(c, diag));
  if (c->top_loops == 0) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    c->top_loops = cores < 1 ? 1 : cores > 256 ? 256 : (uint64_t)cores;
  }
  if (c->analysis_memory_max == 0)
    c->analysis_memory_max =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;

  TB_TRY(check_words(c, diag));
  TB_TRY(check_limits(c, diag));
  return check_addresses(c, diag);
}
