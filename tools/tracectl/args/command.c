/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/args/command.h"

#include <stdbool.h>
#include <string.h>

static struct {
  int argc;
  char **argv;
} typed;

void tk_command_init(int argc, char **argv) {
  typed.argc = argc;
  typed.argv = argv;
}

static bool is_plain(const char *word) {
  static const char plain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";

  return *word != '\0' && strspn(word, plain) == strlen(word);
}

static void print_word(FILE *out, const char *word) {
  fputc(' ', out);
  if (is_plain(word)) {
    fputs(word, out);
    return;
  }
  fputc('\'', out);
  for (; *word != '\0'; word++) {
    if (*word == '\'')
      fputs("'\\''", out);
    else
      fputc((unsigned char)*word < ' ' ? '?' : *word, out);
  }
  fputc('\'', out);
}

/* Returns the number of words of an option --NAME VALUE or --NAME=VALUE; 0: the word is another. */
static int words_of(const char *word, const char *name) {
  size_t n = strlen(name);

  if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, n) != 0) return 0;
  return word[2 + n] == '=' ? 1 : word[2 + n] == '\0' ? 2 : 0;
}

void tk_command_print(FILE *out, const char *name, const char *value) {
  fputs("tracectl", out);
  for (int i = 0; i < typed.argc;) {
    int skip = words_of(typed.argv[i], name);
    if (skip == 0) print_word(out, typed.argv[i]);
    i += skip > 0 ? skip : 1;
  }
  fprintf(out, " --%s %s", name, value);
}
