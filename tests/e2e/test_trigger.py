# SPDX-License-Identifier: Apache-2.0
"""Rules of triggers: they fire when the reports match, live and afterwards alike; they are stored, refused, deleted, and make flight
recorders send what they hold."""
import json
import operator
import signal
import urllib.error
import urllib.request

from harness import DAEMON, DEADLINE, Case, Collector, https, suites, wait_until
from test_planted import Listener

GENERATIONS = 26
# A rule, the figure that it looks at, and when that meets it.
RULES = [("slow", "sched.latency.p99 > 5ms", "sched", lambda r: r["figures"]["latency"]["p99_ns"], operator.gt, 5_000_000),
         ("calls", "syscall.calls.count >= 300", "syscall", lambda r: r["figures"]["calls"]["count"], operator.ge, 300),
         ("sites", "goroutines.by_entry > 6", "goroutines", lambda r: len(r["tables"]["by_entry"]), operator.gt, 6)]


def rule(name, condition, generations=1, action="alert"):
    return f"{name} WHEN {condition} FOR {generations} GENERATIONS DO {action}"


class Trigger(Listener, Case):
    def firings(self, name, *args):
        lines = self.tracectl("trigger", "test", *args, "--json").out.splitlines()
        return [line["gen"] for line in map(json.loads, lines) if line["trigger"] == name]

    def expected(self, met, generations):
        """The generations after which a rule fires: met so often in a row, and not since it fired."""
        fires, row, is_on = [], 0, False
        for gen, is_met in met.items():
            row = row + 1 if is_met else 0
            is_on = is_on and is_met
            if row >= generations and not is_on:
                fires.append(gen)
                is_on = True
        return fires

    def figures_after_each(self, collector):
        """Returns the reports' figures over the last 10 s, after each generation, for the kinds
        that the rules use."""
        reports = {}
        for gen in range(1, GENERATIONS + 1):
            part = self.folder / "part.trace"
            collector.ask("fetch", "--service", "shop", "--gen", f"1..{gen}", "-o", part, "--no-progress")
            lines = self.tracectl("report", "all", part, "--window", "10s", "--json", "--top", "0").out.splitlines()
            reports[gen] = {report["kind"]: report for report in map(json.loads, lines) if "kind" in report}
        return reports

    @suites("release")
    def test_a_rule_fires_where_the_reports_say_so_live_and_afterwards(self):
        rules = self.folder / "rules"
        rules.write_text("# what the test looks for\n\n" + "".join(rule(f"{name}-{n}", condition, n) + "\n"
                                                                  for name, condition, *_ in RULES for n in (1, 3)))
        self.listen("rules", f"trigger.file={rules}")
        self.collector.send(self.trace("g26-gens"), "shop")
        generations, alerts = self.end("rules", lambda generations: len(generations) == GENERATIONS)
        self.collector.start()
        self.assertEqual(len(generations), GENERATIONS)
        reports = self.figures_after_each(self.collector)
        fired = 0
        for name, _, kind, figure, compare, limit in RULES:
            met = {gen: compare(figure(report[kind]), limit) for gen, report in reports.items()}
            for n in (1, 3):
                expected = self.expected(met, n)
                live = [alert["generation"] for alert in alerts if alert["message"]["id"] == f"/trigger/{name}-{n}"]
                self.assertEqual(live, expected, (name, n))
                self.assertEqual(self.firings(f"{name}-{n}", f"@{rules}", self.trace("g26-gens")), expected, (name, n))
                fired += len(expected)
        self.assertGreater(fired, 3)
        archived = ("--server", self.collector.to, "--certs", self.certs, "--service", "shop", "--all")
        self.assertEqual(self.firings("slow-1", f"@{rules}", *archived), self.firings("slow-1", f"@{rules}", self.trace("g26-gens")))
        self.assertEqual(self.firings("slow-1", rule("slow-1", "sched.latency.p99 > 5ms OF shop"), *archived),
                         self.firings("slow-1", f"@{rules}", *archived))
        self.assertEqual(self.firings("slow-1", rule("slow-1", "sched.latency.p99 > 5ms OF till"), *archived), [])

    def test_rules_are_added_kept_and_taken_back(self):
        rules = self.folder / "rules"
        rules.write_text(rule("of-file", "goroutines.alive > 2") + "\n")
        collector = Collector(self, f"trigger.file={rules}")
        collector.ask("trigger", "add", "TRIGGER " + rule("slow", "sched.latency.p99 > 50us", 2, "alert, snap service last 30s"))
        collector.ask("trigger", "add", rule("gone", "stw.wall_share > 1%"))
        collector.ask("trigger", "remove", "gone")
        collector.restart()
        collector.send(self.trace("g26-gens"), "shop", "host:1")
        self.by_name(collector, lambda found: found["of-file"].get("fired", 0) == found["slow"].get("fired", 0) == 1)
        wait_until("every generation has its verdict", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))
        slow = self.by_name(collector)["slow"]
        self.assertEqual((slow["added"], slow["service"], slow["instance"], slow["gen"]), (True, "shop", "host:1", 2))
        self.assertRegex(slow["words"], r"^sched\.latency\.p99 is [\d.]+ ms, for 2 generations$")
        wait_until("it is logged", lambda: "rule=slow service=shop instance=host:1 gen=2: sched.latency.p99 is" in self.log("collector"))
        self.assertRegex(collector.ask("trigger", "list").out, r"(?m)^slow +added +1 +0 +\S+ +shop/host:1 +2 +slow WHEN ")
        # A collector that is killed looks again at what has no verdict on the disk; one that stops has none of that.
        self.assertEqual(collector.stop(), 0)
        collector.start()
        found = self.by_name(collector)
        self.assertEqual({name: (row["text"], row.get("fired", 0)) for name, row in found.items()},
                         {"of-file": (rule("of-file", "goroutines.alive > 2"), 0),
                          "slow": (rule("slow", "sched.latency.p99 > 50us", 2, "alert, snap service last 30s"), 0)})
        # A rule that was changed in the file begins anew; the others go on.
        collector.send(self.trace("g26-gens"), "shop", "host:2")
        self.by_name(collector, lambda found: found["slow"].get("fired", 0) == 1)
        self.fetch_what_fired(collector)
        rules.write_text(rule("of-file", "goroutines.alive > 1000000") + "\n" + rule("more", "finding leak") + "\n")
        collector.process.send_signal(signal.SIGHUP)
        found = self.by_name(collector, lambda found: "more" in found)
        self.assertEqual((found["of-file"].get("fired", 0), found["slow"]["fired"]), (0, 1))
        # A rule in the file that this collector does not know is left out.
        self.assertEqual(collector.stop(), 0)
        with open(collector.state / "triggers", "a") as file:
            file.write("old WHEN sched.gone.p99 > 1s DO alert\n")
        collector.start()
        self.assertEqual(set(self.by_name(collector)), {"of-file", "more", "slow"})
        self.assertIn('rule left out: old: no figure "sched.gone.p99"', self.log("collector"))
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    def fetch_what_fired(self, collector):
        """The generation that a rule fired on and the one before it."""
        def firings():
            fired = {row["instance"]: row for row in collector.json_lines("trigger", "history") if row["rule"] == "slow"}
            return fired if len(fired) == 2 else None

        fired = wait_until("both are in the history", firings)
        wanted, part = self.folder / "wanted.trace", self.folder / "part.trace"
        for chosen, instance in ((("--trigger", "slow"), "host:2"), (("--trigger", "slow", "--instance", "host:1"), "host:1"),
                                 (("--firing", fired["host:1"]["id"]), "host:1"), (("--firing", fired["host:2"]["id"], "--last", "1h"), "host:2")):
            collector.ask("fetch", "--stream", fired[instance]["stream"], "--gen", "1..2", "-o", wanted, "--no-progress")
            collector.ask("fetch", *chosen, "-o", part, "--no-progress")
            self.assertEqual(part.read_bytes(), wanted.read_bytes(), chosen)
        for chosen, code, words in ((("--firing", "7"), 1, "nothing with the id 7 is in the history"), (("--trigger", "fast"), 1, 'nothing of the rule "fast"'),
                                    (("--trigger", "slow", "--service", "till"), 1, 'nothing of the rule "slow"'),
                                    (("--firing", "x"), 2, "--firing needs a number"), (("--firing", "7", "--trigger", "slow"), 2, "only one of --firing and --trigger"),
                                    (("--firing", "7", "--gen", "1..2"), 2, "only --last says how many")):
            said = self.tracectl("fetch", "--server", collector.to, "--certs", self.certs, *chosen, "-o", part, expect=code)
            self.assertIn(words, said.err)

    def by_name(self, collector, condition=lambda found: True):
        """The collector's rules, once the condition is met."""
        def ask():
            found = {row["name"]: row for row in collector.json_lines("trigger", "list")}
            return found if condition(found) else None
        return wait_until("the rules are as they should be", ask)

    @suites("release", "asan")
    def test_what_is_wrong_is_refused_by_name(self):
        rules = self.folder / "rules"
        rules.write_text("# one\n" + rule("a", "finding leak") + "\n")
        collector = Collector(self, f"trigger.file={rules}", "listen.http=0.0.0.0:0")
        for args, code, words in ((("add", "x WHEN sched.latenzy.p99 > 1ms DO alert"), 2, 'no figure "sched.latenzy.p99"; near: sched.latency.p99'),
                                  (("add", rule("a", "finding stall")), 2, 'there is a rule "a" already'),
                                  (("add", "b WHEN finding leak DO alert\nc WHEN finding leak DO alert"), 2, "control character"),
                                  (("add",), 2, "one RULE is required"),
                                  (("remove", "nothing"), 1, 'no rule "nothing"'),
                                  (("remove", "a"), 1, f'"a" is a rule of {rules}: change that file'),
                                  (("list", "--service", "shop"), 2, "list: options that select streams are for test only"),
                                  (("change",), 2, "'change' is not one of list, add, remove, history, test"),
                                  (("history", "a", "x"), 2, "history: unexpected argument 'x'"),
                                  ((), 2, "list, add, remove, history or test is required")):
            with self.subTest(args):
                self.assertIn(words, collector.ask("trigger", *args, expect=code).err)
        elsewhere = ("--server", https(collector), "--certs", self.certs)
        said = self.tracectl("trigger", "add", rule("b", "finding leak"), *elsewhere, expect=None)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("rules are changed over the unix socket (listen.sock) only", said.err)
        self.assertIn("a WHEN finding leak", self.tracectl("trigger", "list", *elsewhere).out)
        # A file that is wrong changes nothing, and a start says so.
        rules.write_text(rule("b", "finding leek") + "\n")
        collector.process.send_signal(signal.SIGHUP)
        wait_until("it says so", lambda: f'trigger.file: {rules} line 1: b: no finding "leek"; did you mean "leak"?; the old configuration' in self.log("collector"))
        self.assertEqual([row["name"] for row in collector.json_lines("trigger", "list")], ["a"])
        self.assertEqual(collector.stop(), 0)
        said = self.run_program(DAEMON, "--check-config", "--set", f"trigger.file={rules}", expect=1)
        self.assertIn('no finding "leek"', said.err)
        # Rules saved by a version without built-in rules.
        rules.write_text("# one\n" + rule("a", "finding leak") + "\n" + rule("alert.slow", "finding leak") + "\n")
        for args in (("--check-config",), ()):
            said = self.run_program(DAEMON, *args, "--set", f"state={collector.state}", "--set", f"trigger.file={rules}", expect=1)
            self.assertIn(f'trigger.file: {rules} line 3: rename "alert.slow": only rules that are built in begin with alert.', said.err)

    @suites("release", "asan")
    def test_a_threshold_is_a_rule_that_is_built_in(self):
        """The feed has no subscriber: the firings are in the history all the same, over a restart, and fetch finds their generation."""
        collector = Collector(self, "alert.stw=1us", "alert.every=0s")
        collector.send(self.trace("g26-gens"), "shop")
        rows = wait_until("it has fired", lambda: collector.json_lines("trigger", "history", "alert.stw"))
        self.assertEqual({(row["rule"], row["service"]) for row in rows}, {("alert.stw", "shop")})
        for row in rows:
            self.assertRegex(row["words"], r"^world stopped for \d+\.\d{3} ms( in \S+)?, goroutine -?\d+$")
        self.assertIn(f"trigger: rule=alert.stw service=shop instance={rows[0]['instance']} gen={rows[0]['gen']}: world stopped for", self.log("collector"))
        self.assertRegex(collector.get("/metrics"), r"(?m)^tracecollect_triggers_fired_total [1-9]")
        collector.ask("fetch", "--trigger", "alert.stw", "-o", self.folder / "part.trace", "--no-progress")
        self.assertIn(": ok: ", self.tracectl("check", self.folder / "part.trace").out)
        self.assertEqual(collector.stop(), 0)
        collector.start()
        self.assertEqual(collector.json_lines("trigger", "history", "alert.stw")[:len(rows)], rows)
        said = collector.ask("trigger", "add", "alert.stw WHEN finding leak DO alert", expect=2)
        self.assertIn('rename "alert.stw": only rules that are built in begin with alert.', said.err)

    @suites("release", "asan")
    def test_the_history_is_whole_in_pages_and_over_http(self):
        collector = Collector(self)
        self.assertEqual(collector.stop(), 0)
        line = "{0} {1} {0} " + 32 * "7" + " slow shop host:1 {2} it is <b>{0}</b>"
        lines = [line.format(n, 10**18 + n, "exec:page,webhook:chat" if n == 450 else "-") for n in range(1, 451)]
        (collector.state / "firings").write_text("\n".join(lines) + "\nof an older version\n")
        collector.start()
        self.assertIn("left out of the history: firings line 451 is not understood", self.log("collector"))
        history = collector.json_lines("trigger", "history")
        self.assertEqual([row["id"] for row in history], list(range(1, 451)))
        self.assertEqual(history[-1], {"type": "firing", "id": 450, "rule": "slow", "stream": 32 * "7", "service": "shop", "instance": "host:1", "gen": 450,
                                       "wall_ns": 10**18 + 450, "words": "it is <b>450</b>", "actions": ["exec:page", "webhook:chat"], "limited": []})
        self.assertRegex(collector.ask("trigger", "history").out, r"(?m)^2001-09-09T01:46:40.000Z +shop/host:1 +450 +slow +it is <b>450</b>$")
        for query, firings, more in (("", range(1, 201), True), ("?after=200", range(201, 401), True), ("?after=400", range(401, 451), False),
                                     ("?newest=3", range(448, 451), False), ("?after=449&newest=3", range(450, 451), False), ("?after=450", (), False)):
            answer = self.http(collector, query)
            self.assertEqual(([row["id"] for row in answer["firings"]], answer["more"]), (list(firings), more), query)
        for query, firings in (("?rule=slow&newest=2", (449, 450)), ("?rule=sl&newest=2", ()), ("?newest=9&newest_of_rule=1", (450,))):
            self.assertEqual([row["id"] for row in self.http(collector, query)["firings"]], list(firings), query)
        self.assertEqual(collector.json_lines("trigger", "history", "sl"), [])
        for query, words in (("?newest=201", "newest=201 is not a whole number from 0 to 200"), ("?after=-1", "after=-1 is not"), ("?since=1", "since")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.http(collector, query)
            self.assertEqual(refused.exception.code, 400)
            self.assertIn(words, refused.exception.read().decode())
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    def http(self, collector, query):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/api/v1/firings{query}", timeout=DEADLINE) as answer:
            return json.load(answer)

    def kept(self, collector):
        return {(row["service"], row["first_gen"]): row.get("kept_by", "") for row in collector.json_lines("list")
                if not row.get("expired")}

    @suites("release", "asan")
    def test_retention_spares_what_a_rule_keeps(self):
        """Each generation has a file; a rule fires after the second of one stream. Retention then has room for what it keeps, and a file more."""
        collector = Collector(self, "segment.generations_max=1")
        collector.ask("trigger", "add", rule("slow", "sched.latency.p99 > 50us", 2, "keep 0s before, 0s after"))
        collector.ask("trigger", "add", rule("never", "goroutines.alive > 1000000", 1, "keep all"))
        collector.send(self.trace("g26-gens"), "shop")
        self.by_name(collector, lambda found: found["slow"].get("fired", 0) == 1)
        collector.send(self.trace("g25-mix"), "till")
        found = wait_until("the list says so", lambda: (kept := self.kept(collector)) and "slow" in kept.values() and kept)
        # The moment at which it fired is the end of one generation, and may be the begin of the next.
        kept = {key for key, name in found.items() if name}
        self.assertLessEqual(len(kept), 2, kept)
        self.assertIn(("shop", 2), kept)
        self.assertRegex(collector.ask("list").out, r"(?m) shop .* 2 .*ok \(kept by slow\)$")
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            self.assertRegex(answer.read().decode(), r"(?m)^tracecollect_kept_stretches 1$")
        self.assertGreater(len(found), len(kept) + 3)
        size = sum(row["bytes"] for row in collector.json_lines("list") if (row["service"], row["first_gen"]) in kept)
        wait_until("it is on the disk", lambda: (collector.state / "kept").exists())
        collector.kill()
        collector.settings += ["retention.every=100ms", f"retention.bytes={size + 1}"]
        collector.start()
        left = wait_until("all else has gone", lambda: (now := self.kept(collector)) and len(now) <= len(kept) and now)
        # The list may have named one more whose begin was not known to the nanosecond yet: a generation that was still open.
        slow = {key for key, name in left.items() if name == "slow"}
        self.assertIn(("shop", 2), slow)
        self.assertLessEqual(slow, kept)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    def test_flight_recorders_send_what_they_keep(self):
        collector = Collector(self)
        recorder = self.spawn("recorder", self.example("flight-recorder"), collector.to, self.certs, 600, stdout=open(self.folder / "recorder.out", "wb"))
        wait_until("it is connected", lambda: "attached after record" in self.log("collector"))
        collector.ask("trigger", "add", rule("all", "goroutines.alive > 2", 1, "snap all"))
        collector.send(self.trace("g26-gens"), "shop")
        wait_until("it sent", lambda: "rule=all service=flight-recorder instance=" in self.log("collector"))
        self.assertRegex(self.log("collector"), r"rule=all service=flight-recorder instance=\S+: snap: shipped, [1-9]\d* generations")
        self.assertGreater(len(collector.json_lines("list", "--service", "flight-recorder")), 0)
        recorder.send_signal(signal.SIGTERM)
        self.assertEqual(recorder.wait(DEADLINE), 0)
        self.assertEqual(collector.stop(), 0)

