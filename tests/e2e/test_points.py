# SPDX-License-Identifier: Apache-2.0
"""Tracepoints: from the declaration in a source to a probe, within one program and across libraries."""
import gzip
import json
import os
import re
import shlex
import shutil
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case, Collector, local_go
from test_experiments import READER

LIBRARY = """#include "hello.trace.h"
//trace:event traceHelloBegin(const char *who)
// trace:event traceHelloEnd(const char *who, unsigned long n)
void say_hello(const char *who);
void say_hello(const char *who) {
  traceHelloBegin(who);
  __asm__ volatile("" ::: "memory");
  traceHelloEnd(who, 3);
}
"""

PROGRAM = """#include <stdio.h>
#include "listener.trace.h"
//trace:import "hello"
void say_hello(const char *who);
static void on_begin(void *self, const char *who) { printf("%s hears of %s\\n", (char *)self, who); }
int main(int argc, char **argv) {
  static struct ta_probe first, second, record, typed;
  struct ta_probe_group group = { 0 };
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "hello" };
  struct ta_emit_config stacks = { .stack_depth = 16, .stack_tables = 1 };
  char one[] = "first", two[] = "second";

  if (argc == 3 && ta_emit_start(&where, &stacks) != TA_OK) return 1;
  ta_lock();
  hello_traceHelloBegin_attach(&group, &first, on_begin, one);
  hello_traceHelloBegin_attach(&group, &second, on_begin, two);
  ta_record_attach(&group, hello_traceHelloEnd_point(), &record);
  if (ta_record_event_attach(&group, hello_traceHelloEnd_point(), &typed) != TA_OK) return 1;
  ta_unlock();
  say_hello("J\\"P");
  ta_probe_group_done(&group);
  say_hello("nobody");
  return argc == 3 && ta_emit_stop(60000) != TA_OK;
}
"""

# Faults, one kind a line; each is reported with its place.
FAULTS = [
    ("jobStart(int n)", '"Start" is kept for scheduling'),
    ("job_unblock(int n)", '"unblock" is kept for scheduling'),
    ("jobBegin(int n)", "there is no jobEnd"),
    ("read_end(int n)", "there is no read_begin"),
    ("scheduling threadGo(int n)", 'not with "Go"'),
    ("twice(int n)", None),
    ("twice(int n)", "declared before, at bad.c:6"),
    ("unnamed(int)", 'parameter 1 needs a type and a name, and is "int"'),
    ("array(int a[3])", "use a pointer"),
    ("whole(struct job j)", "hand a pointer"),
    ("function(int (*f)(int))", "typedef"),
    ("many(int n, ...)", "a fixed number of arguments"),
    ("reserved(int ta_n)", "begin with ta_"),
    ("open(int n", "a bracket closes the parameters, and the line ends"),
    ("none", "a bracket opens the parameters"),
    ("rest(int n) here", 'not "here"'),
    ("(int n)", "an event has a name"),
]


class Points(Case):
    def gen(self, module, source, *args, **options):
        (self.folder / f"{module}.c").write_text(source)
        return self.tracectl("tracepoints", "gen", "--module", module, *args, f"{module}.c", cwd=self.folder, **options)

    def compile(self, *args, packages=("traceagent",), **options):
        pkg_config = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        flags = self.run_program("pkg-config", "--cflags", "--libs", *packages, env=pkg_config).out
        sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        return self.run_program("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitize, *args,
                                "-L.", "-Wl,-rpath,.", *shlex.split(flags), cwd=self.folder, **options)

    def make_library(self, source=LIBRARY):
        self.gen("hello", source)
        self.compile("-fPIC", "-shared", "-o", "libhello.so", "hello.c", "hello.trace.c")

    def program(self, **options):
        self.gen("listener", PROGRAM)
        return self.compile("-o", "listener", "listener.c", "listener.trace.c", "-lhello", **options)

    def test_a_library_of_another_is_listened_to_and_recorded(self):
        self.make_library()
        self.program()
        collector = Collector(self)
        heard = self.run_program("./listener", collector.to, self.certs, cwd=self.folder).out
        self.assertEqual(heard.splitlines(), ['first hears of J"P', 'second hears of J"P'])
        trace = self.folder / "hello.trace"
        collector.ask("fetch", "--service", "hello", "-o", trace, "--no-progress")
        utc = {**os.environ, "TZ": "UTC"}
        ours = self.tracectl("cat", "-d", "parsed", trace, env=utc).out
        logs = re.findall(r"Log .*Category=(\S+) Message=(.*)", ours)
        self.assertEqual(logs, [('"hello.traceHelloEnd"', '"who=\\"J\\\\\\"P\\" n=3"')])
        go = local_go()
        if go is not None:
            self.assertEqual(go.parsed(self, trace).out, ours)
        collector.ask("fetch", "--full", "--service", "hello", "-o", self.folder / "full.trace", "--no-progress")
        self.assertEqual(self.read_typed(), "who=J\"P n=3\n")
        # Both records in one profile, under their names.
        profile = self.folder / "hello.pb.gz"
        self.tracectl("query", self.folder / "full.trace", "--saved", "tracepoints", "--pprof", profile)
        if go is not None:
            top = self.run_program(go.tool("pprof"), "-traces", profile, env=go.environment).out
            samples = {block.split()[2]: block for block in top.split("-----------+")[1:] if len(block.split()) > 2}
            for name in ("hello.traceHelloEnd", "traceHelloEnd"):
                self.assertRegex(samples[name], r"(?s)^.*? 1 +" + re.escape(name) + r"\n.*(say_hello|libhello\.so\+0x[0-9a-f]+)\n.*(main|listener\+0x[0-9a-f]+)\n")  # a busy agent may name the places alone

    def read_typed(self):
        """Returns the output of a reader built on the spec that gen made."""
        self.tracectl("tracepoints", "experiment", "hello.trace.spec", cwd=self.folder)
        (self.folder / "reads.c").write_text(READER.format(header="hello.reader.h", body="""
            struct hello_trace_hello_end end;
            if (hello_trace_hello_end_read(gen, ev, &end))
              printf("who=%.*s n=%d\\n", (int)end.who_string.len, end.who_string.data, (int)end.n_value);
        """))
        self.compile("-o", "reads", "reads.c", "-I.", packages=("traceonline",))
        return self.run_program("./reads", "full.trace", cwd=self.folder).out

    def test_another_signature_neither_loads_nor_links(self):
        self.make_library()
        self.program()
        self.run_program("./listener", cwd=self.folder)
        names = [line.split()[-1] for line in self.run_program("nm", "-D", "listener", cwd=self.folder).out.splitlines()]
        missing = next(name for name in names if name.startswith("hello_traceHelloEnd_"))
        self.make_library(LIBRARY.replace("unsigned long n", "unsigned n"))
        self.assertIn(missing, self.run_program("./listener", cwd=self.folder, expect=127).err)
        (self.folder / "hello.trace.h").unlink()
        self.gen("hello", LIBRARY)  # the header of yesterday, the library of today
        self.assertIn(missing, self.program(expect=1).err)

    def test_what_another_version_made_is_refused_by_compiler_linker_and_loader(self):
        self.make_library()
        self.program()
        made = (self.folder / "hello.trace.c").read_text()
        self.assertIn("#if TA_TRACE_ABI != 2\n", made)
        (self.folder / "hello.trace.c").write_text(made.replace("TA_TRACE_ABI != 2", "TA_TRACE_ABI != 1"))
        build = ("-fPIC", "-shared", "-o", "libhello.so", "hello.c", "hello.trace.c")
        self.assertIn("hello.trace.c and traceprobe.h are of two versions", self.compile(*build, expect=1).err)
        # As it was compiled with the header of that version.
        (self.folder / "hello.trace.c").write_text("extern const char ta_trace_abi_1;\n" + made.replace("ta_trace_abi_2", "ta_trace_abi_1"))
        self.compile(*build, "-fdata-sections", "-Wl,--gc-sections")  # nor does it go by that
        self.assertIn("undefined symbol: ta_trace_abi_1", self.run_program("./listener", cwd=self.folder, expect=127).err)
        (self.folder / "main.c").write_text("int main(void) { return 0; }\n")
        whole = self.compile("-o", "whole", "main.c", "hello.c", "hello.trace.c", expect=1).err
        self.assertRegex(whole, "undefined (reference|symbol).*ta_trace_abi_1")

    def test_what_is_built_in_is_listed_without_running_it(self):
        self.make_library()
        rows = {("hello", "traceHelloBegin", "(const char *who)", "hello.c:2"),
                ("hello", "traceHelloEnd", "(const char *who, unsigned long n)", "hello.c:3")}

        def listed(*files):
            lines = self.tracectl("tracepoints", "list", "--json", *files, cwd=self.folder).out.splitlines()
            found = [json.loads(line) for line in lines]
            return {(row.get("module"), row["event"], row["parameters"], row["at"]) for row in found}

        self.assertEqual(listed("libhello.so"), rows)
        self.assertEqual(listed("--module", "hello", "hello.c"), rows)
        self.run_program("strip", "libhello.so", cwd=self.folder)
        self.assertEqual(listed("libhello.so"), rows)
        whole = (self.folder / "libhello.so").read_bytes()
        for cut in range(4, len(whole), len(whole) // 20):
            (self.folder / "cut.so").write_bytes(whole[:cut])
            done = self.tracectl("tracepoints", "list", "cut.so", cwd=self.folder, expect=None)
            self.assertIn(done.returncode, (0, 1), done.err)

    def test_faults_are_told_with_their_place_all_at_once(self):
        told = self.gen("bad", "".join(f"//trace:event {event}\n" for event, _ in FAULTS), expect=1).err
        for line, (event, what) in enumerate(FAULTS, 1):
            found = [text for text in told.splitlines() if text.startswith(f"bad.c:{line}: error: ")]
            self.assertEqual(len(found), 0 if what is None else 1, event + told)
            self.assertTrue(what is None or what in found[0], found)
        self.assertFalse((self.folder / "bad.trace.h").exists())
        for line, what in (("import hello", "in quotes"), ('import "nobody"', "there is no nobody.trace.h"),
                           ('import "bad"', "imports itself"), ("include job.h", "names a header"), ("evnt x()", 'not "evnt"')):
            self.assertIn(what, self.gen("bad", f"//trace:{line}\n", expect=1).err)
        self.assertIn("a letter first", self.gen("2bad", "", expect=2).err)
        self.assertIn("No such file", self.tracectl("tracepoints", "gen", "--module", "x", self.folder / "none.c", expect=1).err)

    @unittest.skipIf(SANITIZE, "a sanitizer's code stands between")
    def test_off_it_is_a_load_a_compare_and_a_branch_not_taken(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the instructions are those of x86-64")
        self.gen("hello", LIBRARY)
        for mode in ("-fPIC", "-fPIE", "-fno-pie"):
            self.compile(mode, "-c", "-o", "hello.o", "hello.c")
            code = self.run_program("objdump", "-d", "--no-show-raw-insn", "hello.o", cwd=self.folder).out
            body = code.split("<say_hello>:\n")[1].split("\n\n")[0]
            steps = [line.split("\t", 1)[1].split("#")[0].strip() for line in body.splitlines()]
            points = [i for i, step in enumerate(steps) if re.match(r"mov +0x0\(%rip\),%rax", step)]
            self.assertEqual(len(points), 2, body)
            for at in points:
                rest = [step for step in steps[at + 1:] if not re.match(r"(mov|push|pop|sub|lea) .*%r[bs]", step)]
                self.assertRegex(rest[0], r"^test +%rax,%rax$", body)
                self.assertRegex(rest[1], r"^jne ", body)
            self.assertNotIn("call", body)  # what is slow lies elsewhere, behind both branches

    def example(self):
        """examples/tracepoints, built as by a user of what is installed."""
        usr, build = self.folder / "usr", self.folder / "build"
        self.run_program("cmake", "--install", BUILD, "--prefix", usr)
        flags = [f"-DCMAKE_C_FLAGS=-fsanitize={SANITIZE}"] if SANITIZE else []
        self.run_program("cmake", "-S", SOURCE / "examples/tracepoints", "-B", build, f"-DCMAKE_PREFIX_PATH={usr}",
                         "-DCMAKE_BUILD_TYPE=RelWithDebInfo", *flags)
        self.run_program("cmake", "--build", build)
        return build

    def test_the_example_does_what_its_readers_are_told(self):
        build, go = self.example(), local_go()
        self.run_program(build / "till_test")
        collector = Collector(self)
        said = self.run_program(build / "shop", collector.to, self.certs, cwd=self.folder).out
        self.assertEqual(said, "630 cents in the till, 3 refused\n")
        # The trace.
        trace = self.folder / "shop.trace"
        collector.ask("fetch", "--service", "shop", "-o", trace, "--no-progress")
        text = self.tracectl("cat", "-d", "parsed", trace).out
        self.assertEqual(len(re.findall(r'Log .*Category="till.saleEnd" Message="customer=', text)), 60)
        self.assertEqual(len(re.findall(r'Log .*Category="till.refused" Message="customer=.*wanted=1000000 ', text)), 3)
        # The file for Perfetto: spans by their common name, threads by theirs.
        events = json.loads((self.folder / "shop.json").read_text())
        for phase, count in (("B", 60), ("E", 60), ("M", 3)):
            self.assertEqual(len([event for event in events if event["ph"] == phase]), count)
        begin = next(event for event in events if event["ph"] == "B")
        self.assertEqual((begin["cat"], begin["name"], sorted(begin["args"])), ("till", "sale", ["cents", "customer"]))
        for tid in {event["tid"] for event in events}:
            times = [event["ts"] for event in events if event["tid"] == tid and "ts" in event]
            self.assertEqual(times, sorted(times))
        # The profile.
        with gzip.open(self.folder / "shop.pb.gz") as packed:
            self.assertIn(b"till.refused", packed.read())
        if go is not None:
            top = self.run_program(go.tool("pprof"), "-top", build / "shop", self.folder / "shop.pb.gz",
                                   env=go.environment).out
            self.assertRegex(top, r"(?m)^ +3 +100% +100% +3 +100% +till\.refused$")
            self.assertRegex(top, r"(?m)^ +0 .* visit$")
        # Runs the same on the events that the collector has.
        collector.ask("query", "--service", "shop", "--all", "--saved", "tracepoints", "--pprof", self.folder / "stored.pb.gz", "--no-progress")
        if go is not None:
            top = self.run_program(go.tool("pprof"), "-top", self.folder / "stored.pb.gz", env=go.environment).out
            self.assertIn("Type: events", top)
            self.assertRegex(top, r"(?m)^ +60 .* till\.saleEnd$")
            self.assertRegex(top, r"(?m)^ +3 .* till\.refused$")
            self.assertRegex(top, r"(?m)^ +0 .* 6[03] .* (visit|shop\+0x[0-9a-f]+)$")  # a busy agent may name the place alone
        listed = self.tracectl("tracepoints", "list", build / "libtill.so").out
        self.assertRegex(listed, r"till +refused +\(const char \*customer, unsigned wanted, unsigned in_till\)")

    @unittest.skipIf(shutil.which("c++") is None, "no C++ compiler")
    def test_the_generated_header_is_one_of_c_plus_plus_too(self):
        self.gen("hello", LIBRARY)
        (self.folder / "hello.cc").write_text('#include "hello.trace.h"\nint main() { traceHelloBegin("x"); }\n')
        pkg_config = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        flags = self.run_program("pkg-config", "--cflags", "traceagent", env=pkg_config).out
        self.run_program("c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                         *shlex.split(flags), "hello.cc", cwd=self.folder)
