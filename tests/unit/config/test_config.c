/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/hostport.h"
#include "config/table.h"

/* Loads the text as the file "t.yaml" of a new folder. A message is left in diag. */
static tb_rc load_text(struct tc_config *config, const char *text, struct tb_diag *diag) {
  char folder[] = "/tmp/tc_config_XXXXXX", path[64];

  cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/t.yaml", folder);
  FILE *f = fopen(path, "w");
  cr_assert_not_null(f);
  cr_assert_eq(fwrite(text, 1, strlen(text), f), strlen(text));
  fclose(f);
  tb_diag_clear(diag);
  tc_config_init(config);
  tb_rc rc = tc_config_load(config, path, diag);
  unlink(path);
  rmdir(folder);
  return rc;
}

static void expect_broken(const char *text, const char *words) {
  struct tc_config config;
  struct tb_diag diag;

  cr_expect_eq(load_text(&config, text, &diag), TB_BROKEN, "%s", text);
  cr_expect(strstr(diag.text, words) != NULL, "wanted \"%s\" in \"%s\"", words, diag.text);
  tc_config_fini(&config);
}

Test(config, sections_and_units_are_read) {
  struct tc_config config;
  struct tb_diag diag;

  cr_assert_eq(load_text(&config,
                         "# ours\n"
                         "state: /var/lib/x\n"
                         "loops: 3\n"
                         "listen:\n"
                         "  agents: \"[::1]:0\"\n"
                         "  http: ''\n"
                         "log:\n"
                         "retention:\n"
                         "  age: 1h30m\n"
                         "  bytes: 2GB\n"
                         "segment:\n"
                         "  bytes_max: 64KiB\n",
                         &diag),
               TB_OK, "%s", diag.text);
  cr_assert_str_eq(config.top_state, "/var/lib/x");
  cr_assert_eq(config.top_loops, 3);
  cr_assert_str_eq(config.listen_agents, "[::1]:0");
  cr_assert_str_eq(config.listen_http, "");
  cr_assert_eq(config.retention_age, UINT64_C(5400000000000));
  cr_assert_eq(config.retention_bytes, UINT64_C(2000000000));
  cr_assert_eq(config.segment_bytes_max, 65536);
  cr_assert_eq(tc_config_finish(&config, &diag), TB_OK, "%s", diag.text);
  cr_assert_str_eq(config.top_certs, "/var/lib/x/certs");
  cr_assert_str_eq(config.listen_feed, "ipc:///var/lib/x/feed.sock");
  cr_assert_str_eq(config.listen_sock, "/var/lib/x/http.sock");
  tc_config_fini(&config);
}

Test(config, errors_name_file_line_key_and_reason) {
  expect_broken("loops: 2\nretention:\n  agge: 7d\n",
                "t.yaml:3: retention.agge: unknown key; did you mean retention.age?");
  expect_broken("blocked_after: 10ms\n",
                "t.yaml:1: blocked_after: unknown key; did you mean syscall.blocked_after?");
  expect_broken("zzzzzzzzz: 1\n", "t.yaml:1: zzzzzzzzz: unknown key");
  expect_broken("loops: many\n", "t.yaml:1: loops: \"many\" is not a whole number");
  expect_broken("loops: -1\n", "loops: \"-1\" is not a whole number");
  expect_broken("loops: 257\n", "loops: 257 is too large: at most 256");
  expect_broken("agents:\n  credit: 1KiB\n",
                ":2: agents.credit: 1KiB is too small: at least 256KiB");
  expect_broken("agents:\n  credit: 64K\n", "agents.credit: \"64K\" is not a size");
  expect_broken("retention:\n  age: 7\n", "retention.age: \"7\" is not a time");
  expect_broken("retention:\n  age: 999999999999d\n", "is not a time");
  expect_broken("retention:\n  age: 1d\n  bytes: 1\n  age: 2d\n",
                ":4: retention.age: repeated; first set on line 2");
  expect_broken("retention:\n  age: [1d]\n", ":2: retention.age: expected a time");
  expect_broken("retention: 7d\n", ":1: retention: is a section");
  expect_broken("loops:\n", ":1: loops: has no value");
  expect_broken("- a\n- b\n", ":1: the file must be");
  expect_broken("loops: 'abc\n", "not YAML");
  expect_broken("loops: 1\n---\nloops: 2\n", "a second document");
  expect_broken("? [a]\n: 1\n", "expected a key");
}

Test(config, an_empty_file_is_all_defaults) {
  struct tc_config config;
  struct tb_diag diag;

  cr_assert_eq(load_text(&config, "# nothing\n", &diag), TB_OK);
  cr_assert_eq(config.agents_connections_max, 12000);
  tc_config_fini(&config);
  cr_assert_eq(load_text(&config, "", &diag), TB_OK);
  tc_config_fini(&config);
}

Test(config, a_missing_file_is_named) {
  struct tc_config config;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tc_config_init(&config);
  cr_assert_eq(tc_config_load(&config, "/nonexistent/c.yaml", &diag), TB_IO);
  cr_assert_str_eq(diag.text, "/nonexistent/c.yaml: No such file or directory");
  tb_diag_clear(&diag);
  cr_assert_eq(tc_config_load(&config, "/tmp", &diag), TB_IO);
  cr_assert_str_eq(diag.text, "/tmp: Is a directory");
  tc_config_fini(&config);
}

Test(config, the_last_set_wins) {
  struct tc_config config;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tc_config_init(&config);
  cr_assert_eq(tc_config_set(&config, "syscall.blocked_after=20ms", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&config, "syscall.blocked_after=5ms", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&config, "state=/a=b", &diag), TB_OK);
  cr_assert_eq(config.syscall_blocked_after, 5000000);
  cr_assert_str_eq(config.top_state, "/a=b");
  cr_assert_eq(tc_config_set(&config, "sink=process", &diag), TB_BROKEN);
  cr_assert_str_eq(diag.text, "--set: sink: unknown key; did you mean sync?");
  tb_diag_clear(&diag);
  cr_assert_eq(tc_config_set(&config, "state", &diag), TB_BROKEN);
  cr_assert_str_eq(diag.text, "--set: \"state\" is not KEY=VALUE");
  tc_config_fini(&config);
}

static void expect_unfit(const char *assignment, const char *words) {
  struct tc_config config;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tc_config_init(&config);
  cr_assert_eq(tc_config_set(&config, assignment, &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(tc_config_finish(&config, &diag), TB_BROKEN, "%s", assignment);
  cr_expect(strstr(diag.text, words) != NULL, "wanted \"%s\" in \"%s\"", words, diag.text);
  tc_config_fini(&config);
}

Test(config, finish_checks_keys_against_each_other) {
  expect_unfit("sync=maybe", "sync: \"maybe\" is neither durable nor process");
  expect_unfit("archive.hash=md5", "archive.hash: \"md5\" is neither xxh3 nor sha256");
  expect_unfit("http.metrics=all", "http.metrics: \"all\" is neither reader nor open");
  expect_unfit("listen.metrics=9090", "listen.metrics: \"9090\" is not HOST:PORT");
  expect_unfit("archive.sign=/k.pem", "archive.sign: needs archive.hash: sha256");
  expect_unfit("listen.agents=7070", "listen.agents: \"7070\" is not HOST:PORT");
  expect_unfit("listen.agents=localhost:70700", "listen.agents: \"localhost:70700\": the port");
  expect_unfit("listen.http=::1:80", "listen.http: \"::1:80\": an IPv6 address goes in brackets");
  expect_unfit("listen.feed=tcp://10.0.0.1:7071", "listen.feed: plain tcp://");
  expect_unfit("listen.feed=tcp://127.evil.example:7071", "listen.feed: plain tcp://");
  expect_unfit("listen.feed=ws://127.0.0.1:1",
               "listen.feed: \"ws://127.0.0.1:1\" is not an ipc:// or tls+tcp:// URL");
  expect_unfit("log.group_bytes=64MiB", "log.group_bytes: must be at most half of log.file_bytes");
  expect_unfit("analysis.idle=main.worker,net:",
               "analysis.idle: \"net:\" is neither NAME nor REASON:NAME");
  expect_unfit("agents.heartbeat=1h", "agents.abandon_after: must be at least");
  expect_unfit("log.held_bytes_max=16MiB", "log.held_bytes_max: must be at least");
  expect_unfit("state=/"
               "12345678901234567890123456789012345678901234567890123456789012345678901234567890123"
               "4567890123456789",
               "listen.feed: the socket's path is");
  expect_unfit("listen.sock=/"
               "12345678901234567890123456789012345678901234567890123456789012345678901234567890123"
               "4567890123456789012345678",
               "listen.sock: the socket's path is 109 bytes, the system takes 107");
}

/* A configuration with listen.feed given as `list` in YAML or with --set. */
static void expect_feed(const char *list, const char *lines) {
  struct tc_config config;
  struct tb_diag diag;
  char text[512];

  snprintf(text, sizeof text, "state: /s\nlisten:\n  feed: %s\n", list);
  cr_expect_eq(load_text(&config, text, &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(tc_config_finish(&config, &diag), TB_OK, "%s: %s", list, diag.text);
  cr_expect_str_eq(config.listen_feed, lines);
  tc_config_fini(&config);
}

Test(config, listeners_are_one_or_a_list) {
  static const char both[] = "ipc:///s/feed.sock\ntls+tcp://0.0.0.0:7071";

  expect_feed("tls+tcp://h:1", "tls+tcp://h:1");
  expect_feed("[\"ipc://\", \"tls+tcp://0.0.0.0:7071\"]", both);
  expect_feed("\n    - ipc://\n    - tls+tcp://0.0.0.0:7071", both);
  expect_feed("\"ipc://,tls+tcp://0.0.0.0:7071\"", both);
  expect_feed("\"ipc://  tls+tcp://0.0.0.0:7071 \"", both);
  expect_feed("\"ipc:///a, b,c, tcp://127.0.0.1:0, tcp://127.0.0.1:0\"",
              "ipc:///a, b,c\ntcp://127.0.0.1:0\ntcp://127.0.0.1:0");
}

Test(config, a_list_of_listeners_names_what_is_wrong_in_it) {
  expect_broken("listen:\n  feed: []\n", ":2: listen.feed: the list is empty");
  expect_broken("listen:\n  feed:\n    - ipc://\n    - [a]\n", ":4: listen.feed: an item of");
  expect_broken("listen:\n  feed:\n    - ipc://\n    -\n", ":4: listen.feed: an item of");
  expect_broken("listen:\n  agents: [a, b]\n", ":2: listen.agents: expected a text");
  expect_unfit("listen.feed=ipc:// ipc:///tmp/a ipc:///tmp/a",
               "listen.feed: ipc:///tmp/a appears twice");
  expect_unfit("listen.feed=ipc://, tcp://10.0.0.1:7071", "listen.feed: plain tcp://");
  expect_unfit("listen.feed=ipc:// ws://h:1", "is not an ipc:// or tls+tcp:// URL");
  expect_unfit("listen.feed= , ", "listen.feed: has no URL");
  expect_unfit("listen.feed=ipc://, 0.0.0.0:7071",
               "listen.feed: \"ipc://, 0.0.0.0:7071\" has no path");
  expect_unfit("listen.feed=tcp://[::1]:0 tcp://[::1]:0 tcp://[::1]:0 tcp://[::1]:0 tcp://[::1]:0 "
               "tcp://[::1]:0 tcp://[::1]:0 tcp://[::1]:0 tcp://[::1]:0",
               "listen.feed: more than 8 URLs");
}

Test(config, state_defaults_to_systemds_folder_then_to_one_here) {
  struct tc_config config;
  struct tb_diag diag;
  char wanted[4096 + 32], here[4096];

  tb_diag_clear(&diag);
  setenv("STATE_DIRECTORY", "/run/a:/run/b", 1);
  tc_config_init(&config);
  cr_assert_eq(tc_config_finish(&config, &diag), TB_OK, "%s", diag.text);
  cr_assert_str_eq(config.top_state, "/run/a");
  cr_assert_geq(config.top_loops, 1);
  tc_config_fini(&config);

  unsetenv("STATE_DIRECTORY");
  cr_assert_eq(chdir("/tmp"), 0);
  cr_assert_not_null(getcwd(here, sizeof here));
  snprintf(wanted, sizeof wanted, "%s/tracecollect-data", here);
  tc_config_init(&config);
  cr_assert_eq(tc_config_finish(&config, &diag), TB_OK, "%s", diag.text);
  cr_assert_str_eq(config.top_state, wanted);
  tc_config_fini(&config);
}

Test(config, sockets_lie_in_the_service_managers_folder_where_there_is_one) {
  struct tc_config config;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  setenv("RUNTIME_DIRECTORY", "/run/tracecollect", 1);
  tc_config_init(&config);
  cr_assert_eq(tc_config_set(&config, "state=/var/lib/x", &diag), TB_OK);
  cr_assert_eq(tc_config_finish(&config, &diag), TB_OK, "%s", diag.text);
  cr_assert_str_eq(config.listen_feed, "ipc:///run/tracecollect/feed.sock");
  cr_assert_str_eq(config.listen_sock, "/run/tracecollect/http.sock");
  tc_config_fini(&config);
  unsetenv("RUNTIME_DIRECTORY");
}

static void make_file(const char *folder, const char *name) {
  char path[128];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  cr_assert_not_null(file);
  fclose(file);
}

Test(config, certificates_are_the_credentials_if_those_are_complete) {
  static const char *const files[] = { "ca.pem", "server.pem", "server.key" };
  char folder[] = "/tmp/tc_config_XXXXXX", path[128];
  struct tc_config config;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_not_null(mkdtemp(folder));
  setenv("CREDENTIALS_DIRECTORY", folder, 1);
  for (int found = 0; found <= 3; found++) {
    tc_config_init(&config);
    cr_assert_eq(tc_config_set(&config, "state=/var/lib/x", &diag), TB_OK);
    tb_rc rc = tc_config_finish(&config, &diag);
    if (found == 0) cr_expect_str_eq(config.top_certs, "/var/lib/x/certs");
    if (found == 1 || found == 2) cr_expect_eq(rc, TB_BROKEN);
    if (found == 2)
      cr_expect_str_eq(diag.text, "certs: the service manager's credentials lack server.key");
    if (found == 3) cr_expect_str_eq(config.top_certs, folder);
    if (found < 3) make_file(folder, files[found]);
    tb_diag_clear(&diag);
    tc_config_fini(&config);
  }
  unsetenv("CREDENTIALS_DIRECTORY");
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i]);
    unlink(path);
  }
  rmdir(folder);
}

Test(config, the_printed_default_loads_back_to_the_defaults) {
  struct tc_config defaults, loaded;
  struct tb_diag diag;
  char path[] = "/tmp/tc_config_XXXXXX";
  int fd = mkstemp(path);

  cr_assert_geq(fd, 0);
  FILE *file = fdopen(fd, "w");
  tc_config_print_default(file);
  cr_assert_eq(fclose(file), 0);
  tb_diag_clear(&diag);
  tc_config_init(&defaults);
  tc_config_init(&loaded);
  cr_assert_eq(tc_config_load(&loaded, path, &diag), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    const char *a = (const char *)&defaults + key->offset, *b = (const char *)&loaded + key->offset;
    if (tc_config_is_text(key->type))
      cr_expect_str_eq(*(char *const *)a, *(char *const *)b, "%s", key->name);
    else if (key->type != TC_TYPE_BOOL)
      cr_expect_eq(*(const uint64_t *)a, *(const uint64_t *)b, "%s", key->name);
  }
  tc_config_fini(&defaults);
  tc_config_fini(&loaded);
  unlink(path);
}

Test(config, every_row_has_a_default_in_bounds_and_a_sentence) {
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    cr_expect_geq(key->def, key->min, "%s", key->name);
    cr_expect(key->max == 0 || key->def <= key->max, "%s", key->name);
    cr_expect_eq(key->text[strlen(key->text) - 1], '.', "%s", key->name);
  }
}

struct heard {
  char applied[200], later[200];
};

static void hear(void *self, const char *key, bool applied) {
  struct heard *heard = self;
  char *said = applied ? heard->applied : heard->later;

  snprintf(said + strlen(said), sizeof heard->later - strlen(said), "%s ", key);
}

Test(config, a_reload_takes_over_what_may_change_and_names_what_waits_for_the_next_start) {
  struct tc_config running, fresh;
  struct tb_diag diag;
  struct heard heard = { "", "" };

  tb_diag_clear(&diag);
  tc_config_init(&running);
  tc_config_init(&fresh);
  cr_assert_eq(tc_config_set(&fresh, "retention.age=1h", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&fresh, "disk.free_min=1MiB", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&fresh, "loops=7", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&fresh, "analysis.idle=main.a", &diag), TB_OK);
  cr_assert_eq(tc_config_set(&fresh, "sync=process", &diag), TB_OK);
  tc_config_reload(&running, &fresh, hear, &heard);
  cr_assert_str_eq(heard.applied, "retention.age disk.free_min analysis.idle ");
  cr_assert_str_eq(heard.later, "sync loops ");
  cr_assert_eq(running.retention_age, UINT64_C(3600000000000));
  cr_assert_eq(running.disk_free_min, 1 << 20);
  cr_assert_eq(running.top_loops, 0);
  cr_assert_str_eq(running.top_sync, "durable");
  cr_assert_str_eq(running.analysis_idle, "main.a");
  cr_assert_str_eq(fresh.analysis_idle, "");
  tc_config_fini(&fresh);
  tc_config_fini(&running);
}

/* A reader on another thread may hold the old text, so the daemon passes the new one on. */
Test(config, a_reason_that_no_table_has_is_noted) {
  struct tc_config c;
  struct tb_diag diag, note;

  tb_diag_clear(&diag);
  tb_diag_clear(&note);
  tc_config_init(&c);
  cr_assert_not(tc_config_note(&c, &note));
  cr_assert_eq(tc_config_set(&c, "analysis.idle=net:main.f, nett:main.f", &diag), TB_OK);
  cr_assert(tc_config_note(&c, &note));
  cr_assert_not_null(strstr(note.text, "analysis.idle: \"nett\" is not in"), "%s", note.text);
  tc_config_fini(&c);
}

Test(config, texts_are_for_the_next_start_but_for_analysis_idle) {
  for (size_t i = 0; i < tc_config_keys_count; i++)
    if (tc_config_is_text(tc_config_keys[i].type))
      cr_expect_eq(tc_config_keys[i].reloads, strcmp(tc_config_keys[i].name, "analysis.idle") == 0,
                   "%s", tc_config_keys[i].name);
}

Test(config, host_and_port_are_split) {
  struct tb_hostport at;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(tb_hostport_parse("[::1]:7070", &diag, &at), TB_OK);
  cr_assert_str_eq(at.host, "::1");
  cr_assert_eq(at.port, 7070);
  cr_assert_eq(tb_hostport_parse("collector.example:0", &diag, &at), TB_OK);
  cr_assert_str_eq(at.host, "collector.example");
  cr_assert_eq(at.port, 0);
  for (const char *const *bad =
           (const char *const[]){ "", ":", ":1", "a:", "a b:1", "[::1]", "[::1]7", "a:1x",
                                  "[::1].evil.com:7", "[::1]:7.evil.com", "[::1]]:7", NULL };
       *bad != NULL; bad++)
    cr_expect_eq(tb_hostport_parse(*bad, NULL, &at), TB_BROKEN, "%s", *bad);
  cr_assert_eq(tb_host_parse("[::1]", &diag, &at), TB_OK);
  cr_assert_str_eq(at.host, "::1");
  cr_assert_eq(tb_host_parse("localhost:7073", &diag, &at), TB_OK);
  cr_assert_eq(at.port, 7073);
  for (const char *const *bad =
           (const char *const[]){ "", "[::1].evil.com", "[::1", "[::1]evil", "localhost:7.evil.com",
                                  "localhost:", "::1", "a@localhost", NULL };
       *bad != NULL; bad++)
    cr_expect_eq(tb_host_parse(*bad, NULL, &at), TB_BROKEN, "%s", *bad);
  cr_assert(tb_host_is_loopback("LocalHost"));
  cr_assert(tb_host_is_loopback("127.0.0.1"));
  cr_assert(tb_host_is_loopback("::1"));
  cr_assert_not(tb_host_is_loopback("127.evil.example"));
  cr_assert_not(tb_host_is_loopback("127..0.1"));
  cr_assert_not(tb_host_is_loopback("0.0.0.0"));
}

/* --- the environment ----------------------------------------------------------------------------- */

static tb_rc take_variables(struct tc_config *config, const char *const *variables,
                            struct tb_diag *diag) {
  tb_diag_clear(diag);
  tc_config_init(config);
  return tc_config_environment(config, variables, diag);
}

Test(environment, every_key_has_a_variable_of_its_own) {
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    char mine[TC_VARIABLE_BYTES], others[TC_VARIABLE_BYTES];

    tc_config_variable(&tc_config_keys[i], mine);
    cr_expect_lt(strlen(mine), 64, "%s: longer names get no \"did you mean\"", mine);
    cr_expect_eq(strspn(mine, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"), strlen(mine), "%s", mine);
    for (size_t j = 0; j < i; j++) {
      tc_config_variable(&tc_config_keys[j], others);
      cr_expect_str_neq(mine, others, "%s and %s", tc_config_keys[i].name, tc_config_keys[j].name);
    }
  }
}

/* A value that each type refuses, or for texts an unusual one, shows that the variable is that key's. */
Test(environment, every_key_is_set_by_its_variable) {
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    char entry[TC_VARIABLE_BYTES + 8];
    const char *const variables[] = { entry, NULL };
    struct tc_config config;
    struct tb_diag diag;

    tc_config_variable(key, entry);
    strcat(entry, "=a=b");
    tb_rc rc = take_variables(&config, variables, &diag);
    if (tc_config_is_text(key->type)) {
      cr_expect_eq(rc, TB_OK, "%s: %s", entry, diag.text);
      cr_expect_str_eq(*(char **)((char *)&config + key->offset), "a=b", "%s", entry);
    } else {
      cr_expect_eq(rc, TB_BROKEN, "%s", entry);
      cr_expect_not_null(strstr(diag.text, key->name), "%s: %s", entry, diag.text);
      cr_expect_not_null(strstr(diag.text, "TRACECOLLECTD_SET_"), "%s: %s", entry, diag.text);
    }
    tc_config_fini(&config);
  }
}

Test(environment, overrides_the_file_and_is_overridden_by_set) {
  static const char *const variables[] = { "PATH=/bin", "TRACECOLLECTD_SET_RETENTION_AGE=2h",
                                           "TRACECOLLECTD_SET_LOOPS=5",
                                           "TRACECOLLECTD_SET_LISTEN_HTTP=", NULL };
  struct tc_config config;
  struct tb_diag diag;

  cr_assert_eq(load_text(&config, "loops: 3\nretention:\n  age: 1h\n  bytes: 1GB\n", &diag), TB_OK);
  cr_assert_eq(tc_config_environment(&config, variables, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_config_set(&config, "loops=7", &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(config.retention_age, UINT64_C(7200000000000));
  cr_expect_eq(config.retention_bytes, 1000000000);
  cr_expect_eq(config.top_loops, 7);
  cr_expect_str_eq(config.listen_http, "");
  tc_config_fini(&config);
}

Test(environment, only_the_prefix_counts) {
  static const char *const variables[] = {
    "TRACECOLLECTD_LISTEN_HTTP=x", "TRACECOLLECTD_SETLOOPS=x",
    "TRACECOLLECTD_SET=1",         "xTRACECOLLECTD_SET_LOOPS=x",
    "tracecollectd_set_loops=x",   "LISTEN_HTTP=x",
    "TRACECOLLECTD_SET_LOOPS",     NULL
  };
  struct tc_config config;
  struct tb_diag diag;

  cr_expect_eq(take_variables(&config, variables, &diag), TB_OK, "%s", diag.text);
  cr_expect_eq(config.top_loops, 0);
  tc_config_fini(&config);
}

Test(environment, an_unknown_key_is_named_with_the_nearest) {
  static const char *const tries[][2] = {
    { "TRACECOLLECTD_SET_LISTEN_HTPP=x", "environment: TRACECOLLECTD_SET_LISTEN_HTPP: unknown key; "
                                         "did you mean TRACECOLLECTD_SET_LISTEN_HTTP?" },
    { "TRACECOLLECTD_SET_LISTEN.HTTP=x", "environment: TRACECOLLECTD_SET_LISTEN.HTTP: unknown key; "
                                         "did you mean TRACECOLLECTD_SET_LISTEN_HTTP?" },
    { "TRACECOLLECTD_SET_loops=x", "environment: TRACECOLLECTD_SET_loops: unknown key "
                                   "(tracecollectd --print-default-config prints all)" },
    { "TRACECOLLECTD_SET_=x", "environment: TRACECOLLECTD_SET_: unknown key (tracecollectd "
                              "--print-default-config prints all)" },
  };

  for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
    const char *const variables[] = { tries[i][0], NULL };
    struct tc_config config;
    struct tb_diag diag;

    cr_expect_eq(take_variables(&config, variables, &diag), TB_BROKEN, "%s", tries[i][0]);
    cr_expect_str_eq(diag.text, tries[i][1]);
    tc_config_fini(&config);
  }
}
