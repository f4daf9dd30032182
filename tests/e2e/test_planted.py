# SPDX-License-Identifier: Apache-2.0
"""Faults of which the truth is known (tests/workload/planted): the report that is made for one names it, with the right functions."""
import json
import os
import re
import signal
import unittest
import urllib.request

from harness import DEADLINE, SANITIZE, SOURCE, TRACECTL, Case, Collector, local_go, wait_until
from test_preload import PreloadCase

MS = 1_000_000
SHOP = "main.(*shop)."
FULL = bool(os.environ.get("TC_FULL"))


@unittest.skipIf(SANITIZE, "the reports are the same; building a Go program takes a while")
class PlantedCase(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        if self.go is None:
            self.skipTest("Go is not installed")
        self.program = self.folder / "planted"
        self.run_program(self.go.command, "build", "-o", self.program, ".", cwd=SOURCE / "tests/workload/planted",
                         env={**self.go.environment, "GOWORK": "off", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"})

    def planted(self, fault, **flags):
        trace = self.folder / f"{fault}.trace"
        words = [word for name, value in flags.items() for word in (f"-{name}", value)]
        self.run_program(self.program, "-fault", fault, "-out", trace, *words)
        return trace

    def report(self, kind, trace, *args):
        return json.loads(self.tracectl("report", kind, trace, "--json", "--top", "0", *args).out)

    def functions(self, row, column="stack"):
        return [frame["function"] for frame in row[column]]


class Planted(PlantedCase):
    def test_a_slow_request_is_behind_the_flush_and_the_worker(self):
        trace = self.planted("slow")
        answer = self.report("why", trace, "--slow", "checkout")
        total = answer["figures"]["total_ns"]
        parts = {row["part"]: row["total_ns"] for row in answer["tables"]["parts"]}
        behind = {row["entry"]: row for row in answer["tables"]["behind"]}
        # How much of the 120 ms is left when the request begins depends on the machine.
        self.assertGreaterEqual(total, 60 * MS)
        self.assertEqual(sum(parts.values()), total)
        self.assertEqual(answer["tables"]["path"][0]["from_ns"], answer["figures"]["from_ns"])
        self.assertGreaterEqual(behind[SHOP + "flush"]["syscall_ns"], 40 * MS)
        self.assertGreaterEqual(behind[SHOP + "worker"]["cpu_ns"], 10 * MS)
        self.assertGreater(behind[SHOP + "flush"]["total_ns"] + behind[SHOP + "worker"]["total_ns"], total * 9 // 10)
        self.assertLess(parts.get("unknown", 0), MS)
        text = self.tracectl("report", "why", trace, "--slow", "checkout").out
        time = r"[\d.]+ m?s"
        self.assertRegex(text, rf"^task \d+ \(checkout\) took {time}: ")
        self.assertRegex(text, rf"{time} behind goroutine \d+ main\.\(\*shop\)\.flush \({time} in system calls, at main\.\(\*shop\)\.flush\)")

    def test_a_convoy_is_found_at_its_lock(self):
        trace = self.planted("convoy", lasts="5s")
        report = self.report("contention", trace)
        self.assertEqual(report["figures"]["convoys"], 1)
        self.assertIn(SHOP + "reserve", self.functions(report["tables"]["convoys"][0]))

    def test_a_deadlock_is_a_circle_of_three(self):
        report = self.report("contention", self.planted("deadlock", lasts="5s"))
        self.assertEqual(report["figures"]["deadlocks"], 1)
        circle = report["tables"]["cycles"][0]
        self.assertEqual((circle["length"], circle["suspected"]), (3, True))
        self.assertEqual(self.functions(circle)[1:], ["main.take", "main.embrace"])
        behind = [row for row in report["tables"]["chains"] if row["end"] == "cycle"]
        self.assertEqual([(row["waiting"], row["link"], row["last_entry"]) for row in behind], [(3, "inferred", "main.embrace")])
        text = self.tracectl("report", "contention", self.folder / "deadlock.trace").out
        self.assertRegex(" ".join(text.split()), r"goroutine \d+ main\.embrace waits at main\.take:\d+ \(sync, [\d.]+ s\) for goroutine \d+ main\.embrace, "
                         r"which waits .*: a circle \(inferred: ")

    def test_allocations_that_help_the_collector_are_counted_where_they_are(self):
        report = self.report("gc", self.planted("assist"))
        self.assertGreater(report["figures"]["cycles"]["count"], 3)
        self.assertEqual(report["tables"]["by_entry"][0]["entry"], "main.main")

    def test_what_starves_the_others_is_named(self):
        report = self.report("sched", self.planted("starved"))
        longest = max(report["tables"]["by_entry"], key=lambda row: row["latency"]["total_ns"])
        self.assertEqual(longest["entry"], SHOP + "plantStarved.func1")
        self.assertGreater(longest["latency"]["total_ns"], 100 * MS)

    def test_where_nothing_is_planted_nothing_is_found(self):
        trace = self.planted("none", good="4s")
        self.assertEqual(self.report("contention", trace)["figures"]["convoys"], 0)
        self.assertEqual([row for row in self.report("block", trace)["tables"]["waiting_now"] if row["reason"] == "sync" and not row["idle"]], [])
        self.assertEqual(self.report("leak", trace)["figures"]["suspects"], 0)


class Listener:
    """Beside a case: what `tracectl tail` says of generations and alerts."""

    def generation_of(self, generations, time):
        """Of a moment on the trace clock; ends: first and last event by generation."""
        return max(gen for gen, (first, _) in generations.items() if first <= time)

    def expect_stall(self, heard, words, function=None):
        """The wait must last longer than 1 s: seen at the end of the generation in which it does, often the one after it began."""
        generations, _ = heard
        alert = self.expect_text(heard, "stall", words, function)
        meets = min(gen for gen, (_, last) in generations.items() if last - alert["message"]["begin_ns"] > 1000 * MS)
        self.assertIn(alert["generation"] - meets, (0, 1), alert["message"]["text"])

    def listen(self, fault, *settings):
        self.collector = Collector(self, *settings, name=f"of-{fault}")
        with open(self.folder / f"{fault}.out", "wb") as out:
            self.tail = self.spawn(f"tail-{fault}", TRACECTL, "tail", "--server", self.collector.to, "--certs", self.certs, "--json",
                                   "--kind", "alert", "--kind", "generation", stdout=out)
        wait_until("tail subscribes", lambda: self.metric("feed_subscriptions_total") > 0)

    def end(self, fault, is_over):
        wait_until("all generations are over", lambda: is_over(self.heard(fault)[0]))
        self.tail.send_signal(signal.SIGINT)
        self.assertEqual(self.tail.wait(DEADLINE), 130)
        self.assertEqual(self.collector.stop(), 0)
        return self.heard(fault)

    def heard(self, fault):
        """Generations with the times of their first and last event, and alerts."""
        lines = [json.loads(line) for line in (self.folder / f"{fault}.out").read_text().split("\n")[:-1]]
        ends = [line["message"] for line in lines if line["record"] == "generation" and line["message"]["state"] == 2]
        return ({end["first_gen"]: (end["first_ns"], end["last_ns"]) for end in ends},
                [line for line in lines if line["record"] == "alert"])

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.collector.ready['http']}/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"tracecollect_{name} "):
                    return float(line.split()[1])
        return 0

    def expect_text(self, heard, finding, words, function):
        of_it = [alert for alert in heard[1] if alert["message"]["id"] == f"/finding/{finding}"]
        self.assertEqual(len(of_it), 1, heard[1])
        message = of_it[0]["message"]
        self.assertRegex(message["text"], words)
        if function is not None:
            self.assertIn(function, [frame["function"] for frame in message["stack"]])
        return of_it[0]

    def expect(self, heard, finding, words, function=None):
        """Met at the end of the second generation after its begin."""
        alert = self.expect_text(heard, finding, words, function)
        message = alert["message"]
        self.assertEqual(alert["generation"] - self.generation_of(heard[0], message["begin_ns"]), 2, message["text"])


class Alerts(Listener, PlantedCase):
    """The same faults, met by a collector: an alert names each of them as soon as its definition is met."""

    def alerts_of(self, fault, *settings, **flags):
        trace = self.planted(fault, good="10s" if FULL else "2s", **flags)
        self.listen(fault, *settings)
        self.collector.send(trace, "shop")
        last = json.loads(self.tracectl("check", trace, "--json").out)["generations"]
        return self.end(fault, lambda generations: last in generations)

    def expect_alert(self, fault, finding, words, function=None, **flags):
        self.expect(self.alerts_of(fault, **flags), finding, words, function)

    def test_of_a_deadlock(self):
        self.expect_alert("deadlock", "deadlock", r"suspected deadlock of 3 goroutines: goroutine \d+ main\.embrace waits at main\.take:\d+ .*: a circle",
                          "main.embrace", lasts="5s")

    def test_of_a_convoy(self):
        self.expect_alert("convoy", "convoy", r"convoy of \d goroutines: (goroutine \d+ main\.\(\*shop\)\.clerk waits|they wait) at main\.\(\*shop\)\.reserve:\d+ ",
                          SHOP + "reserve", lasts="5s")

    def test_of_a_flush_that_does_not_come_back(self):
        self.expect_stall(self.alerts_of("fsync", lasts="5s"), r"a system call holds up 1 goroutine: goroutine \d+ main\.\(\*shop\)\.worker waits at main\.\(\*shop\)\.reserve:\d+ "
                          r".* for goroutine \d+ main\.\(\*shop\)\.flusher, which is in a system call at main\.slowSync:\d+ for ", SHOP + "reserve")

    def test_of_allocations_that_help_the_collector(self):
        self.expect_alert("assist", "assists", r"goroutines help the garbage collector: \d+ % of the time .* most of it in goroutines of main\.main$", lasts="5s")

    def test_of_goroutines_that_have_all_ps(self):
        self.expect_alert("starved", "starved", r"goroutines wait for Ps: [\d.]+ goroutines waited for each of \d+ Ps on average; goroutines of "
                          r"main\.\(\*shop\)\.plantStarved\.func1 had \d+ % ", lasts="5s")

    def test_of_goroutines_that_never_end(self):
        """A place must have more at the end of each of six periods of 10 s in a row, a second a generation. The periods are those of the
        trace's clock, so the first may end as soon as the trace begins: 50 s is the least."""
        generations, alerts = self.alerts_of("leak", lasts="75s")
        self.assertEqual([alert["message"]["id"] for alert in alerts], ["/finding/leak"])
        message = alerts[0]["message"]
        self.assertRegex(message["text"], r"\d+ goroutines may never end: created at main\.\(\*shop\)\.plantLeak, they wait at main\.\(\*shop\)\.forgotten, "
                                          r"the first of them for \d+ s; \d+ more live than 50 s before$")
        self.assertIn(SHOP + "forgotten", self.functions(message))
        met = generations[alerts[0]["generation"]][1] - generations[1][0]
        self.assertTrue(50_000 * MS <= met <= (FULL * 10_000 + 72_000) * MS, met)
        suspect, = self.report("leak", self.folder / "leak.trace")["tables"]["suspects"]
        self.assertIn(SHOP + "plantLeak", self.functions(suspect, "creation_stack"))
        self.assertIn(SHOP + "forgotten", self.functions(suspect))

    def test_of_a_slow_task(self):
        """The text says what was done in its regions; the explanation that it names is asked of a running collector, for the trace's end."""
        _, alerts = self.alerts_of("slow", "alert.task=50ms")
        self.assertEqual([alert["message"]["id"] for alert in alerts], ["/task/slow"])
        text = alerts[0]["message"]["text"]
        self.assertRegex(text, r"task \d+ \(checkout\) took [\d.]+ ms, in its regions [\d.]+ ms waiting for a channel.*; why: tracectl report why --stream \w+ --task \d+$")
        self.assertIn(SHOP + "checkout", self.functions(alerts[0]["message"]))
        self.collector.start()
        words = text.split("; why: tracectl ")[1].split()
        why = self.collector.ask(*words, "--window", "all").out
        self.assertRegex(why, r"behind goroutine \d+ main\.\(\*shop\)\.flush")

    def test_of_nothing(self):
        self.assertEqual(self.alerts_of("none")[1], [])


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class AlertsOfC(Listener, PreloadCase):
    """A C program that nobody changed: its trace names the locks, so what holds them is exact."""

    def alerts_of(self, fault, lasts_ms=5000):
        program = self.folder / "planted"
        self.run_program("cc", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
                         SOURCE / "tests/workload/planted-c/planted.c", "-o", program)
        self.listen(fault)
        self.run_program(program, fault, "10000" if FULL else "2000", str(lasts_ms), env=self.environment(
            self.collector.to, TRACEAGENT_SERVICE="shop", TRACEAGENT_DELAY_MS="0", TRACEAGENT_STACKS="16"))
        return self.end(fault, lambda _: any(row["type"] == "stream" and row["state"] == "closed" for row in self.collector.json_lines("status")))

    def words(self, text):
        """A pattern: {name} is a function, which a trace may not know the name of yet when the alert is made."""
        return re.sub(r"\{(\w+)\}", r"(\1\\S*|\\S+\\+0x[0-9a-f]+\\S*)", text)

    def test_of_a_deadlock(self):
        self.expect(self.alerts_of("deadlock"), "deadlock", self.words(
            r"suspected deadlock of 3 goroutines: goroutine \d+ {embrace} waits at {embrace}.* for goroutine \d+ {embrace}, which waits .*: "
            r"a circle \(each holds the lock\)$"))

    def test_of_a_convoy(self):
        self.expect(self.alerts_of("convoy"), "convoy", self.words(
            r"convoy of \d goroutines: (goroutine \d+ {clerk} waits at {clerk}.* \(each holds the lock\)|they wait for \S+.* \(sync\))$"))

    def test_of_a_flush_that_does_not_come_back(self):
        """The call is in libc's read; where that has no name, its caller is named."""
        self.expect_stall(self.alerts_of("flush"), self.words(
            r"a system call holds up 1 goroutine: goroutine \d+ {entry_clerk} waits at {entry_clerk}.* for goroutine \d+ {flusher}, "
            r"which is in a system call at ({flusher}|{read}) ?.*for [\d.]+ s \(each holds the lock\)$"))

    def test_of_nothing(self):
        self.assertEqual(self.alerts_of("none", 3000)[1], [])
