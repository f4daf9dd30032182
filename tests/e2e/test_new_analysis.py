# SPDX-License-Identifier: Apache-2.0
"""One file and one row make an analysis: a copy of the tree gets the one in toy/, and it is in text, JSON, CSV, the
schema, the feed, /metrics, the HTTP API and on the page."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import harness
from harness import BUILD, DEADLINE, SANITIZE, SOURCE, Collector, wait_until

ROW = 'TO_ANALYSIS(TOY, toy, "Time in which ranges of the runtime were active, by kind.")\n'


COUNT = "TO_ANALYSIS_KINDS"  # how many rows the table has


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout.decode()[-4000:])
    return done.stdout.decode()


def sources_that_count_rows(names):
    """Returns the sources that read the table, or use its length or a constant made from it."""
    texts = {name: (SOURCE / name).read_text() for name in names if name.endswith((".c", ".h")) and not name.startswith("tests/")}
    made_of_it = rf"(?m)^ *(\w+) = .*\b{COUNT}\b.*$"
    words = {COUNT}.union(*(re.findall(made_of_it, text) for text in texts.values()))
    uses = re.compile(rf'^#include "online/analysis/analyses\.def"|\b({"|".join(words)})\b', re.M)
    return {(SOURCE / name).resolve() for name, text in texts.items()
            if name != "lib/online/analysis/report.h" and uses.search(re.sub(made_of_it, "", text))}


def objects_made_of(sources):
    """In the build under test."""
    is_one, objects, name = {}, set(), None
    for line in run("ninja", "-C", BUILD, "-t", "deps").splitlines():
        path = line.strip()
        if path == line:
            name = line.partition(":")[0]
        elif not path.startswith("/usr/"):
            if path not in is_one:
                is_one[path] = (BUILD / path).resolve() in sources
            if is_one[path]:
                objects.add(name)
    return objects


def take_what_stays(build, made):
    """Has the new build take from the one under test what one row more does not change: all but what MADE leads to."""
    lines = (build / "build.ninja").read_text().splitlines()
    edges = {}  # number of its line: outputs, rule, inputs
    for number, line in enumerate(lines):
        if line.startswith("build "):
            outputs, _, inputs = line[len("build "):].partition(": ")
            rule, *words = inputs.partition(" || ")[0].split()
            edges[number] = outputs.partition(" | ")[0].split(), rule, words
    count = None
    while count != len(made):  # until nothing more follows
        count = len(made)
        for outputs, rule, words in edges.values():
            if not made.isdisjoint(words) or rule != "phony" and not all((BUILD / name).is_file() for name in outputs):
                made.update(outputs)
    for number, (outputs, rule, _) in edges.items():
        if made.isdisjoint(outputs) and rule.startswith(("C_", "CUSTOM_COMMAND")):
            lines[number] = lines[number].partition(": ")[0] + ": phony"
            for name in outputs:
                (build / name).parent.mkdir(parents=True, exist_ok=True)
                (build / name).symlink_to(BUILD / name)
    (build / "build.ninja").write_text("\n".join(lines) + "\n")


def build_with_toy(folder):
    """The programs of a copy of this tree with one more file and one more row."""
    names = run("git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")[:-1]
    for name in names:
        if name.startswith(("docs/", "tests/")) and not name.endswith("CMakeLists.txt"):
            continue
        target = folder / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, target)
    shutil.copy(SOURCE / "tests/e2e/toy/toy.c", folder / "tree/lib/online/analysis/kinds/toy.c")
    with open(folder / "tree/lib/online/analysis/analyses.def", "a", encoding="utf-8") as table:
        table.write(ROW)
    build = folder / "build"
    run("cmake", "-S", folder / "tree", "-B", build, "-G", "Ninja", "-DTC_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS_DEBUG=-O0")
    take_what_stays(build, objects_made_of(sources_that_count_rows(names)))
    run("cmake", "--build", build, "--target", "tracectl", "tracecollectd")
    return build


@unittest.skipIf(SANITIZE, "one build more is enough in release")
class NewAnalysis(harness.Case):
    """The programs with the toy are built once."""

    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory(prefix="tc-toy-")
        cls.addClassCleanup(cls.built.cleanup)
        cls.bin = build_with_toy(pathlib.Path(cls.built.name)) / "bin"

    def tracectl(self, *args, **options):
        return self.run_program(self.bin / "tracectl", *args, **options)

    def get(self, collector, path):
        with urllib.request.urlopen(f"http://{collector.ready['http']}{path}", timeout=DEADLINE) as answer:
            return answer.read().decode()

    def test_a_file_has_it(self):
        trace = self.trace("g26-gens")
        self.assertIn("toy", self.tracectl("report", "nothing", trace, expect=2).err)
        text = self.tracectl("report", "toy", trace).out
        for part in ("By range", "GC concurrent mark phase", "Ranges that ended", "A toy counts ranges that have ended."):
            self.assertIn(part, text)
        report = json.loads(self.tracectl("report", "toy", trace, "--json").out)
        rows = report["tables"]["by_range"]
        self.assertEqual(report["notes"], ["A toy counts ranges that have ended."])
        self.assertGreater(report["figures"]["active"]["count"], 0)
        self.assertEqual(report["figures"]["active"]["count"], sum(row["active"]["count"] for row in rows))
        self.assertEqual(report["figures"]["active"]["total_ns"], sum(row["active"]["total_ns"] for row in rows))
        for row in rows:
            self.assertLessEqual(row["active"]["p50_ns"], row["active"]["p999_ns"])
        schema = json.loads(self.tracectl("report", "toy", "--schema", "--json").out)
        self.assertEqual([table["name"] for table in schema["tables"]], ["by_range"])
        header, *lines = self.tracectl("report", "toy", trace, "--csv").out.splitlines()
        self.assertEqual(header.split(",")[0], "range")
        self.assertEqual(len(lines), len(rows))
        self.tracectl("report", "toy", trace, "--fail-on", "toy.active.max > 0s", expect=3)
        kinds = [json.loads(line)["kind"] for line in self.tracectl("report", "all", trace, "--json").out.splitlines()]
        self.assertIn("toy", kinds)

    def test_a_collector_has_it(self):
        trace = self.trace("g26-gens")
        offline = json.loads(self.tracectl("report", "toy", trace, "--json").out)
        collector = Collector(self, daemon=self.bin / "tracecollectd")
        subscriber = self.spawn("tail", self.bin / "tracectl", "tail", "--server", collector.to, "--certs", self.certs,
                                "--json")
        wait_until("the subscriber hears", lambda: collector.send(self.trace("g26-labels"), "sign") and '"sign"' in self.log("tail"))
        collector.send(trace, "shop")
        live = wait_until("its report is there", lambda: self.live(collector))
        wait_until("all of it is in order", lambda: self.live(collector)["figures"] == offline["figures"])
        self.assertEqual(self.live(collector)["tables"], offline["tables"])
        self.assertEqual(self.live(collector)["notes"], offline["notes"])
        wait_until("the feed has it", lambda: "shop/one/report/toy" in self.log("tail"))
        metrics = self.get(collector, "/metrics")
        total = offline["figures"]["active"]["count"]
        self.assertIn(f'trace_toy_seconds_count{{service="shop",instance="one"}} {total}\n', metrics)
        self.assertIn('trace_toy_range_seconds_count{service="shop",instance="one",range="', metrics)
        self.assertEqual(live["kind"], "toy")
        subscriber.terminate()
        self.assertEqual(collector.stop(), 0)

    def live(self, collector):
        try:
            return json.loads(self.get(collector, "/api/v1/report/toy?service=shop&top=0"))
        except urllib.error.HTTPError as refused:
            self.assertEqual(refused.code, 404)
            return None
