/* SPDX-License-Identifier: Apache-2.0 */
#include "post/post.h"

#include <curl/curl.h>
#include <poll.h>

tb_rc tp_post_init(void) {
  return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? TB_OK : TB_NOMEM;
}

/* NULL: no memory. */
static struct curl_slist *copy_headers(const char *const *headers) {
  struct curl_slist *list = curl_slist_append(NULL, "Expect:"); /* the body goes at once */

  for (; list != NULL && *headers != NULL; headers++) {
    struct curl_slist *more = curl_slist_append(list, *headers);
    if (more == NULL) curl_slist_free_all(list);
    list = more;
  }
  return list;
}

static size_t ignore(char *bytes, size_t size, size_t n, void *self) {
  (void)bytes, (void)self;
  return size * n;
}

/* Called at least once a second. */
static int is_stopped(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  struct pollfd fd = { .fd = *(const int *)self, .events = POLLIN };

  (void)a, (void)b, (void)c, (void)d;
  return poll(&fd, 1, 0) > 0; /* never of -1 */
}

static tb_rc perform(CURL *curl, const struct tp_post *post, const struct curl_slist *headers,
                     struct tb_diag *diag, struct tp_posted *out) {
  char why[CURL_ERROR_SIZE] = "";
  curl_off_t retry_after_s = 0;
  int stop_fd = post->stop_fd;
  long status = 0;

  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_URL, post->url);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tracecollect");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->len);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)post->timeout_s);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_stopped);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &stop_fd);
  CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_ABORTED_BY_CALLBACK) return tb_fail(diag, TB_BUSY, "stopped");
  if (code != CURLE_OK)
    return tb_fail(diag, TB_IO, "%s", why[0] != '\0' ? why : curl_easy_strerror(code));
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after_s);
  *out = (struct tp_posted){ .status = (unsigned)status, .retry_after_s = (unsigned)retry_after_s };
  return TB_OK;
}

tb_rc tp_post(const struct tp_post *post, struct tb_diag *diag, struct tp_posted *out) {
  struct curl_slist *headers = copy_headers(post->headers);
  CURL *curl = headers != NULL ? curl_easy_init() : NULL;
  tb_rc rc = curl != NULL ? perform(curl, post, headers, diag, out)
                          : tb_fail(diag, TB_NOMEM, "out of memory");

  curl_easy_cleanup(curl);
  curl_slist_free_all(headers);
  return rc;
}
