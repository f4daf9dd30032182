/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preload/variables.h"

#include <ctype.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/emit/generation/samples.h"
#include "agent/emit/stacks/frames.h"
#include "agent/preload/preload.h"
#include "agent/preload/sanitizer.h"

enum { EXIT_MS = 1000, EXIT_MS_MAX = 60000, DELAY_MS = 500, DELAY_MS_MAX = 60000 };

struct group {
  const char *name;
  unsigned traced;
};

static const struct group groups[] = {
  { "threads", 1u << TA_TRACE_THREAD | 1u << TA_TRACE_JOIN },
  { "locks", 1u << TA_TRACE_MUTEX | 1u << TA_TRACE_COND },
  { "sleeps", 1u << TA_TRACE_SLEEP },
  { "polls", 1u << TA_TRACE_POLL | 1u << TA_TRACE_POLL_ONE },
  { "calls", 1u << TA_TRACE_CALL },
  { "heap", 1u << TA_TRACE_HEAP }, /* only if named */
};
enum { USUAL = sizeof groups / sizeof *groups - 1 };

/* Calls each() with every word of a comma-separated list, until one call returns true. */
static bool any_word(const char *list, bool (*each)(void *self, const char *word, size_t n),
                     void *self) {
  for (;;) {
    size_t n = strcspn(list, ",");
    if (n > 0 && each(self, list, n)) return true;
    if (list[n] == 0) return false;
    list += n + 1;
  }
}

static bool is_unknown(void *self, const char *word, size_t n) {
  struct ta_variables *v = self;

  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    if (strlen(groups[i].name) != n || memcmp(groups[i].name, word, n) != 0) continue;
    v->traced |= groups[i].traced;
    return false;
  }
  snprintf(v->fault, sizeof v->fault,
           "TRACEAGENT_TRACE: \"%.*s\" is not one of threads, locks, sleeps, polls, calls, heap",
           n > 40 ? 40 : (int)n, word);
  return true;
}

static bool is_program(void *self, const char *word, size_t n) {
  (void)self;
  return strlen(program_invocation_short_name) == n &&
         memcmp(program_invocation_short_name, word, n) == 0;
}

static bool read_groups(struct ta_variables *v) {
  const char *list = secure_getenv("TRACEAGENT_TRACE");

  if (list != NULL) return !any_word(list, is_unknown, v);
  for (size_t i = 0; i < USUAL; i++) v->traced |= groups[i].traced;
  return true;
}

static bool read_number(struct ta_variables *v, const char *name, uint64_t max, uint64_t *out) {
  const char *text = secure_getenv(name);
  char *end;

  if (text == NULL || *text == 0) return true;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (isdigit((unsigned char)*text) && *end == 0 && errno == 0 && number <= max) {
    *out = number;
    return true;
  }
  snprintf(v->fault, sizeof v->fault, "%s: \"%.40s\" is not a number from 0 to %llu", name, text,
           (unsigned long long)max);
  return false;
}

static bool read_stacks(struct ta_variables *v) {
  bool good = read_number(v, "TRACEAGENT_STACKS", TA_FRAMES_MAX, &v->stacks) &&
              read_number(v, "TRACEAGENT_SAMPLES", TA_SAMPLES_HZ_MAX, &v->samples);
  bool objects = (v->traced & 1u << TA_TRACE_OBJECTS) != 0;

  if (v->stacks != 0 || v->samples != 0 || objects) v->traced |= 1u << TA_TRACE_STACKS;
  return good;
}

/* Accepts only signals that kill a program by default: a program without a handler cannot be using them. */
static bool read_signal(struct ta_variables *v) {
  const char *text = secure_getenv("TRACEAGENT_RECORD_SIGNAL");

  if (text == NULL || *text == 0) return true;
  if (strcmp(text, "USR1") == 0) v->record_signal = SIGUSR1;
  if (strcmp(text, "USR2") == 0) v->record_signal = SIGUSR2;
  if (v->record_signal == 0)
    snprintf(v->fault, sizeof v->fault,
             "TRACEAGENT_RECORD_SIGNAL: \"%.40s\" is neither USR1 nor USR2", text);
  return v->record_signal != 0;
}

static bool is_on(const char *name) {
  const char *text = secure_getenv(name);

  return text != NULL && strcmp(text, "1") == 0;
}

/* Sets the service's name: the given one, or the program's with characters replaced. */
static void name_service(struct ta_variables *v) {
  const char *given = secure_getenv("TRACEAGENT_SERVICE");
  const char *name = given != NULL ? given : program_invocation_short_name;

  snprintf(v->program, sizeof v->program, "%s", program_invocation_short_name);
  snprintf(v->service, sizeof v->service, "%s", name);
  for (char *c = v->service; given == NULL && *c != 0; c++)
    if (!isalnum((unsigned char)*c) && strchr("._:-", *c) == NULL) *c = '-';
}

/* A flight recorder must be reachable for a snap even if the program waits in one call from its start. */
static uint64_t usual_delay_ms(void) {
  const char *record_ms = secure_getenv("TRACEAGENT_RECORD_MS");

  return record_ms != NULL && *record_ms != 0 && strcmp(record_ms, "0") != 0 ? 0 : DELAY_MS;
}

bool ta_is_switched_off(void) {
  return getauxval(AT_SECURE) != 0 || is_on("TRACEAGENT_DISABLE");
}

static bool names_server(void) {
  const char *server = secure_getenv("TRACEAGENT_SERVER");

  return server != NULL && *server != 0;
}

bool ta_wants_early_objects(void) {
  return is_on("TRACEAGENT_MALLOC") && names_server() && !ta_is_switched_off() &&
         ta_sanitizer() == NULL;
}

bool ta_variables_read(struct ta_variables *v) {
  const char *only = secure_getenv("TRACEAGENT_ONLY"), *sanitizer;

  *v = (struct ta_variables){ .exit_ms = EXIT_MS, .delay_ms = usual_delay_ms() };
  v->other = only != NULL && !any_word(only, is_program, NULL);
  if (v->other) return true;
  if (!names_server()) {
    snprintf(v->fault, sizeof v->fault, "server is not given (TRACEAGENT_SERVER)");
    return false;
  }
  if ((sanitizer = ta_sanitizer()) != NULL) {
    snprintf(v->fault, sizeof v->fault,
             "the program was built with %s, which would take the library's work for the program's",
             sanitizer);
    return false;
  }
  v->forks = is_on("TRACEAGENT_FORK");
  v->verbose = is_on("TRACEAGENT_VERBOSE");
  v->tables = is_on("TRACEAGENT_STACK_TABLES");
  if (is_on("TRACEAGENT_MALLOC")) v->traced |= 1u << TA_TRACE_OBJECTS;
  name_service(v);
  return read_groups(v) && read_stacks(v) && read_signal(v) &&
         read_number(v, "TRACEAGENT_GENERATION_MS", UINT32_MAX, &v->generation_ms) &&
         read_number(v, "TRACEAGENT_SPOOL_BYTES", INT64_MAX, &v->spool_bytes) &&
         read_number(v, "TRACEAGENT_VERSION", UINT32_MAX, &v->version) &&
         read_number(v, "TRACEAGENT_DELAY_MS", DELAY_MS_MAX, &v->delay_ms) &&
         read_number(v, "TRACEAGENT_EXIT_MS", EXIT_MS_MAX, &v->exit_ms);
}
