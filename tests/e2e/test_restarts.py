# SPDX-License-Identifier: Apache-2.0
"""Tracing that stops and starts again within a program's regions and tasks: Go's reader accepts their ends, and so does ours. A
collector that starts again under programs: its reports show what the trace still has, and say what they do not know."""
import json
import os
import subprocess

from harness import SOURCE, Case, Collector, local_go, wait_until


class Restarts(Case):
    def test_ends_without_a_begin_are_accepted_and_counted(self):
        go = local_go()
        if go is None:
            self.skipTest("no Go")
        program, first, second = self.folder / "restarts", self.folder / "first.trace", self.folder / "second.trace"
        self.run_program(go.command, "build", "-o", program, SOURCE / "tests/e2e/restarts.go", env=go.environment)
        self.run_program(program, first, second)
        for trace, begins, ends, lone, tasks in ((first, 3, 0, None, 0), (second, 1, 4, 3, 2)):
            checked = json.loads(self.tracectl("check", "--json", trace).out)
            self.assertTrue(checked["ok"])
            self.assertEqual(checked.get("lone_region_ends"), lone)
            text = self.tracectl("cat", trace, env={**os.environ, "TZ": "UTC"}).out
            self.assertEqual((text.count(" RegionBegin "), text.count(" RegionEnd "), text.count(" TaskEnd ")), (begins, ends, tasks))
            self.assertEqual(go.parsed(self, trace).out, text)


class CollectorRestarts(Case):
    def start_stuck(self, instance, *args):
        process = self.spawn(instance, self.program, *map(str, args), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={**self.go.environment, "TRACEAGENT_SERVER": self.collector.to, "TRACEAGENT_CERTS": str(self.certs),
                                  "TRACEAGENT_SERVICE": "shop", "TRACEAGENT_INSTANCE": instance})
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        return process

    def report(self, kind, instance):
        """Returns the instance's report; None: there is none yet."""
        done = self.collector.ask("report", kind, "--service", "shop", "--instance", instance, "--top", "0", "--json", expect=None)
        return json.loads(done.out.splitlines()[0]) if done.returncode == 0 else None

    def report_of_waiting(self, instance, count):
        """Returns the contention report once it has all that is stuck."""
        return wait_until(f"{count} wait", lambda: (r := self.report("contention", instance)) and r["figures"]["waiting"] >= count and r)

    def queues(self, report):
        """Returns how many wait, by reason and by the program's function."""
        own = lambda row: next((f["function"] for f in row["stack"] if f["function"].startswith("main.")), "")
        return {(row["reason"], own(row)): row["waiting"] for row in report["tables"]["queues"]}

    def test_reports_show_what_was_stuck_before_and_say_what_is_not_known(self):
        self.go = local_go()
        if self.go is None:
            self.skipTest("no Go")
        self.program = self.go.program(self, "tests/e2e/stuck")
        self.collector = Collector(self)
        self.start_stuck("one", 300, 40, 3)
        self.start_stuck("two", 0, 0, 700)
        ended = self.start_stuck("three", 0, 0, 3)
        wait_until("it is known", lambda: self.report("tasks", "three"))
        ended.stdin.close()
        wait_until("it has ended", lambda: self.report("tasks", "three")["ended_wall_ns"])
        self.start_stuck("four", 0, 0, 3)
        wait_until("all are known", lambda: self.report("tasks", "four"))
        served = [json.loads(line) for line in self.collector.get("/api/v1/report/tasks?service=shop").splitlines()]
        for reports in (served, self.collector.json_lines("report", "tasks", "--service", "shop")):
            sum_of_all, *live, last = [r["instance"] for r in reports]
            self.assertEqual((sum_of_all, sorted(live), last), ("", ["four", "one", "two"], "three"))
        self.assertEqual([s["instance"] for s in self.collector.json_lines("status") if "stream" in s], ["four", "one", "two", "three"])
        text = self.collector.ask("report", "tasks", "--service", "shop").out
        self.assertEqual(text.splitlines()[0], "tasks  shop: 3 instances")
        self.assertRegex(text, r"\n3 streams are added up; .*\n.*\n(  [0-9a-f]{8}  (one|two|four) +live .*\n){3}\n1 more stream of shop is not in it, .*\n.*\n  [0-9a-f]{8}  three +closed ")

        wait_until("what has ended is not in the newest second", lambda: "of 3 streams" in self.collector.ask(
            "query", "--service", "shop", "--last", "1s", "SELECT 1 FROM goroutines LIMIT 1").err)

        before = self.report_of_waiting("one", 340)
        stuck = {("channel send", "main.send"): 300, ("sync", "main.lock"): 40}
        self.assertLessEqual(stuck.items(), self.queues(before).items())
        self.assertEqual([note for note in before["notes"] if "wait since before" in note], [])

        wait_until("both have tasks", lambda: self.report("tasks", "two") and self.report("tasks", "two")["figures"]["latency"]["count"] > 2)
        why = self.collector.ask("why", "--service", "shop", "--slow", "checkout")
        self.assertRegex(why.err, r"the slowest checkout of 4 streams took \S+ m?s: shop/two, --stream [0-9a-f]{8}")
        self.assertRegex(why.out, r"^task \d+ \(checkout\) took ([7-9]\d\d ms|\d)")

        self.collector.stop()  # all that was traced is analysed: after a kill it would be read again
        self.collector.start()
        after = self.report_of_waiting("one", 340)
        self.assertLessEqual(stuck.items(), self.queues(after).items())
        self.assertEqual(after["figures"]["longest_queue"], 300)
        words = (f"goroutines wait since before generation {after['first_gen']}, where the analysis begins: since when, and where they were created, "
                 "is not known; why is read from their stacks. Most of them, 300, wait at main.send:")
        for kind in ("contention", "leak", "goroutines", "block"):
            self.assertEqual([note.split(" ", 1)[1].startswith(words) for note in self.report(kind, "one")["notes"] if "wait since before" in note], [True], kind)
        two = wait_until("two is known, too", lambda: self.report("contention", "two"))
        self.assertEqual([note for note in two["notes"] if "wait since before" in note], [])
        self.assertIn("wait since before generation", " ".join(self.collector.ask("report", "leak", "--service", "shop", "--instance", "one").out.split()))
        place = wait_until("the convoy goes on", lambda: next((f["place"] for f in self.collector.json_lines("findings", "--service", "shop", "--open")
                                                               if f["kind"] == "convoy" and "since before generation" in f["words"]), None))
        self.assertRegex(place, r"^main\.lock:\d+$")
        self.assertEqual(len([f for f in self.collector.json_lines("findings", "--service", "shop") if f["kind"] == "convoy" and f["place"] == place]), 1)
