# SPDX-License-Identifier: Apache-2.0
"""G1, G8: the libraries as their users meet them: installed, found by pkg-config with their version, an analysis written on them."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, FULL, SANITIZE, SOURCE, Case, corpus

EXAMPLE = SOURCE / "examples/who-waits/who_waits.c"
HEAP = SOURCE / "examples/heap-graph/heap_graph.c"
SPANS = SOURCE / "examples/where-time-goes/where_time_goes.c"
PULLING = SOURCE / "examples/thread-time/thread_time.c"
RANGES = SOURCE / "examples/range-time/range_time.c"
# Lines of Go's own tool for ranges and Syncs; `cat -d parsed` prints the same, byte for byte.
PARSED = re.compile(r'M=.* (Sync|Range(?:Begin|Active|End)) Time=(\d+) (?:Name="([^"(]+?)(?: \(.*\))?" Scope=(\w+)(?:\((\d+)\))?)?')
RANGE_OR_SYNC = re.compile(r" (Sync|Range(?:Begin|Active|End)) Time=")
TIME = re.compile(r" Time=(\d+)")
RANGE_IDS = {"stop-the-world": "/stw", "GC concurrent mark phase": "/gc/mark", "GC incremental sweep": "/gc/sweep", "GC mark assist": "/gc/mark-assist"}


@unittest.skipIf(SANITIZE, "the example is compiled without the sanitizer's runtime")
class Library(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tc-library-")))
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, capture_output=True)

    def _pkg_config(self, *asked):
        """Runs pkg-config on the installed .pc file, in a place that the build did not know."""
        folder = next(self.prefix.rglob("traceonline.pc")).parent
        return self.run_program("pkg-config", *asked, "traceonline",
                                env={**os.environ, "PKG_CONFIG_PATH": str(folder)}).out.strip()

    def _flags(self):
        return shlex.split(self._pkg_config("--cflags", "--libs"))

    def test_the_libraries_version_is_the_programs(self):
        self.assertIn(self._pkg_config("--modversion"), self.tracectl("--version").out)

    def test_the_example_analysis_compiles_against_what_is_installed_and_counts_right(self):
        program = self.folder / "who-waits"
        self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", EXAMPLE, *self._flags(), "-o", program)
        trace = self.trace("g25-mix")
        lines = self.run_program(program, trace).out.splitlines()[1:]
        waits = sum(int(line.split()[1]) for line in lines)
        total_ms = sum(float(line.split()[0]) for line in lines)
        want = self._waits_of(trace)
        self.assertEqual(waits, len(want))
        self.assertAlmostEqual(total_ms, sum(want) / 1e6, delta=0.001 * len(lines))
        self.assertIn("channel receive", "\n".join(lines))

    def _waits_of(self, trace):
        """Returns the waits from the printed trace: the time between the begin of a goroutine's
        wait and its end."""
        since, waits, first = {}, [], None
        for line in self.tracectl("cat", "-d", "json", trace).out.splitlines():
            event = json.loads(line)
            first = event["time"] if first is None else first
            if "goroutine" not in event or event["from"] == event["to"]:
                continue  # a coroutine switch names the one that goes on; the other one waits from there
            if event["event"] == "GoSwitch":
                since[event["g"]] = event["time"]
            g = event["goroutine"]
            if event["from"] == "Waiting" and g in since:
                waits.append(event["time"] - since[g])
            since[g] = first if event["from"] == "Undetermined" else event["time"]
        return waits

    def test_the_pulling_example_counts_events_and_system_calls_right(self):
        program = self.folder / "thread-time"
        self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", PULLING, *self._flags(), "-o", program)
        trace = self.trace("g25-mix")
        lines = self.run_program(program, trace).out.splitlines()
        events = [json.loads(line) for line in self.tracectl("cat", "-d", "json", trace).out.splitlines()]
        standing = [event for event in events if event["kind"] != "Sync"]
        switches = sum(event["event"].startswith("GoSwitch") for event in standing)
        self.assertEqual(lines[0], f"go 1.25, {len(standing) - 2 * switches} events, with wall clock")
        spans = {line.split()[0]: int(line.split()[4]) for line in lines[1:]}
        ended = sum(event["event"] == "GoSyscallEnd" for event in standing)
        blocked = sum(event["event"] == "GoSyscallEndBlocked" for event in standing)
        self.assertEqual(spans["Blocked"], blocked)
        self.assertEqual(spans["Syscall"], ended + blocked)
        self.assertGreater(spans["Running"], spans["Syscall"])

    def test_the_example_of_spans_sums_calls_as_the_report_does(self):
        program = self.folder / "where-time-goes"
        self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", SPANS, *self._flags(), "-o", program)
        self.assertLess(len(SPANS.read_text().splitlines()), 80)
        trace = self.trace("g25-mix")
        rows = [line.split("\t") for line in self.run_program(program, trace).out.splitlines()]
        calls = [(int(count), int(ns)) for kind, state, _, count, ns in rows if (kind, state) == ("goroutine", "Syscall")]
        report = json.loads(self.tracectl("report", "syscall", trace, "--json").out)["figures"]["calls"]
        self.assertEqual(sum(count for count, _ in calls), report["count"] - report["lower_bounds"])
        self.assertIn("chan receive", {reason for _, _, reason, _, _ in rows})

    def ranges_of(self, trace):
        """By the rules of internal/trace/summary.go: what RangeActive restates has been active since the last Sync, or since it was last heard of."""
        total, since, lower, ended, syncs, marks, begun = {}, {}, set(), {}, [], [], None
        text = "\n" + self.tracectl("cat", "-d", "parsed", trace).out

        def time_before(end):
            """Returns the time of the last event before this place in the text."""
            at = text.rfind("\nM=", 0, end)
            return int(TIME.search(text, at)[1]) if at >= 0 else 0

        for found in RANGE_OR_SYNC.finditer(text):  # of a million lines a few
            line = text.rfind("\n", 0, found.start())
            match = PARSED.match(text, line + 1)
            if not match or match.start(1) != found.start(1):
                continue
            now = int(match[2])
            what, name, scope, ident = match[1], match[3], match[4], match[5]
            if what == "Sync":
                syncs.append((now, time_before(line)))
                continue
            key = f"{RANGE_IDS[name]} {scope} {ident or 0}"
            if what == "RangeActive":
                if key in since:
                    total[key] += syncs[-1][0] - since[key]
                else:
                    lower.add(key)
                    total.setdefault(key, 0)
                    if scope == "None":
                        begun = syncs[-1][0]
                since[key] = syncs[-1][0]
            elif what == "RangeBegin":
                total.setdefault(key, 0)
                since[key] = now
                begun = now if scope == "None" else begun
            elif key in since:
                total[key] += now - since.pop(key)
                ended[key] = ended.get(key, 0) + 1
                if scope == "None":
                    marks.append((begun, now))
        now = time_before(len(text))
        for key, time in since.items():
            total[key] += now - time
            if " None " in key:
                marks.append((begun, now))
        rows = {f"{key}: {ns}{'+' if key in lower else ''} ns, {ended.get(key, 0)} ended{', 1 active' if key in since else ''}"
                for key, ns in total.items()}
        spans = [(begin, after) for (begin, _), (_, after) in zip(syncs, syncs[1:])]
        marking = [(sum(max(0, min(b, end) - max(a, begin)) for a, b in marks), end - begin) for begin, end in spans]
        return rows, marking, len(lower)

    def test_ranges_last_as_go_counts_them_since_the_last_sync(self):
        program = self.folder / "range-time"
        self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", RANGES, *self._flags(), "-o", program)
        traces = [self.unpack(packed) for packed in corpus()]
        for trace in [trace for trace in traces if "gens" in trace.name]:
            rows = [json.loads(line) for line in self.tracectl("index", "--json", trace).out.splitlines()]
            for first in rows[1::max(1, len(rows) // (8 if FULL else 3))]:  # as if tracing had begun there: ranges are under way
                cut = self.folder / f"{trace.stem}-{first['gen']}.trace"
                bytes_ = trace.read_bytes()
                cut.write_bytes(bytes_[:16] + bytes_[first["offset"]:])
                traces.append(cut)
        lower = marked = 0
        for trace in traces:
            want, marking, unseen = self.ranges_of(trace)
            lines = self.run_program(program, trace).out.splitlines()
            generations = [tuple(map(int, re.findall(r"\d+", line)[1:3])) for line in lines if line.startswith("generation")]
            self.assertEqual(generations, marking, trace.name)
            self.assertEqual({line for line in lines if not line.startswith("generation")}, want, trace.name)
            lower, marked = lower + unseen, marked + sum(ns > 0 for ns, _ in marking)
        self.assertGreater(marked, 3)
        if len(traces) > 30:  # the large corpus is there: data of our own has no range that a cut leaves open
            self.assertGreater(lower, 3)
            self.assertGreater(marked, 20)

    def test_the_example_over_blobs_compiles_and_says_what_is_wrong_with_its_file(self):
        program = self.folder / "heap-graph"
        self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", HEAP, *self._flags(), "-o", program)
        self.assertIn("15000 spans of", self.run_program(program, self.trace("g26-blobs")).out)
        self.assertIn("not a Go execution trace", self.run_program(program, HEAP, expect=1).err)

    def test_every_public_header_stands_alone(self):
        flags = [flag for flag in self._flags() if flag.startswith("-I")]
        headers = sorted((self.prefix / "include/tracecollect").rglob("*.h"))
        self.assertGreater(len(headers), 15)
        for header in headers:
            source = self.folder / "alone.c"
            source.write_text(f'#include "{header.relative_to(self.prefix / "include/tracecollect")}"\n')
            self.run_program("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, source)
            source.write_text(f'extern "C" {{\n{source.read_text()}}}\n')
            self.run_program("c++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, source)

    def test_one_program_includes_every_public_header(self):
        include = self.prefix / "include"
        flags = [flag for flag in self._flags() if flag.startswith("-I")] + ["-I", include]
        agents = [path.name for path in sorted(include.glob("*.h"))]
        library = [path.relative_to(include / "tracecollect") for path in sorted((include / "tracecollect").rglob("*.h"))]
        self.assertGreater(len(agents), 3)
        first, others = ("".join(f'#include "{name}"\n' for name in names) for names in (agents, library))
        for compiler, name, text in (("cc", "all.c", first + others), ("c++", "all.cc", f'{first}extern "C" {{\n{others}}}\n')):
            source = self.folder / name
            source.write_text(text + "int main(void) { return 0; }\n")
            self.run_program(compiler, "-Wall", "-Wextra", "-Werror", *flags, source, "-o", self.folder / "all")

    def test_what_is_wrong_with_a_trace_is_said(self):
        program = self.folder / "who-waits"
        self.run_program("cc", "-std=gnu11", EXAMPLE, *self._flags(), "-o", program)
        cut = self.folder / "cut.trace"
        shutil.copyfile(self.trace("g25-mix"), cut)
        os.truncate(cut, cut.stat().st_size - 1)
        self.assertIn("cut.trace:", self.run_program(program, cut, expect=1).err)
        self.run_program(program, expect=2)
