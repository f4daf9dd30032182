# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages and shell completion know every verb, option and key, and nothing else."""
import json
import re
import shutil
import unittest

from harness import BUILD, DAEMON, FULL, SOURCE, Case

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SHELLS = {"bash": "tracectl", "zsh": "_tracectl", "fish": "tracectl.fish"}
# Values for the options, by the word that the help has for the value: a fixed one for these, else 1.
VALUES = {"FIELD": "a: b", "WHERE|@FILE": "none", "HOST:PORT|@FILE": "none:1", "T": "now", "SPAN": "10s", "HEX": "0" * 32, "A..B": "1..2", "W": "10s", "K": "alert", "EXPR": "sched.p99 > +20%"}
TABLE = {}  # what the program itself reads its options by
OLD = {"start": "since", "end": "until", "rows": "top", "limit": "top", "format": "to"}
SAID = {}  # what help printed, and man, is the same for all cases


class Manual(Case):
    def setUp(self):
        super().setUp()
        if not TABLE:
            TABLE.update((row["verb"], row) for row in map(json.loads, self.tracectl("help", "--json").out.splitlines()))
        self.verbs = [verb for verb in TABLE if verb != "connect"]
        self.assertIn("fetch", self.verbs)

    def help(self, *verb):
        if verb not in SAID:
            SAID[verb] = self.tracectl("help", *verb).out
        return SAID[verb]

    def rows(self, verb):
        return [row for row in TABLE[verb]["options"] if row["name"] or row["letter"]]

    def options(self, verb):
        """Returns the options of the verb's table, those without a name by their letter, and the words for their
        values."""
        return {f"--{row['name']}" if row["name"] else f"-{row['letter']}": row["arg"] for row in self.rows(verb)}

    def page(self, path):
        """A page as man prints it for a terminal; a warning fails the case."""
        source = path.read_text()
        if source not in SAID:
            done = self.run_program("man", "--warnings", "-E", "UTF-8", "-l", path, env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin"})
            self.assertEqual(done.err, "", path)
            SAID[source] = re.sub(r"\u2010\n\s+", "", done.out)
        return SAID[source]

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_pages_name_every_verb_option_and_key(self):
        pages = BUILD / "man"
        overview = self.page(pages / "tracectl.1")
        for verb in self.verbs:
            self.assertIn(f"tracectl-{verb}(1)", overview)
            text = self.page(pages / f"tracectl-{verb}.1")
            self.assertRegex(text, rf"tracectl +{verb} ")
            for option in self.options(verb):
                self.assertIn(option, text)
        text = " ".join(self.page(pages / "tracectl-connect.1").split())
        for row in self.rows("connect"):
            self.assertIn(f"--{row['name']} {row['arg']} {row['about']}", text)
        text = self.page(pages / "tracecollectd.yaml.5")
        for row in self.tracectl("tables", "config").out.splitlines()[1:]:
            self.assertRegex(text, rf"(?m)^ +{re.escape(row.split()[0])}\b")

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_pages_written_by_hand_are_complete(self):
        for program in (DAEMON, BUILD / "bin/tracecollect-actions"):
            page = self.page(SOURCE / f"docs/man/{program.name}.8")
            for option in OPTION.findall(self.run_program(program, "--help").out):
                self.assertIn(option, page)
        for name in ("traceagent", "traceexperiment", "traceprobe"):
            page = self.page(SOURCE / f"docs/man/{name}.3")
            header = (SOURCE / f"agent/include/{name}.h").read_text().partition("/* The rest is used by")[0]
            for function in re.findall(r"^TA_API .*?(ta_\w+)\(", header, re.M):
                self.assertIn(f"{function}(", page)

    def test_every_verb_has_examples_whose_verbs_and_options_exist(self):
        pages = BUILD / "man"
        for verb in self.verbs:
            examples = self.help(verb).split("\nExamples:\n")[1]
            commands = re.findall(r"(?m)^  (\S.*)$", examples)
            self.assertGreater(len(commands), 0, verb)
            page = " ".join(self.page(pages / f"tracectl-{verb}.1").split())
            for command in commands:
                self.assertIn(" ".join(command.split()), page)
                for other, rest in re.findall(r"tracectl ([a-z]+)([^|&;)]*)", command):
                    self.assertIn(other, self.verbs, command)
                    for option in OPTION.findall(re.sub(r"'[^']*'", "", rest)):
                        self.assertIn(option, self.help(other), command)
            self.assertIn(f"tracectl {verb}", examples)

    def test_every_complaint_begins_with_the_verb_and_a_slip_is_recognised(self):
        """A wrong option, a value that is missing, an argument too many: our words, not the C library's. An option that
        many verbs have is tried at one of them."""
        seen = set()
        for verb in self.verbs:
            options = [option for option in self.options(verb) if FULL or option not in seen]
            seen.update(options)
            for arguments, reason in ((["--no-such-option"], "no option --no-such-option"), (["-Z"], "no option -Z"),
                                      *(([option], f"{option} needs a value") for option in options if self.options(verb)[option])):
                with self.subTest(verb=verb, arguments=arguments):
                    done = self.tracectl(verb, *arguments, expect=2, cwd=self.folder)
                    self.assertEqual(done.err, f"tracectl {verb}: {reason}\nTry 'tracectl help {verb}'.\n")
            for option in (option for option in options if len(option) > 5):
                slip = option[:3] + option[4] + option[3] + option[5:]
                if slip not in self.options(verb):
                    done = self.tracectl(verb, slip, expect=2, cwd=self.folder)
                    self.assertRegex(done.err, rf"no option {slip}; did you mean --[a-z0-9-]+\?\n")
        for slip, verb in {"stauts": "status", "lits": "list", "fecth": "fetch", "reprot": "report", "tracepoint": "tracepoints"}.items():
            done = self.tracectl(slip, expect=2)
            self.assertEqual(done.err, f'tracectl: no verb "{slip}"; did you mean "{verb}"?\n')
        self.assertIn("'tracectl help' lists them", self.tracectl("xyzzy", expect=2).err)
        self.assertRegex(self.tracectl("tables", "kinds").out, r"(?m)^experiments .*\(named by the trace\)$")
        self.assertIn("did you mean 'metrics'?", self.tracectl("tables", "metrisc", expect=2).err)
        self.assertIn("--tls may be one of --tls-ca, --tls-cert", self.tracectl("list", "--tls", "x", expect=2).err)
        self.assertIn("--json takes no value", self.tracectl("list", "--json=1", expect=2).err)
        self.assertIn("--to needs a value", self.tracectl("send", "--to", expect=2).err)
        self.assertIn("-d needs a value", self.tracectl("cat", "-d", expect=2).err)

    def test_help_begins_with_a_first_day_and_goes_on_by_purpose(self):
        groups = re.findall(r"(?m)^(\S.*):\n((?:  .*\n)+)", self.help())
        self.assertEqual([name for name, _ in groups], ["On a first day", "Read a file", "Ask a collector", "Run a collector", "Write traces"])
        shown = [re.findall(r"(?m)^  ([a-z]+) +\S", rows) for _, rows in groups]
        self.assertEqual(shown[0], ["status", "top", "findings", "page", "report", "why", "tail", "list", "fetch", "query", "convert"])
        self.assertEqual(sorted(sum(shown, ["help"])), sorted(self.verbs))
        self.assertIn("'tracectl help connect'", self.help())

    def test_help_fits_into_a_hundred_columns(self):
        for verb in ("", *(json.loads(row)["verb"] for row in self.tracectl("help", "--json").out.splitlines())):
            for line in self.tracectl("help", *filter(None, [verb])).out.splitlines():
                self.assertLessEqual(len(line), 100, f"help {verb}: {line}")

    def test_help_has_each_row_of_the_table_and_one_line_for_connecting(self):
        for verb in self.verbs:
            text = " ".join(self.help(verb).split())
            self.assertLessEqual(max(map(len, self.help(verb).partition("\nExamples:")[0].splitlines()[1:])), 100, verb)
            for row in TABLE[verb]["options"]:
                term = f"--{row['name']} {row['arg']}" if row["name"] else f"-{row['letter']} {row['arg']}" if row["letter"] else row["arg"]
                if not row["connects"]:
                    self.assertIn(" ".join(f"{term} {row['about']}".split()), text)
            connects = [f"--{row['name']}" for row in TABLE[verb]["options"] if row["connects"]]
            self.assertIn(connects, ([], [f"--{row['name']}" for row in TABLE["connect"]["options"]]))
            self.assertEqual(self.help(verb).count("tracectl help connect"), 1 if connects else 0, verb)
            self.assertIn(", ".join(connects), text)
        text = " ".join(self.help("connect").split())
        for row in TABLE["connect"]["options"]:
            self.assertIn(f"--{row['name']} {row['arg']} {row['about']}", text)

    def test_one_name_for_one_thing_and_another_name_is_an_error_that_tells_it(self):
        seen = set()
        for verb in self.verbs:
            options = self.options(verb)
            for old, name in OLD.items():
                if f"--{name}" not in options or f"--{old}" in options:
                    continue
                for words in [[f"--{old}", "1"]] + ([] if old in seen else [[f"--{old}=1"]]):
                    done = self.tracectl(verb, *words, expect=2, cwd=self.folder)
                    self.assertEqual(done.err, f"tracectl {verb}: no option --{old}; use --{name}\nTry 'tracectl help {verb}'.\n")
                seen.add(old)
        self.assertEqual(seen, set(OLD))
        for verb in self.verbs:  # other usual names are accepted, and are not in the help
            options = self.options(verb)
            for other, name in (("from", "since"), ("to", "until"), ("last", "window"), ("last", "since"), ("window", "last"), ("top", "-n")):
                if (name in options or f"--{name}" in options) and f"--{other}" not in options:
                    self.assertNotIn("no option", self.tracectl(verb, f"--{other}", "?", expect=2, cwd=self.folder).err, (verb, other))
        for verb in ("list", "report", "state", "diff"):
            self.assertIn("--top needs a number", self.tracectl(verb, "-n", "x", expect=2).err)
        self.assertIn("cannot be combined with --watch or --window", self.tracectl("report", "stw", "--server", "unix:/none", "--last", "1h", "--window", "1m", expect=2).err)
        for verb in self.verbs:
            for row in self.rows(verb):
                self.assertEqual(row["arg"], {"since": "T", "until": "T", "top": "N", "last": "SPAN"}.get(row["name"], row["arg"]))
                self.assertEqual(row["letter"] == "o", row["name"] == "output", verb)

    def test_values_that_do_not_fit_are_told_in_plain_words(self):
        for words, said in ((("list", "--top", "x"), "--top needs a number, not 'x'"), (("report", "all", "--top", "-1"), "--top needs a number, not '-1'"),
                            (("cat", "-d", "text"), "-d 'text': use parsed, wire, footprint or json"),
                            (("top", "--window", "30s"), "--window '30s': use 10s, 1m, 5m or all"),
                            (("query", "--since", "soon"), "--since needs a time (2026-03-01T12:00:00Z, -5m, now or @UNIX), not 'soon'"),
                            (("fetch", "--last", "x"), "--last needs a span of time (10ms, 30s, 5m, 24h), not 'x'"),
                            (("cat", "--goroutine", "0"), "--goroutine needs a number of 1 or more, not '0'"),
                            (("send", "--rate", "0"), "--rate needs a number of megabytes a second, not '0'"),
                            (("certs", "--days", "0"), "--days needs 1 to 36500 days, not '0'"),
                            (("fetch",), "-o FILE is required"), (("fetch", "--json", "-o", "-"), "--json and -o -: only one of them can write to standard output"),
                            (("status", "x"), "unexpected argument 'x'; for a service: --service x")):
            self.assertTrue(self.tracectl(*words, expect=2, cwd=self.folder).err.startswith(f"tracectl {words[0]}: {said}\n"), words)

    def test_every_option_that_the_table_names_is_one(self):
        for verb in self.verbs:
            words = []
            for option, arg in self.options(verb).items():
                words.append(option)
                if arg:
                    words.append(VALUES.get(arg, arg.split("|")[0] if "|" in arg else "1"))
            with self.subTest(verb=verb):  # the wrong option behind them ends the verb before it does anything
                done = self.tracectl(verb, *words, "--no-such-option", expect=2, cwd=self.folder)
                self.assertEqual(done.err, f"tracectl {verb}: no option --no-such-option\nTry 'tracectl help {verb}'.\n")

    def test_install_puts_pages_and_completions_in_their_places(self):
        self.run_program("cmake", "--install", BUILD, "--prefix", self.folder / "usr")
        share = self.folder / "usr/share"
        for file in ("man/man1/tracectl.1", "man/man1/tracectl-fetch.1", "man/man3/traceagent.3", "man/man3/traceexperiment.3", "man/man3/traceprobe.3", "man/man8/tracecollect-actions.8", "man/man8/tracecollectd.8",
                     "man/man5/tracecollectd.yaml.5", "bash-completion/completions/tracectl",
                     "zsh/site-functions/_tracectl", "fish/vendor_completions.d/tracectl.fish"):
            self.assertGreater((share / file).stat().st_size, 200, file)

    def test_documents_that_texts_name_are_installed(self):
        self.run_program("cmake", "--install", BUILD, "--prefix", self.folder / "usr", "--component", "tools")
        texts = [self.tracectl("help", verb).out for verb in self.verbs]
        texts += [self.run_program(DAEMON, "--print-default-config").out, self.run_program(BUILD / "bin/tracecollect-actions", "--help").out]
        names = set(re.findall(r"([\w/-]+)\.md\b", " ".join(texts)))
        self.assertIn("/usr/share/doc/tracecollect-tools/QUERY", names)
        folder = self.folder / "usr/share/doc/tracecollect-tools"
        for name in names:
            self.assertTrue((folder / f"{name.rsplit('/', 1)[-1]}.md").is_file(), name)
            self.assertIn(name.rpartition("/")[0], ("", "/usr/share/doc/tracecollect-tools"), name)
        for guide in (SOURCE / "docs/guide").iterdir():
            self.assertEqual((folder / "guide" / guide.name).read_bytes(), guide.read_bytes())

    def test_completion_is_written_for_shells_that_are_known(self):
        for shell in SHELLS:
            script = (BUILD / "completion" / SHELLS[shell]).read_text()
            for verb in self.verbs:
                self.assertIn(verb, script)
                for option in self.options(verb):
                    self.assertIn(option if shell != "fish" else f"-l {option[2:]} " if option[1] == "-" else f"-s {option[1:]} ", script)
            if shutil.which(shell):
                self.run_program(shell, "-n", BUILD / "completion" / SHELLS[shell])


class Bash(Case):
    """The completion as bash runs it: words to the cursor in, candidates out."""

    def candidates(self, *words):
        script = BUILD / "completion/tracectl"
        ask = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tracectl; '
               'printf "%s\\n" "${COMPREPLY[@]}"')
        done = self.run_program("bash", "--norc", "-c", ask, "bash", script, "tracectl", *words, cwd=self.folder)
        return set(done.out.split())

    def test_verbs_and_options_begin_as_what_was_typed(self):
        self.assertEqual(self.candidates("ch"), {"check"})
        self.assertLessEqual({"cat", "fetch", "help"}, self.candidates(""))
        self.assertEqual(self.candidates("fetch", "--st"), {"--stream", "--strict"})

    def test_words_that_an_argument_may_be(self):
        self.assertEqual(self.candidates("cat", "-d", ""), {"parsed", "wire", "footprint", "json"})
        self.assertEqual(self.candidates("report", "all", "--window", "=", "1"), {"10s", "1m"})
        self.assertEqual(self.candidates("certs", ""), {"init", "agent", "reader", "server", "renew", "revoke"})
        self.assertEqual(self.candidates("tables", "con"), {"config"})
        self.assertEqual(self.candidates("help", "rep"), {"report"})
        self.assertEqual(self.candidates("help", "conn"), {"connect"})
        self.assertEqual(self.candidates("list", "--sort", "s"), {"size", "service"})
        self.assertEqual(self.candidates("send", "--rate", ""), set())

    def test_paths_where_a_path_belongs(self):
        (self.folder / "some.trace").touch()
        (self.folder / "some.folder").mkdir()
        both = {"some.trace", "some.folder"}
        self.assertEqual(self.candidates("cat", "some."), both)
        self.assertEqual(self.candidates("report", "syscall", "some."), both)
        self.assertEqual(self.candidates("status", "--server", "@", "some."), both)
        self.assertEqual(self.candidates("list", "--certs", "some."), {"some.folder"})
