# SPDX-License-Identifier: Apache-2.0
"""First queries of a new user over HTTP: the guide's examples work as printed."""
import collections
import json
import re
import sys
import unittest

from harness import SOURCE, Case, Collector, https, local_go, suites, wait_until

GUIDE = SOURCE / "docs/guide/go-further.md"
LEASES = (SOURCE / "docs/HTTP.md").read_text().split("\n## Leases\n", 1)[1].split("\n## ", 1)[0]
TRACE = "g26-gens"


def code_of_the_guide(language):
    """The reader of leases in that language."""
    section = GUIDE.read_text().split("## Read every event", 1)[1].split("\n## ", 1)[0]
    return re.search(rf"(?s)```{language}\n(.*?)```", section)[1]


class Ask(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self, "lease.max=3", "lease.owner_max=2")

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
        for line in (self.folder / f"{name}.out").read_text().split("\n")[:-1]:
            generation, missed, n = map(int, line.split())
            events[generation] += n
            lost += missed
        return events, lost

    def events_of(self, trace):
        """Returns the same events from a file; a live stream has no Sync at its end."""
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
        self.assertIn("its reader ended the lease", self.curl("GET", f"/api/v1/leases/{lease}", status=404)["error"])

    def test_the_manuals_words_with_a_lease_are_those_that_are_said(self):
        """Each command, and what the manual shows of its answer."""
        steps = re.findall(r"(?m)^\$ (.*)\n((?:[^$].*\n)*)", re.search(r"(?s)```console\n(.*?)```", LEASES)[1])
        shown = re.search(r'"id":"(\w{16})"', LEASES)[1]
        prepared, lease = [], None
        for command, want in steps:
            command = command.replace("/run/tracecollect/http.sock", self.collector.ready["sock"]).replace(shown, lease or shown)
            if not want:
                prepared.append(command)
                continue
            with self.subTest(command=command):
                said = self.run_program("bash", "-c", "\n".join([*prepared, command])).out.strip()
                want = re.escape(want.strip()).replace("…", ".*")
                if lease is None:
                    lease = json.loads(said)["id"]
                    want = want.replace(shown, lease)
                    self.collector.send(self.trace(TRACE), "shop")
                self.assertRegex(said, f"^{want}$")
        self.assertGreater(len(steps), 8)

    def test_each_status_of_the_manual_is_answered_when_it_says_so(self):
        answers = {int(status): when for row, when in re.findall(r"(?m)^\| ([0-9, ]+) \| (.*?) \|", LEASES) for status in row.split(",")}
        seen = set()

        def expect(status, words, method, path, body=None):
            self.assertIn(status, answers)
            error = self.curl(method, path, body, status)["error"]
            self.assertIn(words, error)
            seen.add(status)

        for body, words in (({"colour": 1}, "colour"), ({"filter": {"kinds": ["GoAway"]}}, "GoAway"), ({"filter": {"service": "a", "service_prefix": "b"}}, "exclude"),
                            ({"filter": {"stream": "01"}}, "16 bytes")):
            expect(400, words, "POST", "/api/v1/leases", json.dumps(body))
        expect(413, "http.body_bytes_max", "POST", "/api/v1/leases", json.dumps({"filter": {"service": "x" * 70000}}))
        lease = self.curl("POST", "/api/v1/leases", "{}", 201)["id"]
        path = f"/api/v1/leases/{lease}"
        for query, words in (("wait=21s", "wait"), ("bytes=0", "bytes"), ("before=1", "before"), ("after=x", "after")):
            expect(400, words, "GET", f"{path}?{query}")
        expect(409, "ask with the last number that you have, after=0", "GET", f"{path}?after=1")
        self.assertEqual(self.curl("GET", path), {"bundles": []})
        plain = self.run_program("curl", "-s", "-w", "%{http_code}", f"http://{self.collector.ready['http']}{path}").out
        self.assertIn("certificate", plain)
        self.assertTrue(plain.endswith("403"), plain)
        typeless = self.run_program("curl", "-s", "-w", "%{http_code}", "-d", "{}", "--unix-socket", self.collector.ready["sock"], "http://localhost/api/v1/leases").out
        self.assertTrue(typeless.endswith("415"), typeless)
        self.curl("POST", "/api/v1/leases", "{}", 201)
        expect(429, "lease.owner_max", "POST", "/api/v1/leases", "{}")
        by_reader = ("curl", "-s", "-w", "%{http_code}", "-H", "Content-Type: application/json", "-d", "{}", "--cacert", self.certs / "ca.pem",
                     "--cert", self.certs / "reader.pem", "--key", self.certs / "reader.key")
        over_tls = Collector(self, "lease.max=1", "lease.owner_max=1", "listen.http=0.0.0.0:0", name="tls")
        url = f"{https(over_tls)}/api/v1/leases"
        self.assertTrue(self.run_program(*by_reader, url).out.endswith("201"))
        many = self.run_program("curl", "-s", "-i", "-H", "Content-Type: application/json", "-d", "{}", "--unix-socket", over_tls.ready["sock"], "http://localhost/api/v1/leases").out
        self.assertRegex(many, r"(?s)^HTTP/1.1 503 .*Retry-After: .*lease\.max is reached")
        self.curl("DELETE", path, status=204)
        expect(404, "its reader ended the lease", "GET", path)
        expect(404, "16 hexadecimal digits", "DELETE", "/api/v1/leases/12")
        self.assertEqual(seen | {403, 415, 503}, set(answers))

    def test_a_verification_is_asked_for_until_it_is_done(self):
        self.collector.send(self.trace(TRACE), "shop")
        job = self.curl("POST", "/api/v1/verify", "{}", 202)["id"]
        while (said := self.curl("GET", f"/api/v1/jobs/{job}?wait=20s"))["state"] == "running":
            pass
        self.assertEqual((said["state"], said["verify"]["problems"]), ("done", []))
        self.assertEqual(said["done_bytes"], said["total_bytes"])
        self.curl("DELETE", f"/api/v1/jobs/{job}", status=204)
        self.assertIn("no such job", self.curl("GET", f"/api/v1/jobs/{job}", status=404)["error"])

    def test_one_verification_after_the_other_finds_room(self):
        for _ in range(10):  # http.jobs_max is 8
            self.collector.ask("verify")

    def test_a_snap_names_the_agents_or_says_that_there_is_none(self):
        said = self.curl("POST", "/api/v1/snaps", '{"service": "shop"}', 404)
        self.assertIn('no agent of service "shop" ever connected', said["error"])
