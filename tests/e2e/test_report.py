# SPDX-License-Identifier: Apache-2.0
"""Figures of a live stream and of its fetched file are the same figures."""
import gzip
import json

from harness import Case, Collector, wait_until


class Report(Case):
    def test_live_and_file_agree(self):
        trace = self.trace("g26-gens")
        collector = Collector(self)
        collector.send(trace, "report")
        fetched = collector.fetch(self.folder / "fetched", "report")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "report")))
        for kind in ("syscall", "stw"):
            with self.subTest(kind=kind):
                offline = json.loads(self.tracectl("report", kind, fetched, "--json").out)
                live = json.loads(collector.ask("report", kind, "--service", "report", "--json").out)
                self.assertEqual(self._figures(live), self._figures(offline))
        self.assertEqual(collector.stop(), 0)

    @staticmethod
    def _figures(report):
        """A report without the names of where it came from."""
        return {key: value for key, value in report.items()
                if key not in ("service", "instance", "stream", "file", "source")}


class Verb(Case):
    """`tracectl report` on files: what it prints, writes, refuses and answers."""

    def test_kinds_that_are_not_there_are_refused_with_those_that_are(self):
        done = self.tracectl("report", "gcx", self.trace("g26-labels"), expect=2)
        for kind in ("syscall", "stw", "all"):
            self.assertIn(f"  {kind} ", done.err)
        self.assertEqual(done.out, "")

    def test_conditions_are_told_by_the_exit_code(self):
        trace = self.trace("g26-gens")
        self.tracectl("report", "all", trace, "--fail-on", "syscall.blocked.count > 4")
        done = self.tracectl("report", "all", trace, "--fail-on", "syscall.blocked.count >= 4", expect=3)
        self.assertIn("syscall.blocked.count >= 4", done.err)
        self.tracectl("report", "stw", trace, "--fail-on", "syscall.blocked.count > 4", expect=2)
        self.tracectl("report", "stw", trace, "--fail-on", "stw.nothing > 4", expect=2)

    def test_conditions_see_the_rows_that_are_not_shown(self):
        trace = self.trace("g26-gens")
        whole = json.loads(self.tracectl("report", "syscall", trace, "--json", "--top", "0").out)
        stacks = len(whole["syscall"]["stacks"])
        self.assertGreater(stacks, 3)
        for top in ("0", "1", "3", "20"):
            with self.subTest(top=top):
                limits = ("--top", top, "--fail-on", f"syscall.stacks >= {stacks}", "--fail-on", "syscall.stacks < 2")
                done = self.tracectl("report", "all", trace, *limits, expect=3)
                self.assertIn(f"condition met: syscall.stacks >= {stacks}", done.err)
                self.assertNotIn("syscall.stacks < 2", done.err)
                self.tracectl("report", "all", trace, "--top", top, "--fail-on", f"syscall.stacks > {stacks}")

    def test_rows_that_are_cut_are_summed_in_the_last_one(self):
        whole, cut = (json.loads(self.tracectl("report", "syscall", self.trace("g26-gens"), "--json", "--top", top).out)
                      for top in ("0", "3"))
        stacks = cut["syscall"]["stacks"]
        self.assertEqual([row["other"] for row in stacks], [False, False, False, True])
        self.assertEqual(stacks[:3], whole["syscall"]["stacks"][:3])
        self.assertEqual(sum(row["calls"]["total_ns"] for row in stacks), whole["syscall"]["calls"]["total_ns"])

    def test_a_broken_trace_is_reported_up_to_its_fault(self):
        cut = self.folder / "cut.trace"
        cut.write_bytes(self.trace("g26-gens").read_bytes()[:100_000])
        done = self.tracectl("report", "stw", cut, "--json", expect=1)
        self.assertEqual(json.loads(done.out)["broken_generations"], 1)
        self.assertIn("generation", done.err)
        nothing = self.folder / "nothing"
        nothing.write_bytes(b"hello")
        self.assertEqual(self.tracectl("report", "stw", nothing, expect=1).out, "")

    def test_an_empty_profile_is_written_too(self):
        profile = self.folder / "empty.pb.gz"
        self.tracectl("report", "syscall", self.trace("g26-iter"), "--pprof", profile)
        self.assertIn(b"contentions", gzip.decompress(profile.read_bytes()))
        self.tracectl("report", "stw", self.trace("g26-iter"), "--pprof", profile, expect=2)

    def test_lines_fit_a_page_and_carry_no_control_characters(self):
        lines = self.tracectl("report", "all", self.trace("g26-cgo")).out.splitlines()
        self.assertGreater(len(lines), 50)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertTrue(all(line.isprintable() for line in lines))
