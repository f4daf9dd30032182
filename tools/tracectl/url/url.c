/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/url/url.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/url/ask.h"

enum { SECONDS_MAX = 3600 };
static const uint64_t bytes_max = UINT64_C(4) << 30;

struct tk_url {
  struct tk_url *next;
  char *text; /* as the user wrote it */
  struct tk_url_ask ask;
  int fd;
  pthread_t thread;
  atomic_bool stopped;
  pthread_mutex_t lock; /* for the fields below */
  pthread_cond_t changed;
  uint64_t bytes;
  bool complete;
  tb_rc rc;
  struct tb_diag diag;
};

static struct tk_url_terms terms;
static struct tk_url *all; /* each has a thread, until end_all() */

/* ---- options ---- */

static tb_rc read_seconds(const struct tk_option *option, const char *value, void *field,
                          struct tb_diag *diag) {
  (void)field;
  TB_TRY(tk_read_number(option, value, &terms.seconds, diag));
  if (terms.seconds == 0 || terms.seconds > SECONDS_MAX)
    return tk_option_needs(option, "1 to 3600", value, diag);
  terms.has_seconds = true;
  return TB_OK;
}

static tb_rc read_header(const struct tk_option *option, const char *value, void *field,
                         struct tb_diag *diag) {
  (void)field;
  if (strchr(value, ':') == NULL || strpbrk(value, "\r\n") != NULL)
    return tk_option_needs(option, "'NAME: VALUE'", value, diag);
  return tk_read_texts(option, value, &terms.headers, diag);
}

/* The rows name fields of terms: there is one for the process. */
static tb_rc read_flag(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  (void)field;
  return tk_read_flag(option, value, (char *)&terms + option->field, diag);
}

static tb_rc read_text(const struct tk_option *option, const char *value, void *field,
                       struct tb_diag *diag) {
  (void)field;
  return tk_read_text(option, value, (char *)&terms + option->field, diag);
}

#define AT(member) offsetof(struct tk_url_terms, member)
const struct tk_option tk_url_options[] = {
  TK_OPTION(0, "seconds", "N", read_seconds, 0,
            "for a URL: how long the program is traced (5 without)"),
  TK_OPTION(0, "header", "FIELD", read_header, 0,
            "for a URL: 'NAME: VALUE', sent with the request; may be repeated"),
  TK_OPTION(0, "wait", NULL, read_flag, AT(wait),
            "for a URL: while somebody else traces the program, try again for up to 10 min"),
  TK_OPTION(0, "keep", "OUT", read_text, AT(keep), "for a URL: also keep the trace in this file"),
  { 0 },
};

const struct tk_option tk_url_tls_options[] = {
  TK_OPTION(0, "tls-ca", "FILE", read_text, AT(ca), "for a URL: the authority of its certificate"),
  TK_OPTION(0, "tls-cert", "FILE", read_text, AT(cert), "for a URL: a certificate of one's own"),
  TK_OPTION(0, "tls-key", "FILE", read_text, AT(key), "for a URL: its key"),
  { 0 },
};

static const char *given(const char *text) {
  return text != NULL && *text != '\0' ? text : NULL;
}

void tk_url_use_tls(const char *ca, const char *cert, const char *key) {
  terms.ca = given(ca);
  terms.cert = given(cert);
  terms.key = given(key);
}

bool tk_url_is(const char *path) {
  return strstr(path, "://") != NULL;
}

const char *tk_url_kept(void) {
  return terms.keep;
}

/* ---- the file ---- */

static tb_rc file_fails(const char *where, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "%.120s: %s", where, strerror(errno));
}

/* A file without a name in the folder of --keep, so that it can get that name once it is complete. */
static tb_rc open_kept(struct tb_diag *diag, int *out_fd) {
  char folder[PATH_MAX];

  if (all != NULL) return tb_fail(diag, TB_BROKEN, "--keep is for one URL");
  if (snprintf(folder, sizeof folder, "%s", terms.keep) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return file_fails(terms.keep, diag);
  }
  *out_fd = open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  return *out_fd >= 0 ? TB_OK : file_fails(terms.keep, diag);
}

static tb_rc open_temporary(struct tb_diag *diag, int *out_fd) {
  const char *folder = given(getenv("TMPDIR"));
  char path[PATH_MAX];

  if (folder == NULL) folder = "/tmp";
  *out_fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (*out_fd >= 0) return TB_OK;
  if (snprintf(path, sizeof path, "%s/tracectl-XXXXXX", folder) >= PATH_MAX)
    errno = ENAMETOOLONG;
  else if ((*out_fd = mkostemp(path, O_CLOEXEC)) >= 0)
    unlink(path);
  return *out_fd >= 0 ? TB_OK : file_fails(folder, diag);
}

/* Gives the file the name of --keep; an older file of that name is replaced. */
static tb_rc keep(struct tk_url *u) {
  char self[40], beside[PATH_MAX];

  snprintf(self, sizeof self, "/proc/self/fd/%d", u->fd);
  if (snprintf(beside, sizeof beside, "%s.part-%d", terms.keep, (int)getpid()) >= PATH_MAX)
    errno = ENAMETOOLONG;
  else if (linkat(AT_FDCWD, self, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0 &&
           rename(beside, terms.keep) == 0)
    return TB_OK;
  return file_fails(terms.keep, &u->diag);
}

/* ---- the thread ---- */

static tb_rc write_all(int fd, const unsigned char *bytes, size_t n, struct tb_diag *diag) {
  while (n > 0) {
    ssize_t wrote = write(fd, bytes, n);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return tb_fail(diag, TB_IO, "its temporary file: %s", strerror(errno));
    bytes += wrote;
    n -= (size_t)wrote;
  }
  return TB_OK;
}

static tb_rc take(void *self, const void *bytes, size_t n) {
  struct tk_url *u = self;

  if (u->bytes + n > bytes_max)
    return tb_fail(&u->diag, TB_IO,
                   "more than 4 GiB: load it into a file first, and read the file");
  TB_TRY(write_all(u->fd, bytes, n, &u->diag));
  pthread_mutex_lock(&u->lock);
  u->bytes += n;
  pthread_cond_signal(&u->changed);
  pthread_mutex_unlock(&u->lock);
  return TB_OK;
}

static void *load(void *self) {
  struct tk_url *u = self;
  tb_rc rc = tk_url_get(&u->ask, &terms, &u->stopped, take, u, &u->diag);

  if (u->bytes > 0 && rc != TB_END && terms.keep != NULL) {
    tb_rc kept = keep(u);
    if (rc == TB_OK) rc = kept;
  }
  pthread_mutex_lock(&u->lock);
  u->rc = rc;
  u->complete = true;
  pthread_cond_signal(&u->changed);
  pthread_mutex_unlock(&u->lock);
  return NULL;
}

/* OpenSSL cleans up at exit: no thread may use it then. A trace that is to be kept is loaded to its end. */
static void end_all(void) {
  for (struct tk_url *u = all; u != NULL; u = u->next) {
    if (terms.keep == NULL) atomic_store(&u->stopped, true);
    pthread_join(u->thread, NULL);
  }
}

/* ---- public ---- */

static void free_url(struct tk_url *u) {
  if (u == NULL) return;
  if (u->fd >= 0) close(u->fd);
  free(u->text);
  free(u);
}

static tb_rc begin(struct tk_url *u) {
  static bool registered;

  TB_TRY(terms.keep != NULL ? open_kept(&u->diag, &u->fd) : open_temporary(&u->diag, &u->fd));
  if (!registered && atexit(end_all) != 0) return TB_NOMEM;
  registered = true; /* after curl's own initialization, so that it runs before its end */
  if (pthread_create(&u->thread, NULL, load, u) != 0) return TB_NOMEM;
  u->next = all;
  all = u;
  return TB_OK;
}

static struct tk_url *find(const char *text) {
  struct tk_url *u = all;

  while (u != NULL && strcmp(u->text, text) != 0) u = u->next;
  return u;
}

/* Returns NULL if memory cannot be allocated. */
static struct tk_url *new_url(const char *text) {
  struct tk_url *u = calloc(1, sizeof *u);

  if (u == NULL) return NULL;
  u->fd = -1;
  pthread_mutex_init(&u->lock, NULL);
  pthread_cond_init(&u->changed, NULL);
  tb_diag_clear(&u->diag);
  u->text = strdup(text);
  if (u->text != NULL) return u;
  free_url(u);
  return NULL;
}

/* Never prints a password. */
static void complain(const char *verb, const struct tk_url *u, tb_rc rc) {
  const char *at = strchr(u->text, '@');

  tk_fail(verb, "%s: %s",
          u->ask.shown[0] != '\0' ? u->ask.shown
          : at != NULL            ? at + 1
                                  : u->text,
          u->diag.rc != TB_OK ? u->diag.text : tb_rc_text(rc));
}

struct tk_url *tk_url_open(const char *verb, const char *text) {
  struct tk_url *u = find(text);
  bool is_new = u == NULL;

  if (is_new) {
    u = new_url(text);
    tb_rc rc = u != NULL ? tk_url_parse(text, &terms, &u->diag, &u->ask) : TB_NOMEM;
    if (rc == TB_OK) rc = begin(u);
    if (rc != TB_OK) {
      if (u == NULL) tk_fail(verb, "%s", tb_rc_text(rc));
      if (u != NULL) complain(verb, u, rc);
      free_url(u);
      return NULL;
    }
    if (u->ask.is_trace && isatty(STDERR_FILENO))
      tk_note(verb, "tracing %s for %u s", u->ask.origin, u->ask.seconds);
  }
  if (tk_url_wait(u, 0) > 0) return u;
  complain(verb, u, u->rc);
  return NULL;
}

const char *tk_url_shown(const struct tk_url *u) {
  return u->ask.shown;
}

int tk_url_fd(const struct tk_url *u) {
  return u->fd;
}

bool tk_url_is_complete(struct tk_url *u) {
  pthread_mutex_lock(&u->lock);
  bool complete = u->complete;
  pthread_mutex_unlock(&u->lock);
  return complete;
}

uint64_t tk_url_wait(struct tk_url *u, uint64_t upto) {
  pthread_mutex_lock(&u->lock);
  while (u->bytes <= upto && !u->complete) pthread_cond_wait(&u->changed, &u->lock);
  uint64_t bytes = u->bytes;
  pthread_mutex_unlock(&u->lock);
  return bytes;
}

const char *tk_url_cut(const struct tk_url *u) {
  return u->rc != TB_OK ? u->diag.text : NULL;
}
