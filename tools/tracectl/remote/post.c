/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/post.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>

/* limits for reading an answer's body, so that the connection ends cleanly */
enum { BODY_BYTES_MAX = 64 << 10, BODY_S = 1 };

tb_rc tp_post_init(void) {
  return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? TB_OK : TB_NOMEM;
}

static time_t now_s(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec;
}

/* Returns NULL if memory cannot be allocated. */
static struct curl_slist *copy_headers(const char *const *headers) {
  struct curl_slist *list = curl_slist_append(NULL, "Expect:"); /* send the body at once */

  for (; list != NULL && *headers != NULL; headers++) {
    struct curl_slist *more = curl_slist_append(list, *headers);
    if (more == NULL) curl_slist_free_all(list);
    list = more;
  }
  return list;
}

/* Result. The answer's head decides: its body may stall, or never end. */
struct call {
  CURL *curl;
  int stop_fd;
  bool is_stopped, has_status;
  size_t body_bytes;
  time_t answered_s;
};

/* Takes a line of a head; an empty line ends it. */
static size_t take_head(char *bytes, size_t size, size_t n, void *self) {
  struct call *call = self;
  long status = 0;

  if (size * n > 0 && (bytes[0] == '\r' || bytes[0] == '\n'))
    curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && !call->has_status) { /* 1xx: another head follows */
    call->has_status = true;
    call->answered_s = now_s();
  }
  return size * n;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *self) {
  struct call *call = self;

  (void)bytes;
  call->body_bytes += size * n;
  return call->body_bytes <= BODY_BYTES_MAX ? size * n : CURL_WRITEFUNC_ERROR;
}

/* curl calls it at least once a second. */
static int is_over(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  struct call *call = self;
  struct pollfd fd = { .fd = call->stop_fd, .events = POLLIN };

  (void)a, (void)b, (void)c, (void)d;
  call->is_stopped = !call->has_status && poll(&fd, 1, 0) > 0; /* poll ignores a descriptor of -1 */
  return call->is_stopped || (call->has_status && now_s() > call->answered_s + BODY_S);
}

static tb_rc perform(CURL *curl, const struct tp_post *post, const struct curl_slist *headers,
                     struct tb_diag *diag, struct tp_posted *out) {
  char why[CURL_ERROR_SIZE] = "";
  curl_off_t retry_after_s = 0;
  struct call call = { .curl = curl, .stop_fd = post->stop_fd };
  long status = 0;

  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_URL, post->url);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tracecollect");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->len);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_head);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &call);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &call);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)post->timeout_s);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_over);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &call);
  CURLcode code = curl_easy_perform(curl);
  if (call.is_stopped) return tb_fail(diag, TB_BUSY, "stopped");
  if (!call.has_status)
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
