# SPDX-License-Identifier: Apache-2.0
"""The events that C programs emit: read by Go's own reader, and streamed to a collector and
fetched."""
import itertools
import json
import os
import re
import shutil
import socket
import unittest

from harness import BUILD, DEADLINE, SANITIZE, SOURCE, Case, Collector, local_go, shared_folder, wait_until

HEADER = SOURCE / "agent/include/traceagent.h"
JOBS = 300
BASKET = """#include <iostream>
#include <traceagent.h>
namespace shop {
template <typename T> struct Basket {
  T sum = 0;
  __attribute__((noinline)) void add(T item) {
    ta_wait_begin(TA_WAIT_MUTEX);
    sum += item;
    ta_wait_end();
  }
};
}
int main(int, char **argv) {
  ta_forward_config where = {};
  ta_emit_config how = {};
  shop::Basket<long> basket;
  where.server = argv[1], where.certs = argv[2], where.service = argv[3];
  how.stack_depth = 16;
  if (ta_emit_start(&where, &how) != TA_OK) return 1;
  basket.add(1);
  std::cout << basket.sum;
  return ta_emit_stop(60000);
}
"""

LOOKS = 12
CLOCK = """#include <stdio.h>
#include <time.h>
#include <traceagent.h>
static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
int main(int argc, char **argv) {
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "clock" };
  long long before = 0, after = 0, measured = now_ns() + 20000000;
  char text[64];
  if (argc != 3 || ta_emit_start(&where, NULL) != TA_OK) return 1;
  ta_name look = ta_name_of("look");
  ta_thread_attach(0);
  while (now_ns() < measured)
    if (ta_emit_sync(60000) != TA_OK) return 1;
  for (int i = 0; i < %d; i++) {
    for (int n = 0; n < 10000; n++) ta_heap_alloc(n);
    snprintf(text, sizeof text, "%%lld %%lld", before, after);
    before = now_ns();
    ta_log(0, look, text);
    after = now_ns();
  }
  snprintf(text, sizeof text, "%%lld %%lld", before, after);
  ta_log(0, look, text);
  return ta_emit_stop(60000);
}
""" % LOOKS


class Emit(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()

    def same_in_go(self, trace, go=True):
        """Both readers take it, and print the same."""
        utc = {**os.environ, "TZ": "UTC"}
        ours = self.tracectl("cat", "-d", "parsed", trace, env=utc).out
        if self.go is not None and go:
            self.assertEqual(self.go.parsed(self, trace).out, ours)
        return ours

    def shapes(self, pattern):
        folder = shared_folder() / "shapes"  # made once; they are only read
        if not folder.exists():
            made = self.folder / "shapes"
            made.mkdir()
            self.run_program(BUILD / "tests/emit_shapes", made)
            shutil.move(made, folder)
        return sorted(folder.glob(pattern))

    def generations(self, trace):
        """Each generation as a trace of its own."""
        whole = trace.read_bytes()
        for line in self.tracectl("index", "--json", trace).out.splitlines():
            row = json.loads(line)
            alone = self.folder / f"{trace.stem}.{row['gen']}"
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

    @unittest.skipIf(SANITIZE, "nothing here but readers, which have tests of their own")
    def test_what_is_open_is_told_anew_in_every_generation(self):
        """E5: each generation is read alone, by Go's reader, too."""
        open_at = {"a_collection_goes": r"RangeActive .*GC concurrent mark phase", "sweeps_and": r"RangeActive .*GC incremental sweep",
                   "the_heap": r"RangeActive .*GC concurrent mark phase", "sweeps_and_assists": r"RangeActive .*GC mark assist"}
        alone = {file: "" for trace in self.shapes("26-*.trace") if re.search("|".join(open_at), trace.name)
                 for file in self.generations(trace)}
        self.assertGreater(len(alone), 20)
        for file in alone:
            with self.subTest(file.name):
                alone[file] = self.same_in_go(file)
        for shape, pattern in open_at.items():
            told = [file for file, text in alone.items() if shape in file.name and re.search(pattern, text)]
            self.assertGreaterEqual(len(told), 3, shape)

    @unittest.skipIf(SANITIZE, "nothing here but readers: test_emit_wire has the session")
    def test_times_rise_while_the_clock_stands(self):
        """E9: of each thread, as Go's reader has them, though the clock stands and goes back."""
        trace = self.folder / "standing.trace"
        self.run_program(BUILD / "tests/standing_clock", trace)
        last, figures = {}, 0
        for thread, kind, time in re.findall(r"^M=(\S+) \S+ \S+ (\w+) Time=(\d+)", self.same_in_go(trace), re.M):
            if thread == "-1":
                continue
            self.assertGreater(int(time), last.get(thread, 0))
            last[thread] = int(time)
            figures += kind == "Metric"
        self.assertEqual((len(last), figures), (3, 3 * 3 * 9000))

    # Whole programs.

    def fetch(self, collector, service="thread-pool"):
        trace = self.folder / f"{service}.trace"
        collector.ask("fetch", "--service", service, "-o", trace, "--no-progress")
        return trace

    def expect(self, text, *said):
        """Each pattern at least so many times."""
        for pattern, times in said:
            self.assertGreaterEqual(len(re.findall(pattern, text)), times, pattern)

    def test_the_thread_pool_shows_what_it_did(self):
        collector = Collector(self)
        program = self.example("thread-pool")
        self.assertIn(f"{JOBS} jobs", self.run_program(program, collector.to, self.certs, JOBS).out)
        text = self.same_in_go(self.fetch(collector))
        self.expect(text, (r"TaskBegin .*Type=\"job\"", JOBS), (r"TaskEnd .*Type=\"job\"", JOBS),
                    (r"RegionBegin .*Type=\"compute\"", JOBS), (r"RegionEnd .*Type=\"file\"", JOBS),
                    (r"RangeBegin .*Name=\"stop-the-world \(audit\)\"", JOBS // 100),
                    (r"Metric .*Name=\"/sched/gomaxprocs:threads\" Value=Value\{Uint64\(4\)\}", 1),
                    (r"Log .*Category=\"balance\"", 1), (r"Running->Syscall", JOBS), (r"\tworker @", 4))
        self.assertIn('Reason="sync (join)"', text)
        collector.ask("verify")

    def test_a_dense_threads_events_have_the_time_they_were_written_at(self):
        """E9: between two readings of the program's own; each log says those around the one before."""
        collector = Collector(self)
        (self.folder / "clock.c").write_text(CLOCK)
        self.run_program(self.program_of(self.folder / "clock.c", "clock"), collector.to, self.certs)
        text = self.same_in_go(self.fetch(collector, "clock"))
        times, trace, mono = [], 0, 0
        for line in text.splitlines():
            if sync := re.search(r" Sync .*Trace=(\d+) Mono=(\d+)", line):
                trace, mono = map(int, sync.groups())
            elif log := re.search(r' Log Time=(\d+) .*Category="look" Message="(\d+) (\d+)"', line):
                time, *around = map(int, log.groups())
                times.append((mono + time - trace, 1000 + (time - trace) // 100000, around))
        self.assertEqual(len(times), LOOKS + 1)
        for (time, slack, _), (_, _, (before, after)) in zip(times, times[1:]):
            self.assertTrue(before - slack <= time <= after + slack, f"{time - before} ns, of {after - before}")

    @unittest.skipIf(SANITIZE, "a sanitizer must be told of every stack a program switches to")
    def test_fibers_show_who_waits_for_whom(self):
        collector = Collector(self)
        items = 200
        done = self.run_program(self.example("fibers"), collector.to, self.certs, items)
        self.assertIn(f"sum of squares {sum(n * n for n in range(items + 1))}", done.out)
        text = self.same_in_go(self.fetch(collector, "fibers"))
        self.expect(text, (r"RegionEnd .*Type=\"square\"", items), (r'Reason="channel is full"', 1),
                    (r'Reason="channel is empty"', 1), (r"\tsource @", 1), (r"\tsquarer @", 3), (r"\tsink @", 1))
        collector.ask("verify")

    def test_a_runtime_of_its_own_tells_its_story(self):
        """E5: yields, collections, sweeps and assists of a program that schedules and collects itself."""
        collector = Collector(self)
        program = self.example("own-runtime")
        rounds, said = re.match(r"(\d+) rounds, (\d+) collections", self.run_program(
            program, collector.to, self.certs, 50).out).groups()
        text = self.same_in_go(self.fetch(collector, "runtime"))
        begun = len(re.findall(r"RangeBegin .*Name=\"GC concurrent mark phase\"", text))
        self.assertEqual((rounds, begun), ("50", int(said)))
        self.expect(text, (r'Running->Runnable Reason="slice is over"', 50), (r'Running->Waiting Reason="receive"', 1),
                    (r'RangeEnd .*Name="GC incremental sweep" .*reclaimed', begun - 1), (r'RangeEnd .*Name="GC mark assist"', begun),
                    (r'RangeBegin .*Name="stop-the-world \(roots\)"', begun), (r"\tprocess @", 4))
        collector.ask("verify")

    def test_a_libuv_server_shows_its_requests(self):
        collector = Collector(self)
        program = self.example("uv-server", "libuv")
        out = self.folder / "uv.out"
        server = self.spawn("uv-server", program, collector.to, self.certs, stdout=open(out, "wb"))
        wait_until("it listens", lambda: out.read_text().endswith("\n"))
        host, port = out.read_text().strip().split(":")
        requests = range(1000, 1040)
        with socket.create_connection((host, int(port))) as client, client.makefile() as answers:
            client.sendall(b"".join(b"%d\n" % n for n in requests))
            answered = [int(answers.readline()) for _ in requests]
        self.assertEqual((min(answered), max(answered)), (168, 175))  # primes up to 1000 and to 1039
        server.terminate()
        self.assertEqual(server.wait(DEADLINE), 0, self.log("uv-server"))
        text = self.same_in_go(self.fetch(collector, "uv-server"))
        count = len(requests)
        self.expect(text, (r"TaskBegin .*Type=\"request\"", count), (r"TaskEnd .*Type=\"request\"", count),
                    (r"RegionEnd .*Type=\"count\"", count), (r"RegionEnd .*Type=\"reply\"", count),
                    (r'Reason="network \(poll\)"', 1), (r"\tloop @", 1), (r"\tpool @", 1))
        collector.ask("verify")

    def test_without_a_collector_or_an_agent_the_program_runs_all_the_same(self):
        program = self.example("thread-pool")
        off = self.run_program(program, "127.0.0.1:1", self.certs, JOBS, env={**os.environ, "TRACEAGENT_DISABLE": "1"})
        self.assertIn(f"{JOBS} jobs", off.out)
        shutil.rmtree(self.certs)
        self.assertIn("ca.pem", self.run_program(program, "127.0.0.1:1", self.certs, JOBS, expect=1).err)

    def test_a_collector_killed_meanwhile_gets_all_of_it(self):
        collector = Collector(self)
        program = self.example("thread-pool")
        pool = self.spawn("pool", program, collector.to, self.certs, 20 * JOBS, stdout=open(self.folder / "pool.out", "wb"))
        wait_until("the stream is there", lambda: collector.json_lines("list"))
        collector.restart()
        self.assertEqual(pool.wait(DEADLINE), 0, self.log("pool"))
        trace = self.fetch(collector)
        self.same_in_go(trace)
        ends = self.tracectl("cat", "-d", "wire", trace).out.count("\nUserTaskEnd ")
        self.assertEqual(ends, 20 * JOBS)

    @unittest.skipIf(shutil.which("c++") is None, "no C++ compiler")
    def test_the_header_is_one_of_c_plus_plus_too(self):
        source = self.folder / "header.cc"
        source.write_text(f'#include "{HEADER}"\nint main() {{ ta_region_begin(ta_name_of("x"), 0); ta_region_end(); }}\n')
        self.run_program("c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", source)

    @unittest.skipIf(SANITIZE, "a sanitizer's library wants a program that is built so")
    @unittest.skipIf(shutil.which("c++") is None, "no C++ compiler")
    def test_c_plus_plus_functions_are_called_as_they_are_written(self):
        collector, runs = Collector(self), itertools.count()
        (self.folder / "basket.cc").write_text(BASKET)
        self.run_program("c++", "-std=c++17", "-g", "-O1", "-fno-omit-frame-pointer", "basket.cc", *self.flags_of("traceagent"),
                         "-o", "basket", cwd=self.folder)
        line = BASKET[:BASKET.index("ta_wait_begin")].count("\n") + 1

        def is_named():
            """Runs the program again: names are looked up beside it, perhaps too late for a program that ends soon."""
            service = f"basket-{next(runs)}"
            self.run_program(self.folder / "basket", collector.to, self.certs, service, env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib")})
            text = self.same_in_go(self.fetch(collector, service))
            self.assertIn('Reason="sync"', text)
            return re.search(rf"\tshop::Basket<long>::add\(long\) @ .*\n\t\t.*/basket\.cc:{line}\n", text)

        wait_until("the function has its name", is_named)
