# SPDX-License-Identifier: Apache-2.0
"""The preload library beside other allocators: each before it and after it, with everything recorded, and without a collector.

TC_FULL=1: each combination runs a hundred times.
"""
import ctypes
import itertools
import os
import pathlib
import re
import subprocess
import unittest

from harness import BUILD, FULL, SANITIZE, SOURCE, Case, Collector, wait_until

LIBRARY = BUILD / "lib/libtraceagent-preload.so"
STRICT = SOURCE / "tests/e2e/strict_malloc.c"
ALLOCATES = SOURCE / "tests/e2e/allocates.c"
LOOKUP = SOURCE / "tests/e2e/lookup_probe.c"
RUNS = 100 if FULL else 1

# The packages libjemalloc2, libtcmalloc-minimal4 and libmimalloc2.0.
ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")

SETTINGS = (
    {"TRACEAGENT_DISABLE": "1"},
    {"TRACEAGENT_GENERATION_MS": "wrong"},
    {"TRACEAGENT_TRACE": "threads,locks,sleeps,polls,calls,heap"},
    {"TRACEAGENT_TRACE": "locks", "TRACEAGENT_STACKS": "16"},
    {"TRACEAGENT_TRACE": "heap", "TRACEAGENT_STACKS": "16"},
    {"TRACEAGENT_TRACE": "calls,polls,sleeps", "TRACEAGENT_STACKS": "8", "TRACEAGENT_SAMPLES": "1000"},
    {"TRACEAGENT_STACKS": "16", "TRACEAGENT_SAMPLES": "200", "TRACEAGENT_MALLOC": "1"},
    {"TRACEAGENT_STACKS": "8", "TRACEAGENT_STACK_TABLES": "1", "TRACEAGENT_MALLOC": "1"},
)


def is_there(library):
    try:
        return pathlib.Path(subprocess.run(["cc", f"-print-file-name={library}"], capture_output=True, text=True).stdout.strip()).is_absolute()
    except OSError:
        return False


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Allocators(Case):
    def build(self, out, *words):
        return self.compiled(out, "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *words)

    def program(self):
        return self.build("allocates", "-rdynamic", ALLOCATES)

    def strict(self):
        return self.build("libstrict.so", "-shared", "-fPIC", "-fno-builtin", STRICT)

    def run_all(self, program, preload, said, server="127.0.0.1:1", runs=RUNS):
        for setting in SETTINGS:
            with self.subTest(preload=preload, **setting):
                environment = {**os.environ, "LD_PRELOAD": preload, "TRACEAGENT_SERVER": str(server), "TRACEAGENT_CERTS": str(self.certs),
                               "TRACEAGENT_EXIT_MS": "0", **setting}
                for _ in range(runs):
                    self.assertEqual(self.run_program(program, env=environment).out, said)

    def test_real_allocators_before_and_after_the_library(self):
        program = self.program()
        for allocator in ALLOCATORS:
            if not is_there(allocator):
                print(f"skipped: {allocator} is not here; tools/deps.sh installs it")
                continue
            self.run_all(program, f"{allocator}:{LIBRARY}", "as ever\n")
            self.run_all(program, f"{LIBRARY}:{allocator}", "as ever\n")

    def test_nothing_is_allocated_inside_of_an_allocator_that_is_preloaded(self):
        program, strict = self.program(), self.strict()
        self.run_all(program, f"{strict}:{LIBRARY}", "strict\nas ever\n", runs=1)
        self.run_all(program, f"{LIBRARY}:{strict}", "strict\nas ever\n", runs=1)

    def test_nothing_is_allocated_inside_of_the_programs_own_allocator(self):
        program = self.build("embedded", "-rdynamic", "-fno-builtin", ALLOCATES, STRICT)
        self.run_all(program, str(LIBRARY), "strict\nas ever\n", runs=1)

    def test_waits_inside_of_the_allocator_are_recorded_with_their_stacks(self):
        collector, program, runs = Collector(self), self.program(), itertools.count()
        environment = {**os.environ, "LD_PRELOAD": f"{LIBRARY}:{self.strict()}", "TRACEAGENT_SERVER": str(collector.to),
                       "TRACEAGENT_CERTS": str(self.certs), "TRACEAGENT_EXIT_MS": "60000", "TRACEAGENT_TRACE": "locks",
                       "TRACEAGENT_STACKS": "16", "TRACEAGENT_DELAY_MS": "0"}

        def stacks():
            """Returns the stacks of waits, from another run: the function that waits, and its
            caller."""
            service = f"allocates-{next(runs)}"
            self.run_program(program, env={**environment, "TRACEAGENT_SERVICE": service})
            trace = self.folder / f"{service}.trace"
            collector.ask("fetch", "--service", service, "-o", trace, "--no-progress")
            text = self.tracectl("cat", "-d", "parsed", trace).out
            found = set(re.findall(r'Reason="sync"\nTransitionStack=\n\t(\S+) @.*\n.*\n\t(\S+) @', text))
            self.assertTrue(any(re.match(r"libstrict\.so\+|(take|free)$", caller) for _, caller in found), found)
            return found

        # Function names are looked up beside the program, perhaps too late for a program that ends soon.
        wait_until("the wait has its name", lambda: ("pthread_mutex_lock", "take") in stacks())

    # ---- how the real functions are found

    def test_names_are_found_as_dlsym_finds_them(self):
        first, second = self.folder / "first.c", self.folder / "second.c"
        first.write_text('int twice(void) { return 1; }\nint only_sysv(void) { return 2; }\n'
                         'int old_change(void) { return 3; }\nint new_change(void) { return 4; }\n'
                         '__asm__(".symver old_change, changed@V1");\n__asm__(".symver new_change, changed@@V2");\n')
        second.write_text('int twice(void) { return 5; }\nstatic int chosen(void) { return 6; }\n'
                          'static int (*choose(void))(void) { return chosen; }\nint indirect(void) __attribute__((ifunc("choose")));\n')
        versions = self.folder / "versions"
        versions.write_text("V1 { global: twice; only_sysv; changed; local: *; };\nV2 { global: changed; } V1;\n")
        libraries = (self.build("libfirst.so", "-shared", "-fPIC", first, f"-Wl,--version-script={versions}", "-Wl,--hash-style=sysv"),
                     self.build("libsecond.so", "-shared", "-fPIC", second, "-Wl,--hash-style=gnu"))
        rows = self.folder / "rows/agent/preload"
        rows.mkdir(parents=True)
        own = "".join(f"OWN(int, {name}, (void))\n" for name in (
            "twice", "only_sysv", "changed", "indirect", "no_libc_has_this", "pthread_has_not_this"))
        (rows / "calls.def").write_text(f'{own}#include "{SOURCE}/agent/preload/calls.def"\n')
        flags = [f"-I{folder}" for folder in (self.folder / "rows", SOURCE, SOURCE / "lib", SOURCE / "agent/include")]
        probe = self.build("probe", "-O0", *flags, LOOKUP, SOURCE / "agent/preload/real.c", SOURCE / "agent/preload/lookup.c", "-Wl,--no-as-needed",
                           *libraries, *(f"-Wl,-rpath,{library.parent}" for library in libraries))
        self.assertEqual(self.run_program(probe).out, "1 2 4 6 refused 3 4 none 5\n")

    def test_no_name_is_exported_that_libc_does_not_have(self):
        names = self.run_program("nm", "-D", "--defined-only", "--format=posix", LIBRARY).out.split("\n")
        names = [line.split()[0].split("@")[0] for line in names if line and line.split()[1] != "A"]  # A: a version
        libc = ctypes.CDLL(None)
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in names if not hasattr(libc, name)], [])
