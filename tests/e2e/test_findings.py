# SPDX-License-Identifier: Apache-2.0
"""Findings are kept: one for each cause, open until it ends, over a restart, asked for by tracectl and HTTP; muted by a person."""
import json
import re
import urllib.error
import urllib.request

from harness import DEADLINE, TRACECTL, Case, Collector, suites, wait_until

STOPS = ("alert.stw=1us", "alert.every=0s")


class Findings(Case):
    def findings(self, collector, *args):
        return collector.json_lines("findings", *args)

    def stops(self, collector, instance="one"):
        collector.send(self.trace("g26-gens"), "shop", instance)
        wait_until("all is analysed", lambda: "tracecollect_generations_ordered_total 26" in collector.get("/metrics"))
        return wait_until("there are findings", lambda: self.findings(collector))

    @suites("release", "asan", "tsan")
    def test_one_cause_is_one_finding_over_a_kill(self):
        """Nobody subscribes to the feed."""
        collector = Collector(self, *STOPS)
        rows = self.stops(collector)
        self.assertEqual({(row["kind"], row["service"], row["open"], row["peak_unit"]) for row in rows}, {("long_stop", "shop", True, "ns")})
        causes = [row["cause"] for row in rows]
        self.assertEqual(len(set(causes)), len(rows), "one for each cause")
        self.assertTrue(all(cause.startswith("/stw/") for cause in causes), causes)
        self.assertEqual([(row["count"], row["place"]) for row in rows], [(1, "")] * 3)
        log = self.log("collector")
        for row in rows:
            self.assertRegex(row["began_at"], r"^20\d\d-\d\d-\d\dT[\d:.]+Z$")
            self.assertLessEqual(row["began_at"], row["last_at"])
            self.assertEqual(row["instances"], ["one"])
            self.assertEqual([(part["began_at"], part["peak"]) for part in row["history"]], [(row["began_at"], row["peak"])])
            self.assertEqual(log.count(f"finding: id={row['id']} kind=long_stop service=shop instance=one: begins: world stopped for"), 1, "a line each")
            self.assertIn(f"/timeline/{row['stream']}?from=", row["link"])
        out = self.folder / "part.trace"
        self.tracectl(*rows[0]["fetch"].split()[1:-1], out, "--server", collector.to, "--certs", self.certs, "--no-progress")
        self.assertIn(": ok: ", self.tracectl("check", out).out)

        wait_until("they are written", lambda: (collector.state / "findings").exists())
        collector.kill()
        collector.start()
        self.assertEqual({row["id"]: row["began_at"] for row in self.findings(collector)}, {row["id"]: row["began_at"] for row in rows})

    @suites("release", "tsan")
    def test_another_instance_is_the_same_finding_and_what_is_not_seen_ends(self):
        collector = Collector(self, *STOPS, "findings.quiet=3s", "findings.keep=1h")
        before = {row["id"]: row for row in self.stops(collector)}
        collector.send(self.trace("g26-gens"), "shop", "two")
        self.assertEqual([row["count"] for row in before.values()], [1] * 3)
        ids = wait_until("both are in it", lambda: {row["id"] for row in self.findings(collector) if row["instances"] == ["one", "two"]})
        self.assertEqual(ids, set(before))
        self.assertEqual([row["count"] for row in self.findings(collector)], [2] * 3)
        wait_until("they have ended", lambda: not self.findings(collector, "--open"))
        rows = self.findings(collector)
        self.assertEqual([row["open"] for row in rows], [False] * len(before))
        self.assertEqual([row["last_at"] for row in rows], sorted((row["last_at"] for row in rows), reverse=True))
        self.assertIn(f"finding: id={rows[0]['id']} kind=long_stop service=shop: ended", self.log("collector"))
        self.assertEqual(self.findings(collector, "--since", "now"), [])
        self.assertIn('no service "till"', collector.ask("findings", "--service", "till", "--json", expect=1).err)
        self.assertIn("findings: none", collector.ask("findings", "--open").err)
        text = collector.ask("findings", "--service", "shop").out.splitlines()
        self.assertRegex(text[0], r"^ID +STATE +SERVICE +KIND +BEGAN +LAST +COUNT +PEAK +WHAT$")
        self.assertRegex(text[1], rf"^{rows[0]['id']} +ended +shop +long_stop +\S+ +\S+ +\d+ +[\d.]+ \w+ +world stopped for ")
        one = collector.ask("findings", rows[0]["id"]).out
        self.assertEqual(one, collector.ask("findings", "list", rows[0]["id"]).out)
        self.assertIn("\n  instances  one\n             two\n  open       ", one)
        self.assertIn(f"\n  trace      {rows[0]['fetch']}\n", one)
        self.assertEqual(collector.stop(), 0)
        collector.start()
        self.assertEqual(self.findings(collector), rows)

    @suites("release", "asan")
    def test_a_slow_task_and_a_blocked_call_say_why_as_their_alerts_do(self):
        collector = Collector(self, "alert.task=1us", "alert.syscall_blocked=1ms", "alert.every=0")
        tail = self.spawn("tail", TRACECTL, "tail", "shop/", "--kind", "alert", "--json", "--server", collector.to, "--certs", self.certs,
                          stdout=(self.folder / "tail.out").open("wb"))
        wait_until("it subscribes", lambda: "tracecollect_feed_subscribers 1" in collector.get("/metrics"))
        collector.send(self.trace("g26-gens"), "shop")
        rows = wait_until("both kinds are found", lambda: (lambda rows: {row["kind"] for row in rows} == {"slow_task", "blocked_call"} and rows)(self.findings(collector)))
        wait_until("it is all ordered", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))
        alerts = wait_until("both are told", lambda: (lambda alerts: {a["kind"] for a in alerts} == {1, 9} and alerts)(
            [json.loads(line)["message"] for line in (self.folder / "tail.out").read_text().splitlines()]))
        tail.terminate()
        for row in self.findings(collector):
            with self.subTest(kind=row["kind"], words=row["words"]):
                self.assertRegex(row["why"], rf"^/why/{row['stream']}\?from=@[\d.]+&to=@[\d.]+&(task=\d+|goroutine=\d+&ns=\d+)$")
                said = json.loads(collector.get("/api/v1/why?stream=" + row["why"].removeprefix("/why/").replace("?", "&", 1)))
                subject = re.search(r"^task \d+ \(.*?\)|goroutine \d+", row["words"])[0]
                self.assertTrue(row["kind"] == "blocked_call" or said["figures"]["subject"] == subject, (said["figures"], subject))
                alert = next(a for a in alerts if a["finding"] == "" and a["why"] == row["why"])
                self.assertEqual(alert["fetch"], row["fetch"])

    @suites("release", "asan")
    def test_tail_replays_them_as_alerts_and_goes_on(self):
        collector = Collector(self, *STOPS)
        rows = sorted(self.stops(collector), key=lambda row: row["began_at"])
        said = collector.ask("tail", "--kind", "alert", "--since", "@1", "-n", "3", "--json").out.splitlines()
        alerts = [json.loads(line) for line in said]
        self.assertEqual([alert["message"]["id"] for alert in alerts], [row["cause"] for row in rows])
        for alert, row in zip(alerts, rows):
            self.assertEqual((alert["record"], alert["topic"], alert["generation"]), ("alert", "shop/one/alert", row["gen"]))
            self.assertEqual((alert["message"]["text"], alert["message"]["kind"], alert["message"]["fetch"]), (f"shop/one: {row['words']}", 2, row["fetch"]))
        tail = self.spawn("tail", TRACECTL, "tail", "till/", "--kind", "alert", "--since", "@1", "-n", "3", "--server", collector.to, "--certs", self.certs,
                          stdout=(self.folder / "tail.out").open("wb"))
        wait_until("it subscribes", lambda: "tracecollect_feed_subscribers 1" in collector.get("/metrics"))
        collector.send(self.trace("g26-gens"), "till")
        self.assertEqual(tail.wait(DEADLINE), 0)
        self.assertIn("till/one/alert  till/one: world stopped for", (self.folder / "tail.out").read_text())
        self.assertIn("; 2 times so far", self.again(collector))

    def again(self, collector):
        collector.send(self.trace("g26-gens"), "shop", "two")
        return wait_until("it is told", lambda: next((line for line in collector.ask("tail", "shop/", "--kind", "alert", "--since", "@1", "-n", "3").out.splitlines()
                                                      if "times so far" in line), None))

    @suites("release")
    def test_a_person_mutes_one_with_a_reason_for_a_time(self):
        collector = Collector(self, *STOPS)
        rows = self.stops(collector)
        ident = rows[0]["id"]
        for args, words in ((("mute",), "an ID is required"), (("mute", ident), "--for SPAN (8h, 7d) and --reason TEXT are required"), (("mute", ident, "--for", "1h"), "--reason TEXT"),
                            (("quiet",), "'quiet' is not one of list, mute, unmute"), (("--for", "1h"), "--for and --reason are for"),
                            (("unmute", ident, "more"), "unexpected argument 'more'")):
            self.assertIn(words, collector.ask("findings", *args, expect=2).err)
        for args, code, words in ((("mute", "12", "--for", "1h", "--reason", "x"), 2, 'id: "12" is not the id of a finding, which has 16 digits'),
                                  (("unmute", 16 * "0"), 1, f"no finding {16 * '0'}; 'tracectl findings' lists them")):
            self.assertIn(words, collector.ask("findings", *args, expect=code).err)
        muted, = self.findings(collector, "mute", ident, "--for", "1h", "--reason", "known: 812")
        self.assertEqual((muted["id"], muted["mute_reason"]), (ident, "known: 812"))
        self.assertGreater(muted["muted_until"], muted["last_at"])
        self.assertRegex(collector.ask("findings", "list", ident).out, rf"{ident} +muted .*; muted: known: 812\n(?s:.*)\n  muted      until 20\S+: known: 812\n")
        self.assertIn(f'what="{ident} known: 812"', self.log("collector"))
        self.assertEqual(collector.stop(), 0)
        collector.start()
        self.assertEqual(self.findings(collector, "list", ident)[0]["mute_reason"], "known: 812")
        self.assertEqual(self.findings(collector, "unmute", ident)[0]["muted_until"], "")

    @suites("release", "asan")
    def test_the_file_is_whole_or_says_what_is_not(self):
        collector = Collector(self, *STOPS)
        rows = self.stops(collector)
        self.assertEqual(collector.stop(), 0)
        with open(collector.state / "findings", "a") as file:
            file.write("of a later version\n")
        collector.start()
        self.assertIn(f"finding: left out: findings line {len(rows) + 1} is not understood", self.log("collector"))
        self.assertEqual({row["id"] for row in self.findings(collector)}, {row["id"] for row in rows})
        answer = self.http(collector, f"?id={rows[0]['id']}&open=1")
        self.assertEqual([row["id"] for row in answer["findings"]], [rows[0]["id"]])
        self.assertFalse(answer["more"])
        self.assertEqual(self.http(collector, "?since=now")["findings"], [])
        for query, words in (("?id=12", "is not the id of a finding"), ("?open=2", "open=2"), ("?instance=one", "instance")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.http(collector, query)
            self.assertEqual(refused.exception.code, 400)
            self.assertIn(words, refused.exception.read().decode())

    @suites("release", "asan")
    def test_they_are_a_table_of_sql(self):
        collector = Collector(self, *STOPS)
        rows = {row["id"]: row for row in self.stops(collector)}
        collector.send(self.trace("g26-gens"), "shop", "two")
        wait_until("both are in it", lambda: all(row["count"] == 2 for row in self.findings(collector)))
        asked = "SELECT stream, id, kind, place, cause, words, open, count, peak, peak_unit, instances, gen, expired, muted, last_ns - began_ns AS lasted FROM findings"
        table = collector.json_lines("query", "--service", "shop", asked)
        self.assertEqual({row["id"] for row in table}, set(rows))
        for row in table:
            want = self.findings(collector, "list", row["id"])[0]
            self.assertEqual({key: row[key] for key in ("kind", "place", "cause", "words", "count", "peak", "peak_unit", "gen")},
                             {key: want[key] for key in ("kind", "place", "cause", "words", "count", "peak", "peak_unit", "gen")})
            self.assertEqual((row["open"], row["expired"], row["muted"], row["count"]), (1, 0, 0, 2))
            self.assertEqual(json.loads(row["instances"]), want["instances"])
            self.assertEqual(row["stream"], f"shop/two/{want['stream']}")
            self.assertGreaterEqual(row["lasted"], 0)
        self.assertIn("findings are a collector's, not a trace's", self.tracectl("query", self.trace("g26-gens"), "SELECT * FROM findings", expect=2).err)
        both = "SELECT f.id, count(*) AS n FROM findings f, generations g WHERE f.gen = g.gen GROUP BY 1"
        self.assertEqual({row["id"]: row["n"] for row in collector.json_lines("query", "--service", "shop", "--all", both)}, {ident: 2 for ident in rows})
        self.assertIn("DELETE is refused", collector.ask("query", "--service", "shop", "DELETE FROM findings", expect=2).err)

    @suites("release")
    def test_its_trace_is_kept_longer_or_it_says_that_it_has_expired(self):
        collector = Collector(self, *STOPS, "retention.age=1ms", "retention.every=1s")
        rows = self.stops(collector)
        segments = collector.json_lines("list")
        self.assertEqual({(row["expired"], row["kept_by"]) for row in segments}, {(False, "finding.long_stop")})
        self.assertEqual([row["expired"] for row in self.findings(collector)], [False] * len(rows))
        self.assertEqual(collector.stop(), 0)
        collector.settings.append("findings.keep_bytes=0")
        collector.start()
        wait_until("it has expired, too", lambda: any(row["expired"] for row in self.findings(collector)))

    def http(self, collector, query):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/api/v1/findings{query}", timeout=DEADLINE) as answer:
            return json.load(answer)
