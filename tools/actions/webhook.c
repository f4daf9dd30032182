/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/webhook.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HEADER_BYTES = 256, SIGNATURE_BYTES = 48 };

tb_rc ac_webhook_init(void) {
  return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? TB_OK : TB_NOMEM;
}

/* False: no memory. */
static bool sign(const struct ac_action *action, const struct ac_task *task, long long seconds,
                 char out[SIGNATURE_BYTES]) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  char head[64];
  size_t n, head_len = (size_t)snprintf(head, sizeof head, "%" PRIu64 ".%lld.", task->id, seconds);
  EVP_PKEY *key =
      EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, action->secret, action->secret_bytes);
  EVP_MD_CTX *context = EVP_MD_CTX_new();

  n = sizeof digest;
  bool done = key != NULL && context != NULL &&
              EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSignUpdate(context, head, head_len) == 1 &&
              EVP_DigestSignUpdate(context, task->text, task->len) == 1 &&
              EVP_DigestSignFinal(context, digest, &n) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  if (done) EVP_EncodeBlock((unsigned char *)out, digest, (int)n);
  return done;
}

/* False: no memory; *list is to be freed all the same. */
static bool put(struct curl_slist **list, const char *header) {
  struct curl_slist *more = curl_slist_append(*list, header);

  if (more != NULL) *list = more;
  return more != NULL;
}

static bool put_headers(const struct ac_action *action, const struct ac_task *task,
                        struct curl_slist **list) {
  long long seconds = time(NULL);
  char header[HEADER_BYTES], signature[SIGNATURE_BYTES];

  if (!put(list, "Content-Type: application/json") || !put(list, "Expect:")) return false;
  snprintf(header, sizeof header, "webhook-id: %" PRIu64, task->id);
  if (!put(list, header)) return false;
  snprintf(header, sizeof header, "webhook-timestamp: %lld", seconds);
  if (!put(list, header)) return false;
  if (action->secret_bytes == 0) return true;
  if (!sign(action, task, seconds, signature)) return false;
  snprintf(header, sizeof header, "webhook-signature: v1,%s", signature);
  return put(list, header);
}

static size_t ignore(char *bytes, size_t size, size_t n, void *self) {
  (void)bytes, (void)self;
  return size * n;
}

static bool is_stopped(int stop_fd) {
  struct pollfd fd = { .fd = stop_fd, .events = POLLIN };

  return poll(&fd, 1, 0) > 0;
}

/* Called at least once a second. */
static int look_for_stop(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  (void)a, (void)b, (void)c, (void)d;
  return is_stopped(*(const int *)self) ? 1 : 0;
}

static enum ac_outcome judge(long status, struct tb_diag *diag) {
  if (status >= 200 && status < 300) return AC_DONE;
  tb_fail(diag, TB_IO, "the answer is %ld", status);
  return status == 408 || status == 425 || status == 429 || status >= 500 ? AC_LATER : AC_FAILED;
}

static enum ac_outcome post(CURL *curl, const struct ac_action *action, const struct ac_task *task,
                            const struct curl_slist *headers, int stop_fd, struct tb_diag *diag) {
  char why[CURL_ERROR_SIZE] = "";
  long status = 0;

  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_URL, action->argv[0]);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tracecollect-actions");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)task->len);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, task->text);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)AC_WEBHOOK_S);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &stop_fd);
  CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return judge(status, diag);
  }
  if (code == CURLE_ABORTED_BY_CALLBACK)
    tb_fail(diag, TB_BUSY, "stopped");
  else
    tb_fail(diag, TB_IO, "%s", why[0] != '\0' ? why : curl_easy_strerror(code));
  return AC_LATER;
}

enum ac_outcome ac_webhook(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                           struct tb_diag *diag) {
  struct curl_slist *headers = NULL;
  CURL *curl = curl_easy_init();
  enum ac_outcome outcome = AC_LATER;

  if (curl == NULL || !put_headers(action, task, &headers))
    tb_fail(diag, TB_NOMEM, "out of memory");
  else
    outcome = post(curl, action, task, headers, stop_fd, diag);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return outcome;
}
