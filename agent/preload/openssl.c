/* SPDX-License-Identifier: Apache-2.0 */
/* Loads OpenSSL when the agent's own thread first tries to connect: to load and relocate it takes longer than many programs run.
 *
 * agent/net/tls.c calls the functions below, which call the library's. They are hidden from other objects. A program may
 * export the names of an OpenSSL of its own: then the library loaded here must look names up in itself first
 * (RTLD_DEEPBIND). Otherwise it is loaded without that flag, which sanitizers do not support.
 *
 * If the program uses the same library, OpenSSL cleans up at exit, in a handler that was registered after ours and so runs
 * before it, while our threads still use the library. A library that is loaded when our constructor runs is set not to
 * clean up, before the program can ask for it. If the program has loaded the library since, that handler may already be
 * registered: then a handler that is registered now, and so runs first, ends the session. */
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
static bool cleans_not_up; /* OPENSSL_INIT_NO_ATEXIT is set */

static void *loaded(const char *name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

/* Sets nothing else: the program's own first call still reads and loads everything. */
static void keep_from_cleaning_up(void) {
  int (*init)(uint64_t options, const OPENSSL_INIT_SETTINGS *settings);

  if (!ta_lookup_has_object(crypto))
    return; /* spares dlopen(), which first reads the system's list of libraries */
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

/* May run on several sender threads at once; after a failure the next connection tries again. */
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
