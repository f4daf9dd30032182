/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL, loaded when the first connection is tried, on the agent's own thread: to load and relocate it takes longer
 * than many a program lives.
 *
 * agent/net/tls.c calls the functions below, which hand on to the library's. They are seen by nothing else. A
 * program that brings an OpenSSL of its own, and shows its names, keeps it for itself: the library that is loaded here
 * looks for names in itself first then (RTLD_DEEPBIND). Elsewhere it does not, because sanitizers cannot take it.
 *
 * A program that uses the same library has it clean up at exit, in a handler that comes before ours, since it was
 * registered after: it would take the library from under our threads. A library that is there when we are
 * must not do so before the program can ask for it. One that the program has loaded since may have its handler
 * already: then the session ends in a handler that is registered now, and so comes first. */
#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "agent/net/tls.h"
#include "agent/preload/lookup.h"
#include "agent/preload/preload.h"

static struct {
#define ANSWERS(ret, name, params, args) ret(*name) params;
#define DOES(name, params, args)         void(*name) params;
#include "agent/preload/openssl.def"
#undef ANSWERS
#undef DOES
} real;

#define ANSWERS(ret, name, params, args)                                                           \
  ret name params {                                                                                \
    return real.name args;                                                                         \
  }
#define DOES(name, params, args)                                                                   \
  void name params {                                                                               \
    real.name args;                                                                                \
  }
#include "agent/preload/openssl.def"
#undef ANSWERS
#undef DOES

static const char file[] = "libssl.so.3", crypto[] = "libcrypto.so.3";
static bool cleans_not_up; /* it was set so */

static void *loaded(const char *name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

/* Nothing else is set by that: what the program's own first call would read and load, it still does. */
static void keep_from_cleaning_up(void) {
  int (*init)(uint64_t options, const OPENSSL_INIT_SETTINGS *settings);

  if (!ta_lookup_has_object(crypto))
    return; /* dlopen() looks into the system's list of files first */
  void *library = loaded(crypto);
  if (library == NULL) return;
  *(void **)&init = dlsym(library, "OPENSSL_init_crypto");
  cleans_not_up = init != NULL && init(OPENSSL_INIT_NO_ATEXIT, NULL) == 1;
}

static tb_rc load(struct tb_diag *diag) {
  bool there = loaded(crypto) != NULL;
  bool theirs = !there && dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto") != NULL;

  if (there && !cleans_not_up) atexit(ta_preload_end);
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | (theirs ? RTLD_DEEPBIND : 0));
  const char *missing = NULL;

  if (library == NULL) return tb_fail(diag, TB_NOTFOUND, "OpenSSL: %.150s", dlerror());
#define FIND(name)                                                                                 \
  *(void **)&real.name = dlsym(library, #name);                                                    \
  if (real.name == NULL) missing = #name;
#define ANSWERS(ret, name, params, args) FIND(name)
#define DOES(name, params, args)         FIND(name)
#include "agent/preload/openssl.def"
#undef ANSWERS
#undef DOES
  return missing == NULL ? TB_OK
                         : tb_fail(diag, TB_NOTFOUND, "OpenSSL: %s has no %s", file, missing);
}

/* One sender or another comes first; one that failed is tried again with the next connection. */
static tb_rc load_once(struct tb_diag *diag) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static bool done;

  TA_REAL(pthread_mutex_lock)(&lock);
  tb_rc rc = done ? TB_OK : load(diag);
  done = rc == TB_OK;
  TA_REAL(pthread_mutex_unlock)(&lock);
  return rc;
}

void ta_openssl_late(void) {
  keep_from_cleaning_up();
  ta_tls_before_first = load_once;
}
