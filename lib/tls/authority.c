/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which certificates of a folder must be made; issue.c makes them. */
#include "tls/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/cert_path.h"
#include "tls/issue.h"

static void closep(int *fd) {
  if (*fd >= 0) close(*fd);
}

static tb_rc open_dir(const char *dir, bool make, struct tb_diag *diag, int *out) {
  if (make && mkdir(dir, 0700) != 0 && errno != EEXIST)
    return tb_fail(diag, TB_IO, "%s: %s", dir, strerror(errno));
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return tb_fail(diag, TB_IO, "%s: %s%s", dir, strerror(errno),
                   errno == ENOENT ? "; tracectl certs init makes such a folder" : "");
  *out = fd;
  return TB_OK;
}

tb_rc tc__certs_lock(const char *dir, struct tb_diag *diag, int *out) {
  TB_CLEANUP(closep) int fd = -1;

  TB_TRY(open_dir(dir, false, diag, &fd));
  while (flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) return tb_fail(diag, TB_IO, "%s: %s", dir, strerror(errno));
  if (!tc__certs_has(fd, "ca", ".pem"))
    return tb_fail(diag, TB_NOTFOUND, "%s holds no ca.pem: make one with tracectl certs init", dir);
  *out = fd;
  fd = -1;
  return TB_OK;
}

bool tc__certs_has(int dir_fd, const char *name, const char *suffix) {
  char file[TC__CERT_FILE_BYTES];

  snprintf(file, sizeof file, "%s%s", name, suffix);
  return faccessat(dir_fd, file, F_OK, 0) == 0;
}

static bool is_taken(int dir_fd, const char *name) {
  return tc__certs_has(dir_fd, name, ".pem") || tc__certs_has(dir_fd, name, ".key") ||
         strcmp(name, "ca") == 0 || strcmp(name, "crl") == 0;
}

/* The name is used for files and in a URI: it starts with a letter or digit, so that the file is not hidden and the name is
 * not an option. */
bool tc__certs_name_fits(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");

  return n > 0 && n <= TC_CERT_NAME_MAX && name[n] == '\0' && strchr(letters, name[0]) != NULL;
}

static long or_else(long days, long otherwise) {
  return days > 0 ? days : otherwise;
}

static tb_rc add_roles(int dir_fd, const char *dir, long days, struct tb_diag *diag) {
  for (int role = 0; role < TC_ROLES; role++)
    if (!tc__certs_has(dir_fd, tc_role_name(role), ".pem"))
      TB_TRY(tc__certs_issue(dir_fd, dir, role, tc_role_name(role), false, days, diag));
  return TB_OK;
}

tb_rc tc_certs_init(const char *dir, struct tc_cert_days days, struct tb_diag *diag) {
  TB_CLEANUP(closep) int fd = -1;

  TB_TRY(open_dir(dir, true, diag, &fd));
  if (tc__certs_has(fd, "ca", ".pem"))
    return tb_fail(
        diag, TB_REFUSED,
        "%s/ca.pem exists; nothing was changed: certs agent, reader and server add to it", dir);
  TB_TRY(tc__certs_authority(fd, dir, or_else(days.authority, TC_AUTHORITY_DAYS), diag));
  return add_roles(fd, dir, or_else(days.certificate, TC_CERTIFICATE_DAYS), diag);
}

tb_rc tc_certs_ensure(const char *dir, struct tb_diag *diag, char out_made[TC_FINGERPRINT_BYTES]) {
  TB_CLEANUP(closep) int fd = -1;

  *out_made = '\0';
  TB_TRY(open_dir(dir, true, diag, &fd));
  if (!tc__certs_has(fd, "ca", ".pem")) {
    TB_TRY(tc__certs_authority(fd, dir, TC_AUTHORITY_DAYS, diag));
    TB_TRY(tc__certs_fingerprint(fd, dir, diag, out_made));
  }
  if (tc__certs_has(fd, "server", ".pem") && !tc__certs_has(fd, "ca", ".key")) return TB_OK;
  return add_roles(fd, dir, TC_CERTIFICATE_DAYS, diag);
}

static tb_rc require(const char *dir, enum tb_cert_file file, struct tb_diag *diag) {
  char path[PATH_MAX];
  struct tb_diag why;

  tb_diag_clear(&why);
  if (tb_cert_path(dir, "server", file, &why, path) != TB_OK)
    return tb_fail(diag, TB_NOTFOUND, "certs: %s", why.text);
  if (access(path, R_OK) == 0) return TB_OK;
  return tb_fail(diag, TB_NOTFOUND,
                 "certs: %s: %s; ca.pem, server.pem and server.key are needed there (or ca.crt, "
                 "tls.crt and tls.key)",
                 path, strerror(errno));
}

tb_rc tc_certs_require(const char *dir, struct tb_diag *diag) {
  TB_CLEANUP(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0)
    return tb_fail(diag, TB_NOTFOUND, "certs: %s: %s%s", dir, strerror(errno),
                   errno == ENOENT ? "; tracectl certs init makes such a folder" : "");
  for (int file = 0; file < TB_CERT_FILES; file++) TB_TRY(require(dir, file, diag));
  return TB_OK;
}

tb_rc tc_certs_add(const char *dir, enum tc_role role, const char *name, long days,
                   struct tb_diag *diag, char out_name[TC_CERT_NAME_MAX + 1]) {
  TB_CLEANUP(closep) int fd = -1;
  char free_name[TC_CERT_NAME_MAX + 1];

  TB_TRY(open_dir(dir, false, diag, &fd));
  if (!tc__certs_has(fd, "ca", ".pem"))
    return tb_fail(diag, TB_NOTFOUND, "%s holds no ca.pem: make one with tracectl certs init", dir);
  if (*name != '\0' && !tc__certs_name_fits(name))
    return tb_fail(
        diag, TB_REFUSED,
        "\"%.80s\" is not a name: 1 to 64 of A-Z a-z 0-9 . _ : -, a letter or digit first", name);

  snprintf(free_name, sizeof free_name, "%s", *name != '\0' ? name : tc_role_name(role));
  for (unsigned i = 2; *name == '\0' && is_taken(fd, free_name); i++)
    snprintf(free_name, sizeof free_name, "%s-%u", tc_role_name(role), i);
  if (is_taken(fd, free_name))
    return tb_fail(
        diag, TB_REFUSED,
        "%s holds %s.pem or its key; nothing was changed: give another name, or renew it", dir,
        free_name);
  TB_TRY(tc__certs_issue(fd, dir, role, free_name, *name != '\0',
                         or_else(days, TC_CERTIFICATE_DAYS), diag));
  memcpy(out_name, free_name, sizeof free_name);
  return TB_OK;
}
