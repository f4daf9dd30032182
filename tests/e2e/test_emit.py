# SPDX-License-Identifier: Apache-2.0
"""What C programs emit: in Go's own reader, and live to a collector and back."""
import json
import os
import re
import shlex
import shutil
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case, Collector, local_go, wait_until

EXAMPLE = SOURCE / "examples/thread-pool/thread_pool.c"
HEADER = SOURCE / "agent/include/traceagent.h"
JOBS = 300


class Emit(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()

    def same_in_go(self, trace, go=True):
        """Both readers take it, and print the same."""
        utc = {**os.environ, "TZ": "UTC"}
        ours = self.tracectl("cat", "-d", "parsed", trace, env=utc).out
        if self.go is not None and go:
            theirs = self.run_program(self.go.command, "tool", "trace", "-d=parsed", trace, env=self.go.environment)
            self.assertEqual(theirs.out, ours)
        return ours

    def shapes(self, pattern):
        folder = self.folder / "shapes"
        folder.mkdir()
        self.run_program(BUILD / "tests/emit_shapes", folder)
        return sorted(folder.glob(pattern))

    def generations(self, trace):
        """Each generation as a trace of its own."""
        whole = trace.read_bytes()
        for line in self.tracectl("index", "--json", trace).out.splitlines():
            row = json.loads(line)
            alone = trace.with_suffix(f".{row['gen']}")
            alone.write_bytes(whole[:16] + whole[row["offset"]:row["offset"] + row["bytes"]])
            yield alone

    # Each program of Go's takes most of a second to begin: the oldest and the newest version are shown to it, the unit
    # tests read all four with our reader.

    @unittest.skipIf(SANITIZE, "nothing here but readers, which have tests of their own")
    def test_every_shape_reads_the_same_in_go(self):
        traces = self.shapes("2[26]-*.trace")
        self.assertGreater(len(traces), 40)
        for trace in traces:
            with self.subTest(trace.name):
                self.same_in_go(trace)

    @unittest.skipIf(SANITIZE, "nothing here but readers, which have tests of their own")
    def test_every_generation_reads_alone(self):
        alone = [file for trace in self.shapes("2[26]-*.trace") for file in self.generations(trace)]
        self.assertGreater(len(alone), 100)
        verdicts = self.tracectl("check", *alone).out.splitlines()
        self.assertEqual([verdict for verdict in verdicts if ": ok:" not in verdict], [])
        for file in alone[::12]:
            with self.subTest(file.name):
                self.same_in_go(file)

    # A whole program.

    def example(self):
        pkg_config = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        flags = shlex.split(self.run_program("pkg-config", "--cflags", "--libs", "traceagent", env=pkg_config).out)
        program = self.folder / "thread_pool"
        sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        self.run_program("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitize, EXAMPLE, *flags,
                         "-o", program)
        return program

    def fetch(self, collector):
        trace = self.folder / "pool.trace"
        collector.ask("fetch", "--service", "thread-pool", "-o", trace, "--no-progress")
        return trace

    def test_the_thread_pool_shows_what_it_did(self):
        collector = Collector(self)
        program = self.example()
        self.assertIn(f"{JOBS} jobs", self.run_program(program, collector.to, self.certs, JOBS).out)
        text = self.same_in_go(self.fetch(collector))
        for said, times in ((r"TaskBegin .*Type=\"job\"", JOBS), (r"TaskEnd .*Type=\"job\"", JOBS),
                            (r"RegionBegin .*Type=\"compute\"", JOBS), (r"RegionEnd .*Type=\"file\"", JOBS),
                            (r"RangeBegin .*Name=\"stop-the-world \(audit\)\"", JOBS // 100),
                            (r"Metric .*Name=\"/sched/gomaxprocs:threads\" Value=Value\{Uint64\(4\)\}", 1),
                            (r"Log .*Category=\"balance\"", 1), (r"Running->Syscall", JOBS), (r"\tworker @", 4)):
            self.assertGreaterEqual(len(re.findall(said, text)), times, said)
        self.assertIn('Reason="sync (join)"', text)
        collector.ask("verify")

    def test_without_a_collector_or_an_agent_the_program_runs_all_the_same(self):
        program = self.example()
        off = self.run_program(program, "127.0.0.1:1", self.certs, JOBS, env={**os.environ, "TRACEAGENT_DISABLE": "1"})
        self.assertIn(f"{JOBS} jobs", off.out)
        shutil.rmtree(self.certs)
        self.assertIn("ca.pem", self.run_program(program, "127.0.0.1:1", self.certs, JOBS, expect=1).err)

    def test_a_collector_killed_meanwhile_gets_all_of_it(self):
        collector = Collector(self)
        program = self.example()
        pool = self.spawn("pool", program, collector.to, self.certs, 20 * JOBS, stdout=open(self.folder / "pool.out", "wb"))
        wait_until("the stream is there", lambda: collector.json_lines("list"))
        collector.restart()
        self.assertEqual(pool.wait(120), 0, self.log("pool"))
        trace = self.fetch(collector)
        self.same_in_go(trace)
        ends = self.tracectl("cat", "-d", "wire", trace).out.count("\nUserTaskEnd ")
        self.assertEqual(ends, 20 * JOBS)

    @unittest.skipIf(shutil.which("c++") is None, "no C++ compiler")
    def test_the_header_is_one_of_c_plus_plus_too(self):
        source = self.folder / "header.cc"
        source.write_text(f'#include "{HEADER}"\nint main() {{ ta_region_begin(ta_name_of("x"), 0); ta_region_end(); }}\n')
        self.run_program("c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", source)
