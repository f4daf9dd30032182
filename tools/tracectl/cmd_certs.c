/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl certs: a private authority, its certificates and its revocation list, without questions. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"
#include "tls/authority.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/term/tracectl.h"

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

struct options {
  bool json, new_key, pack;
  const char *password_file;
  long days, authority_days; /* 0: default */
};

static int init(const struct options *o, const char *dir) {
  struct tc_cert_days days = { o->authority_days, o->days };
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_certs_init(dir, days, &diag) != TB_OK) return tk_fail("certs", "%s", diag.text);
  say(o->json, dir, "ca");
  for (int role = 0; role < TC_ROLES; role++) say(o->json, dir, tc_role_name(role));
  return TK_DONE;
}

/* --- for a browser ----------------------------------------------------------------------------- */

enum { PASSWORD_MAX = 255, GROUPS = 5, GROUP = 4 };

/* 100 random bits, in letters and digits that are not mistaken for each other. */
static bool make_password(char out[PASSWORD_MAX + 1]) {
  static const char letters[33] = "abcdefghijkmnpqrstuvwxyz23456789";
  unsigned char random[GROUPS * GROUP];
  char *at = out;

  if (RAND_bytes(random, sizeof random) != 1) return false;
  for (size_t i = 0; i < sizeof random; i++) {
    if (i > 0 && i % GROUP == 0) *at++ = '-';
    *at++ = letters[random[i] % 32];
  }
  *at = '\0';
  return true;
}

/* Reads the file's first line. */
static int read_password(const char *path, char out[PASSWORD_MAX + 1]) {
  FILE *file = tb_small_file(path);
  char line[PASSWORD_MAX + 3] = "";

  if (file == NULL) return tk_fail("certs", "%s: %s", path, tb_small_file_fault(errno));
  bool is_read = fgets(line, sizeof line, file) != NULL;
  fclose(file);
  line[strcspn(line, "\r\n")] = '\0';
  if (!is_read || *line == '\0') return tk_fail("certs", "%s: its first line is no password", path);
  if (strlen(line) > PASSWORD_MAX)
    return tk_fail("certs", "%s: the password has more than %d bytes", path, PASSWORD_MAX);
  memcpy(out, line, strlen(line) + 1);
  return TK_DONE;
}

/* made: a password that is shown this once. */
static void say_pack(bool json, const char *dir, const char *name, const char *made) {
  if (!json) {
    printf("%s/%s.p12", dir, name);
    if (made != NULL) printf(", its password: %s", made);
    putchar('\n');
    return;
  }
  json_t *line = json_object();
  json_object_set_new(line, "p12", json_sprintf("%s/%s.p12", dir, name));
  if (made != NULL) json_object_set_new(line, "password", json_string(made));
  json_dumpf(line, stdout, JSON_COMPACT);
  fputc('\n', stdout);
  json_decref(line);
}

static int pack(const struct options *o, const char *dir, const char *name) {
  char password[PASSWORD_MAX + 1];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (o->password_file != NULL) {
    int code = read_password(o->password_file, password);
    if (code != TK_DONE) return code;
  } else if (!make_password(password)) {
    return tk_fail("certs", "no random bytes for a password");
  }
  tb_rc rc = tc_certs_pack(dir, name, password, &diag);
  if (rc == TB_OK) say_pack(o->json, dir, name, o->password_file == NULL ? password : NULL);
  OPENSSL_cleanse(password, sizeof password);
  return rc == TB_OK ? TK_DONE : tk_fail("certs", "%s", diag.text);
}

static bool exists(const char *dir, const char *name) {
  char path[PATH_MAX];

  return *name != '\0' && snprintf(path, sizeof path, "%s/%s.pem", dir, name) < PATH_MAX &&
         access(path, F_OK) == 0;
}

static int add_certificate(const struct options *o, enum tc_role role, const char *dir,
                           const char *wanted) {
  char name[TC_CERT_NAME_MAX + 1];
  struct tb_diag diag;

  if (o->pack && exists(dir, wanted)) return pack(o, dir, wanted);
  tb_diag_clear(&diag);
  if (tc_certs_add(dir, role, wanted, o->days, &diag, name) != TB_OK)
    return tk_fail("certs", "%s", diag.text);
  say(o->json, dir, name);
  return o->pack ? pack(o, dir, name) : TK_DONE;
}

static int renew(const struct options *o, const char *dir, const char *name) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_certs_renew(dir, name, o->days, o->new_key, &diag) != TB_OK)
    return tk_fail("certs", "%s", diag.text);
  say(o->json, dir, name);
  return TK_DONE;
}

static void say_revoked(bool json, const char *dir, const struct tc_certs_revoked *done) {
  if (!json) {
    printf("%s/crl.pem: %s %s; %u in the list\n", dir, done->serial,
           done->added > 0 ? "is revoked" : "was revoked before", done->listed);
    return;
  }
  json_t *line = json_object();
  json_object_set_new(line, "list", json_sprintf("%s/crl.pem", dir));
  json_object_set_new(line, "serial", json_string(done->serial));
  json_object_set_new(line, "revoked", json_integer(done->added));
  json_object_set_new(line, "listed", json_integer(done->listed));
  json_dumpf(line, stdout, JSON_COMPACT);
  fputc('\n', stdout);
  json_decref(line);
}

static int revoke_all(const struct options *o, const char *dir, char **whats, int n) {
  struct tc_certs_revoked done;
  struct tb_diag diag;

  for (int i = 0; i < n; i++) {
    tb_diag_clear(&diag);
    if (tc_certs_revoke(dir, whats[i], o->days, &diag, &done) != TB_OK)
      return tk_fail("certs", "%s", diag.text);
    say_revoked(o->json, dir, &done);
  }
  return TK_DONE;
}

static tb_rc read_days(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  char *end, wanted[40];
  long *days = field;

  *days = strtol(value, &end, 10);
  if (*value >= '0' && *value <= '9' && *end == '\0' && *days >= 1 && *days <= TC_DAYS_MAX)
    return TB_OK;
  snprintf(wanted, sizeof wanted, "1 to %d days", TC_DAYS_MAX);
  return tk_option_needs(option, wanted, value, diag);
}

#define AT(member) offsetof(struct options, member)
const struct tk_option tk_certs_options[] = {
  TK_HELP("init DIR", "make the authority: ca, server, agent, reader and peer as .pem and .key"),
  TK_HELP("agent|reader|server DIR NAME",
          "make one more, NAME.pem and NAME.key; without NAME a free one is taken"),
  TK_HELP("renew DIR NAME",
          "renew NAME.pem, with the same key; the old one is kept as NAME.SERIAL.pem and stays "
          "valid; NAME ca: the authority itself, which all must be given then"),
  TK_HELP("revoke DIR WHAT...",
          "revoke certificates: DIR/crl.pem lists them, a collector reads it (its key tls.crl). "
          "WHAT is a NAME, with all that DIR holds of it, renewed ones too; a FILE (with a / or "
          "ending in .pem); or a serial number, as the collector's log has it"),
  TK_OPTION(0, "days", "N", read_days, AT(days),
            "how long the certificate is valid, default: 730, an authority's renewal 3650, at most "
            "as long as the authority; for revoke, until the next list is due"),
  TK_OPTION(0, "authority-days", "N", read_days, AT(authority_days),
            "the same for the authority that init makes, default: 3650"),
  TK_OPTION(0, "new-key", NULL, tk_read_flag, AT(new_key), "renew with another key"),
  TK_OPTION(
      0, "p12", NULL, tk_read_flag, AT(pack),
      "reader: for a browser to import, write NAME.p12, too: certificate, key and authority, of a "
      "NAME that exists as well"),
  TK_OPTION(0, "p12-password-file", "FILE", tk_read_text, AT(password_file),
            "its password is the first line of FILE; default: one is made, and printed once"),
  TK_OPTION(0, "json", NULL, tk_read_flag, AT(json), "one JSON object a certificate"),
  { 0 },
};

static int check_options(const struct options *o, const char *verb) {
  if (o->pack && strcmp(verb, "reader") != 0)
    return tk_usage("certs", "--p12 is for reader only: it is for a browser");
  if (o->password_file != NULL && !o->pack)
    return tk_usage("certs", "--p12-password-file is for --p12 only");
  if (o->new_key && strcmp(verb, "renew") != 0)
    return tk_usage("certs", "--new-key is for renew only");
  if (o->authority_days != 0 && strcmp(verb, "init") != 0)
    return tk_usage("certs", "--authority-days is for init only; renew DIR ca takes --days");
  return TK_DONE;
}

static int run_verb(const struct options *o, int argc, char **argv) {
  const char *verb = argv[0], *dir = argv[1];

  if (strcmp(verb, "init") == 0) {
    if (argc > 2) return tk_usage("certs", "init: one DIR is required, and nothing else");
    return init(o, dir);
  }
  if (strcmp(verb, "renew") == 0) {
    if (argc != 3) return tk_usage("certs", "renew: DIR and one NAME are required");
    return renew(o, dir, argv[2]);
  }
  if (strcmp(verb, "revoke") == 0) {
    if (argc < 3)
      return tk_usage("certs", "revoke: DIR is required, and a NAME, FILE or serial number");
    return revoke_all(o, dir, argv + 2, argc - 2);
  }
  for (int role = 0; role < TC_ROLES; role++)
    if (strcmp(verb, tc_role_name(role)) == 0) {
      if (argc > 3) return tk_usage("certs", "unexpected argument '%s'", argv[3]);
      return add_certificate(o, role, dir, argc == 3 ? argv[2] : "");
    }
  return tk_usage("certs", "'%s' is not one of init, agent, reader, server, renew, revoke", verb);
}

int tk_cmd_certs(int argc, char **argv) {
  struct options o = { 0 };
  int code = tk_options_read(argc, argv, tk_certs_options, &o);

  if (code != TK_DONE) return code;
  argc -= optind;
  argv += optind;
  if (argc < 2)
    return tk_usage("certs", "init, agent, reader, server, renew or revoke, and DIR, are required");
  code = check_options(&o, argv[0]);
  return code == TK_DONE ? run_verb(&o, argc, argv) : code;
}
