# SPDX-License-Identifier: Apache-2.0
"""Planted faults (tests/workload/planted): the report for each fault names it, with the right functions."""
import json
import re
import shlex
import signal
import unittest
import urllib.request

import clock
from harness import DEADLINE, FULL, PATIENCE, SOURCE, TRACECTL, Case, Collector, local_go, wait_until
from test_preload import PreloadCase

MS = 1_000_000
SHOP = "main.(*shop)."
GOOD_S = 10 if FULL else 2
# What each fault's program is told, in seconds of its trace's clock, and how many times as fast that clock runs. What only waits
# is traced at once, the others one by one. On a slow machine it runs less fast: a program that had no core for a second did nothing for ten.
FAST = 1 if FULL else max(1, min(10, int(10 / PATIENCE)))
FAULTS = {"none": (1, {"good": 10 if FULL else 4}), "slow": (1, {"good": 0.5}), "misnested": (1, {"good": 0.5}), "leak": (FAST, {"good": GOOD_S, "lasts": 75}),
          "deadlock": (FAST, {"good": GOOD_S, "lasts": 15}), "fsync": (FAST, {"good": GOOD_S, "lasts": 15}),
          "convoy": (FAST, {"good": GOOD_S, "lasts": 5}), "assist": (FAST, {"good": GOOD_S, "lasts": 5}),
          "starved": (FAST, {"good": GOOD_S, "lasts": 5})}
BUSY = ("convoy", "assist", "starved")
TRACES = {}


class Recorder(Case):
    """Has each fault traced, for all cases of the module."""

    def record(self):
        program = local_go().program(self, "tests/workload/planted")
        at_once = [fault for fault in FAULTS if fault not in BUSY]
        for faults in at_once, *([fault] for fault in BUSY):
            for fault, process in [(fault, self.start(program, fault)) for fault in faults]:
                self.assertEqual(process.wait(DEADLINE), 0, self.log(fault))
                factor = FAULTS[fault][0]
                if factor > 1:
                    clock.make_faster(TRACES[fault], factor)

    def start(self, program, fault):
        """A generation a second, as the trace's clock has it."""
        factor, seconds = FAULTS[fault]
        TRACES[fault] = self.folder / f"{fault}.trace"
        times = [word for name, value in seconds.items() for word in (f"-{name}", f"{value / factor}s")]
        debug = f"traceadvanceperiod={10**9 // factor}"
        return self.spawn(fault, program, "-fault", fault, "-out", TRACES[fault], *times, env={**local_go().environment, "GODEBUG": debug})


def setUpModule():
    if local_go() is None:
        raise unittest.SkipTest("Go is not installed")
    recorder = Recorder()
    recorder.setUp()
    unittest.addModuleCleanup(recorder._clean)
    recorder.record()


class PlantedCase(Case):
    def report(self, kind, fault, *args):
        return json.loads(self.tracectl("report", kind, TRACES[fault], "--json", "--top", "0", *args).out)

    def functions(self, row, column="stack"):
        return [frame["function"] for frame in row[column]]


class Planted(PlantedCase):
    def test_a_slow_request_is_behind_the_flush_and_the_worker(self):
        answer = self.report("why", "slow", "--slow", "checkout")
        total = answer["figures"]["total_ns"]
        parts = {row["part"]: row["total_ns"] for row in answer["tables"]["parts"]}
        behind = {row["entry"]: row for row in answer["tables"]["behind"]}
        self.assertGreaterEqual(total, 500 * MS)
        self.assertEqual(sum(parts.values()), total)
        self.assertEqual(answer["tables"]["path"][0]["from_ns"], answer["figures"]["from_ns"])
        self.assertGreaterEqual(behind[SHOP + "flush"]["syscall_ns"], 40 * MS)
        self.assertGreaterEqual(behind[SHOP + "worker"]["cpu_ns"], 10 * MS)
        self.assertGreater(behind[SHOP + "flush"]["total_ns"] + behind[SHOP + "worker"]["total_ns"], total * 9 // 10)
        self.assertLess(parts.get("unknown", 0), MS)
        text = self.tracectl("why", TRACES["slow"], "--slow", "checkout").out
        time = r"[\d.]+ m?s"
        self.assertRegex(text, rf"^task \d+ \(checkout\) took {time}: ")
        self.assertRegex(text, rf"{time} behind goroutine \d+ main\.\(\*shop\)\.flush \({time} in system calls, at main\.\(\*shop\)\.flush\)")

    def test_a_convoy_is_found_at_its_lock(self):
        report = self.report("contention", "convoy")
        self.assertEqual(report["figures"]["convoys"], 1)
        self.assertIn(SHOP + "reserve", self.functions(report["tables"]["convoys"][0]))

    def test_a_deadlock_is_a_circle_of_three(self):
        report = self.report("contention", "deadlock")
        self.assertEqual(report["figures"]["deadlocks"], 1)
        circle = report["tables"]["cycles"][0]
        self.assertEqual((circle["length"], circle["suspected"]), (3, True))
        self.assertEqual(self.functions(circle)[1:], ["main.take", "main.embrace"])
        behind = [row for row in report["tables"]["chains"] if row["end"] == "cycle"]
        self.assertEqual([(row["waiting"], row["link"], row["last_entry"]) for row in behind], [(3, "inferred", "main.embrace")])
        text = self.tracectl("report", "contention", TRACES["deadlock"]).out
        self.assertRegex(" ".join(text.split()), r"goroutine \d+ main\.embrace waits at main\.take:\d+ \(sync, [\d.]+ s\) for goroutine \d+ main\.embrace, "
                         r"which waits .*: a circle \(inferred: ")

    def test_allocations_that_help_the_collector_are_counted_where_they_are(self):
        report = self.report("gc", "assist")
        self.assertGreater(report["figures"]["cycles"]["count"], 3)
        self.assertEqual(report["tables"]["by_entry"][0]["entry"], SHOP + "hoarder")

    def test_what_starves_the_others_is_named(self):
        report = self.report("sched", "starved")
        longest = max(report["tables"]["by_entry"], key=lambda row: row["latency"]["total_ns"])
        self.assertEqual(longest["entry"], SHOP + "plantStarved.func1")
        self.assertGreater(longest["latency"]["total_ns"], 100 * MS)

    def test_regions_that_are_not_nested_take_no_other_figure_away(self):
        wrong = self.tracectl("check", TRACES["misnested"], expect=1).out
        self.assertRegex(wrong, r': broken at generation 1, thread \d+, offset \d+: goroutine 1 ends region "send" of task \d+, '
                                r'but its innermost is "send" of task \d+')
        answer = self.tracectl("report", "regions", TRACES["misnested"], "--json", "--top", "0", expect=1)
        self.assertIn(wrong.split(": ", 1)[1].split(": ", 1)[1].strip(), answer.err)
        report = json.loads(answer.out)
        row, = report["tables"]["misnested"]
        self.assertEqual((row["count"], row["type"], row["open_type"], row["open_task"] - row["task"]), (1, "send", "send", 1))
        self.assertIn(SHOP + "dispatch", self.functions(row))
        self.assertEqual((report["figures"]["cut"], report["figures"]["begin_unknown"]), (2, 0))
        requests = json.loads(self.tracectl("report", "tasks", TRACES["misnested"], "--json", "--top", "0", expect=1).out)["tables"]["by_type"]
        checkouts = {row["type"]: row["latency"]["count"] for row in requests}["checkout"]
        self.assertEqual({row["type"]: row["latency"]["count"] for row in report["tables"]["by_type"]}, {"reserve": checkouts})
        rows = self.tracectl("query", "--csv", TRACES["misnested"], "SELECT count(*) FROM regions WHERE type='reserve'")
        self.assertEqual(rows.out.split()[1], str(checkouts))
        self.assertIn("its innermost is", rows.err)
        events = self.tracectl("query", "--csv", TRACES["misnested"], "SELECT count(*) FROM events")
        self.assertIn("its innermost is", events.err)

    def test_the_first_sentence_names_the_cause(self):
        """A busy machine may add others behind it."""
        for fault, cause in (("slow", r"Task checkout: .* a system call at main\.\(\*shop\)\.flush:\d+ took "), ("convoy", r"Contention: convoy of \d goroutines: .*main\.\(\*shop\)\.reserve:"),
                             ("deadlock", r"Suspected deadlock of 3 goroutines: .*main\.take:"), ("leak", r"Goroutine leak: .*created at main\.\(\*shop\)\.plantLeak, they wait at main\.\(\*shop\)\.forgotten"),
                             ("fsync", r"A system call holds up 1 goroutine: .*main\.\(\*shop\)\.flusher.* main\.slowSync:"), ("assist", r"GC pressure: .*goroutines of main\.\(\*shop\)\.hoarder"),
                             ("starved", r"Short of CPU: .*goroutines of main\.\(\*shop\)\.plantStarved\.func1"), ("misnested", r"Regions end in the wrong order: at main\.\(\*shop\)\.dispatch ")):
            with self.subTest(fault=fault):
                lines = self.tracectl("report", TRACES[fault], expect=fault == "misnested").out.splitlines()
                self.assertLessEqual(len(lines), 15)
                self.assertRegex(" ".join(" ".join(lines[1:]).split()), rf"^1\. {cause}")
        kinds = [json.loads(line)["kind"] for line in self.tracectl("report", TRACES["none"], "--json").out.splitlines()]
        self.assertEqual([kind for kind in kinds if kind not in ("nothing", "task", "latency", "stop", "wait", "call", "lock", "busy")], [])

    def test_where_nothing_is_planted_nothing_is_found(self):
        self.assertEqual(self.report("contention", "none")["figures"]["convoys"], 0)
        self.assertEqual([row for row in self.report("block", "none")["tables"]["waiting_now"] if row["reason"] == "sync" and not row["idle"]], [])
        self.assertEqual(self.report("leak", "none")["figures"]["suspects"], 0)


class Listener:
    """Beside a case: what `tracectl tail` says of generations and alerts."""

    def generation_of(self, generations, time):
        """Returns the generation at a moment of the trace clock; ends: first and last event by
        generation."""
        return max(gen for gen, (first, _) in generations.items() if first <= time)

    def expect_stall(self, heard, words, function=None):
        """The wait must last longer than 1 s: seen at the end of the generation in which it does, often the one after it began."""
        generations, _ = heard
        alert = self.expect_text(heard, "stall", words, function)
        meets = min(gen for gen, (_, last) in generations.items() if last - alert["message"]["begin_ns"] > 1000 * MS)
        self.assertIn(alert["generation"] - meets, (0, 1), alert["message"]["text"])

    def listen(self, name, *settings):
        self.collector = Collector(self, *settings, name=f"of-{name}")
        with open(self.folder / f"{name}.out", "wb") as out:
            self.tail = self.spawn(f"tail-{name}", TRACECTL, "tail", "--server", self.collector.to, "--certs", self.certs, "--json",
                                   "--kind", "alert", "--kind", "generation", stdout=out)
        # A client that waits too long for an answer reconnects, and was counted before: it is ready once it receives something.
        wait_until("tail hears", lambda: self.collector.send(self.trace("g26-labels"), "sign", "of-life") and self.heard(name, "of-life")[0])

    def end(self, name, is_over, instance="one"):
        wait_until("all generations are over", lambda: is_over(self.heard(name, instance)[0]))
        self.hear_no_more()
        return self.heard(name, instance)

    def hear_no_more(self):
        self.tail.send_signal(signal.SIGINT)
        self.assertEqual(self.tail.wait(DEADLINE), 130)
        self.assertEqual(self.collector.stop(), 0)

    def heard(self, name, instance="one"):
        """Returns what was heard of one instance: generations with the times of their first and last
        event, and alerts."""
        lines = [json.loads(line) for line in (self.folder / f"{name}.out").read_text().split("\n")[:-1]]
        lines = [line for line in lines if line["instance"] == instance]
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
        """The first of it, and the only one where it stays. A busy machine makes some of itself, for instance a slow fsync: a stall that is
        planted is the last one, and each of them is told once."""
        of_it = [alert for alert in heard[1] if alert["message"]["id"] == f"/finding/{finding}" and re.search(words, alert["message"]["text"])]
        self.assertGreater(len(of_it), 0, heard)
        if finding == "deadlock":
            self.assertEqual(len(of_it), 1, heard)
        if finding == "stall":
            self.assertEqual(len({alert["message"]["begin_ns"] for alert in of_it}), len(of_it), heard)
        planted = of_it[-1 if finding == "stall" else 0]
        message = planted["message"]
        if function is not None:
            self.assertIn(function, [frame["function"] for frame in message["stack"]])
        return planted

    def expect(self, heard, finding, words, function=None):
        """Met at the end of the second generation after its begin."""
        alert = self.expect_text(heard, finding, words, function)
        message = alert["message"]
        self.assertEqual(alert["generation"] - self.generation_of(heard[0], message["begin_ns"]), 2, message["text"])


class HeardAtOnce(Listener):
    """Cases about one collector, which heard all faults before they begin: an instance each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scene = cls()
        scene.setUp()
        cls.addClassCleanup(scene._clean)
        scene.listen("faults")
        faults = scene.plant()
        cls.of_fault = {fault: scene.heard("faults", fault) for fault in faults}
        scene.hear_no_more()


class Alerts(HeardAtOnce, PlantedCase):
    """The same faults, seen by a collector: an alert names each as soon as its definition is met."""

    def plant(self):
        faults = [fault for fault in FAULTS if fault not in ("slow", "misnested")]
        for fault in faults:
            self.collector.send(TRACES[fault], "shop", fault)
        for fault in faults:
            self.await_last("faults", fault, fault)
        Alerts.kept = self.collector.json_lines("findings", "--service", "shop")
        Alerts.sentences = self.collector.json_lines("report", "--service", "shop")
        Alerts.lead = self.collector.ask("report", "--service", "shop").out
        self.assertEqual(self.collector.ask("report", "all", "--service", "shop", "--window", "1m").out.split("\n\n")[0].splitlines()[1:3], self.lead.splitlines()[1:3])
        self.assertIn('no service "shpo"; did you mean "shop"?', self.collector.ask("report", "--service", "shpo", expect=1).err)
        self.tracectl(*shlex.split(self.lead.splitlines()[-1])[1:])  # the command reaches the same collector
        for kind in ("convoy", "deadlock"):
            fetch = next(row["fetch"] for row in self.kept if row["kind"] == kind and kind in row["instances"]).split()[1:-1]
            self.tracectl(*fetch, self.folder / f"kept-{kind}.trace", "--server", self.collector.to, "--certs", self.certs, "--no-progress")
            report = json.loads(self.tracectl("report", "contention", self.folder / f"kept-{kind}.trace", "--json").out)
            self.assertGreater(report["figures"][f"{kind}s"], 0, (fetch, [row for row in self.kept if row["kind"] == kind]))
        return faults

    def await_last(self, name, instance, fault):
        last = json.loads(self.tracectl("check", TRACES[fault], "--json").out)["generations"]
        wait_until("all generations are over", lambda: last in self.heard(name, instance)[0])

    def expect_alert(self, fault, finding, words, function=None):
        self.expect(self.of_fault[fault], finding, words, function)

    def test_of_a_deadlock(self):
        self.expect_alert("deadlock", "deadlock", r"suspected deadlock of 3 goroutines: goroutine \d+ main\.embrace waits at main\.take:\d+ .*: a circle",
                          "main.embrace")

    def test_of_a_convoy(self):
        self.expect_alert("convoy", "convoy", r"convoy of \d goroutines: (goroutine \d+ main\.\(\*shop\)\.clerk waits|they wait) at main\.\(\*shop\)\.reserve:\d+ ",
                          SHOP + "reserve")

    def test_of_a_flush_that_does_not_come_back(self):
        self.expect_stall(self.of_fault["fsync"], r"a system call holds up 1 goroutine: goroutine \d+ main\.\(\*shop\)\.worker waits at main\.\(\*shop\)\.reserve:\d+ "
                          r".* for goroutine \d+ main\.\(\*shop\)\.flusher, which is in a system call at main\.slowSync:\d+ for ", SHOP + "reserve")

    def test_of_allocations_that_help_the_collector(self):
        self.expect_alert("assist", "assists", r"goroutines help the garbage collector: \d+ % of the time .* most of it in goroutines of main\.\(\*shop\)\.hoarder$")

    def test_of_goroutines_that_have_all_ps(self):
        self.expect_alert("starved", "starved", r"goroutines wait for Ps: [\d.]+ goroutines waited for each of \d+ Ps on average; goroutines of "
                          r"main\.\(\*shop\)\.plantStarved\.func1 had \d+ % ")

    def test_of_goroutines_that_never_end(self):
        """The pile-up must have grown in each of six periods of 10 s in a row, a second a generation. The periods are those of the trace's
        clock, so the first may begin as soon as the trace does: 60 s is the least."""
        generations, alerts = self.of_fault["leak"]
        self.assertEqual([alert["message"]["id"] for alert in alerts], ["/finding/leak"])
        message = alerts[0]["message"]
        self.assertRegex(message["text"], r"\d+ goroutines may never end: created at main\.\(\*shop\)\.plantLeak, they wait at main\.\(\*shop\)\.forgotten, "
                                          r"the longest for \d+ s; \d+ more wait there than 60 s before$")
        self.assertIn(SHOP + "forgotten", self.functions(message))
        met = generations[alerts[0]["generation"]][1] - generations[1][0]
        self.assertTrue(60_000 * MS <= met <= (GOOD_S + 72) * 1000 * MS, met)
        suspect, = self.report("leak", "leak")["tables"]["suspects"]
        self.assertIn(SHOP + "plantLeak", self.functions(suspect, "creation_stack"))
        self.assertIn(SHOP + "forgotten", self.functions(suspect))

    def test_of_regions_that_are_not_nested(self):
        """The verdict is Go's, and the figures are there."""
        self.listen("misnested")
        self.collector.send(TRACES["misnested"], "shop")
        wait_until("it is an alert", lambda: self.heard("misnested")[1])
        wait_until("its generation is broken", lambda: self.metric("generations_broken_total") == 1)
        self.hear_no_more()
        _, alerts = self.heard("misnested")
        self.assertEqual([alert["message"]["id"] for alert in alerts], ["/finding/misnested"])
        self.assertRegex(alerts[0]["message"]["text"], r'regions end in the wrong order: at main\.\(\*shop\)\.dispatch goroutine 1 ends region "send" of '
                                                       r'task \d+, but its innermost is "send" of task \d+, begun at main\.\(\*shop\)\.dispatch; ')
        self.assertIn(SHOP + "dispatch", self.functions(alerts[0]["message"]))

    def test_of_a_slow_task(self):
        """The text says what was done in its regions; the explanation that it names is asked of a running collector, for the trace's end."""
        self.listen("slow", "alert.task=50ms", "alert.every=0s")
        self.collector.send(TRACES["slow"], "shop")
        self.await_last("slow", "one", "slow")
        self.hear_no_more()
        _, alerts = self.heard("slow")
        self.assertEqual({alert["message"]["id"] for alert in alerts}, {"/task/slow"})
        slow = self.tracectl("query", "--json", TRACES["slow"], "SELECT task FROM tasks WHERE until_ns - from_ns > 50000000").out
        self.assertEqual(len(alerts), len(slow.splitlines()), "on a slow machine there may be others")
        text = alerts[-1]["message"]["text"]
        self.assertRegex(text, r"task \d+ \(checkout\) took [\d.]+ m?s, in its regions [\d.]+ m?s waiting for a channel.*; why: tracectl why --stream \w+ --task \d+$")
        self.assertIn(SHOP + "checkout", self.functions(alerts[-1]["message"]))
        self.collector.start()
        words = text.split("; why: tracectl ")[1].split()
        why = self.collector.ask(*words, "--window", "all").out
        self.assertRegex(why, r"behind goroutine \d+ main\.\(\*shop\)\.flush")

    def test_each_is_kept_as_one_finding_with_its_place_and_cause(self):
        """However many alerts there were: a finding that a busy machine makes may stand beside it."""
        for fault, kind, place, cause in (("deadlock", "deadlock", "main.take", ""), ("convoy", "convoy", SHOP + "reserve", ""),
                                          ("fsync", "stall", SHOP + "reserve", "main.slowSync"), ("leak", "leak", SHOP + "forgotten", SHOP + "plantLeak"),
                                          ("assist", "assists", "", ""), ("starved", "starved", "", "")):
            found = [row for row in self.kept if row["kind"] == kind and fault in row["instances"] and (row["place"].rsplit(":", 1)[0], row["cause"]) == (place, cause)]
            self.assertEqual(len(found), 1, (fault, self.kept))
            alerts = [alert for alert in self.of_fault[fault][1] if alert["message"]["id"] == f"/finding/{kind}"]
            self.assertIn(found[0]["id"], [alert["message"]["finding"] for alert in alerts])
            self.assertGreaterEqual(found[0]["count"], len(alerts) if kind in ("convoy", "leak") else 1)
            self.assertLessEqual(found[0]["began_at"], found[0]["last_at"])
            self.assertEqual(found[0]["peak"] > 0, kind not in ("assists", "starved"))
        self.assertEqual([row for row in self.kept if "none" in row["instances"]], [])

    def test_a_service_is_told_its_worst_findings_first(self):
        self.assertEqual([s["kind"] for s in self.sentences[:3]], ["deadlock", "leak", "stall"])
        self.assertTrue(all(s["open"] and s["service"] == "shop" for s in self.sentences[:3]))
        self.assertRegex(self.lead, r"^shop, the last 1m: [^\n]*\d streams(, \d live)?, [\d,]+ events\n1\. Suspected deadlock of 3 goroutines: ")
        self.assertLessEqual(len(self.lead.splitlines()), 15)
        self.assertLess({s["finding"] for s in self.sentences[:3]}, {row["id"] for row in self.kept})

    def test_of_nothing(self):
        self.assertEqual(self.of_fault["none"][1], [])


class AlertsOfC(HeardAtOnce, PreloadCase):
    """A C program that nobody changed: its trace names the locks, so what holds them is exact."""

    def plant(self):
        program = self.folder / "planted"
        self.run_program("cc", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
                         SOURCE / "tests/workload/planted-c/planted.c", "-o", program)
        lasts_ms = {"none": 3000, "deadlock": 5000, "convoy": 5000, "flush": 5000}
        runs = [self.spawn(fault, program, fault, GOOD_S * 1000, ms, env=self.environment(
            self.collector.to, TRACEAGENT_SERVICE="shop", TRACEAGENT_INSTANCE=fault, TRACEAGENT_DELAY_MS="0", TRACEAGENT_STACKS="16"))
            for fault, ms in lasts_ms.items()]
        self.assertEqual([run.wait(DEADLINE) for run in runs], [0] * len(runs))
        wait_until("their streams are closed", lambda: [row["state"] for row in self.collector.json_lines("status")
                                                        if row["type"] == "stream" and row["service"] == "shop"] == ["closed"] * len(runs))
        # An alert comes before its generation's end, which may come later than the stream's.
        for fault in lasts_ms:
            last = max(row["last_gen"] for row in self.collector.json_lines("list", "--instance", fault))
            wait_until("all generations are over", lambda: last in self.heard("faults", fault)[0])
        return lasts_ms

    def words(self, text):
        """A pattern: {name} is a function, which a trace may not know the name of yet when the alert is made."""
        return re.sub(r"\{(\w+)\}", r"(\1\\S*|\\S+\\+0x[0-9a-f]+\\S*)", text)

    def test_of_a_deadlock(self):
        self.expect(self.of_fault["deadlock"], "deadlock", self.words(
            r"suspected deadlock of 3 threads: thread \d+ {embrace} waits at {embrace}.* for thread \d+ {embrace}, which waits .*: "
            r"a circle \(each holds the lock\)$"))

    def test_of_a_convoy(self):
        self.expect(self.of_fault["convoy"], "convoy", self.words(
            r"convoy of \d threads: (thread \d+ {clerk} waits at {clerk}.* \(each holds the lock\)|they wait for \S+.* \(sync\))$"))

    def test_of_a_flush_that_does_not_come_back(self):
        """The call is in libc's read; where that has no name, its caller is named."""
        self.expect_stall(self.of_fault["flush"], self.words(
            r"a system call holds up 1 thread: thread \d+ {entry_clerk} waits at {entry_clerk}.* for thread \d+ {flusher}, "
            r"which is in a system call at ({flusher}|{read}) ?.*for [\d.]+ s \(each holds the lock\)$"))

    def test_of_nothing(self):
        self.assertEqual(self.of_fault["none"][1], [])
