# SPDX-License-Identifier: Apache-2.0
"""The locks of a program that nobody changed: which ones it waits for, what held them, and which waits are idle."""
import json
import unittest

from harness import SANITIZE, SOURCE, Collector, wait_until
from test_preload import PreloadCase

CONTENDED = SOURCE / "tests/e2e/contended.c"
IDLE = "sync:wait_for_work"
HELD = {("table_lock", "holds_table"): 3, ("config_lock", "holds_config"): 2, ("pool+0x8", "holds_pool"): 1}


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Locks(PreloadCase):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self, f"analysis.idle={IDLE}")
        program = self.compiled("contended", "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-fno-omit-frame-pointer",
                                "-fno-optimize-sibling-calls", "-pthread", CONTENDED)
        self.runs = 0

        def is_named():
            """Runs the program again: names are looked up beside it, perhaps too late for one that ends soon. All
            is in the last generation, which waits the longest for names."""
            self.runs += 1
            self.service = f"contended-{self.runs}"
            done = self.run_program(program, "300", env=self.environment(
                self.collector.to, TRACEAGENT_SERVICE=self.service, TRACEAGENT_DELAY_MS="0", TRACEAGENT_STACKS="16", TRACEAGENT_GENERATION_MS="60000"))
            self.assertEqual((done.out, done.err), ("as ever\n", ""))
            text = self.read(self.collector, self.service)
            self.trace = self.folder / f"{self.service}.trace"
            tables = self.of_file("contention")["tables"]
            named = {(row["object"], row["holder"]) for row in tables["by_holder"] + tables["held"]}
            return {*HELD, ("last_lock", "holds_last")} <= named and "\twait_for_work @" in text

        wait_until("the locks and functions have their names", is_named)

    def of_file(self, kind, *more):
        return json.loads(self.tracectl("report", kind, self.trace, "--json", *more).out)

    def live(self, kind):
        return json.loads(self.collector.ask("report", kind, "--service", self.service, "--json").out)

    def test_each_lock_has_its_waits_and_what_held_it(self):
        for of, report in (("file", self.of_file("contention")), ("collector", self.live("contention"))):
            with self.subTest(of=of):
                tables = report["tables"]
                held = {(row["object"], row["holder"]): row["waits"]["count"] for row in tables["by_holder"]}
                self.assertEqual({key: held.get(key) for key in HELD}, HELD)
                self.assertEqual({row["holder"] for row in tables["by_pair"]
                                  if row["object"] in ("table_lock", "config_lock", "pool+0x8")}, {"exact"})
                last = [row for row in tables["held"] if row["object"] == "last_lock"]
                self.assertEqual([(row["waiting"], row["holder"], row["state"]) for row in last], [(1, "holds_last", "Syscall")])

    def test_a_thread_that_waits_for_work_is_idle_by_a_rule_and_its_locks_stay_as_they_are(self):
        usual, idle = self.of_file("block"), self.of_file("block", "--idle", IDLE)
        self.assertEqual(idle["figures"]["idle"]["count"], usual["figures"]["idle"]["count"] + 1)
        self.assertEqual(idle["figures"]["blocked"]["count"], usual["figures"]["blocked"]["count"] - 1)
        self.assertEqual(self.live("block")["figures"], idle["figures"])
        self.assertEqual(self.of_file("contention", "--idle", IDLE)["tables"]["by_lock"], self.of_file("contention")["tables"]["by_lock"])
