/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl certs: a private authority, without a question asked. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "collector/certs.h"
#include "tools/tracectl/tracectl.h"

static void say(bool json, const char *dir, const char *name) {
  if (!json) {
    printf("%s/%s.pem %s/%s.key\n", dir, name, dir, name);
    return;
  }
  json_t *line = json_object();
  json_object_set_new(line, "certificate", json_sprintf("%s/%s.pem", dir, name));
  json_object_set_new(line, "key", json_sprintf("%s/%s.key", dir, name));
  json_dumpf(line, stdout, JSON_COMPACT);
  fputc('\n', stdout);
  json_decref(line);
}

static int init(bool json, const char *dir) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_certs_init(dir, &diag) != TB_OK) return tk_fail("certs", "%s", diag.text);
  say(json, dir, "ca");
  for (int role = 0; role < TC_ROLES; role++) say(json, dir, tc_role_name(role));
  return TK_DONE;
}

static int add(bool json, enum tc_role role, const char *dir, const char *wanted) {
  char name[TC_CERT_NAME_MAX + 1];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_certs_add(dir, role, wanted, &diag, name) != TB_OK)
    return tk_fail("certs", "%s", diag.text);
  say(json, dir, name);
  return TK_DONE;
}

int tk_cmd_certs(int argc, char **argv) {
  static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { 0 } };
  bool json = false;

  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c != 'j') return tk_usage_hint("certs");
    json = true;
  }
  argc -= optind;
  argv += optind;
  if (argc < 2) return tk_usage("certs", "what to make and a folder are wanted");
  if (strcmp(argv[0], "init") == 0) {
    if (argc > 2) return tk_usage("certs", "init takes a folder and nothing else");
    return init(json, argv[1]);
  }
  for (int role = 0; role < TC_ROLES; role++)
    if (strcmp(argv[0], tc_role_name(role)) == 0) {
      if (argc > 3) return tk_usage("certs", "\"%s\" is one argument too many", argv[3]);
      return add(json, role, argv[1], argc == 3 ? argv[2] : "");
    }
  return tk_usage("certs", "\"%s\" is none of init, agent, reader, server", argv[0]);
}
