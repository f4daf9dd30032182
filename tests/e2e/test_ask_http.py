# SPDX-License-Identifier: Apache-2.0
"""As a new user asks over HTTP: what the guide shows works as it stands there."""
import collections
import json
import re
import sys
import unittest

from harness import SOURCE, Case, Collector, local_go, suites, wait_until

GUIDE = SOURCE / "docs/guide/go-further.md"
TRACE = "g26-gens"


def code_of_the_guide(language):
    """The reader of leases in that language."""
    section = GUIDE.read_text().split("## Read every event", 1)[1].split("\n## ", 1)[0]
    return re.search(rf"(?s)```{language}\n(.*?)```", section)[1]


class Ask(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)

    def curl(self, method, path, body=None, status=200):
        """Over the unix socket; answers the body."""
        more = ["-H", "Content-Type: application/json", "-d", body] if body is not None else []
        done = self.run_program("curl", "-s", "-X", method, "-w", "\n%{http_code}", "--unix-socket", self.collector.ready["sock"],
                                f"http://localhost{path}", *more)
        text, code = done.out.rsplit("\n", 1)
        self.assertEqual(int(code), status, text)
        return json.loads(text) if text else None

    def reader(self, name, *command):
        """A reader of the guide; its lines are generation, lost, events."""
        with open(self.folder / f"{name}.out", "wb") as out:
            return self.spawn(name, *command, self.collector.ready["sock"], stdout=out)

    def heard(self, name):
        """Events of each generation, and how many were lost."""
        events, lost = collections.Counter(), 0
        for line in (self.folder / f"{name}.out").read_text().splitlines():
            generation, missed, n = map(int, line.split())
            events[generation] += n
            lost += missed
        return events, lost

    def events_of(self, trace):
        """The same of a file; a live stream has no Sync at its end."""
        events, generation = collections.Counter(), 0
        for line in self.tracectl("cat", "--json", trace).out.split("\n")[:-2]:
            event = json.loads(line)
            generation = event["generation"] if event["event"] == "Sync" else generation
            events[generation] += 1
        return events

    def metric(self, name):
        text = self.run_program("curl", "-s", "--unix-socket", self.collector.ready["sock"], "http://localhost/metrics").out
        return float(re.search(rf"(?m)^tracecollect_{name} (\S+)$", text)[1])

    def follow_over_a_kill(self, name, *command):
        """All events of a trace, the collector is killed while the reader waits, and all of the same once more."""
        want = self.events_of(self.trace(TRACE))
        self.reader(name, *command)
        wait_until("the reader waits", lambda: self.metric("http_waits") == 1)
        self.collector.send(self.trace(TRACE), "checkout", "first")
        wait_until("all events", lambda: self.heard(name)[0] == want)
        self.collector.restart()
        wait_until("the reader waits again", lambda: self.metric("http_waits") == 1)
        self.collector.send(self.trace(TRACE), "checkout", "second")
        self.collector.send(self.trace(TRACE), "other")  # not what the filter takes
        twice = collections.Counter({generation: 2 * n for generation, n in want.items()})
        wait_until("all events again", lambda: self.heard(name)[0] == twice)
        self.assertEqual(self.heard(name)[1], 0)

    def test_the_guides_reader_in_python_misses_nothing(self):
        source = self.folder / "reader.py"
        source.write_text(code_of_the_guide("python"))
        self.follow_over_a_kill("python", sys.executable, source)

    @unittest.skipIf(local_go() is None, "no Go")
    @suites("release")
    def test_the_guides_reader_in_go_misses_nothing(self):
        go, source = local_go(), self.folder / "reader.go"
        source.write_text(code_of_the_guide("go"))
        self.run_program(go.command, "build", "-o", self.folder / "reader", source, env=go.environment, cwd=self.folder)
        self.follow_over_a_kill("go", self.folder / "reader")

    def test_a_reader_that_falls_behind_hears_how_much_it_missed(self):
        total = sum(self.events_of(self.trace(TRACE)).values())
        lease = self.curl("POST", "/api/v1/leases", '{"window_bytes": 20000}', 201)["id"]
        self.collector.send(self.trace(TRACE), "shop")
        wait_until("all is ordered", lambda: self.metric("lease_events_total") == total)
        after = seen = lost = 0
        while seen + lost < total:
            said = self.curl("GET", f"/api/v1/leases/{lease}?after={after}&wait=20s")
            for bundle in said["bundles"]:
                seen, lost, after = seen + len(bundle["events"]), lost + bundle["lost"], bundle["number"]
        self.assertEqual(seen + lost, total)
        self.assertGreater(lost, 0)
        self.assertEqual(self.metric("lease_events_lost_total"), lost)
        self.curl("DELETE", f"/api/v1/leases/{lease}", status=204)
        self.assertIn("no such lease", self.curl("GET", f"/api/v1/leases/{lease}", status=404)["error"])

    def test_a_verification_is_asked_for_until_it_is_done(self):
        self.collector.send(self.trace(TRACE), "shop")
        job = self.curl("POST", "/api/v1/verify", "{}", 202)["id"]
        while (said := self.curl("GET", f"/api/v1/jobs/{job}?wait=20s"))["state"] == "running":
            pass
        self.assertEqual((said["state"], said["verify"]["problems"]), ("done", []))
        self.assertEqual(said["done_bytes"], said["total_bytes"])
        self.curl("DELETE", f"/api/v1/jobs/{job}", status=204)
        self.assertIn("no such job", self.curl("GET", f"/api/v1/jobs/{job}", status=404)["error"])

    def test_a_snap_names_the_agents_or_says_that_there_is_none(self):
        said = self.curl("POST", "/api/v1/snaps", '{"service": "shop"}', 404)
        self.assertIn('no agent of service "shop" ever connected', said["error"])
