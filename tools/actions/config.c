/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/config.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

enum { LINE_BYTES = 4096, SECRET_LEAST = 16 };

static const char names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

/* Returns the next word without its quotes, NULL at the end. *out_closed: false if a quote has no end. Modifies the
 * line. */
static char *next_word(char **rest, bool *out_closed) {
  char *from = *rest + strspn(*rest, " \t"), *to = from, *word = from;
  bool quoted = false;

  *out_closed = true;
  if (*from == '\0' || *from == '#') return NULL;
  for (; *from != '\0' && (quoted || (*from != ' ' && *from != '\t')); from++) {
    if (*from == '"')
      quoted = !quoted;
    else
      *to++ = *from;
  }
  *out_closed = !quoted;
  *rest = *from != '\0' ? from + 1 : from;
  *to = '\0';
  return word;
}

static tb_rc split(char *line, char *words[], size_t max, size_t *out_n, struct tb_diag *diag) {
  bool closed = true;
  char *rest = line, *word;

  for (*out_n = 0; (word = next_word(&rest, &closed)) != NULL; words[(*out_n)++] = word) {
    if (!closed) return tb_fail(diag, TB_BROKEN, "a quote has no end");
    if (*out_n == max) return tb_fail(diag, TB_BROKEN, "more than %zu words", max);
  }
  return TB_OK;
}

static tb_rc decode(const char *text, struct ac_action *action, const char *path,
                    struct tb_diag *diag) {
  unsigned char bytes[AC_SECRET_MAX + 3];
  size_t len = strlen(text);
  int n = len % 4 == 0 ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) : -1;

  if (n < 0) return tb_fail(diag, TB_BROKEN, "%s: no base64 after \"whsec_\"", path);
  for (; len > 0 && text[len - 1] == '='; len--) n--;
  action->secret_bytes = (size_t)n;
  memcpy(action->secret, bytes, (size_t)n);
  return TB_OK;
}

static tb_rc take_secret(const char *path, struct ac_action *action, struct tb_diag *diag) {
  char text[AC_SECRET_MAX + 1] = "";
  FILE *file = tb_small_file(path);

  if (file == NULL) return tb_fail(diag, TB_IO, "%s: %s", path, tb_small_file_fault(errno));
  size_t n = fread(text, 1, sizeof text - 1, file);
  bool is_all = fgetc(file) == EOF;
  fclose(file);
  while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) text[--n] = '\0';
  if (!is_all) return tb_fail(diag, TB_BROKEN, "%s: more than %d bytes", path, AC_SECRET_MAX);
  if (strncmp(text, "whsec_", 6) == 0) {
    TB_TRY(decode(text + 6, action, path, diag));
  } else {
    memcpy(action->secret, text, n);
    action->secret_bytes = n;
  }
  OPENSSL_cleanse(text, sizeof text);
  if (action->secret_bytes >= SECRET_LEAST) return TB_OK;
  return tb_fail(diag, TB_BROKEN, "%s: a secret has at least %d bytes", path, SECRET_LEAST);
}

static tb_rc check_exec(const struct ac_action *action, struct tb_diag *diag) {
  const char *program = action->argv[0];

  if (program[0] != '/')
    return tb_fail(diag, TB_BROKEN, "\"%.200s\" is not a program's absolute path", program);
  if (access(program, X_OK) != 0)
    return tb_fail(diag, TB_BROKEN, "%.200s: %s", program, strerror(errno));
  return TB_OK;
}

static tb_rc check_webhook(struct ac_action *action, size_t n, struct tb_diag *diag) {
  const char *url = action->argv[0];

  if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
    return tb_fail(diag, TB_BROKEN, "\"%.200s\" is not a URL: https://... or http://...", url);
  for (size_t i = 1; i < n; i++) {
    if (strncmp(action->argv[i], "secret=", 7) != 0)
      return tb_fail(diag, TB_BROKEN, "\"%.200s\" cannot follow a URL: only secret=FILE",
                     action->argv[i]);
    TB_TRY(take_secret(action->argv[i] + 7, action, diag));
  }
  return TB_OK;
}

static tb_rc copy_words(char *const words[], size_t n, struct ac_action *out) {
  for (size_t i = 0; i < n; i++)
    if ((out->argv[i] = strdup(words[i])) == NULL) return TB_NOMEM;
  return TB_OK;
}

static tb_rc read_action(struct ac_config *config, char *words[], size_t n, struct tb_diag *diag) {
  struct ac_action *action = &config->action[config->n];

  if (strcmp(words[0], "exec") != 0 && strcmp(words[0], "webhook") != 0)
    return tb_fail(diag, TB_BROKEN, "\"%.60s\" is not an action: exec, webhook", words[0]);
  action->kind = words[0][0] == 'e' ? AC_EXEC : AC_WEBHOOK;
  size_t len = n > 1 ? strlen(words[1]) : 0;
  if (len == 0 || len > AC_NAME_MAX || strspn(words[1], names) != len)
    return tb_fail(diag, TB_BROKEN, "\"%.60s\" is not a name: letters, digits and ._:-, at most %d",
                   n > 1 ? words[1] : "", AC_NAME_MAX);
  if (n < 3)
    return tb_fail(diag, TB_BROKEN, "%s %s: a %s is required", words[0], words[1],
                   action->kind == AC_EXEC ? "command" : "URL");
  snprintf(action->id, sizeof action->id, "%s:%s", words[0], words[1]);
  for (unsigned i = 0; i < config->n; i++)
    if (strcmp(config->action[i].id, action->id) == 0)
      return tb_fail(diag, TB_BROKEN, "there is %s %s already", words[0], words[1]);
  config->n++;
  TB_TRY(copy_words(words + 2, n - 2, action));
  return action->kind == AC_EXEC ? check_exec(action, diag) : check_webhook(action, n - 2, diag);
}

static tb_rc read_line(struct ac_config *config, char *line, struct tb_diag *diag) {
  char *words[AC_WORDS_MAX + 2];
  size_t n;

  TB_TRY(split(line, words, AC_WORDS_MAX + 2, &n, diag));
  if (n == 0) return TB_OK;
  if (config->n == AC_ACTIONS_MAX)
    return tb_fail(diag, TB_BROKEN, "more than %d actions", AC_ACTIONS_MAX);
  return read_action(config, words, n, diag);
}

static tb_rc read_lines(FILE *file, const char *path, struct tb_diag *diag, struct ac_config *out) {
  char line[LINE_BYTES];
  struct tb_diag why;

  for (unsigned number = 1; fgets(line, sizeof line, file) != NULL; number++) {
    size_t len = strcspn(line, "\n");
    if (line[len] == '\0' && !feof(file))
      return tb_fail(diag, TB_BROKEN, "%s line %u: more than %d bytes", path, number, LINE_BYTES);
    line[len] = '\0';
    tb_diag_clear(&why);
    tb_rc rc = read_line(out, line, &why);
    if (rc != TB_OK) return tb_fail(diag, rc, "%s line %u: %s", path, number, why.text);
  }
  return TB_OK;
}

tb_rc ac_config_read(const char *path, struct tb_diag *diag, struct ac_config *out) {
  FILE *file = tb_small_file(path);

  *out = (struct ac_config){ .n = 0 };
  if (file == NULL) return tb_fail(diag, TB_IO, "%s: %s", path, tb_small_file_fault(errno));
  tb_rc rc = read_lines(file, path, diag, out);
  fclose(file);
  if (rc == TB_OK && out->n == 0) rc = tb_fail(diag, TB_BROKEN, "%s: no action in it", path);
  return rc;
}

void ac_config_free(struct ac_config *config) {
  for (unsigned i = 0; i < config->n; i++) {
    for (size_t w = 0; config->action[i].argv[w] != NULL; w++) free(config->action[i].argv[w]);
    OPENSSL_cleanse(config->action[i].secret, sizeof config->action[i].secret);
  }
  config->n = 0;
}
