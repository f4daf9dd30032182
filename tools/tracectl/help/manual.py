#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manual.py TRACECTL VERSION DIR: writes DIR/man and DIR/completion from the tables of verbs and options, as `TRACECTL help --json` prints them.

Texts that no table has are in docs/man.
"""
import json
import pathlib
import re
import subprocess
import sys


class Verb:
    def __init__(self, row):
        self.name, self.about, self.args, self.notes = row["verb"], row["about"], row["args"], row["notes"].splitlines()
        self.is_verb = self.name != "connect"
        self.examples = [(example["command"], example["about"]) for example in row["examples"]]
        self.rows = [Row(option) for option in row["options"]]
        self.options = [row for row in self.rows if row.names()]

    def words(self, verbs, tables):
        """Values of its first argument."""
        first = self.args.split(" ")[0]
        if kind(first) == "words":
            return first.split("|")
        return [verb.name for verb in verbs] + ["connect"] if first.startswith("[VERB]") else tables if first.startswith("[TABLE") else []

    def takes_paths(self):
        """In "SEGMENT | SELECTOR... -o FILE" the file belongs to the option."""
        return bool(re.search(r"DIR|ARCHIVE", self.args) or re.match(r"(?:.{0,2}|.*?(?!-o ).{3})FILE", self.args))


class Row:
    """An option; without a name and a letter an argument, or a paragraph of help."""

    def __init__(self, row):
        self.letter, self.name, self.arg, self.about, self.connects = row["letter"], row["name"], row["arg"], row["about"], row["connects"]

    def names(self):
        return [dashed for dashed in (f"-{self.letter}", f"--{self.name}") if dashed.strip("-")]

    def term(self):
        return " ".join(part for part in (", ".join(self.names()), self.arg) if part)


def kind(arg):
    """The meaning of an argument's name."""
    if arg == "DIR":
        return "folder"
    if arg in ("FILE", "OUT") or "@FILE" in arg:
        return "file"
    return "words" if "|" in arg and not arg[:1].isupper() else "other" if arg else ""


# --- manual pages: roff's man macros ---

ROFF = {"\\": "\\e", "-": "\\-", '"': "\\(dq", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def plain(text):
    """Verbatim text: escapes roff's own characters, and those that it would replace."""
    return "".join(ROFF.get(c, c) for c in text)


def line(text):
    return ("\\&" if text.startswith(".") else "") + plain(text) + "\n"


def term(text):
    """Literal words are bold, placeholders italic."""
    return " ".join(("\\fI" if word.lstrip("[@.")[:1].isupper() else "\\fB") + plain(word) + "\\fR" for word in text.split(" ")) + "\n"


def head(page, section, version):
    return f'.TH {plain(page.upper())} {section} "" "tracecollect {version}" "tracecollect"\n.SH NAME\n'


def rows_of(rows):
    page = ""
    for row in rows:
        page += (".TP\n" + term(row.term()) if row.term() else ".PP\n") + line(row.about)
    return page


def paragraphs(notes):
    return "".join(".PP\n" + line(note) for note in notes)


def verb_page(verb, version):
    summary = verb.about.partition(".")[0]
    page = head(f"tracectl-{verb.name}", 1, version) + plain(f"tracectl-{verb.name}") + f" \\- {summary[0].lower()}{plain(summary[1:])}\n"
    page += f".SH SYNOPSIS\n\\fBtracectl {plain(verb.name)}\\fR {term(verb.args)}" if verb.is_verb else ""
    page += f".SH DESCRIPTION\n{line(verb.about)}"
    page += ".SH OPTIONS\n" if verb.rows else ""
    connects = [row for row in verb.rows if row.connects] if verb.is_verb else []
    page += rows_of(row for row in verb.rows if row not in connects)
    if connects:
        page += ".TP\n" + term(", ".join(name for row in connects for name in row.names())) + "Which collector is asked, and how:\n.BR tracectl\\-connect (1).\n"
    page += paragraphs(verb.notes)
    page += ".SH EXAMPLES\n" if verb.examples else ""
    for command, about in verb.examples:
        page += f'.PP\n{line(about)}.PP\n.RS 4\n.nf\n.B "{plain(command)}"\n.fi\n.RE\n'
    return page + ".SH SEE ALSO\n.BR tracectl (1),\nwhich says what the exit codes are,\n.BR tracectl\\-connect (1).\n"


OVERVIEW = r"""tracectl \- read, analyse, send and fetch Go execution traces
.SH SYNOPSIS
.B tracectl
.I VERB
.RI [ OPTION ]...
.RI [ ARGUMENT ]...
.SH DESCRIPTION
Data goes to the standard output, messages to the standard error. A
.B \-
stands for standard input or output, and input that zstd packed is unpacked on the way in.
Options may stand before or after arguments.
Times are RFC 3339,
.BR \-5m ,
.B now
or
.BI @ UNIX\fR.
.SH VERBS
%s.SH EXIT STATUS
.TP
0
Done.
.TP
1
The input is broken or the work failed.
.TP
2
Usage.
.TP
3
A stated condition is met.
.TP
4
Data is incomplete and
.B \-\-strict
was given.
.TP
130
Interrupted.
.SH ENVIRONMENT
.TP
.BR TRACECTL_SERVER ,\  TRACECTL_CERTS
.TQ
.BR TRACECTL_TLS_CA ,\  TRACECTL_TLS_CERT ,\  TRACECTL_TLS_KEY ,\  TRACECTL_TLS_CRL
What the options of these names say, where they are not given.
.TP
.B TRACEAGENT_CERTS
A folder of certificates, for every verb.
.TP
.B TRACECTL_CONFIG
The configuration file.
.TP
.B NO_COLOR
If not empty: no colours.
.SH FILES
.TP
.I ~/.config/tracectl.conf
Lines of KEY = VALUE with the keys server, certs, tls\-ca, tls\-cert and tls\-key; the
environment goes before it, and options before that.
.TP
.IR /run/tracecollect ,\  /var/lib/tracecollect ,\  ./tracecollect\-data
Where a collector's sockets are looked for when nothing names one.
.SH SEE ALSO
.BR tracectl\-connect (1),
.BR tracecollectd (8),
.BR tracecollectd.yaml (5),
.BR traceagent (3)
"""


def overview_page(verbs, version):
    return head("tracectl", 1, version) + OVERVIEW % "".join(f".TP\n.BR tracectl\\-{plain(verb.name)} (1)\n{line(verb.about)}" for verb in verbs)


CONFIG = r"""tracecollectd.yaml \- configuration of tracecollectd
.SH DESCRIPTION
A file in YAML, named by
.B tracecollectd \-\-config
.IR FILE ;
without it no file is read. A key
.I section.key
is written as a mapping, and given as
.BI \-\-set\  SECTION.KEY=VALUE
on the command line, or as
.BI TRACECOLLECTD_SET_SECTION_KEY= VALUE
in the environment. The command line goes before the environment, and that before the file. Sizes take KiB, MiB, GiB, KB, MB, GB; times
ns, us, ms, s, m, h, d. An unknown key is an error that names its line.
.SH EXAMPLE
.nf
state: /var/lib/tracecollect
listen:
  agents: 0.0.0.0:7070
retention:
  age: 7d
  bytes: 200GiB
.fi
"""


def config_page(keys, version):
    page, section = head("tracecollectd.yaml", 5, version) + CONFIG, None
    for key in keys:
        of = key["key"].rpartition(".")[0]
        if of != section:
            section = of
            page += f".SH {section or 'KEYS'}\n"
        page += f".TP\n.B {plain(key['key'])}\n{line(key['about'])}.br\nType: {plain(key['type'])}"
        page += f"; default: {plain(key['default'])}" if key["default"] else ""
        page += f"; at least {key['min']}" if key["min"] else ""
        page += f", at most {key['max']}" if key["max"] else ""
        page += ".\n"
    return page + ".SH SEE ALSO\n.BR tracecollectd (8),\n.BR tracectl (1)\n"


# --- completion ---

BASH = r"""# bash completion for tracectl, made of its table of commands
_tracectl_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_tracectl_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_tracectl() {
  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} i=$((COMP_CWORD - 1)) word
  local options= first= paths=
  COMPREPLY=()
  # bash ends words at = and @, too
  [[ $cur =~ ^[=@]+$ ]] && cur=
  while ((i > 1)) && [[ ${COMP_WORDS[i]} =~ ^[=@]+$ ]]; do ((i--)); done
  if ((COMP_CWORD == 1)); then _tracectl_words '@VERBS@ --help --version'; return; fi
  case $verb:${COMP_WORDS[i]} in
@ARGUMENTS@  esac
  case $verb in
@NAMES@  esac
  if [[ $cur == -* ]]; then _tracectl_words "$options"; return; fi
  for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
    [[ " $first " == *" $word "* && -n $paths ]] && first=
  done
  if [[ -n $first ]]; then _tracectl_words "$first"
  elif [[ -n $paths ]]; then _tracectl_paths -f; fi
}
complete -F _tracectl tracectl
"""


def bash(verbs, tables):
    takes = {"words": "_tracectl_words '{}'; return", "file": "_tracectl_paths -f; return", "folder": "_tracectl_paths -d; return", "other": "return"}
    arguments = names = ""
    for verb in verbs:
        for option in verb.options:
            if option.arg:
                arguments += f"    {' | '.join(f'{verb.name}:{name}' for name in option.names())}) "
                arguments += takes[kind(option.arg)].format(option.arg.replace("|", " ")) + " ;;\n"
        words = verb.words(verbs, tables)
        names += f"    {verb.name}) options='{' '.join(['--help'] + [name for option in verb.options for name in option.names()])}'"
        names += (f" first='{' '.join(words)}'" if words else "") + (" paths=1" if verb.takes_paths() else "") + " ;;\n"
    return BASH.replace("@VERBS@", " ".join(verb.name for verb in verbs)).replace("@ARGUMENTS@", arguments).replace("@NAMES@", names)


def quoted(text, quote, more):
    """For use inside single quotes; more: further characters to escape with a backslash."""
    return "".join(quote if c == "'" else "\\" + c if c in more else c for c in text)


ZSH = r"""#compdef tracectl
# zsh completion for tracectl, made of its table of commands
_tracectl() {
  local curcontext=$curcontext state line
  local -a verbs=(
@VERBS@  )
  _arguments -C '1:verb:->verb' '*::argument:->arguments' && return
  case $state in
  verb) _describe verb verbs ;;
  arguments)
    case $words[1] in
@ARGUMENTS@    esac
    ;;
  esac
}
if [[ $funcstack[1] == _tracectl ]]; then _tracectl "$@"; else compdef _tracectl tracectl; fi
"""


def zsh(verbs, tables):
    takes = {"words": "({})", "file": "_files", "folder": "_directories", "other": " "}
    arguments = ""
    for verb in verbs:
        arguments += f"    {verb.name})\n      _arguments \\\n"
        for option in verb.options:
            value = ":value:" + takes[kind(option.arg)].format(option.arg.replace("|", " ")) if option.arg else ""
            for name in option.names():
                equals = "=" if option.arg and name.startswith("--") else ""
                arguments += f"        '*{name}{equals}[{quoted(option.about, chr(39) + chr(92) + chr(39) * 2, '[]:' + chr(92))}]{value}' \\\n"
        words = verb.words(verbs, tables)
        arguments += f"        '1:argument:({' '.join(words)})' \\\n" if words else ""
        arguments += "        '*:path:_files' \\\n" if verb.takes_paths() else ""
        arguments += "        '--help[explain the verb]'\n      ;;\n"
    about = "".join(f"    '{verb.name}:{quoted(verb.about, chr(39) + chr(92) + chr(39) * 2, ':' + chr(92))}'\n" for verb in verbs)
    return ZSH.replace("@VERBS@", about).replace("@ARGUMENTS@", arguments)


def fish(verbs, tables):
    takes = {"words": " -x -a '{}'", "file": " -r -F", "folder": " -r -F", "other": " -x", "": ""}
    text = "# fish completion for tracectl, made of its table of commands\ncomplete -c tracectl -f\n"
    for verb in verbs:
        seen, words = f"complete -c tracectl -n '__fish_seen_subcommand_from {verb.name}'", verb.words(verbs, tables)
        text += f"complete -c tracectl -n __fish_use_subcommand -a {verb.name} -d '{quoted(verb.about, chr(92) + chr(39), chr(92))}'\n"
        text += f"{seen} -a '{' '.join(words)}'\n" if words else ""
        text += f"{seen} -F\n" if verb.takes_paths() else ""
        for option in verb.options:
            text += seen + (f" -s {option.letter}" if option.letter else "") + (f" -l {option.name}" if option.name else "")
            text += takes[kind(option.arg)].format(option.arg.replace("|", " ")) + f" -d '{quoted(option.about, chr(92) + chr(39), chr(92))}'\n"
    return text


def main():
    tracectl, version, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])

    def said(*args):
        return subprocess.run([tracectl, *args], check=True, capture_output=True, text=True).stdout

    pages = [Verb(json.loads(row)) for row in said("help", "--json").splitlines()]
    verbs = [page for page in pages if page.is_verb]
    tables = [row.split()[0] for row in said("tables").splitlines()]
    keys = [json.loads(row) for row in said("tables", "config", "--json").splitlines()]
    files = {"man/tracectl.1": overview_page(verbs, version), "man/tracecollectd.yaml.5": config_page(keys, version),
             "completion/tracectl": bash(verbs, tables), "completion/_tracectl": zsh(verbs, tables), "completion/tracectl.fish": fish(verbs, tables)}
    files |= {f"man/tracectl-{verb.name}.1": verb_page(verb, version) for verb in pages}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
