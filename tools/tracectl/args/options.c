/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "tools/tracectl/term/tracectl.h"

enum { LETTERS_MAX = 16, NAME_BYTES = 64, LIST_BYTES = 200 };

static const struct option *find(const struct option *options, const char *name) {
  for (; options->name != NULL; options++)
    if (strcmp(options->name, name) == 0) return options;
  return NULL;
}

/* "--tls-ca, --tls-cert, --tls-key": those that begin so. Answers how many. */
static unsigned list_beginning(const struct option *options, const char *name,
                               char out[LIST_BYTES]) {
  unsigned count = 0;
  size_t n = 0;

  for (*out = '\0'; options->name != NULL; options++) {
    if (strncmp(options->name, name, strlen(name)) != 0) continue;
    int wrote = snprintf(out + n, LIST_BYTES - n, "%s--%s", count++ > 0 ? ", " : "", options->name);
    n = n + (size_t)wrote < LIST_BYTES ? n + (size_t)wrote : LIST_BYTES - 1;
  }
  return count;
}

static void complain_of_name(const char *verb, const char *word, const struct option *options) {
  char name[NAME_BYTES], list[LIST_BYTES];

  snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
  if (find(options, name) != NULL) {
    tk_fail(verb, "--%s takes no value", name);
    return;
  }
  unsigned count = list_beginning(options, name, list);
  if (*name != '\0' && count > 0) {
    tk_fail(verb, count > 1 ? "--%s may be one of %s" : "--%s takes no value: it is short for %s",
            name, list);
    return;
  }
  struct tb_nearest nearest = { .word = name };
  for (const struct option *o = options; o->name != NULL; o++) tb_nearest_try(&nearest, o->name);
  if (nearest.best != NULL)
    tk_fail(verb, "no option --%s; did you mean --%s?", name, nearest.best);
  else
    tk_fail(verb, "no option --%s", name);
}

int tk_option_next(int argc, char **argv, const char *letters, const struct option *options) {
  char quiet[LETTERS_MAX];

  snprintf(quiet, sizeof quiet, ":%s",
           letters); /* ':' separates a missing value from an unknown option */
  int option = getopt_long(argc, argv, quiet, options, NULL);
  if (option == ':') {
    tk_fail(argv[0], "%s needs a value", argv[optind - 1]);
    return '?';
  }
  if (option != '?') return option;
  const char *word = argv[optind - 1];
  if (strncmp(word, "--", 2) == 0)
    complain_of_name(argv[0], word, options);
  else
    tk_fail(argv[0], "no option -%c", optopt);
  return '?';
}

bool tk_rows_parse(const char *verb, const char *value, size_t *out) {
  char *end;

  errno = 0;
  *out = strtoul(value, &end, 10);
  if (value[0] >= '0' && value[0] <= '9' && *end == 0 && errno == 0) return true;
  tk_usage(verb, "--top: \"%s\" is no number of rows (0: all)", value);
  return false;
}
