/* SPDX-License-Identifier: Apache-2.0 */
/* The file of tracecollect-actions: one action a line; # begins a comment.
 *
 *     exec    page  /usr/local/bin/page --team "on call"
 *     webhook chat  https://chat.example/hooks/1 secret=/etc/tracecollect/chat.secret
 *
 * The second word is the name that rules use: DO exec page, webhook chat. A command runs without a shell: an absolute path, and
 * words, quoted if they contain spaces. A secret signs what is posted (webhook.h): its file has it as text, or as "whsec_" and base64.
 *
 * Memory    the caller frees the configuration.
 * Errors    TB_IO: a file cannot be read; TB_BROKEN: file, line and word; TB_NOMEM.
 */
#ifndef AC_CONFIG_H
#define AC_CONFIG_H

#include <stddef.h>

#include "base/result.h"

/* equal to the collector's limits of rules and their names */
enum { AC_RULES_MAX = 32, AC_RULE_MAX = 32 };
enum { AC_ACTIONS_MAX = 32, AC_NAME_MAX = 32, AC_WORDS_MAX = 32, AC_SECRET_MAX = 256 };

enum ac_kind { AC_EXEC, AC_WEBHOOK };

struct ac_action {
  enum ac_kind kind;
  char id[8 + AC_NAME_MAX + 1]; /* "exec:page", as firings name it */
  char *argv[AC_WORDS_MAX + 1]; /* a command's words, NULL-terminated; a webhook's URL */
  unsigned char secret[AC_SECRET_MAX];
  size_t secret_bytes; /* 0: posts are not signed */
};

struct ac_config {
  struct ac_action action[AC_ACTIONS_MAX];
  unsigned n;
};

TB_MUST tb_rc ac_config_read(const char *path, struct tb_diag *diag, struct ac_config *out);
void ac_config_free(struct ac_config *config); /* accepts one that could not be read */

#endif
