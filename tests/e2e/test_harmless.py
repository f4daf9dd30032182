# SPDX-License-Identifier: Apache-2.0
"""Programs that the preload library could break: each behaves as without it, and is traced, or left alone with a reason."""
import pathlib
import re
import unittest

from harness import SANITIZE, SOURCE, Collector
from test_preload import LIBRARY, PreloadCase

SAMPLED = {"TRACEAGENT_STACKS": "8", "TRACEAGENT_SAMPLES": "500", "TRACEAGENT_FORK": "1"}
HARMLESS = SOURCE / "tests/e2e/harmless.c"


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Harmless(PreloadCase):
    def program(self, *flags):
        # -z now: binding a function at its first call takes up to 3 KB of stack on processors with AVX-512, more than the scenes have.
        return self.compiled("harmless", "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-Wl,-z,now", *flags, HARMLESS)

    def unharmed(self, server, scene, program=None, expect=0, **more):
        done = self.run_program(program or self.program(), scene, expect=expect, env=self.environment(server, **{"TRACEAGENT_DELAY_MS": "50", **more}))
        self.assertEqual(done.out, "unharmed\n")
        return done.err

    def in_all_ways(self, collector, scene, *ways):
        """Before the stream has begun, while it runs, and in children that have one."""
        for more in ({}, {"TRACEAGENT_DELAY_MS": "0", "TRACEAGENT_FORK": "1"}, {"TRACEAGENT_MALLOC": "1"}, *ways):
            with self.subTest(scene, **more):
                self.assertEqual(self.unharmed(collector.to, scene, **more), "")

    # Sanitizers.

    def test_a_program_with_a_sanitizer_is_left_alone_and_the_reason_is_said(self):
        for sanitizer in ("address", "leak", "thread", "undefined"):
            program = self.program("-g", "-Wno-error", f"-fsanitize={sanitizer}")
            traced = sanitizer == "undefined"
            with self.subTest(sanitizer):
                more = {"TRACEAGENT_MALLOC": "1", "TRACEAGENT_EXIT_MS": "0", "ASAN_OPTIONS": "verify_asan_link_order=0"}
                said = self.unharmed("127.0.0.1:1", "conds", program, **more)
                self.assertEqual(said, "" if traced else "libtraceagent-preload: not traced: the program was built with "
                                 f"-fsanitize={sanitizer}, which would take the library's work for the program's\n")
                self.assertEqual(self.unharmed("127.0.0.1:1", "conds", program, TRACEAGENT_DISABLE="1", **more), "")
                self.assertIn("server is not given (TRACEAGENT_SERVER)", self.unharmed("", "conds", program, **more))
                self.assertEqual(self.unharmed("", "conds", program, TRACEAGENT_ONLY="other", **more), "")

    # Versions.

    def _versions(self, library):
        """{name: {version: its address}}; the version of a name without one is None, and the newest is first."""
        found = {}
        for line in self.run_program("readelf", "-W", "--dyn-syms", library).out.splitlines():
            row = re.match(r"\s*\d+: (\w+)\s+\d+ (?:FUNC|IFUNC)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+ (\w+)(@@?)?(\S+)?", line)
            if row:
                address, name, newest, version = row.groups()
                others = found.get(name, {})
                found[name] = {version: address, **others} if newest == "@@" else {**others, version: address}
        return found

    def test_each_name_that_libc_has_in_several_versions_is_handled(self):
        ours, split = self._versions(LIBRARY), {}
        self.assertGreater(len(ours), 100)
        for file in ("libc.so.6", "libpthread.so.0"):
            path = self.run_program("cc", f"-print-file-name={file}").out.strip()
            libc = self._versions(path) if pathlib.Path(path).is_absolute() else {}
            for name in ours.keys() & libc.keys():
                newest = next(iter(libc[name].values()))
                if any(address != newest for address in libc[name].values()):
                    split[name] = [version for version, address in libc[name].items() if address != newest], next(iter(libc[name]))
        for name, (older, newest) in split.items():
            with self.subTest(name):
                self.assertEqual(list(ours[name]), [newest, *older])
                self.assertEqual(len(set(ours[name].values())), len(ours[name]))
        self.assertEqual([name for name in ours if name not in split and list(ours[name]) != [None]], [])

    def test_condition_variables_of_long_ago_work_and_nothing_beside_them_changes(self):
        self.in_all_ways(Collector(self), "old-cond")

    def test_a_library_that_names_no_version_has_the_functions_that_it_has_in_libc(self):
        text = """#include <pthread.h>
            void *waits(void) { return (void *)pthread_cond_wait; }
            void *locks(void) { return (void *)pthread_mutex_lock; }"""
        main = """#include <dlfcn.h>
            #include <stdio.h>
            void *waits(void);
            static const char *file_of(void *at) { Dl_info found; return dladdr(at, &found) && found.dli_fname ? found.dli_fname : "?"; }
            int main(void) {
              void *old = dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.2.5"), *now = dlsym(RTLD_DEFAULT, "pthread_cond_wait");
              printf("%d %d %s\\n", waits() == (old != NULL ? old : now), waits() == now, file_of(now));
              return 0;
            }"""
        (self.folder / "nameless.c").write_text(text)
        (self.folder / "main.c").write_text("#define _GNU_SOURCE\n" + main)
        library, program = self.folder / "libnameless.so", self.folder / "main"
        self.run_program("cc", "-shared", "-fPIC", "-nostdlib", self.folder / "nameless.c", "-o", library)
        self.run_program("cc", self.folder / "main.c", library, "-o", program)
        without = self.run_program(program).out.split()[:2]
        done = self.run_program(program, env=self.environment("127.0.0.1:1", TRACEAGENT_DISABLE="1")).out.split()
        self.assertEqual(done, [*without, str(LIBRARY)])
        self.assertEqual(done[0], "1")

    # ---- restrictions that a program puts on itself

    def test_a_program_that_may_not_read_the_counter(self):
        collector = Collector(self)
        for scene in ("no-counter", "no-counter-in-thread", "counter-again", "no-counter-then-exec"):
            self.in_all_ways(collector, scene, SAMPLED)

    def test_what_comes_after_the_counter_is_allowed_again_is_traced(self):
        collector = Collector(self)
        self.unharmed(collector.to, "counter-again", TRACEAGENT_DELAY_MS="0", TRACEAGENT_SERVICE="again")
        self.assertEqual(self.read(collector, "again").count('Reason="sleep"'), 120)  # of 180

    def test_threads_and_children_in_strict_mode(self):
        self.in_all_ways(Collector(self), "jails", SAMPLED)

    # Threads.

    def test_a_process_ends_with_its_last_thread_and_as_ever(self):
        collector = Collector(self)
        for server, more in ((collector.to, {}), (collector.to, {"TRACEAGENT_DELAY_MS": "0"}), ("127.0.0.1:1", {})):
            self.assertEqual(self.unharmed(server, "first-leaves", TRACEAGENT_SERVICE=f"last-{len(more)}", **more), "")
            self.assertEqual(self.unharmed(server, "exit-alone", expect=7, **more), "")
        self.assertEqual(self.read(collector, "last-1").count('Reason="sleep"'), 120)

    # Libraries.

    def test_the_loaders_list_is_walked_at_the_start_alone(self):
        self.in_all_ways(Collector(self), "no-list")

    # Stacks.

    def test_no_handler_runs_on_a_stack_of_ours(self):
        self.in_all_ways(Collector(self), "handlers-elsewhere")

    def test_stacks_of_four_kilobytes(self):
        collector = Collector(self)
        for scene in ("small-stacks", "begin-in-handler", "begin-in-small-thread"):
            self.in_all_ways(collector, scene, {"TRACEAGENT_FORK": "1", "TRACEAGENT_STACKS": "128"}, {"TRACEAGENT_TRACE": "locks,sleeps,calls,heap"})
