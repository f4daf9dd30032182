/* SPDX-License-Identifier: Apache-2.0 */
/* Writes events in Chrome's trace event format, which chrome://tracing and ui.perfetto.dev open: a JSON array with an object
 * per event.
 *
 * Until the file is closed, the array has no end. Both viewers accept that, so the file of a program that crashed can be
 * opened. A forked child has the probes, and a lock that may never be unlocked: it writes nothing and takes no lock. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "agent/host/keep.h"
#include "agent/probe/call.h"
#include "agent/probe/own_file.h"

struct ta_chrome {
  pthread_mutex_t lock;
  FILE *file;
  pid_t owner; /* the process that writes */
  uint64_t origin_ns;
  const char *between;
  unsigned serial; /* differs for each file: a thread writes its name once into each */
};

static unsigned serials;
static __thread unsigned named_to;

static void write_text(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text != '\0'; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20)
      fprintf(out, "\\u%04x", byte);
    else if (byte == '"' || byte == '\\')
      fprintf(out, "\\%c", byte);
    else
      fputc(byte, out);
  }
  fputc('"', out);
}

/* JSON has no infinity, and numbers beyond 2^53 lose digits in a browser: both are written as strings. */
static void write_value(FILE *out, const struct ta_arg *arg) {
  const uint64_t exact = UINT64_C(1) << 53;
  char real[TA_REAL_BYTES];

  switch (arg->kind) {
  case TA_ARG_INT: {
    bool fits = arg->is.i > -(int64_t)exact && arg->is.i < (int64_t)exact;
    fprintf(out, fits ? "%" PRId64 : "\"%" PRId64 "\"", arg->is.i);
    return;
  }
  case TA_ARG_UINT:
    fprintf(out, arg->is.u < exact ? "%" PRIu64 : "\"%" PRIu64 "\"", arg->is.u);
    return;
  case TA_ARG_BOOL: fputs(arg->is.u != 0 ? "true" : "false", out); return;
  case TA_ARG_REAL:
    ta__real_text(arg->is.real, real);
    fprintf(out, isfinite(arg->is.real) ? "%s" : "\"%s\"", real);
    return;
  case TA_ARG_POINTER: fprintf(out, "\"%p\"", arg->is.pointer); return;
  case TA_ARG_TEXT:
    if (arg->is.text != NULL)
      write_text(out, arg->is.text);
    else
      fputs("null", out);
  }
}

/* Returns the phase. Begin and end of a range get the same name: the part before the ending. */
static char phase(const char *name, int *len) {
  static const struct {
    const char *ending;
    char phase;
  } halves[] = { { "Begin", 'B' }, { "_begin", 'B' }, { "End", 'E' }, { "_end", 'E' } };
  size_t n = strlen(name);

  for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
    size_t tail = strlen(halves[i].ending);
    if (n <= tail || strcmp(name + n - tail, halves[i].ending) != 0) continue;
    *len = (int)(n - tail);
    return halves[i].phase;
  }
  *len = (int)n;
  return 'i';
}

static void write_thread(struct ta_chrome *chrome) {
  char name[16] = "";

  if (named_to == chrome->serial) return;
  named_to = chrome->serial;
  pthread_getname_np(pthread_self(), name, sizeof name);
  fprintf(chrome->file,
          "%s{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":",
          chrome->between, getpid(), gettid());
  write_text(chrome->file, name);
  fputs("}}", chrome->file);
  chrome->between = ",\n";
}

static void write_event(struct ta_chrome *chrome, const struct ta_call *call, uint64_t ns) {
  FILE *out = chrome->file;
  int len;
  char kind = phase(call->name, &len);

  write_thread(chrome);
  fprintf(out,
          ",\n{\"ph\":\"%c\",%s\"cat\":\"%s\",\"name\":\"%.*s\",\"ts\":%" PRIu64
          ".%03u,\"pid\":%d,\"tid\":%d,\"args\":{",
          kind, kind == 'i' ? "\"s\":\"t\"," : "", call->module, len, call->name, ns / 1000,
          (unsigned)(ns % 1000), getpid(), gettid());
  for (unsigned i = 0; i < call->n; i++) {
    fprintf(out, "%s\"%s\":", i > 0 ? "," : "", call->params[i].name);
    write_value(out, &call->args[i]);
  }
  fputs("}}", out);
}

static void report(void *self, const struct ta_call *call) {
  KEEP_ERRNO;
  KEEP_FROM_CANCEL;
  struct ta_chrome *chrome = self;

  if (getpid() != chrome->owner) return;
  pthread_mutex_lock(&chrome->lock);
  write_event(chrome, call, ta_mono_ns() - chrome->origin_ns);
  pthread_mutex_unlock(&chrome->lock);
}

int ta_chrome_open(const char *path, ta_chrome **out) {
  KEEP_ERRNO;
  if (path == NULL || out == NULL) return TA_E_MISUSE;
  *out = NULL;
  struct ta_chrome *chrome = calloc(1, sizeof *chrome);
  if (chrome == NULL) return TA_E_NOMEM;
  chrome->file = ta_own_file(path);
  if (chrome->file == NULL) {
    free(chrome);
    return TA_E_FILE;
  }
  pthread_mutex_init(&chrome->lock, NULL);
  chrome->owner = getpid();
  chrome->origin_ns = ta_mono_ns();
  chrome->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  fputs("[\n", chrome->file);
  chrome->between = "";
  *out = chrome;
  return TA_OK;
}

int ta_chrome_attach(struct ta_probe_group *group, struct ta_tracepoint *at, struct ta_probe *probe,
                     ta_chrome *chrome) {
  return chrome == NULL ? TA_E_MISUSE : ta_call_attach(group, at, probe, report, chrome);
}

int ta_chrome_close(ta_chrome *chrome) {
  KEEP_ERRNO;

  if (chrome == NULL) return TA_OK;
  fputs("\n]\n", chrome->file);
  bool whole = ferror(chrome->file) == 0;
  whole = fclose(chrome->file) == 0 && whole;
  if (getpid() == chrome->owner) pthread_mutex_destroy(&chrome->lock);
  free(chrome);
  return whole ? TA_OK : TA_E_FILE;
}
