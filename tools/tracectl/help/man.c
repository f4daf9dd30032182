/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages that definition tables can write: commands.def and table.def in roff's man macros.
 * Texts that no table has stand in docs/man. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "config/table.h"
#include "tools/tracectl/help/help.h"

/* ---- roff ---- */

/* Text that roff prints as it stands: its own characters, and those it would make typographic. */
static void put_char(FILE *out, char c, bool line_begins) {
  switch (c) {
  case '\\': fputs("\\e", out); break;
  case '-': fputs("\\-", out); break;
  case '"': fputs("\\(dq", out); break;
  case '\'': fputs("\\(aq", out); break;
  case '`': fputs("\\(ga", out); break;
  case '^': fputs("\\(ha", out); break;
  case '~': fputs("\\(ti", out); break;
  case '.':
    if (line_begins) fputs("\\&", out);
    putc(c, out);
    break;
  default: putc(c, out);
  }
}

static void put_span(FILE *out, struct tk_span text, bool line_begins) {
  for (size_t i = 0; i < text.len; i++) put_char(out, text.at[i], line_begins && i == 0);
}

static struct tk_span span(const char *text) {
  return (struct tk_span){ text, strlen(text) };
}

static void put_line(FILE *out, const char *text) {
  put_span(out, span(text), true);
  putc('\n', out);
}

static bool is_placeholder(struct tk_span word) {
  while (word.len > 0 && strchr("[@.", *word.at) != NULL) word.at++, word.len--;
  return word.len > 0 && isupper((unsigned char)*word.at);
}

/* Words as people type them are bold, what they fill in is italic. */
static void put_term(FILE *out, struct tk_span term) {
  while (term.len > 0) {
    const char *space = memchr(term.at, ' ', term.len);
    struct tk_span word = { term.at, space != NULL ? (size_t)(space - term.at) : term.len };
    fputs(is_placeholder(word) ? "\\fI" : "\\fB", out);
    put_span(out, word, false);
    fputs("\\fR", out);
    term.at += word.len;
    term.len -= word.len;
    if (term.len > 0) {
      putc(' ', out);
      term.at++;
      term.len--;
    }
  }
  putc('\n', out);
}

static void put_head(FILE *out, const char *page, const char *section) {
  fputs(".TH ", out);
  for (const char *c = page; *c != '\0'; c++)
    put_char(out, (char)toupper((unsigned char)*c), false);
  fprintf(out, " %s \"\" \"tracecollect " TC_VERSION "\" \"tracecollect\"\n.SH NAME\n", section);
}

/* "Print a trace." becomes "print a trace", as whatis(1) wants it. */
static void put_name(FILE *out, const char *page, const char *about) {
  struct tk_span rest = { about + 1, strcspn(about, ".") - 1 };

  put_span(out, span(page), false);
  fputs(" \\- ", out);
  putc(tolower((unsigned char)*about), out);
  put_span(out, rest, false);
  putc('\n', out);
}

/* ---- pages ---- */

static void put_entries(FILE *out, const char *text) {
  struct tk_entry entry;

  while (tk_entry_next(&text, &entry)) {
    fputs(entry.term.len > 0 ? ".TP\n" : ".PP\n", out);
    if (entry.term.len > 0) put_term(out, entry.term);
    if (entry.about[0] != '\0') put_line(out, entry.about);
  }
}

static void put_examples(FILE *out, const struct tk_verb *verb) {
  fputs(".SH EXAMPLES\n", out);
  for (const struct tk_example *e = tk_examples; e->verb != NULL; e++) {
    if (strcmp(e->verb, verb->name) != 0) continue;
    fputs(".PP\n", out);
    put_line(out, e->about);
    fputs(".PP\n.RS 4\n.nf\n.B \"", out);
    put_span(out, span(e->command), false);
    fputs("\"\n.fi\n.RE\n", out);
  }
}

static void put_verb(FILE *out, const struct tk_verb *verb) {
  char page[64];

  snprintf(page, sizeof page, "tracectl-%s", verb->name);
  put_head(out, page, "1");
  put_name(out, page, verb->about);
  fputs(".SH SYNOPSIS\n\\fBtracectl ", out);
  put_span(out, span(verb->name), false);
  fputs("\\fR ", out);
  put_term(out, span(verb->args));
  fputs(".SH DESCRIPTION\n", out);
  put_line(out, verb->about);
  if (verb->options[0] != '\0') fputs(".SH OPTIONS\n", out);
  put_entries(out, verb->options);
  put_examples(out, verb);
  fputs(".SH SEE ALSO\n.BR tracectl (1),\n"
        "which says what the exit codes are and how a collector is found.\n",
        out);
}

static void put_overview(FILE *out) {
  put_head(out, "tracectl", "1");
  fputs(
      "tracectl \\- read, analyse, send and fetch Go execution traces\n"
      ".SH SYNOPSIS\n.B tracectl\n.I VERB\n.RI [ OPTION ]...\n.RI [ ARGUMENT ]...\n"
      ".SH DESCRIPTION\n"
      "Data goes to the standard output, messages to the standard error. A\n.B \\-\n"
      "stands for standard input or output, and input that zstd packed is unpacked on the way in.\n"
      "Options may stand before or after arguments.\n"
      "Times are RFC 3339,\n.BR \\-5m ,\n.B now\nor\n.BI @ UNIX\\fR.\n"
      ".SH VERBS\n",
      out);
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    fputs(".TP\n.BR tracectl\\-", out);
    put_span(out, span(v->name), false);
    fputs(" (1)\n", out);
    put_line(out, v->about);
  }
  fputs(
      ".SH EXIT STATUS\n"
      ".TP\n0\nDone.\n.TP\n1\nThe input is broken or the work failed.\n.TP\n2\nUsage.\n"
      ".TP\n3\nA stated condition is met.\n"
      ".TP\n4\nData is incomplete and\n.B \\-\\-strict\nwas given.\n.TP\n130\nInterrupted.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n.BR TRACECTL_SERVER ,\\  TRACECTL_CERTS\n.TQ\n"
      ".BR TRACECTL_TLS_CA ,\\  TRACECTL_TLS_CERT ,\\  TRACECTL_TLS_KEY ,\\  TRACECTL_TLS_CRL\n"
      "What the options of these names say, where they are not given.\n"
      ".TP\n.B TRACEAGENT_CERTS\nA folder of certificates, for every verb.\n"
      ".TP\n.B TRACECTL_CONFIG\nThe configuration file.\n"
      ".TP\n.B NO_COLOR\nIf not empty: no colours.\n"
      ".SH FILES\n"
      ".TP\n.I ~/.config/tracectl.conf\n"
      "Lines of KEY = VALUE with the keys server, certs, tls\\-ca, tls\\-cert and tls\\-key; the\n"
      "environment goes before it, and options before that.\n"
      ".TP\n.IR /run/tracecollect ,\\  ./tracecollect\\-data\n"
      "Where a collector's sockets are looked for when nothing names one.\n"
      ".SH SEE ALSO\n.BR tracecollectd (8),\n.BR tracecollectd.yaml (5),\n.BR traceagent (3)\n",
      out);
}

static void put_key(FILE *out, const struct tc_config_key *key) {
  char text[TC_VALUE_BYTES];

  fputs(".TP\n.B ", out);
  put_span(out, span(key->name), false);
  fprintf(out, "\n");
  put_line(out, key->text);
  fputs(".br\nType: ", out);
  put_span(out, span(tc_config_type_name(key->type)), false);
  if (tc_config_is_text(key->type)) {
    if (key->def_text[0] != '\0') {
      fputs("; default: ", out);
      put_span(out, span(key->def_text), false);
    }
  } else {
    tc_config_format(key->type, key->def, text);
    fprintf(out, "; default: %s", text);
  }
  if (!tc_config_is_text(key->type) && key->type != TC_TYPE_BOOL) {
    tc_config_format(key->type, key->min, text);
    fprintf(out, "; at least %s", text);
    tc_config_format(key->type, key->max, text);
    if (key->max != 0) fprintf(out, ", at most %s", text);
  }
  fputs(".\n", out);
}

static void put_config(FILE *out) {
  const char *section = NULL;

  put_head(out, "tracecollectd.yaml", "5");
  fputs("tracecollectd.yaml \\- configuration of tracecollectd\n"
        ".SH DESCRIPTION\n"
        "A file in YAML, named by\n.B tracecollectd \\-\\-config\n.IR FILE ;\n"
        "without it no file is read. A key\n.I section.key\n"
        "is written as a mapping, and given as\n.BI \\-\\-set\\  SECTION.KEY=VALUE\n"
        "on the command line, which goes before the file. Sizes take KiB, MiB, GiB, KB, MB, GB; "
        "times\n"
        "ns, us, ms, s, m, h, d. An unknown key is an error that names its line.\n"
        ".SH EXAMPLE\n.nf\n"
        "state: /var/lib/tracecollect\n"
        "listen:\n"
        "  agents: 0.0.0.0:7070\n"
        "retention:\n"
        "  age: 7d\n"
        "  bytes: 200GiB\n"
        ".fi\n",
        out);
  for (size_t i = 0; i < tc_config_keys_count; i++) {
    const struct tc_config_key *key = &tc_config_keys[i];
    if (section == NULL || strcmp(section, key->section) != 0) {
      section = key->section;
      fprintf(out, ".SH %s\n", section[0] != '\0' ? section : "KEYS");
    }
    put_key(out, key);
  }
  fputs(".SH SEE ALSO\n.BR tracecollectd (8),\n.BR tracectl (1)\n", out);
}

/* ---- files ---- */

static tb_rc open_page(const char *dir, const char *name, struct tb_diag *diag, FILE **out) {
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  *out = fopen(path, "we");
  return *out != NULL ? TB_OK : tb_fail(diag, TB_IO, "%.200s: %s", path, strerror(errno));
}

static tb_rc close_page(FILE *page, const char *name, struct tb_diag *diag) {
  bool failed = ferror(page) != 0;

  if (fclose(page) == 0 && !failed) return TB_OK;
  return tb_fail(diag, TB_IO, "%s: %s", name, strerror(errno));
}

static tb_rc write_page(const char *dir, const char *name, void (*put)(FILE *),
                        struct tb_diag *diag) {
  FILE *page;

  TB_TRY(open_page(dir, name, diag, &page));
  put(page);
  return close_page(page, name, diag);
}

tb_rc tk_man_write(const char *dir, struct tb_diag *diag) {
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    return tb_fail(diag, TB_IO, "%.200s: %s", dir, strerror(errno));
  TB_TRY(write_page(dir, "tracectl.1", put_overview, diag));
  TB_TRY(write_page(dir, "tracecollectd.yaml.5", put_config, diag));
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++) {
    char name[64];
    FILE *page;

    snprintf(name, sizeof name, "tracectl-%s.1", v->name);
    TB_TRY(open_page(dir, name, diag, &page));
    put_verb(page, v);
    TB_TRY(close_page(page, name, diag));
  }
  return TB_OK;
}
