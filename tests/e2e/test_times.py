# SPDX-License-Identifier: Apache-2.0
"""Meaning of times: list, fetch, tail and the page use the clock of the traced host, also long afterwards."""
import datetime
import json
import time
import urllib.request

from harness import Case, Collector, rfc3339, wait_until

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


class Times(Case):
    def list(self, *args):
        return self.collector.json_lines("list", *args)

    def ordered(self, segments):
        wait_until(f"{segments} segments are in order",
                   lambda: [s["analysis"] for s in self.list()] == segments * ["ok"])

    def generations(self, *args):
        return [s["first_gen"] for s in self.list(*args)]

    def fetched(self, *args):
        out = self.folder / "fetched.trace"
        self.collector.ask("fetch", "-o", out, "--no-progress", *args)
        return [json.loads(line)["gen"] for line in self.tracectl("index", "--json", out).out.splitlines()]

    def test_what_comes_long_after_it_was_traced_is_found_by_when_it_was_traced(self):
        """A trace of days ago, as after an outage: 26 generations within a second."""
        trace = self.trace("g26-gens")
        rows = [json.loads(line) for line in self.tracectl("index", "--json", trace).out.splitlines()]
        self.collector = Collector(self, "segment.generations_max=1", name="each")
        before = time.time_ns()
        self.collector.send(trace, "old")
        self.ordered(26)
        segments = self.list()

        for row, segment in zip(rows, segments):
            began = datetime.datetime.fromisoformat(row["began"].replace("Z", "+00:00")).timestamp() * 1e9
            self.assertLess(abs(segment["first_wall_ns"] - began), 0.01 * SECOND)
            self.assertFalse(segment["wall_estimated"])
            self.assertGreaterEqual(segment["first_arrival_ns"], before)
            self.assertGreaterEqual(segment["last_arrival_ns"], segment["first_arrival_ns"])
            self.assertGreater(segment["first_arrival_ns"] - segment["last_wall_ns"], DAY)
        self.assertNotIn("~", self.collector.ask("list").out)

        # No program was traced in the last hour, so nothing is selected.
        self.assertEqual(self.list("--since", "-1h"), [])
        self.assertIn("nothing in the archive matches",
                      self.collector.ask("fetch", "--since", "-1h", "-o", self.folder / "none", expect=1).err)

        self.find(segments, lambda generations: generations)
        self.assertEqual(self.collector.stop(), 0)

        # A run is listed where one of its generations is meant, and only that is fetched.
        self.collector = Collector(self, name="run")
        self.collector.send(trace, "old")
        self.ordered(1)
        self.find(segments, lambda generations: [1])

    def find(self, segments, listed):
        """By the times of each generation as a segment of its own. listed: what a list has then, by the first generation."""
        # Both ends belong to it, and generations that reach into it.
        fifth, sixth = segments[4], segments[5]
        self.assertLess(fifth["last_wall_ns"], sixth["first_wall_ns"])
        last, first = rfc3339(fifth["last_wall_ns"]), rfc3339(sixth["first_wall_ns"])
        after, earlier = rfc3339(fifth["last_wall_ns"] + 1), rfc3339(sixth["first_wall_ns"] - 1)
        inside = rfc3339((sixth["first_wall_ns"] + sixth["last_wall_ns"]) // 2)
        for span, want in (((last, first), [5, 6]), ((after, first), [6]), ((last, earlier), [5]), ((inside, inside), [6])):
            asked = ("--since", span[0], "--until", span[1])
            self.assertEqual(self.generations(*asked), listed(want), asked)
            self.assertEqual(self.fetched(*asked), want, asked)
        self.assertEqual(self.generations("--since", after, "--until", earlier), [] if listed([5]) == [5] else [1])

        # --last counts back from where the stream ends.
        want = [s["first_gen"] for s in segments if s["last_wall_ns"] >= segments[-1]["last_wall_ns"] - SECOND // 10]
        self.assertLess(len(want), 8)
        self.assertEqual(self.generations("--last", "100ms"), listed(want))
        self.assertEqual(self.fetched("--last", "100ms"), want)

        # tail means the same, so does what the page asks.
        told = self.collector.ask("tail", "--kind", "all", "--since", inside, "--json", "-n", "1").out
        self.assertEqual(json.loads(told)["generation"], 6)
        url = f"http://{self.collector.ready['http']}/api/v1/segments?since={inside}&until={inside}"
        with urllib.request.urlopen(url) as answer:
            self.assertEqual([s["first_gen"] for s in json.load(answer)["segments"]], listed([6]))

    def test_folders_of_days_go_by_arrival(self):
        self.collector = Collector(self)
        self.collector.send(self.trace("g26-gens"), "old")
        [day] = {s["path"].split("/")[1] for s in self.list()}
        arrived = {datetime.datetime.fromtimestamp(s["first_arrival_ns"] / 1e9, datetime.timezone.utc).date().isoformat()
                   for s in self.list()}
        self.assertIn(day, arrived)

    def test_an_old_traces_time_is_its_end_less_its_duration_and_is_marked(self):
        """Traces of headers before 1.25 say no wall clock."""
        self.collector = Collector(self)
        for name in ("g22-mix", "g24-mix"):
            before = time.time_ns()
            self.collector.send(self.trace(name), name)
            after = time.time_ns()
            wait_until("it is in order", lambda: self.list("--service", name)[0]["analysis"] == "ok")
            [segment] = self.list("--service", name)
            lines = self.tracectl("cat", "-d", "json", self.trace(name)).out.splitlines()
            duration = json.loads(lines[-2])["time"] - json.loads(lines[0])["time"]
            self.assertTrue(segment["wall_estimated"])
            self.assertEqual(segment["last_wall_ns"] - segment["first_wall_ns"], duration)
            self.assertTrue(before <= segment["last_wall_ns"] <= after)
            text = self.collector.ask("list", "--service", name).out
            self.assertIn(" ~" + rfc3339(segment["first_wall_ns"])[:23] + "Z ", text)
            wall = rfc3339(segment["first_wall_ns"])
            self.assertEqual(len(self.list("--service", name, "--until", wall)), 1)
            self.assertEqual(self.list("--service", name, "--until", rfc3339(segment["first_wall_ns"] - 1)), [])
            archived = self.collector.state / segment["path"]
            self.assertIn("~" + wall[:23], self.tracectl("index", archived).out)

    def test_list_is_in_the_order_of_time_and_may_be_asked_for_another(self):
        self.collector = Collector(self)
        names = ("g26-cgo", "g26-annot", "g25-mix", "g24-mix", "g26-labels")
        for name in names:
            self.collector.send(self.trace(name), name)
        self.ordered(len(names))
        keys = {"time": "first_wall_ns", "arrival": "first_arrival_ns", "size": "bytes", "events": "events",
                "service": "service"}
        for sort, key in keys.items():
            values = [s[key] for s in self.list("--sort", sort)]
            self.assertEqual(len(values), len(names))
            self.assertEqual(values, sorted(values), sort)
        everything = self.list()
        self.assertEqual([s["id"] for s in everything], [s["id"] for s in self.list("--sort", "time")])
        self.assertEqual(self.list("--top", "2"), everything[-2:])
        self.assertEqual(self.list("--top", "9"), everything)
        self.assertEqual([s["id"] for s in self.list("--top", "3", "--sort", "size")],
                         [s["id"] for s in sorted(everything[-3:], key=lambda s: s["bytes"])])

        head, *lines = self.collector.ask("list").out.splitlines()
        self.assertEqual(head.split(), ["ID", "SERVICE", "INSTANCE", "GENERATION", "SIZE", "EVENTS", "FIRST", "FORMAT", "ANALYSIS"])
        self.assertEqual([int(line.split()[0]) for line in lines], [s["id"] for s in everything])
        self.assertEqual(self.collector.ask("list", "--arrival").out.split()[7], "ARRIVED")
        for wrong, words in ((("--sort", "colour"), "'colour': use time, arrival, size, events or service"), (("--top", "-1"), "needs"), (("--top", "some"), "needs")):
            self.assertIn(f"tracectl list: {wrong[0]} {words}", self.collector.ask("list", *wrong, expect=2).err)

        streams = [row for row in self.collector.json_lines("status") if row["type"] == "stream"]
        for stream in streams:
            for chosen in (("--service", stream["service"]), ("--stream", stream["stream"])):
                self.assertEqual([row.get("stream") for row in self.collector.json_lines("status", *chosen)], [None, stream["stream"]])
        self.assertNotIn("g25-mix", self.collector.ask("status", "--service", "g24-mix").out)
        self.assertIn('no service "g23-mix"; did you mean', self.collector.ask("status", "--service", "g23-mix", expect=1).err)
        self.assertIn('no instance "x" of g24-mix; known instances: one', self.collector.ask("status", "--service", "g24-mix", "--instance", "x", expect=1).err)

    def test_a_trace_has_one_number_of_events(self):
        """As the program wrote them: in whole, in generations, in the archive and out of it again."""
        self.collector = Collector(self, "segment.generations_max=1")
        names = ("g22-mix", "g24-mix", "g25-mix", "g26-gens", "g26-cgo", "g26-iter", "g26-blobs", "g26-labels")
        for name in names:
            self.collector.send(self.trace(name), name)
        wait_until("all is in order", lambda: {s["analysis"] for s in self.list()} == {"ok"})
        for name in names:
            trace = self.trace(name)
            index = [json.loads(line)["events"] for line in self.tracectl("index", "--json", trace).out.splitlines()]
            check = json.loads(self.tracectl("check", "--json", trace).out)["events"]
            archive = {s["first_gen"]: s["events"] for s in self.list("--service", name)}
            self.assertEqual(sum(index), check, name)
            self.assertEqual([archive[gen] for gen in sorted(archive)], index, name)
            again = self.collector.fetch(self.folder / "again", name)
            self.assertEqual(json.loads(self.tracectl("check", "--json", again).out)["events"], check, name)
