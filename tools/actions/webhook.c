/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/webhook.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tools/tracectl/remote/post.h"

enum { HEADER_BYTES = 128, SIGNATURE_BYTES = 48 };

struct headers {
  char id[HEADER_BYTES], timestamp[HEADER_BYTES], signature[HEADER_BYTES];
};

/* Returns false if memory cannot be allocated. */
static bool sign(const struct ac_action *action, const struct ac_task *task, long long seconds,
                 char out[SIGNATURE_BYTES]) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  size_t n = sizeof digest;
  char head[64];
  size_t head_len = (size_t)snprintf(head, sizeof head, "%" PRIu64 ".%lld.", task->id, seconds);
  EVP_PKEY *key =
      EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, action->secret, action->secret_bytes);
  EVP_MD_CTX *context = EVP_MD_CTX_new();

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

/* Returns false if memory cannot be allocated. */
static bool put_headers(const struct ac_action *action, const struct ac_task *task,
                        struct headers *out) {
  char signature[SIGNATURE_BYTES] = "";
  long long seconds = time(NULL);
  bool is_signed = action->secret_bytes > 0;

  if (is_signed && !sign(action, task, seconds, signature)) return false;
  snprintf(out->id, sizeof out->id, "webhook-id: %" PRIu64, task->id);
  snprintf(out->timestamp, sizeof out->timestamp, "webhook-timestamp: %lld", seconds);
  snprintf(out->signature, sizeof out->signature, "webhook-signature: v1,%s", signature);
  return true;
}

static enum ac_outcome judge(unsigned status, struct tb_diag *diag) {
  if (status >= 200 && status < 300) return AC_DONE;
  tb_fail(diag, TB_IO, "the answer is %u", status);
  return status == 408 || status == 425 || status == 429 || status >= 500 ? AC_LATER : AC_FAILED;
}

enum ac_outcome ac_webhook(const struct ac_action *action, const struct ac_task *task, int stop_fd,
                           struct tb_diag *diag, unsigned *out_wait_s) {
  struct tp_posted posted;
  struct headers headers;

  *out_wait_s = 0;
  if (!put_headers(action, task, &headers)) {
    tb_fail(diag, TB_NOMEM, "out of memory");
    return AC_LATER;
  }
  const char *const lines[] = { "Content-Type: application/json", headers.id, headers.timestamp,
                                action->secret_bytes > 0 ? headers.signature : NULL, NULL };
  const struct tp_post post = { .url = action->argv[0],
                                .headers = lines,
                                .body = task->text,
                                .len = task->len,
                                .timeout_s = AC_WEBHOOK_S,
                                .stop_fd = stop_fd };
  if (tp_post(&post, diag, &posted) != TB_OK) return AC_LATER;
  *out_wait_s = posted.retry_after_s;
  return judge(posted.status, diag);
}
