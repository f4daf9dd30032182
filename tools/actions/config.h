/* SPDX-License-Identifier: Apache-2.0 */
/* What tracecollect-actions does, as its file says: an action a line, and # begins a comment.
 *
 *     exec    page  /usr/local/bin/page --team "on call"
 *     webhook chat  https://chat.example/hooks/1 secret=/etc/tracecollect/chat.secret
 *
 * The second word is what rules name: DO exec page, webhook chat. A command is run as it stands here, without a shell: its program
 * by an absolute path, words in quotes as one. A secret signs what is sent (webhook.h): its file holds it as text, or
 * as "whsec_" and base64.
 *
 * Memory    the caller frees what it has read.
 * Errors    TB_IO: a file cannot be read; TB_BROKEN: file, line and word; TB_NOMEM.
 */
#ifndef AC_CONFIG_H
#define AC_CONFIG_H

#include <stddef.h>

#include "base/result.h"

enum { AC_RULES_MAX = 32, AC_RULE_MAX = 32 }; /* as of the collector's rules, and their names */
enum { AC_ACTIONS_MAX = 32, AC_NAME_MAX = 32, AC_WORDS_MAX = 32, AC_SECRET_MAX = 256 };

enum ac_kind { AC_EXEC, AC_WEBHOOK };

struct ac_action {
  enum ac_kind kind;
  char id[8 + AC_NAME_MAX + 1]; /* "exec:page", as firings name it */
  char *argv[AC_WORDS_MAX + 1]; /* of a command, NULL behind it; of a webhook the URL alone */
  unsigned char secret[AC_SECRET_MAX];
  size_t secret_bytes; /* 0: what is sent is not signed */
};

struct ac_config {
  struct ac_action action[AC_ACTIONS_MAX];
  unsigned n;
};

TB_MUST tb_rc ac_config_read(const char *path, struct tb_diag *diag, struct ac_config *out);
void ac_config_free(struct ac_config *config); /* accepts one that could not be read */

#endif
