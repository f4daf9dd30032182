/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts, made of commands.def: verbs, options, the words an argument may be, paths. Each
 * shell is a row of functions that write one piece of its script. */
#include <string.h>

#include "tools/tracectl/help/help.h"
#include "tools/tracectl/help/tables.h"

/* ---- what there is to complete ---- */

typedef void option_fn(const struct tk_verb *verb, const struct tk_option *option,
                       const char *about);

static void each_option(const struct tk_verb *verb, option_fn *fn) {
  struct tk_option option[TK_OPTIONS_MAX];
  const char *text = verb->options;
  struct tk_entry entry;

  while (tk_entry_next(&text, &entry)) {
    size_t n = tk_term_options(entry.term, option);
    entry.about[strcspn(entry.about, ";")] = '\0';
    for (size_t i = 0; i < n; i++) fn(verb, &option[i], entry.about);
  }
}

static void put_span(struct tk_span text) {
  fwrite(text.at, 1, text.len, stdout);
}

static void put_alternatives(struct tk_span words) {
  for (size_t i = 0; i < words.len; i++) putchar(words.at[i] == '|' ? ' ' : words.at[i]);
}

static void put_verbs(void) {
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
    printf("%s%s", v == tk_verbs ? "" : " ", v->name);
}

static void put_tables(void) {
  for (size_t i = 0; i < tk_tables_count; i++) printf("%s%s", i == 0 ? "" : " ", tk_tables[i].name);
}

/* The words that a verb's first argument may be. */
static bool has_words(const struct tk_verb *verb) {
  struct tk_span first = { verb->args, strcspn(verb->args, " ") };

  return tk_arg_kind(first) == TK_ARG_WORDS || strncmp(verb->args, "[VERB]", 6) == 0 ||
         strncmp(verb->args, "[TABLE", 6) == 0;
}

static void put_words(const struct tk_verb *verb) {
  struct tk_span first = { verb->args, strcspn(verb->args, " ") };

  if (tk_arg_kind(first) == TK_ARG_WORDS)
    put_alternatives(first);
  else if (strncmp(verb->args, "[VERB]", 6) == 0)
    put_verbs();
  else
    put_tables();
}

/* "SEGMENT | SELECTOR... -o FILE": the file belongs to the option. */
static bool takes_paths(const struct tk_verb *verb) {
  const char *file = strstr(verb->args, "FILE");
  bool of_option = file != NULL && file - verb->args > 3 && memcmp(file - 3, "-o ", 3) == 0;

  return (file != NULL && !of_option) || strstr(verb->args, "DIR") != NULL ||
         strstr(verb->args, "ARCHIVE") != NULL;
}

/* Inside single quotes; more: further characters that take a backslash. */
static void put_quoted(const char *text, const char *quote, const char *more) {
  for (; *text != '\0'; text++) {
    if (*text == '\'')
      fputs(quote, stdout);
    else if (strchr(more, *text) != NULL)
      printf("\\%c", *text);
    else
      putchar(*text);
  }
}

/* ---- bash ---- */

static void bash_names(const struct tk_verb *verb, const struct tk_option *o, const char *about) {
  (void)verb;
  (void)about;
  if (o->letter != '\0') printf(" -%c", o->letter);
  if (o->name.len > 0) printf(" --%.*s", (int)o->name.len, o->name.at);
}

static void bash_argument(const struct tk_verb *verb, const struct tk_option *o,
                          const char *about) {
  (void)about;
  if (o->arg.len == 0) return;
  fputs("    ", stdout);
  if (o->letter != '\0') printf("%s:-%c", verb->name, o->letter);
  if (o->letter != '\0' && o->name.len > 0) fputs(" | ", stdout);
  if (o->name.len > 0) printf("%s:--%.*s", verb->name, (int)o->name.len, o->name.at);
  switch (tk_arg_kind(o->arg)) {
  case TK_ARG_WORDS:
    fputs(") _tracectl_words '", stdout);
    put_alternatives(o->arg);
    fputs("'; return ;;\n", stdout);
    break;
  case TK_ARG_FILE: fputs(") _tracectl_paths -f; return ;;\n", stdout); break;
  case TK_ARG_DIR: fputs(") _tracectl_paths -d; return ;;\n", stdout); break;
  case TK_ARG_OTHER: fputs(") return ;;\n", stdout); break;
  }
}

static void bash_script(void) {
  fputs("# bash completion for tracectl, made of its table of commands\n"
        "_tracectl_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
        "_tracectl_paths() {\n"
        "  compopt -o filenames 2>/dev/null\n"
        "  mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
        "}\n"
        "_tracectl() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} i=$((COMP_CWORD - 1)) word\n"
        "  local options= first= paths=\n"
        "  COMPREPLY=()\n"
        "  # bash ends words at = and @, too\n"
        "  [[ $cur =~ ^[=@]+$ ]] && cur=\n"
        "  while ((i > 1)) && [[ ${COMP_WORDS[i]} =~ ^[=@]+$ ]]; do ((i--)); done\n"
        "  if ((COMP_CWORD == 1)); then _tracectl_words '",
        stdout);
  put_verbs();
  fputs(" --help --version'; return; fi\n"
        "  case $verb:${COMP_WORDS[i]} in\n",
        stdout);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) each_option(v, bash_argument);
  fputs("  esac\n"
        "  case $verb in\n",
        stdout);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    printf("    %s) options='--help", v->name);
    each_option(v, bash_names);
    putchar('\'');
    if (has_words(v)) {
      fputs(" first='", stdout);
      put_words(v);
      putchar('\'');
    }
    printf("%s ;;\n", takes_paths(v) ? " paths=1" : "");
  }
  fputs("  esac\n"
        "  if [[ $cur == -* ]]; then _tracectl_words \"$options\"; return; fi\n"
        "  for word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
        "    [[ \" $first \" == *\" $word \"* && -n $paths ]] && first=\n"
        "  done\n"
        "  if [[ -n $first ]]; then _tracectl_words \"$first\"\n"
        "  elif [[ -n $paths ]]; then _tracectl_paths -f; fi\n"
        "}\n"
        "complete -F _tracectl tracectl\n",
        stdout);
}

/* ---- zsh ---- */

static void zsh_spec(const char *dashes, struct tk_span name, const struct tk_option *o,
                     const char *about) {
  printf("        '*%s", dashes);
  put_span(name);
  if (o->arg.len > 0 && dashes[1] != '\0') putchar('=');
  putchar('[');
  put_quoted(about, "'\\''", "[]\\:");
  putchar(']');
  if (o->arg.len > 0) {
    fputs(":value:", stdout);
    switch (tk_arg_kind(o->arg)) {
    case TK_ARG_WORDS:
      putchar('(');
      put_alternatives(o->arg);
      putchar(')');
      break;
    case TK_ARG_FILE: fputs("_files", stdout); break;
    case TK_ARG_DIR: fputs("_directories", stdout); break;
    case TK_ARG_OTHER: putchar(' '); break;
    }
  }
  fputs("' \\\n", stdout);
}

static void zsh_option(const struct tk_verb *verb, const struct tk_option *o, const char *about) {
  (void)verb;
  if (o->letter != '\0') zsh_spec("-", (struct tk_span){ &o->letter, 1 }, o, about);
  if (o->name.len > 0) zsh_spec("--", o->name, o, about);
}

static void zsh_script(void) {
  fputs("#compdef tracectl\n"
        "# zsh completion for tracectl, made of its table of commands\n"
        "_tracectl() {\n"
        "  local curcontext=$curcontext state line\n"
        "  local -a verbs=(\n",
        stdout);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    printf("    '%s:", v->name);
    put_quoted(v->about, "'\\''", "\\:");
    puts("'");
  }
  fputs("  )\n"
        "  _arguments -C '1:verb:->verb' '*::argument:->arguments' && return\n"
        "  case $state in\n"
        "  verb) _describe verb verbs ;;\n"
        "  arguments)\n"
        "    case $words[1] in\n",
        stdout);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    printf("    %s)\n      _arguments \\\n", v->name);
    each_option(v, zsh_option);
    if (has_words(v)) {
      fputs("        '1:argument:(", stdout);
      put_words(v);
      fputs(")' \\\n", stdout);
    }
    if (takes_paths(v)) fputs("        '*:path:_files' \\\n", stdout);
    fputs("        '--help[explain the verb]'\n      ;;\n", stdout);
  }
  fputs("    esac\n"
        "    ;;\n"
        "  esac\n"
        "}\n"
        "if [[ $funcstack[1] == _tracectl ]]; then _tracectl \"$@\"; else compdef _tracectl "
        "tracectl; fi\n",
        stdout);
}

/* ---- fish ---- */

static void fish_option(const struct tk_verb *verb, const struct tk_option *o, const char *about) {
  printf("complete -c tracectl -n '__fish_seen_subcommand_from %s'", verb->name);
  if (o->letter != '\0') printf(" -s %c", o->letter);
  if (o->name.len > 0) printf(" -l %.*s", (int)o->name.len, o->name.at);
  if (o->arg.len > 0) {
    switch (tk_arg_kind(o->arg)) {
    case TK_ARG_WORDS:
      fputs(" -x -a '", stdout);
      put_alternatives(o->arg);
      putchar('\'');
      break;
    case TK_ARG_FILE:
    case TK_ARG_DIR: fputs(" -r -F", stdout); break;
    case TK_ARG_OTHER: fputs(" -x", stdout); break;
    }
  }
  fputs(" -d '", stdout);
  put_quoted(about, "\\'", "\\");
  puts("'");
}

static void fish_script(void) {
  puts("# fish completion for tracectl, made of its table of commands\n"
       "complete -c tracectl -f");
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    printf("complete -c tracectl -n __fish_use_subcommand -a %s -d '", v->name);
    put_quoted(v->about, "\\'", "\\");
    puts("'");
    if (has_words(v)) {
      printf("complete -c tracectl -n '__fish_seen_subcommand_from %s' -a '", v->name);
      put_words(v);
      puts("'");
    }
    if (takes_paths(v))
      printf("complete -c tracectl -n '__fish_seen_subcommand_from %s' -F\n", v->name);
    each_option(v, fish_option);
  }
}

/* ---- which ---- */

static const struct shell {
  const char *name;
  void (*print)(void);
} shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

bool tk_complete_print(const char *shell) {
  for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
    if (strcmp(shells[i].name, shell) == 0) {
      shells[i].print();
      return true;
    }
  return false;
}
