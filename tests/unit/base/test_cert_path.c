/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/cert_path.h"

static char folder[] = "/tmp/tb_cert_path_XXXXXX";
static struct tb_diag diag;

static void make_folder(void) {
  cr_assert_not_null(mkdtemp(folder));
  cr_assert_eq(chdir(folder), 0);
}

static void remove_folder(void) {
  char command[64];

  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(cert_path, .init = make_folder, .fini = remove_folder);

static void touch(const char *name) {
  FILE *f = fopen(name, "w");

  cr_assert_not_null(f);
  fclose(f);
}

static void expect(enum tb_cert_file file, const char *name) {
  char path[PATH_MAX];

  tb_diag_clear(&diag);
  cr_assert_eq(tb_cert_path(folder, "agent", file, &diag, path), TB_OK, "%s", diag.text);
  cr_expect_str_eq(strrchr(path, '/') + 1, name);
  cr_expect_eq(strncmp(path, folder, strlen(folder)), 0, "%s", path);
}

Test(cert_path, each_file_has_one_of_two_names) {
  static const char *const names[TB_CERT_FILES][2] = { { "ca.pem", "ca.crt" },
                                                       { "agent.pem", "tls.crt" },
                                                       { "agent.key", "tls.key" } };
  char path[PATH_MAX], words[300];

  for (int file = 0; file < TB_CERT_FILES; file++) {
    expect(file, names[file][0]); /* named, though it does not exist */
    touch(names[file][1]);
    expect(file, names[file][1]);
    touch(names[file][0]);
    tb_diag_clear(&diag);
    cr_expect_eq(tb_cert_path(folder, "agent", file, &diag, path), TB_CORRUPT);
    snprintf(words, sizeof words, "%s has both %s and %s, two names of the same file: remove one",
             folder, names[file][0], names[file][1]);
    cr_expect_str_eq(diag.text, words);
    cr_assert_eq(unlink(names[file][1]), 0);
    expect(file, names[file][0]);
  }
}

Test(cert_path, a_link_to_nothing_is_no_file) {
  cr_assert_eq(symlink("..data/tls.crt", "tls.crt"), 0);
  expect(TB_CERT_CHAIN, "agent.pem");
}

Test(cert_path, a_folder_with_too_long_a_name_is_refused) {
  char path[PATH_MAX], name[PATH_MAX];

  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  tb_diag_clear(&diag);
  cr_expect_eq(tb_cert_path(name, "agent", TB_CERT_CA, &diag, path), TB_IO);
  cr_expect_not_null(strstr(diag.text, "the path is too long"), "%s", diag.text);
}
