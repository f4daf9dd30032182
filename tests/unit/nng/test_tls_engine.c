/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <nng/nng.h>

#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <openssl/err.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/net/nng_listener.h"
#include "nng/close.h"
#include "nng/tls_engine.h"
#include "tests/support/certs.h"
#include "tests/support/patience.h"

static char folder[64];

static void make_certs(void) {
  strcpy(folder, "/tmp/tc_engine_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  tt_certs_make(folder);
}

static void remove_certs(void) {
  char command[128];

  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(engine, .init = make_certs, .fini = remove_certs);

/* Collects the texts that one side's refused() receives. */
struct words {
  nng_mtx *mtx;
  nng_cv *cv;
  char text[256];
};

static void words_init(struct words *w) {
  *w = (struct words){ 0 };
  cr_assert_eq(nng_mtx_alloc(&w->mtx), 0);
  cr_assert_eq(nng_cv_alloc(&w->cv, w->mtx), 0);
}

static void words_fini(struct words *w) {
  nng_cv_free(w->cv);
  nng_mtx_free(w->mtx);
}

static void words_note(void *self, const char *peer, const char *why) {
  struct words *w = self;

  nng_mtx_lock(w->mtx);
  snprintf(w->text, sizeof w->text, "peer=%s: %s", peer, why);
  nng_cv_wake(w->cv);
  nng_mtx_unlock(w->mtx);
}

static void words_expect(struct words *w, const char *part) {
  nng_time until = nng_clock() + TT_PATIENCE_MS;

  nng_mtx_lock(w->mtx);
  /* There may be other refusals meanwhile, because a dialer that was refused tries again. */
  while (strstr(w->text, part) == NULL && nng_clock() < until) nng_cv_until(w->cv, until);
  cr_expect(strstr(w->text, part) != NULL, "wanted \"%s\" in \"%s\"", part, w->text);
  nng_mtx_unlock(w->mtx);
}

static SSL_CTX *context(bool server, const char *dir, const char *name) {
  SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  char path[256];

  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  snprintf(path, sizeof path, "%s/ca.pem", dir);
  cr_assert_eq(SSL_CTX_load_verify_file(ctx, path), 1);
  if (name == NULL) return ctx;
  snprintf(path, sizeof path, "%s/%s.pem", dir, name);
  cr_assert_eq(SSL_CTX_use_certificate_chain_file(ctx, path), 1, "%s", path);
  snprintf(path, sizeof path, "%s/%s.key", dir, name);
  cr_assert_eq(SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM), 1, "%s", path);
  return ctx;
}

/* Opens a REP socket on a free port that admits readers. */
struct server {
  nng_socket socket;
  struct tc_nng_tls *tls;
  struct words words;
  char url[TC_URL_BYTES];
};

static void server_open(struct server *s) {
  SSL_CTX *ctx = context(true, folder, "server");
  struct tb_diag diag;

  tb_diag_clear(&diag);
  words_init(&s->words);
  struct tc_nng_terms terms = {
    .ctx = ctx, .server = true, .peer_act = TC_ACT_FEED, .refused = words_note, .self = &s->words
  };
  cr_assert_eq(tc_nng_tls_new(&terms, &diag, &s->tls), TB_OK, "%s", diag.text);
  SSL_CTX_free(ctx);
  cr_assert_eq(nng_rep0_open(&s->socket), 0);
  cr_assert_eq(tc_nng_listen(s->socket, "tls+tcp://127.0.0.1:0", s->tls, &diag, s->url), TB_OK,
               "%s", diag.text);
  cr_assert_gt(atoi(strrchr(s->url, ':') + 1), 0, "%s", s->url);
}

static void server_close(struct server *s) {
  tc_nng_close(s->socket);
  tc_nng_tls_free(s->tls);
  words_fini(&s->words);
}

/* Waits for text on the socket, until there is a refusal. */
static int receive(nng_socket socket, const char *wanted, struct words *words, int ms) {
  nng_time until = nng_clock() + (nng_time)ms;
  char text[16] = "";
  int rv;

  nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, 50);
  do {
    size_t n = sizeof text;
    rv = nng_recv(socket, text, &n, 0);
    nng_mtx_lock(words->mtx);
    bool refused = words->text[0] != '\0';
    nng_mtx_unlock(words->mtx);
    if (rv == NNG_ETIMEDOUT && refused) return NNG_EPEERAUTH;
  } while (rv == NNG_ETIMEDOUT && nng_clock() < until);
  if (rv == 0) cr_expect_str_eq(text, wanted);
  return rv;
}

static nng_dialer dial_over(nng_socket req, const char *url, struct tc_nng_tls *tls) {
  nng_dialer dialer;

  cr_assert_eq(nng_dialer_create(&dialer, req, url), 0);
  cr_assert_eq(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(tls)), 0);
  cr_assert_eq(nng_dialer_start(dialer, NNG_FLAG_NONBLOCK), 0);
  return dialer;
}

/* Dials with this certificate and sends one request. Returns 0 or the error. As tracectl does, it dials without blocking, and
 * again with a longer wait: if the peer ends the connection during the handshake, nng 1.5.2 may never return from a blocking
 * dial, and its dialer may stop for ever. */
static int ask(struct server *s, SSL_CTX *ctx, enum tc_act act, const char *host,
               struct words *words) {
  struct tc_nng_tls *tls;
  struct tb_diag diag;
  nng_socket req;
  nng_msg *question;
  nng_aio *sent, *answered;

  tb_diag_clear(&diag);
  struct tc_nng_terms terms = {
    .ctx = ctx, .peer_act = act, .peer_host = host, .refused = words_note, .self = words
  };
  cr_assert_eq(tc_nng_tls_new(&terms, &diag, &tls), TB_OK, "%s", diag.text);
  cr_assert_eq(nng_req0_open(&req), 0);
  cr_assert_eq(nng_aio_alloc(&sent, NULL, NULL), 0);
  cr_assert_eq(nng_aio_alloc(&answered, NULL, NULL), 0);
  cr_assert_eq(nng_msg_alloc(&question, 0), 0);
  nng_msg_append(question, "question", 9);
  nng_aio_set_msg(sent, question);
  nng_send_aio(req, sent);
  int rv = NNG_ETIMEDOUT;
  for (int ms = 2000; rv == NNG_ETIMEDOUT && ms < TT_PATIENCE_MS; ms *= 2) {
    nng_dialer dialer = dial_over(req, s->url, tls);
    rv = receive(s->socket, "question", words, ms);
    if (rv == NNG_ETIMEDOUT) nng_dialer_close(dialer);
  }
  if (rv == 0) {
    cr_assert_eq(nng_send(s->socket, (void *)(uintptr_t) "answer", 7, 0), 0);
    nng_aio_set_timeout(answered, TT_PATIENCE_MS);
    nng_recv_aio(req, answered);
    nng_aio_wait(answered);
    rv = nng_aio_result(answered);
    if (rv == 0) {
      cr_expect_str_eq(nng_msg_body(nng_aio_get_msg(answered)), "answer");
      nng_msg_free(nng_aio_get_msg(answered));
    }
  }
  tc_nng_close(req);
  nng_aio_wait(sent);
  if (nng_aio_result(sent) != 0) nng_msg_free(question);
  nng_aio_free(sent);
  nng_aio_free(answered);
  tc_nng_tls_free(tls);
  return rv;
}

static int ask_as(struct server *s, const char *name, struct words *words) {
  SSL_CTX *ctx = context(false, folder, name);
  int rv = ask(s, ctx, TC_ACT_SERVE, "127.0.0.1", words);

  SSL_CTX_free(ctx);
  return rv;
}

Test(engine, a_reader_is_accepted_over_tls13) {
  struct server s;
  struct words words;

  words_init(&words);
  server_open(&s);
  cr_assert_eq(ask_as(&s, "reader", &words), 0, "%s", words.text);
  cr_assert_str_eq(nng_tls_engine_name(), "tracecollect");
  server_close(&s);
  words_fini(&words);
}

Test(engine, an_agent_is_refused_by_role_and_told_by_alert) {
  struct server s;
  struct words words;

  words_init(&words);
  server_open(&s);
  cr_assert_neq(ask_as(&s, "agent", &words), 0);
  words_expect(
      &s.words,
      "certificate is for tracecollect:agent/test, here tracecollect:reader/NAME is needed");
  words_expect(&s.words, "peer=127.0.0.1:");
  words_expect(&words, "alert bad certificate");
  server_close(&s);
  words_fini(&words);
}

Test(engine, a_peer_without_certificate_is_refused) {
  struct server s;
  struct words words;

  words_init(&words);
  server_open(&s);
  cr_assert_neq(ask_as(&s, NULL, &words), 0);
  words_expect(&s.words, "peer did not return a certificate");
  words_expect(&s.words, "peer=127.0.0.1:");
  words_expect(&words, "alert certificate required");
  server_close(&s);
  words_fini(&words);
}

Test(engine, two_or_no_san_uris_are_refused) {
  struct server s;
  struct words words;

  tt_certs_issue(folder, "two", "URI:tracecollect:reader/a,URI:tracecollect:reader/b", 3600);
  tt_certs_issue(folder, "none", NULL, 3600);
  words_init(&words);
  server_open(&s);
  cr_assert_neq(ask_as(&s, "two", &words), 0);
  words_expect(&s.words, "certificate has 2 SAN URIs");
  s.words.text[0] = '\0';
  cr_assert_neq(ask_as(&s, "none", &words), 0);
  words_expect(&s.words, "certificate has 0 SAN URIs");
  server_close(&s);
  words_fini(&words);
}

Test(engine, another_authority_is_refused) {
  struct server s;
  struct words words;
  char other[96];

  snprintf(other, sizeof other, "%s/other", folder);
  tt_certs_make(other);
  words_init(&words);
  server_open(&s);
  SSL_CTX *ctx = context(false, other, "reader");
  SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL); /* so that the server is the one that refuses */
  cr_assert_neq(ask(&s, ctx, TC_ACT_SERVE, NULL, &words), 0);
  words_expect(&s.words, "certificate refused: ");
  SSL_CTX_free(ctx);
  server_close(&s);
  words_fini(&words);
}

Test(engine, a_client_refuses_a_wrong_server) {
  struct server s;
  struct words words;

  words_init(&words);
  server_open(&s);
  SSL_CTX *ctx = context(false, folder, "reader");
  cr_expect_eq(ask(&s, ctx, TC_ACT_SEND, NULL, &words), NNG_EPEERAUTH);
  words_expect(&words, "certificate is for tracecollect:server/test, here tracecollect:agent/NAME");
  words.text[0] = '\0';
  cr_expect_eq(ask(&s, ctx, TC_ACT_SERVE, "elsewhere.example", &words), NNG_EPEERAUTH);
  words_expect(&words, "certificate refused: hostname mismatch");
  words.text[0] = '\0';
  cr_expect_eq(ask(&s, ctx, TC_ACT_SERVE, "10.1.2.3", &words), NNG_EPEERAUTH);
  words_expect(&words, "certificate refused: IP address mismatch");
  words.text[0] = '\0';
  cr_expect_eq(ask(&s, ctx, TC_ACT_SERVE, NULL, &words), 0);
  SSL_CTX_free(ctx);
  server_close(&s);
  words_fini(&words);
}

static int connect_to(const char *url) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  at.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
  cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

Test(engine, tls12_is_refused) {
  struct server s;

  server_open(&s);
  SSL_CTX *ctx = context(false, folder, "reader");
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
  SSL *ssl = SSL_new(ctx);
  int fd = connect_to(s.url);
  SSL_set_fd(ssl, fd);
  cr_assert_neq(SSL_connect(ssl), 1);
  cr_assert_str_eq(ERR_reason_error_string(ERR_peek_error()), "tlsv1 alert protocol version");
  words_expect(&s.words, "unsupported protocol");
  SSL_free(ssl);
  close(fd);
  SSL_CTX_free(ctx);
  server_close(&s);
}

Test(engine, noise_on_the_port_harms_nobody) {
  struct server s;
  struct words words;

  words_init(&words);
  server_open(&s);
  int fd = connect_to(s.url);
  cr_assert_eq(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
  words_expect(&s.words, "http request");
  cr_assert_eq(ask_as(&s, "reader", &words), 0, "%s", words.text);
  close(fd);
  server_close(&s);
  words_fini(&words);
}

Test(engine, new_connections_use_swapped_certificates) {
  struct server s;
  struct words words;
  char other[96];

  snprintf(other, sizeof other, "%s/other", folder);
  tt_certs_make(other);
  words_init(&words);
  server_open(&s);
  SSL_CTX *before = context(false, folder, "reader"), *after = context(false, other, "reader");
  cr_assert_eq(ask(&s, before, TC_ACT_SERVE, "127.0.0.1", &words), 0, "%s", words.text);
  SSL_CTX *fresh = context(true, other, "server");
  tc_nng_tls_swap(s.tls, fresh);
  SSL_CTX_free(fresh);
  cr_assert_eq(ask(&s, after, TC_ACT_SERVE, "127.0.0.1", &words), 0, "%s", words.text);
  cr_assert_neq(ask(&s, before, TC_ACT_SERVE, "127.0.0.1", &words), 0);
  SSL_CTX_free(before);
  SSL_CTX_free(after);
  server_close(&s);
  words_fini(&words);
}

Test(engine, an_ipc_socket_is_for_the_group_and_survives_a_kill) {
  nng_socket rep, second;
  struct tb_diag diag;
  struct stat st;
  char url[128], real[TC_URL_BYTES];

  tb_diag_clear(&diag);
  snprintf(url, sizeof url, "ipc://%s/a.sock", folder);
  pid_t child = fork();
  if (child == 0) { /* leaves its socket file, as kill -9 does */
    if (nng_rep0_open(&rep) != 0 || tc_nng_listen(rep, url, NULL, &diag, real) != TB_OK) _exit(1);
    _exit(0);
  }
  int status;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert_eq(status, 0);
  cr_assert_eq(stat(url + 6, &st), 0);
  cr_assert_eq(nng_rep0_open(&rep), 0);
  cr_assert_eq(tc_nng_listen(rep, url, NULL, &diag, real), TB_OK, "%s", diag.text);
  cr_assert_str_eq(real, url);
  cr_assert_eq(stat(url + 6, &st), 0);
  cr_assert_eq(st.st_mode & 0777, 0660);

  cr_assert_eq(nng_rep0_open(&second), 0);
  cr_assert_eq(tc_nng_listen(second, url, NULL, &diag, real), TB_IO);
  cr_assert_not_null(strstr(diag.text, "Address in use"), "%s", diag.text);
  tc_nng_close(second);
  tc_nng_close(rep);
}

/* Replaces nng_close() with one that waits until the test lets it continue. */

static atomic_bool close_waits;
static sem_t goes_on, has_closed;

int nng_close(nng_socket socket) {
  int (*real)(nng_socket);

  *(void **)&real = dlsym(RTLD_NEXT, "nng_close");
  if (!close_waits) return real(socket);
  sem_wait(&goes_on);
  int rv = real(socket);
  sem_post(&has_closed);
  return rv;
}

Test(engine, a_close_that_never_ends_is_left_to_itself) {
  nng_socket stuck, other;

  sem_init(&goes_on, 0, 0);
  sem_init(&has_closed, 0, 0);
  cr_assert_eq(nng_rep0_open(&stuck), 0);
  cr_assert_eq(nng_rep0_open(&other), 0);
  close_waits = true;
  cr_assert_not(tc_nng_close(stuck));
  close_waits = false;
  cr_assert(tc_nng_close(other));
  sem_post(&goes_on);
  sem_wait(&has_closed);
}
