# SPDX-License-Identifier: Apache-2.0
"""`tracectl diff`: figures of two traces side by side, compared with the sums of `tracectl query`, and with planted faults."""
import concurrent.futures
import json
import re
import statistics
import unittest

from harness import SANITIZE, Case, Collector, local_go

WHOLE = "from_known AND until_known AND until_ns IS NOT NULL"


class Diff(Case):
    def rows(self, *args, **options):
        lines = [json.loads(line) for line in self.tracectl("diff", "--json", "--top", "0", *args, **options).out.split("\n")[:-1]]
        return {(line["metric"], line["key"]): line for line in lines}

    def lengths(self, trace, table, where):
        sql = f"SELECT until_ns-from_ns AS ns FROM {table} WHERE {where}"
        return sorted(json.loads(line)["ns"] for line in self.tracectl("query", "--json", trace, sql).out.split("\n")[:-1])

    def check_reasons(self, rows):
        """Each change of rows is significant, or says why it is not."""
        seen = set()
        for row in rows:
            for name in ("per_second", "time", "mean", "p50", "p99"):
                change = row[name]
                low, high, reason = change["low_share"], change["high_share"], change["may_be"]
                if change["significant"]:
                    self.assertTrue((low > 0 or high < 0) and reason is None, row)
                elif reason == "error":
                    self.assertLess(abs(change["b_ns"] - change["a_ns"]), 1 + 1.01 * change["error_share"] * (change["a_ns"] + change["b_ns"]), row)
                else:
                    self.assertEqual(reason, "chance" if low is not None else None, row)
                    self.assertTrue(low is None or low <= 0 <= high, row)
                seen.add((change["significant"], reason))
        self.assertLessEqual({(True, None), (False, "chance"), (False, "error")}, seen)

    def test_figures_are_those_of_the_spans(self):
        one, two = self.trace("g26-gens"), self.trace("g26-annot")
        rows = self.rows(one, two)
        place = "spans s JOIN goroutines g USING(life)"
        for key, table, where in ((("sched", ""), "spans", f"kind='goroutine' AND state='runnable' AND {WHOLE}"),
                                  (("running", ""), "spans", f"kind='goroutine' AND state='running' AND {WHOLE}"),
                                  (("running", "main.echo"), place, f"entry='main.echo' AND kind='goroutine' AND state='running' AND {WHOLE}"),
                                  (("syscall", ""), "spans", f"kind='goroutine' AND state='syscall' AND NOT idle AND {WHOLE}"),
                                  (("block", ""), "spans", f"kind='goroutine' AND state='waiting' AND NOT idle AND {WHOLE}"),
                                  (("stw", "GC mark termination"), "spans", f"kind='range' AND reason='GC mark termination' AND {WHOLE}"),
                                  (("gc", "GC concurrent mark phase"), "spans", f"kind='range' AND state='GC concurrent mark phase' AND {WHOLE}")):
            for side, trace in (("a", one), ("b", two)):
                lengths = self.lengths(trace, table, where)
                row = rows[key] if lengths else None
                if not lengths:
                    continue
                self.assertLess(abs(row["mean"][f"{side}_ns"] - statistics.fmean(lengths)), 1e-6 * statistics.fmean(lengths) + 1, (key, side))
                for name, share in (("p50", 0.5), ("p99", 0.99)):
                    exact = lengths[max(0, -(-len(lengths) * int(share * 100) // 100) - 1)]
                    self.assertLessEqual(row[name]["error_share"], 0.011)
                    self.assertLessEqual(abs(row[name][f"{side}_ns"] - exact), row[name]["error_share"] * exact + 0.5, (key, side, name))
                self.assertEqual(row["mean"]["error_share"], 0)
                self.assertGreater(row["per_second"][side], 0)
        self.assertTrue(any(key[0] == "tasks" and key[1] for key in rows) and any(key[0] == "regions" and key[1] for key in rows))

    def test_a_trace_is_no_different_from_itself(self):
        trace = self.trace("g26-gens")
        for row in self.rows(trace, trace).values():
            for field in ("per_second", "time", "mean", "p50", "p99"):
                self.assertIn(row[field]["change_share"], (0, None), row)
                self.assertFalse(row[field]["significant"], row)
                if row[field]["low_share"] is not None:
                    self.assertLessEqual(row[field]["low_share"], 0)
                    self.assertGreaterEqual(row[field]["high_share"], 0)
        done = self.tracectl("diff", trace, trace, "--fail-on", "sched.p99 > +0%", "--fail-on", "block.time < -0%")
        self.assertRegex(done.out, r"(?m)^sched: waits of runnable goroutines for a P, by entry$")
        self.assertIn("generations\n\nNo significant change.\n\n", done.out)
        self.assertRegex(done.out, r"(?m)^all +\S+ +\S+ +\+0\.0 % \(")

    def test_it_says_the_same_each_time(self):
        one, two = self.trace("g26-gens"), self.trace("g26-annot")
        self.assertEqual(self.rows(one, two), self.rows(one, two))

    def test_a_collectors_times_are_sides_too(self):
        collector = Collector(self)
        trace = self.trace("g26-gens")
        collector.send(trace, "shop")
        parts = [json.loads(line) for line in collector.ask("diff", "service=shop,gen=2..13", "service=shop,gen=14..25", "--json", "--top", "0").out.split("\n")[:-1]]
        whole = {(line["metric"], line["key"]): line for line in parts}
        self.assertGreater(whole["sched", ""]["mean"]["a_ns"], 0)
        self.assertIsNotNone(whole["sched", ""]["mean"]["low_share"])
        self.check_reasons(parts)
        self.assertIn("nothing in the archive matches", collector.ask("diff", "service=shop,gen=900..", trace, expect=1).err)
        collector.ask("diff", trace, "service=shop,gen=2..13")  # a file and a stream, with the options that name the collector
        self.assertEqual(collector.stop(), 0)

    def test_mistakes(self):
        trace = self.trace("g26-gens")
        for condition, says in (("scheds.p99 > 5%", 'no metric "scheds"'), ("sched > 5%", "a field is required"), ("sched.p98 > 5%", "a field is required"),
                                ("sched.p99 = 5%", "> or < is required"), ("sched.p99 > 5", "a change is required"), ("tasks[x.p99 > 5%", "has no end"), ("task[x].p99 > 5%", 'did you mean "tasks"?')):
            self.assertIn(says, self.tracectl("diff", trace, trace, "--fail-on", condition, expect=2).err)
        self.assertIn("A and B are required", self.tracectl("diff", trace, expect=2).err)
        self.assertIn("no option --host", self.tracectl("diff", trace, "host=x", expect=2).err)
        self.assertIn("--from needs a time", self.tracectl("diff", "service=shop,from=x", trace, expect=2).err)
        self.assertIn("--gen needs generations", self.tracectl("diff", trace, "service=shop,gen=x", expect=2).err)
        self.assertIn("No such file", self.tracectl("diff", trace, self.folder / "none", expect=1).err)
        done = self.tracectl("diff", trace, trace, "--fail-on", "tasks[nothing].p99 > 1%")
        self.assertIn("condition not checked, nothing of it ended in A", done.err)


@unittest.skipIf(SANITIZE, "the figures are the same; building a Go program takes a while")
class DiffOfFaults(Case):
    def planted(self, program, fault, **seconds):
        trace = self.folder / f"{fault}.trace"
        words = [word for name, value in seconds.items() for word in (f"-{name}", value)]
        self.run_program(program, "-fault", fault, "-out", trace, *words)
        return trace

    def test_a_convoy_is_a_regression_and_other_work_is_none(self):
        if local_go() is None:
            self.skipTest("Go is not installed")
        program = local_go().program(self, "tests/workload/planted")
        with concurrent.futures.ThreadPoolExecutor() as side_by_side:  # each mostly waits
            good, bad = (side_by_side.submit(self.planted, program, "none", good="3s"),
                         side_by_side.submit(self.planted, program, "convoy", good="100ms", lasts="3s"))
            good, bad = good.result(), bad.result()
        self.tracectl("diff", good, good, "--fail-on", "block.time > +20%")
        done = self.tracectl("diff", good, bad, "--fail-on", "block.time > +20%", "--fail-on", "gc.time > +100000%", expect=3)
        self.assertRegex(done.err, r"condition met: block\.time > \+20%: \+[\d.]+ % \(\+[\d.]+\.\.\+[\d.]+\)")
        self.assertNotIn("gc.time", done.err.split("condition met", 1)[1].split("condition not", 1)[0])
        told = done.out.split("\n\n")[1].splitlines()
        self.assertTrue(1 <= len(told) <= 8 and all(re.match(rf"{i}\. [A-Z]", line) for i, line in enumerate(told, 1)), told)
        self.assertRegex("\n".join(told), r"(?m)^\d\. Waits at main\.\(\*shop\)\.reserve:\d+ \(sync\): (new, [\d.]+ m?s in each second|.*, was )")
        self.assertFalse([line for line in told if "runtime." in line.split(":")[0]])
        self.assertNotRegex(done.out.replace(str(self.folder), ""), r"\de[+-]\d", "numbers a person reads")
