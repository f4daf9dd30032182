# SPDX-License-Identifier: Apache-2.0
"""Timelines over HTTP: the picture equals `tracectl query` of the same trace, cell by cell; a moment has the query's stacks."""
import http.client
import json
import random
import struct
import urllib.error
import urllib.parse
import urllib.request

from harness import DEADLINE, Case, Collector, wait_until
from served import Served

EXACT = 65535
MIXED, BEGAN_BEFORE, GOES_ON = 1, 2, 4
LOOKS = {"running": "running", "runnable": "runnable", "with-p": "syscall", "without-p": "syscall without P", "waiting": "waiting"}


def serve(owner, host, trace, *settings, ordered=True):
    """A collector of the case `host` that has one stream, as attributes of owner, a case or a class of them."""
    owner.file = trace
    owner.collector = Collector(host, *settings)
    owner.base = f"http://{owner.collector.ready['http']}"
    owner.collector.send(trace, "shop")
    wait_until("every generation is ordered", lambda: not ordered or all(row["analysis"] == "ok" for row in owner.collector.json_lines("list")))
    owner.stream, = {row["stream"] for row in owner.collector.json_lines("list")}


class TimelineCase(Case):

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.base}{path}?{urllib.parse.urlencode(query)}", timeout=DEADLINE) as answer:
            return answer.read()

    def spans(self, **query):
        return json.loads(self.get("/api/v1/spans", stream=self.stream, **query))

    def query(self, sql):
        return [json.loads(line) for line in self.tracectl("query", self.file, sql, "--json").out.splitlines()]

    def at(self, wall_ns):
        return f"@{wall_ns // 10**9}.{wall_ns % 10**9:09}"

    def goroutine_spans(self):
        """As a timeline shows them: calls in pieces. Of the wall clock: from, until, None where it goes on."""
        return self.query("SELECT subject, kind, state, reason, from_ns, coalesce(until_ns, (SELECT max(until_ns) FROM generations)) AS until_ns, wall_ns, gen "
                          "FROM spans WHERE (kind='goroutine' AND state!='syscall') OR kind='syscall'")


class Timeline(Served, TimelineCase):
    @classmethod
    def prepare(cls, host):
        serve(cls, host, host.trace("g26-gens"))

    def test_a_picture_shows_the_querys_spans(self):
        spans, generations = self.goroutine_spans(), self.query("SELECT * FROM generations")
        offset = spans[0]["wall_ns"] - spans[0]["from_ns"]
        begin, end = generations[0]["from_ns"], generations[-1]["until_ns"]
        chance = random.Random(7)
        compared = 0
        for length in (end - begin, 10**9, 10**8, 10**7, 10**6):
            for _ in range(4):
                start = begin + chance.randrange(max(1, end - begin - length))
                compared += self._expect_window(spans, offset, start, start + length)
        self.assertGreater(compared, 1000)

    def _expect_window(self, spans, offset, start, stop):
        picture = self.spans(**{"from": self.at(start + offset), "to": self.at(stop + offset)}, px=8192, lanes="goroutine", limit=1000)
        self.assertEqual((picture["service"], picture["more_goroutines"]), ("shop", False))
        # The scale is that of the clock of the window's first generation, and the clocks of two differ a little.
        drift = int(picture["from_ns"]) - start
        self.assertLess(abs(drift), 10**6)
        start, stop = start + drift, stop + drift
        unit, pixel = picture["unit_ns"], picture["px_ns"]
        shown = {(lane["id"], *cell[:2], picture["looks"][cell[2]].split(":")[0]) for lane in picture["lanes"] for cell in lane["cells"]
                 if cell[3] == EXACT and not cell[4] & MIXED}
        wanted = set()
        for span in spans:
            lasts = span["until_ns"] - span["from_ns"]
            cut = max(span["from_ns"], start), min(span["until_ns"], stop)
            if lasts < pixel or cut[1] <= cut[0]:
                continue
            wanted.add((str(span["subject"]), *((at - start) // unit for at in cut), LOOKS[span["state"]]))
        self.assertEqual(sorted(wanted - shown)[:5], [], (stop - start, len(wanted)))
        return len(wanted)

    def test_both_forms_say_the_same(self):
        always = {"from": "2020-01-01T00:00:00Z", "to": "2040-01-01T00:00:00Z", "px": 500}
        picture = self.spans(**always, lanes="count,metric,range,log,sample,task,proc,thread,group,goroutine,region")
        packed = self.get("/api/v1/spans", stream=self.stream, **always, format="binary",
                          lanes="count,metric,range,log,sample,task,proc,thread,group,goroutine,region")
        magic, length, size = struct.unpack_from("<8sII", packed)
        self.assertEqual((magic, size, (16 + length) % 8), (b"TCSPANS1", 24, 0))
        head = json.loads(packed[16:16 + length])
        self.assertEqual([{k: v for k, v in lane.items() if k not in ("first", "cells")} for lane in head["lanes"]],
                         [{k: v for k, v in lane.items() if k != "cells"} for lane in picture["lanes"]])
        for lane, other in zip(head["lanes"], picture["lanes"]):
            self.assertEqual(len(other["cells"]), lane["cells"])
            for i, (begin, until, look, share, flags, name, subject) in enumerate(other["cells"]):
                at = 16 + length + size * (lane["first"] + i)
                of = "d" if lane["kind"] in ("count", "metric") else "Q"
                self.assertEqual(struct.unpack_from(f"<{of}IIIHBB", packed, at),
                                 (subject if of == "d" else int(subject), begin, until, name, share, look, flags))
        self.assertEqual(len(packed), 16 + length + size * sum(lane["cells"] for lane in head["lanes"]))
        kinds = {lane["kind"] for lane in picture["lanes"]}
        self.assertLessEqual({"count", "metric", "range", "proc", "thread", "group", "goroutine"}, kinds)

    def test_ps_show_what_ran_on_them(self):
        """The newest generation, where no times are given."""
        newest = max(row["last_gen"] for row in self.collector.json_lines("list"))
        picture = self.spans(px=8192, lanes="proc")
        self.assertEqual([row["gen"] for row in picture["generations"]], [newest])
        start, pixel = int(picture["from_ns"]), picture["px_ns"]
        rows = self.query(f"SELECT subject, proc, from_ns, until_ns FROM spans WHERE kind='goroutine' AND state='running' AND gen={newest} "
                          f"AND from_known AND until_known AND from_ns>={start} AND until_ns-from_ns>={pixel}")
        shown = {(int(lane["id"]), int(cell[6]), cell[0], cell[1]) for lane in picture["lanes"] for cell in lane["cells"]}
        self.assertTrue(rows)
        for row in rows:
            self.assertIn((row["proc"], row["subject"], row["from_ns"] - start, row["until_ns"] - start), shown)

    def test_goroutines_by_entry_and_in_pages(self):
        everything = self.spans(lanes="goroutine", limit=1000)
        names = everything["names"]
        by_entry = {}
        for lane in everything["lanes"]:
            by_entry.setdefault(names[lane["name"]], []).append(lane["id"])
        entry = max(filter(None, by_entry), key=lambda name: len(by_entry[name]))
        self.assertEqual([lane["id"] for lane in self.spans(lanes="goroutine", entry=entry)["lanes"]], by_entry[entry])
        one = everything["lanes"][1]["id"]
        self.assertEqual([lane["id"] for lane in self.spans(lanes="goroutine", goroutines=one)["lanes"]], [one])
        pages, after = [], None
        while True:
            page = self.spans(lanes="goroutine", limit=2, **({"after": after} if after else {}))
            pages += [lane["id"] for lane in page["lanes"]]
            after = pages[-1]
            if not page["more_goroutines"]:
                break
        self.assertEqual(pages, [lane["id"] for lane in everything["lanes"]])

    def test_a_moment_has_the_querys_span_and_stacks(self):
        rows = self.query("SELECT s.subject, s.state, s.reason, s.from_ns, s.until_ns, s.gen, s.stack, s.end_stack, s.by_stack, g.id AS waker FROM spans s "
                          "LEFT JOIN goroutines g ON g.life=s.by_life JOIN generations n ON n.gen=s.gen "
                          "WHERE s.kind='goroutine' AND s.from_known AND s.until_known AND s.from_ns>n.from_ns AND s.until_ns>s.from_ns AND s.gen=13")
        frames = {}
        for row in self.query("SELECT stack, function, file, line FROM frames ORDER BY stack, depth"):
            frames.setdefault(row["stack"], []).append({k: row[k] for k in ("function", "file", "line")})
        self.assertGreater(len(rows), 20)
        for row in random.Random(3).sample(rows, 20):
            moment = json.loads(self.get("/api/v1/span", stream=self.stream, gen=row["gen"], ns=(row["from_ns"] + row["until_ns"]) // 2, goroutine=row["subject"]))
            self.assertEqual((moment["state"].lower(), moment["from_ns"], moment["until_ns"], moment["goroutine"]),
                             (row["state"], str(row["from_ns"]), str(row["until_ns"]), str(row["subject"])))
            self.assertEqual(moment["by"], None if row["waker"] is None else str(row["waker"]))
            for name in ("end_stack", "by_stack"):
                self.assertEqual(moment[name], frames.get(row[name], []), (name, row))
            if row["state"] == "running" and moment["proc"] is not None:
                on_proc = json.loads(self.get("/api/v1/span", stream=self.stream, gen=row["gen"], ns=row["from_ns"], proc=moment["proc"]))
                self.assertEqual(on_proc["goroutine"], moment["goroutine"])

    def test_a_state_has_every_goroutine_of_tracectl_state(self):
        """The moment is in a generation after others: tracectl reads those, too, and so knows more begins, reasons and stacks."""
        chance = random.Random(7)
        reasons, with_stack = {}, 0
        for gen in chance.sample(self.query("SELECT gen, from_ns, until_ns FROM generations WHERE gen>2"), 8):
            at = chance.randrange(gen["from_ns"] + 10**6, gen["until_ns"])
            said = json.loads(self.get("/api/v1/state", stream=self.stream, gen=gen["gen"], ns=at))
            rows = {str(row["goroutine"]): row for row in map(json.loads, self.tracectl("state", "--at", str(at), self.file, "--json").out.splitlines())}
            self.assertEqual((said["gen"], said["ns"], said["goroutines"]), (gen["gen"], str(at), len(rows)))
            counts = [one["count"] for one in said["states"]]
            self.assertEqual((sum(counts), counts), (len(rows), sorted(counts, reverse=True)))
            for one in said["states"]:
                self.assertEqual(len(one["goroutines"]), min(one["count"], 20))
                self.assertEqual([g["since_ns"] for g in one["goroutines"]], sorted((g["since_ns"] for g in one["goroutines"]), key=int))
                for g in one["goroutines"]:
                    row = rows.pop(g["goroutine"])
                    self.assertEqual(one["state"].lower(), row["state"])
                    if one["stack"]:
                        with_stack += 1
                        self.assertEqual(one["stack"][-1], row["stack"][-1])  # Go says more of a stack at the begin of a generation
                    if one["stack"] and g["since_known"]:
                        self.assertEqual(one["stack"], row["stack"])
                    if g["since_known"]:
                        self.assertEqual(g["since_ns"], str(row["since_ns"]))
                        self.assertEqual(reasons.setdefault(row["reason"], one["reason"]), one["reason"])
        self.assertGreater(len(reasons), 3)
        self.assertGreater(with_stack, 100)

    def expect_close(self, got, want, where):
        """A file ends with a Sync, a nanosecond after its last event: to that all goroutines are there that much longer."""
        if isinstance(want, dict):
            self.assertEqual(set(got), set(want), where)
            for name in want:
                self.expect_close(got[name], want[name], f"{where} {name}")
        elif isinstance(want, list):
            self.assertEqual(len(got), len(want), where)
            for i, item in enumerate(want):
                self.expect_close(got[i], item, f"{where} {i}")
        elif isinstance(want, int) and where.endswith("_ns"):
            self.assertLessEqual(abs(got - want), 100, where)
        elif isinstance(want, float):
            self.assertAlmostEqual(got, want, 6, where)
        else:
            self.assertEqual(got, want, where)

    def test_a_stretch_has_the_reports_of_its_generations(self):
        rows = self.query("SELECT gen, wall_ns, until_ns-from_ns AS ns FROM generations")
        for first, last in ((1, 26), (7, 11), (20, 20)):
            begin, end = rows[first - 1], rows[last - 1]
            times = {"from": self.at(begin["wall_ns"] + begin["ns"] // 2), "to": self.at(end["wall_ns"] + end["ns"] // 2 + 1)}
            said = {r["kind"]: r for r in map(json.loads, self.get("/api/v1/stretch/all", stream=self.stream, **times, top=0).splitlines())}
            part = self.folder / "part.trace"
            self.collector.ask("fetch", "--stream", self.stream, "--gen", f"{first}..{last}", "-o", part, "--no-progress")
            of_file = {r["kind"]: r for r in map(json.loads, self.tracectl("report", "all", part, "--json", "--top", "0").out.splitlines())}
            self.assertEqual(set(said), set(of_file))
            for kind, report in said.items():
                self.assertEqual((report["first_gen"], report["last_gen"], report["stream"]), (first, last, self.stream))
                for part_of in ("figures", "tables"):
                    self.expect_close(report[part_of], of_file[kind][part_of], f"{kind} {part_of}")
            one = json.loads(self.get("/api/v1/stretch/sched", stream=self.stream, **times, top=1))
            self.assertEqual((one["figures"], len([row for row in one["tables"]["by_entry"] if not row.get("other")])), (said["sched"]["figures"], 1))

    def test_why_is_what_tracectl_says_of_the_file(self):
        always = {"from": "2020-01-01T00:00:00Z", "to": "2040-01-01T00:00:00Z"}
        wait = max(self.query("SELECT subject, from_ns, until_ns FROM spans WHERE kind='goroutine' AND state='waiting' AND by_life IS NOT NULL AND from_known "
                              "AND until_known AND gen>5"), key=lambda row: row["until_ns"] - row["from_ns"])
        at = (wait["from_ns"] + wait["until_ns"]) // 2
        task = self.query("SELECT task FROM tasks WHERE until_ns IS NOT NULL LIMIT 1")[0]["task"]
        kinds = set()
        for asked, args in [({"task": task}, ("--task", str(task))), ({"slow": "whole run"}, ("--slow", "whole run")),
                            ({"goroutine": wait["subject"], "ns": at}, ("--goroutine", str(wait["subject"]), "--at", str(at)))]:
            said = json.loads(self.get("/api/v1/why", stream=self.stream, **always, **asked))
            of_file = json.loads(self.tracectl("report", "why", self.file, *args, "--json", "--top", "0").out)
            self.assertEqual((said["figures"], said["tables"]), (of_file["figures"], of_file["tables"]), args)
            self.assertEqual((said["stream"], said["service"], said["first_gen"], said["last_gen"]), (self.stream, "shop", 1, 26))
            self.assertEqual(said["until_wall_ns"] - said["from_wall_ns"], said["figures"]["total_ns"])
            wall = self.query("SELECT wall_ns - from_ns AS offset FROM generations WHERE gen=1")[0]["offset"]
            self.assertLess(abs(said["from_wall_ns"] - said["from_ns"] - wall), 10**6)
            schema = json.loads(self.tracectl("report", "why", "--schema", "--json").out)
            self.assertEqual(said["schema"], schema)
            kinds.add(said["figures"]["subject"].split()[0])
        self.assertEqual(kinds & {"task"}, {"task"})

    def test_bad_questions_get_a_clear_no(self):
        newest = {"stream": self.stream}
        for path, query, status, words in [
            ("spans", {}, 400, "parameter \"stream\" is missing"),
            ("spans", {"stream": "0" * 32}, 404, "no stream has this id"),
            ("spans", {**newest, "from": "-1h"}, 400, "from and to come together"),
            ("spans", {**newest, "from": "now", "to": "-1h"}, 400, "to is not later than from"),
            ("spans", {**newest, "from": "2001-01-01T00:00:00Z", "to": "2001-01-02T00:00:00Z"}, 404, "no generation of that time"),
            ("spans", {**newest, "from": "soon", "to": "now"}, 400, '"soon" is not a time'),
            ("spans", {**newest, "px": "9000"}, 400, "px=9000 is not a whole number from 1 to 8192"),
            ("spans", {**newest, "lanes": "proc,procs"}, 400, '"procs" is not one of count'),
            ("spans", {**newest, "goroutines": "1,x"}, 400, "goroutines=x is not"),
            ("spans", {**newest, "format": "xml"}, 400, "not one of json, binary"),
            ("span", {**newest, "gen": 1, "ns": 5}, 400, "one of goroutine, proc, thread"),
            ("span", {**newest, "gen": 99, "ns": 5, "goroutine": 1}, 404, "no such generation"),
            ("span", {**newest, "gen": 1, "ns": 5, "goroutine": 12345}, 404, "has no span there at that time"),
            ("state", {**newest, "gen": 99, "ns": 5}, 404, "no such generation"),
            ("state", {**newest, "gen": 1, "ns": "soon"}, 400, "ns=soon is not"),
            ("state", {**newest, "gen": 1, "ns": 5, "goroutine": 1}, 400, "goroutine"),
            ("stretch/shced", newest, 404, 'no report "shced"'),
            ("stretch/sched", {**newest, "from": "now", "to": "-1h"}, 400, "to is not later than from"),
            ("stretch/sched", {**newest, "from": "2001-01-01T00:00:00Z", "to": "2001-01-02T00:00:00Z"}, 404, "no generation of that time"),
            ("stretch/sched", {**newest, "window": "1m"}, 400, "window"),
            ("why", newest, 400, "one of task, slow, goroutine with ns"),
            ("why", {**newest, "task": 1, "slow": "x"}, 400, "one of task, slow, goroutine with ns"),
            ("why", {**newest, "goroutine": 1}, 400, "one of task, slow, goroutine with ns"),
            ("why", {**newest, "task": "one"}, 400, "task=one is not"),
            ("why", {**newest, "task": 987654321}, 404, "no task"),
            ("why", {**newest, "goroutine": 1, "ns": 5}, 404, "the time is outside of the trace"),
        ]:
            with self.subTest(query=query), self.assertRaises(urllib.error.HTTPError) as caught:
                self.get(f"/api/v1/{path}", **query)
            said = json.loads(caught.exception.read())
            self.assertEqual((caught.exception.code, said["status"]), (status, status), said)
            self.assertIn(words, said["error"])


class Alone(TimelineCase):
    def serve(self, trace, *settings, **options):
        serve(self, self, trace, *settings, **options)

    def test_a_reader_that_leaves_holds_up_no_other(self):
        """Readers ask and are gone; those behind them are answered, and so is everything else meanwhile."""
        self.serve(self.trace("g26-gens"))
        host, port = self.collector.ready["http"].split(":")
        path = f"/api/v1/spans?stream={self.stream}&from=-100d&to=now&px=8192&lanes=goroutine,group,count"
        for _ in range(30):
            asks = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
            asks.request("GET", path)
            asks.close()
        self.assertEqual(self.get("/healthz"), b"ok\n")
        self.assertTrue(self.spans()["lanes"])
        self.assertEqual(self.collector.stop(), 0)

    def test_a_generation_that_has_expired_is_a_hole_that_says_so(self):
        self.serve(self.trace("g26-gens"), "segment.generations_max=1", "retention.bytes=1", "retention.every=1s", ordered=False)
        wait_until("retention has taken every generation", lambda: all(row["expired"] for row in self.collector.json_lines("list")))
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.spans(**{"from": "-3650d", "to": "now"})
        self.assertEqual((caught.exception.code, "has expired" in json.loads(caught.exception.read())["error"]), (404, True))

    def test_little_memory_is_enough_and_goes_round(self):
        """Each generation makes way for the next."""
        self.serve(self.trace("g26-gens"), "http.timeline_bytes=3145728")
        picture = self.spans(**{"from": "-3650d", "to": "now"})
        self.assertEqual({row["state"] for row in picture["generations"]}, {"ok"})
        self.assertEqual(len(picture["generations"]), 26)

    def test_a_generation_that_needs_more_memory_than_there_is_says_so(self):
        self.serve(self.trace("g25-mix"), "http.timeline_bytes=1048576")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.spans()
        self.assertIn("it needs more than the 1048576 bytes of http.timeline_bytes", json.loads(caught.exception.read())["error"])
        self.assertEqual(self.get("/healthz"), b"ok\n")
