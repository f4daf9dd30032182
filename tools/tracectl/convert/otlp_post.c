/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/convert/otlp_post.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/hex.h"
#include "tools/tracectl/remote/post.h"

#define HEADERS_VARIABLE "OTEL_EXPORTER_OTLP_HEADERS"

enum { HEADERS_MAX = 16, TRIES = 6, TIMEOUT_S = 30, PAUSE_MAX_S = 60 };

struct tk_otlp_post {
  char *url;
  char *headers[HEADERS_MAX + 2]; /* NULL-terminated */
};

/* Decodes in place. Returns false if a % is not followed by two hexadecimal digits. */
static bool percent_decode(char *text) {
  char *to = text;

  for (; *text != '\0'; text++) {
    if (*text == '%') {
      if (!tb_unhex(text + 1, (unsigned char *)to++, 1)) return false;
      text += 2;
    } else {
      *to++ = *text;
    }
  }
  *to = '\0';
  return true;
}

/* Converts "NAME=VALUE" to "NAME: VALUE". */
static tb_rc add_header(struct tk_otlp_post *post, size_t at, char *pair, struct tb_diag *diag) {
  pair += strspn(pair, " ");
  char *value = strchr(pair, '=');

  if (value == NULL || value == pair)
    return tb_fail(diag, TB_BROKEN, HEADERS_VARIABLE ": \"%.40s\" is not NAME=VALUE", pair);
  *value++ = '\0';
  if (!percent_decode(value) || strpbrk(pair, " :\r\n") != NULL || strpbrk(value, "\r\n") != NULL)
    return tb_fail(diag, TB_BROKEN, HEADERS_VARIABLE ": the value of \"%.40s\" is wrong", pair);
  return asprintf(&post->headers[at], "%s: %s", pair, value) < 0 ? TB_NOMEM : TB_OK;
}

static tb_rc read_headers(struct tk_otlp_post *post, char *text, struct tb_diag *diag) {
  size_t n = 0;

  if ((post->headers[n++] = strdup("Content-Type: application/x-protobuf")) == NULL)
    return TB_NOMEM;
  while (text != NULL && *text != '\0') {
    char *pair = strsep(&text, ",");
    if (n > HEADERS_MAX)
      return tb_fail(diag, TB_BROKEN, HEADERS_VARIABLE ": more than %d headers", HEADERS_MAX);
    TB_TRY(add_header(post, n++, pair, diag));
  }
  return TB_OK;
}

static char *endpoint(const char *url, const char *path) {
  size_t len = strlen(url), path_len = strlen(path);
  char *whole;

  if (len >= path_len && strcmp(url + len - path_len, path) == 0) return strdup(url);
  if (len > 0 && url[len - 1] == '/') len--;
  return asprintf(&whole, "%.*s%s", (int)len, url, path) < 0 ? NULL : whole;
}

static tb_rc begin(struct tk_otlp_post *post, const char *url, const char *path,
                   struct tb_diag *diag) {
  const char *variable = getenv(HEADERS_VARIABLE);
  char *headers = strdup(variable != NULL ? variable : "");
  tb_rc rc = headers != NULL ? read_headers(post, headers, diag) : TB_NOMEM;

  free(headers);
  if (rc == TB_OK) rc = tp_post_init();
  if (rc == TB_OK && (post->url = endpoint(url, path)) == NULL) rc = TB_NOMEM;
  return rc;
}

tb_rc tk_otlp_post_new(const char *url, const char *path, struct tb_diag *diag,
                       struct tk_otlp_post **out) {
  struct tk_otlp_post *post = calloc(1, sizeof *post);
  tb_rc rc = post != NULL ? begin(post, url, path, diag) : TB_NOMEM;

  if (rc == TB_OK)
    *out = post;
  else
    tk_otlp_post_free(post);
  return rc;
}

void tk_otlp_post_free(struct tk_otlp_post *post) {
  if (post == NULL) return;
  for (size_t i = 0; post->headers[i] != NULL; i++) free(post->headers[i]);
  free(post->url);
  free(post);
}

static bool is_passing(unsigned status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

tb_rc tk_otlp_post(struct tk_otlp_post *post, const void *message, size_t len,
                   struct tb_diag *diag) {
  const struct tp_post one = { .url = post->url,
                               .headers = (const char *const *)post->headers,
                               .body = message,
                               .len = len,
                               .timeout_s = TIMEOUT_S,
                               .stop_fd = -1 };
  struct tp_posted posted;
  struct tb_diag why;

  for (unsigned tries = 1, pause_s = 1;; tries++, pause_s *= 2) {
    tb_diag_clear(&why);
    tb_rc rc = tp_post(&one, &why, &posted);
    if (rc != TB_OK) return tb_fail(diag, rc, "%.150s: %.300s", post->url, why.text);
    if (posted.status >= 200 && posted.status < 300) return TB_OK;
    if (!is_passing(posted.status) || tries == TRIES)
      return tb_fail(diag, TB_IO, "%.150s: the answer is %u", post->url, posted.status);
    if (posted.retry_after_s > pause_s) pause_s = posted.retry_after_s;
    if (pause_s > PAUSE_MAX_S) pause_s = PAUSE_MAX_S;
    poll(NULL, 0, (int)pause_s * 1000);
  }
}
