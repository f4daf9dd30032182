/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/curl.h"

#include "tools/tracectl/remote/client_tls.h"

static CURLcode prepare_tls(CURL *curl, void *ctx, void *self) {
  struct tk_curl_to *to = self;
  const struct tk_endpoint *w = to->where;

  (void)curl;
  to->rc = tk_client_tls_fill(ctx, w->ca, w->cert, w->key, w->crl, to->diag);
  return to->rc == TB_OK ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
}

tb_rc tk_curl_check(const struct tk_endpoint *w, struct tb_diag *diag) {
  SSL_CTX *ctx;

  if (!w->tls) return TB_OK;
  TB_TRY(tk_client_tls(w->ca, w->cert, w->key, w->crl, diag, &ctx));
  SSL_CTX_free(ctx);
  return TB_OK;
}

void tk_curl_set(CURL *c, struct tk_curl_to *to) {
  const struct tk_endpoint *w = to->where;

  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_USERAGENT, to->agent);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)TK_CURL_CONNECT_MS);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, to->quiet_s);
  curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(c, CURLOPT_BUFFERSIZE, to->buffer_bytes);
  curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (w->path[0] != '\0') curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, w->path);
  if (w->path[0] != '\0' || tb_host_is_loopback(w->at.host)) curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
  curl_easy_setopt(c, CURLOPT_SSL_CTX_FUNCTION, prepare_tls);
  curl_easy_setopt(c, CURLOPT_SSL_CTX_DATA, to);
  if (w->ca[0] == '\0') return; /* use the system's authorities */
  curl_easy_setopt(c, CURLOPT_CAINFO, NULL);
  curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
}
