/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/page/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/remote/client_tls.h"
#include "tools/tracectl/remote/curl.h"

enum {
  QUIET_S = 60,
  IDLE_CONNECTIONS = 16,
  BUFFER_BYTES = 64 << 10,
  TARGET_BYTES = 9 << 10,
  WHY_BYTES = TK_URL_BYTES + CURL_ERROR_SIZE + 64,
};

struct tk_upstream {
  uv_loop_t *loop;
  struct tk_endpoint where;
  char prefix[TK_URL_BYTES]; /* path of the URL: a proxy may serve the collector under it */
  CURLM *multi;
  uv_timer_t timer;
  unsigned sockets; /* that are still closing, too */
  bool timer_is_closed;
  void (*closed)(void *self);
  void *self;
};

struct tk_relay {
  struct tk_upstream *up;
  struct tk_curl_to to;
  CURL *curl;
  struct curl_slist *fields;
  const struct tk_relay_ops *ops;
  void *self;
  struct tb_diag diag; /* of our own certificates */
  char why[CURL_ERROR_SIZE];
};

/* ---- curl on the loop ---- */

struct watched {
  uv_poll_t poll;
  struct tk_upstream *up;
  curl_socket_t fd;
};

static void end_relay(struct tk_relay *relay, CURLcode code);

static void check_ended(struct tk_upstream *up) {
  CURLMsg *msg;
  int left;

  while ((msg = curl_multi_info_read(up->multi, &left)) != NULL) {
    struct tk_relay *relay;
    if (msg->msg != CURLMSG_DONE) continue;
    CURLcode code = msg->data.result; /* msg ends with its handle */
    curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&relay);
    end_relay(relay, code);
  }
}

static void act(struct tk_upstream *up, curl_socket_t fd, int events) {
  int running;

  curl_multi_socket_action(up->multi, fd, events, &running);
  check_ended(up);
}

static void on_timer(uv_timer_t *timer) {
  act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(uv_poll_t *poll, int status, int events) {
  struct watched *w = poll->data;
  int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
             (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0) | (status < 0 ? CURL_CSELECT_ERR : 0);

  act(w->up, w->fd, what);
}

static int set_timer(CURLM *multi, long ms, void *self) {
  struct tk_upstream *up = self;

  (void)multi;
  if (ms < 0)
    uv_timer_stop(&up->timer);
  else
    uv_timer_start(&up->timer, on_timer, (uint64_t)ms, 0);
  return 0;
}

static void tell_closed(struct tk_upstream *up) {
  if (up->closed == NULL || up->sockets > 0 || !up->timer_is_closed) return;
  up->closed(up->self);
  free(up);
}

static void on_unwatched(uv_handle_t *handle) {
  struct watched *w = handle->data;
  struct tk_upstream *up = w->up;

  free(w);
  up->sockets--;
  tell_closed(up);
}

static struct watched *watch(struct tk_upstream *up, curl_socket_t fd) {
  struct watched *w = calloc(1, sizeof *w);

  if (w == NULL) return NULL;
  if (uv_poll_init_socket(up->loop, &w->poll, fd) != 0) {
    free(w);
    return NULL;
  }
  w->poll.data = w;
  w->up = up;
  w->fd = fd;
  up->sockets++;
  curl_multi_assign(up->multi, fd, w);
  return w;
}

static int set_socket(CURL *curl, curl_socket_t fd, int what, void *self, void *known) {
  struct tk_upstream *up = self;
  struct watched *w = known;
  int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

  (void)curl;
  if (what == CURL_POLL_REMOVE) {
    if (w == NULL) return 0;
    curl_multi_assign(up->multi, fd, NULL);
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, on_unwatched);
    return 0;
  }
  if (w == NULL) w = watch(up, fd);
  return w != NULL && uv_poll_start(&w->poll, events, on_socket) == 0 ? 0 : -1;
}

/* ---- open and close ---- */

static void set_multi(struct tk_upstream *up) {
  curl_multi_setopt(up->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
  curl_multi_setopt(up->multi, CURLMOPT_SOCKETDATA, up);
  curl_multi_setopt(up->multi, CURLMOPT_TIMERFUNCTION, set_timer);
  curl_multi_setopt(up->multi, CURLMOPT_TIMERDATA, up);
  curl_multi_setopt(up->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS);
}

tb_rc tk_upstream_open(uv_loop_t *loop, const struct tk_endpoint *where, struct tb_diag *diag,
                       struct tk_upstream **out) {
  struct tk_upstream *up;

  TB_TRY(tk_curl_check(where, diag));
  up = calloc(1, sizeof *up);
  if (up == NULL || (up->multi = curl_multi_init()) == NULL) {
    free(up);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  up->loop = loop;
  up->where = *where;
  const char *host = strstr(where->url, "://") + 3;
  snprintf(up->prefix, sizeof up->prefix, "%s", host + strcspn(host, "/"));
  uv_timer_init(loop, &up->timer);
  up->timer.data = up;
  set_multi(up);
  *out = up;
  return TB_OK;
}

static void on_timer_closed(uv_handle_t *handle) {
  struct tk_upstream *up = handle->data;

  up->timer_is_closed = true;
  tell_closed(up);
}

void tk_upstream_close(struct tk_upstream *up, void (*closed)(void *self), void *self) {
  curl_multi_cleanup(up->multi);
  up->closed = closed;
  up->self = self;
  uv_close((uv_handle_t *)&up->timer, on_timer_closed);
}

/* ---- a question ---- */

static unsigned status_of(const struct tk_relay *r) {
  long status = 0;

  curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
  return (unsigned)status;
}

/* Each head begins with a status line; those of 1xx are skipped. */
static size_t take_line(char *line, size_t size, size_t n, void *self) {
  struct tk_relay *r = self;
  size_t len = n;

  (void)size; /* always 1 */
  while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == '\n')) len--;
  if (status_of(r) < 200 || (len >= 5 && memcmp(line, "HTTP/", 5) == 0)) return n;
  if (len > 0) {
    r->ops->field(r->self, line, len);
    return n;
  }
  return r->ops->head(r->self, status_of(r)) == TK_TAKEN ? n : 0;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *self) {
  struct tk_relay *r = self;

  (void)size; /* always 1 */
  switch (r->ops->body(r->self, bytes, n)) {
  case TK_TAKEN: return n;
  case TK_HOLD: return CURL_WRITEFUNC_PAUSE;
  case TK_GIVE_UP: break;
  }
  return CURL_WRITEFUNC_ERROR;
}

static bool add_fields(struct tk_relay *r, const char *const *fields) {
  for (; *fields != NULL; fields++) {
    struct curl_slist *more = curl_slist_append(r->fields, *fields);
    if (more == NULL) return false;
    r->fields = more;
  }
  return true;
}

static void set_all(struct tk_relay *r) {
  CURL *c = r->curl;

  r->to = (struct tk_curl_to){ .where = &r->up->where,
                               .agent = "tracectl page",
                               .quiet_s = QUIET_S,
                               .buffer_bytes = BUFFER_BYTES,
                               .diag = &r->diag };
  tk_curl_set(c, &r->to);
  curl_easy_setopt(c, CURLOPT_URL, r->up->where.url);
  curl_easy_setopt(c, CURLOPT_PRIVATE, (char *)r);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->why);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_line);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
}

static void set_question(struct tk_relay *r, const struct tk_relay_ask *ask) {
  char target[TARGET_BYTES];
  CURL *c = r->curl;

  snprintf(target, sizeof target, "%s%s", r->up->prefix, ask->target);
  curl_easy_setopt(c, CURLOPT_REQUEST_TARGET, target);
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->fields);
  if (strcmp(ask->method, "HEAD") == 0) {
    curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    return;
  }
  if (ask->body != NULL) {
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask->body);
  }
  curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, ask->method);
}

static void free_relay(struct tk_relay *r) {
  curl_easy_cleanup(r->curl);
  curl_slist_free_all(r->fields);
  free(r);
}

tb_rc tk_relay_begin(struct tk_upstream *up, const struct tk_relay_ask *ask,
                     const struct tk_relay_ops *ops, void *self, struct tk_relay **out) {
  struct tk_relay *r = calloc(1, sizeof *r);

  if (r == NULL) return TB_NOMEM;
  r->up = up;
  r->ops = ops;
  r->self = self;
  r->curl = curl_easy_init();
  if (r->curl == NULL || !add_fields(r, ask->fields)) {
    free_relay(r);
    return TB_NOMEM;
  }
  set_all(r);
  set_question(r, ask);
  if (curl_multi_add_handle(up->multi, r->curl) != CURLM_OK) {
    free_relay(r);
    return TB_NOMEM;
  }
  *out = r;
  return TB_OK;
}

/* Ended meanwhile? The loop's next turn says so. */
void tk_relay_resume(struct tk_relay *r) {
  curl_easy_pause(r->curl, CURLPAUSE_CONT);
}

void tk_relay_drop(struct tk_relay *r) {
  if (r == NULL) return;
  curl_multi_remove_handle(r->up->multi, r->curl);
  free_relay(r);
}

/* ---- its end ---- */

static void why_of(const struct tk_relay *r, CURLcode code, char *out, size_t bytes) {
  const char *shown = r->up->where.shown;
  long error = 0;

  curl_easy_getinfo(r->curl, CURLINFO_OS_ERRNO, &error);
  if (r->diag.rc != TB_OK)
    snprintf(out, bytes, "%s", r->diag.text);
  else if (code == CURLE_COULDNT_CONNECT && error != 0)
    snprintf(out, bytes, "no collector answers on %s: %s", shown, strerror((int)error));
  else if (code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE)
    snprintf(out, bytes, "%s: the connection was lost", shown);
  else
    snprintf(out, bytes, "%.300s: %.240s", shown,
             r->why[0] != '\0' ? r->why : curl_easy_strerror(code));
}

static void end_relay(struct tk_relay *r, CURLcode code) {
  const struct tk_relay_ops *ops = r->ops;
  void *self = r->self;
  char why[WHY_BYTES];

  if (code != CURLE_OK) why_of(r, code, why, sizeof why);
  tk_relay_drop(r);
  ops->end(self, code != CURLE_OK ? why : NULL);
}
