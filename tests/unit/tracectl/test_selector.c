/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors, and how a client finds its collector. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tracectl/args/selector.h"
#include "tools/tracectl/remote/endpoint.h"
#include "tools/tracectl/term/tracectl.h"

static struct tb_diag diag;

static int give(struct tk_selector *s, const char *option) {
  char verb[] = "list", word[100], *argv[] = { verb, word, NULL };

  snprintf(word, sizeof word, "%s", option);
  optind = 0;
  return tk_options_read(2, argv, tk_selector_options, s);
}

Test(selector, generations) {
  struct tk_selector s = { 0 };

  cr_assert_eq(give(&s, "--gen=3..7"), TK_DONE);
  cr_assert(s.first_gen == 3 && s.last_gen == 7);
  s = (struct tk_selector){ 0 };
  cr_assert_eq(give(&s, "--gen=4"), TK_DONE);
  cr_assert(s.first_gen == 4 && s.last_gen == 4);
  s = (struct tk_selector){ 0 };
  cr_assert_eq(give(&s, "--gen=5.."), TK_DONE);
  cr_assert(s.first_gen == 5 && s.last_gen == 0);
  s = (struct tk_selector){ 0 };
  cr_assert_eq(give(&s, "--gen=..6"), TK_DONE);
  cr_assert(s.first_gen == 0 && s.last_gen == 6);
  for (const char *const *bad =
           (const char *const[]){ "--gen=", "--gen=..", "--gen=0", "--gen=0..3", "--gen=a..b",
                                  "--gen=1...3", "--gen=-1", "--gen=1..2x",
                                  "--gen=99999999999999999999", NULL };
       *bad != NULL; bad++)
    cr_expect_eq(give(&s, *bad), TK_USAGE, "%s", *bad);
}

Test(selector, a_stream_is_32_digits_or_the_first_of_them) {
  struct tk_selector s = { 0 };

  cr_assert_eq(give(&s, "--stream=000102030405060708090a0b0c0d0eFf"), TK_DONE);
  cr_assert(s.has_stream && s.stream[1] == 1 && s.stream[15] == 0xff);
  cr_assert_str_eq(s.stream_prefix, "");
  cr_assert_eq(give(&s, "--stream=00f"), TK_DONE);
  cr_assert_str_eq(s.stream_prefix, "00f");
  cr_assert_eq(give(&s, "--stream="), TK_USAGE);
  cr_assert_eq(give(&s, "--stream=000102030405060708090a0b0c0d0e0f0"), TK_USAGE);
  cr_assert_eq(give(&s, "--stream=g00102030405060708090a0b0c0d0e0f"), TK_USAGE);
}

Test(selector, limits_that_contradict_are_refused) {
  struct tk_selector alone = { .segment = 3, .service = "s" },
                     order = { .since_wall_ns = 2, .until_wall_ns = 1 },
                     last = { .last_ns = 1, .since_wall_ns = 1 },
                     gen = { .first_gen = 4, .last_gen = 3 }, fine = { .first_gen = 4 };

  cr_assert_eq(tk_selector_check(&alone, NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_check(&order, NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_check(&last, NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_check(&gen, NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_check(&fine, NULL), TB_OK);
}

Test(selector, one_segment_by_its_id) {
  struct tk_selector s = { 0 };

  cr_assert_eq(tk_selector_segment(&s, "x", NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_segment(&s, "0", NULL), TB_BROKEN);
  cr_assert_eq(tk_selector_segment(&s, "12", NULL), TB_OK);
  cr_assert_eq(s.segment, 12);
  cr_assert_eq(tk_selector_segment(&s, "13", NULL), TB_BROKEN);
}

/* --- where the collector is
 * -------------------------------------------------------------------- */

static char folder[64], *home;

static void in_a_fresh_folder(void) {
  strcpy(folder, "/tmp/tk_endpoint_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  cr_assert_eq(chdir(folder), 0);
  for (const char *const *name =
           (const char *const[]){ "TRACECTL_SERVER", "TRACECTL_CERTS", "TRACEAGENT_CERTS",
                                  "TRACECTL_TLS_CA", "TRACECTL_TLS_CERT", "TRACECTL_TLS_KEY",
                                  "TRACECTL_CONFIG", "XDG_CONFIG_HOME", NULL };
       *name != NULL; name++)
    unsetenv(*name);
  home = getenv("HOME");
  setenv("HOME", folder, 1);
}

static void remove_folder(void) {
  char command[96];

  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(chdir("/"), 0);
  cr_assert_eq(system(command), 0);
}

TestSuite(where, .init = in_a_fresh_folder, .fini = remove_folder);

static struct tk_endpoint *find(const struct tk_client_args *args) {
  static struct tk_endpoint where;

  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(args, &diag, &where), TB_OK, "%s", diag.text);
  return &where;
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");

  cr_assert_not_null(f);
  fputs(text, f);
  fclose(f);
}

static void expect_broken(const char *server, const char *words) {
  const struct tk_client_args args = { .server = server, .certs = "/c" };
  struct tk_endpoint where;

  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_BROKEN, "%s", server);
  cr_assert_not_null(strstr(diag.text, words), "%s", diag.text);
}

Test(where, a_host_has_the_default_port_and_tls_unless_it_is_this_one) {
  static const struct {
    const char *server, *url;
  } forms[] = {
    { "collector.example", "https://collector.example:7073" },
    { "collector.example:99", "https://collector.example:99" },
    { "::2", "https://[::2]:7073" },
    { "[::2]:5", "https://[::2]:5" },
    { "localhost", "http://localhost:7073" },
    { "127.0.0.1:99", "http://127.0.0.1:99" },
    { "::1", "http://[::1]:7073" },
    { "http://proxy.example", "http://proxy.example" },
    { "https://localhost:99/", "https://localhost:99" },
    { "https://proxy.example/traces/", "https://proxy.example/traces" },
  };

  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    const struct tk_client_args args = { .server = forms[i].server, .certs = "/c" };
    cr_assert_str_eq(find(&args)->url, forms[i].url);
    cr_assert_eq(find(&args)->tls, forms[i].url[4] == 's');
    cr_assert_str_eq(find(&args)->path, "");
    cr_assert_str_eq(find(&args)->cert, "/c/reader.pem");
  }
  cr_assert_str_eq(find(&(struct tk_client_args){ .server = "::1" })->at.host, "::1");
}

Test(where, what_is_no_collector_is_refused_in_words) {
  char path[128] = "unix:/";

  expect_broken("host:port", "port");
  expect_broken("ipc:///run/tracecollect/archive.sock", "unix:PATH");
  expect_broken("tls+tcp://h:7072", "https://");
  expect_broken("ftp://h", "https://");
  expect_broken("https://h/?q=1", "more than a host and a path");
  memset(path + strlen(path), 'x', sizeof path - 1 - strlen(path));
  path[sizeof path - 1] = '\0';
  expect_broken(path, "too long");
}

Test(where, a_unix_socket_is_named_by_its_path) {
  const struct tk_client_args args = { .server = "unix:/x/http.sock" };

  cr_assert_str_eq(find(&args)->path, "/x/http.sock");
  cr_assert_str_eq(find(&args)->url, "http://localhost");
  cr_assert_str_eq(find(&args)->shown, "/x/http.sock");
}

Test(where, a_ready_file_names_the_socket_and_the_address_for_those_who_may_not_use_it) {
  struct tk_client_args args = { .server = "@ready" };
  struct tk_endpoint where;

  write_file("ready", "agents=127.0.0.1:4000\nhttp=127.0.0.1:4001\nsock=./there\npid=1\n");
  cr_assert_str_eq(find(&args)->url, "http://127.0.0.1:4001");
  write_file("there", "");
  cr_assert_str_eq(find(&args)->path, "./there");
  write_file("ready", "agents=127.0.0.1:4000\n");
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_NOTFOUND);
  cr_assert_str_eq(diag.text, "ready: has no line http=");
  args.server = "@missing";
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_IO);
}

Test(where, without_a_server_the_sockets_here_are_looked_for) {
  struct tk_client_args args = { 0 };
  struct tk_endpoint where;

  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, "name one with --server, or start one: tracecollectd"), "%s",
                     diag.text);
  cr_assert_eq(mkdir("tracecollect-data", 0700), 0);
  write_file("tracecollect-data/http.sock", "");
  cr_assert_str_eq(find(&args)->path, "./tracecollect-data/http.sock");
}

Test(where, options_go_before_environment_before_file) {
  struct tk_client_args args = { 0 };

  cr_assert_eq(mkdir(".config", 0700), 0);
  write_file(".config/tracectl.conf",
             "# ours\n\n server = file.example \ncerts=/f\ntls_key = /f/other.key\n");
  cr_assert_str_eq(find(&args)->url, "https://file.example:7073");
  cr_assert_str_eq(find(&args)->cert, "/f/reader.pem");
  cr_assert_str_eq(find(&args)->key, "/f/other.key");
  setenv("TRACEAGENT_CERTS", "/a", 1);
  cr_assert_str_eq(find(&args)->ca, "/a/ca.pem");
  setenv("TRACECTL_SERVER", "env.example:1", 1);
  setenv("TRACECTL_CERTS", "/e", 1);
  setenv("TRACECTL_TLS_CERT", "/e/mine.pem", 1);
  cr_assert_str_eq(find(&args)->url, "https://env.example:1");
  cr_assert_str_eq(find(&args)->cert, "/e/mine.pem");
  cr_assert_str_eq(find(&args)->key, "/e/reader.key");
  args.server = "option.example";
  args.certs = "/o";
  args.tls_ca = "/o/roots.pem";
  cr_assert_str_eq(find(&args)->url, "https://option.example:7073");
  cr_assert_str_eq(find(&args)->cert, "/o/reader.pem");
  cr_assert_str_eq(find(&args)->ca, "/o/roots.pem");
}

Test(where, a_broken_file_is_named_with_its_line) {
  struct tk_client_args args = { .server = "h", .certs = "/c" };
  struct tk_endpoint where;

  setenv("TRACECTL_CONFIG", "c.conf", 1);
  write_file("c.conf", "server = a\nserwer = b\n");
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_BROKEN);
  cr_assert_eq(strncmp(diag.text, "c.conf:2: serwer: unknown key", 29), 0, "%s", diag.text);
  unlink("c.conf");
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_IO);
}

Test(where, a_certificate_wants_its_key_and_lists_their_authority) {
  struct tk_client_args args = { .server = "h" };
  struct tk_endpoint where;

  cr_assert_str_eq(find(&args)->ca, ""); /* empty: the system's authorities, and no certificate */
  args.tls_cert = "/c/mine.pem";
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_BROKEN);
  cr_assert_str_eq(diag.text, "--tls-cert and --tls-key belong together");
  args = (struct tk_client_args){ .server = "h", .tls_crl = "/c/crl.pem" };
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_BROKEN);
  cr_assert_str_eq(diag.text, "--tls-crl needs --tls-ca: whose lists they are");
}
