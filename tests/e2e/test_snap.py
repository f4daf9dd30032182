# SPDX-License-Identifier: Apache-2.0
"""Flight recorders: nothing is sent before a snap; then whole traces are, and the accounts agree."""
import os
import re
import signal

from harness import BUILD, SANITIZE, Case, Collector, local_go, rfc3339, suites, wait_until

PRELOAD = BUILD / "lib/libtraceagent-preload.so"
SECOND = 1_000_000_000


class Snap(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        self.agents = 0
        self.collector = Collector(self)

    def recorder(self, keep_s=600, **options):
        program = self.example("flight-recorder")
        self.said = self.folder / "recorder.out"
        return self.spawn("recorder", program, self.collector.to, self.certs, keep_s, stdout=open(self.said, "wb"),
                          **options)

    def tells(self, pattern):
        """A number of the newest line that the recorder has written whole."""
        lines = re.findall(r"(?m)^(.*)\n", self.said.read_text())
        found = re.search(pattern, lines[-1]) if lines else None
        return int(found.group(1)) if found else 0

    def wait_kept(self, generations, sent=0):
        """In a line that was written after so many were sent."""
        wait_until(f"it keeps {generations} generations",
                   lambda: self.tells(r"sent (\d+)") >= sent and self.tells(r"keeps (\d+)") >= generations)

    def wait_live(self):
        """Waits until one more agent can be asked."""
        self.agents += 1
        wait_until("it is connected", lambda: self.log("collector").count("attached after record") >= self.agents)

    def snap(self, service, *more):
        """The one agent's answer; it sent."""
        [row] = self.collector.json_lines("snap", "--service", service, "--timeout", "20s", *more)
        self.assertEqual((row["state"], row.get("lost_generations", 0)), ("shipped", 0))
        self.assertEqual(row["generations"], row["last_gen"] - row["first_gen"] + 1)
        return row

    def refused(self, *args):
        return self.collector.ask("snap", *args, expect=1).err

    def archived(self):
        return sum(s.get("generations", 0) for s in self.collector.json_lines("status") if s["type"] == "stream")

    def read(self, *selector):
        """Each trace that fetch makes of it is whole; what Go prints of it is what we print."""
        trace = self.folder / "snap.trace"
        self.collector.ask("fetch", *selector, "-o", trace, "--no-progress")
        traces = [trace, *sorted(self.folder.glob("snap.trace.*"))]
        utc = {**os.environ, "TZ": "UTC"}
        for one in traces:
            self.assertIn(": ok:", self.tracectl("check", one).out)
            if self.go is not None and not SANITIZE:
                ours = self.tracectl("cat", "-d", "parsed", one, env=utc).out
                self.assertEqual(self.go.parsed(self, one).out, ours)
        return traces

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 0)
        self.collector.ask("verify")

    def test_three_snaps_are_whole_and_the_books_agree(self):
        process = self.recorder()
        self.wait_live()
        self.wait_kept(7)
        self.assertEqual(self.archived(), 0)
        first = self.snap("flight-recorder", "--last", "1s")
        self.assertGreaterEqual(first["to_wall_ns"] - first["from_wall_ns"], SECOND)
        self.wait_kept(4, sent=first["generations"])
        second = self.snap("flight-recorder", "--last", "100ms")
        self.assertGreater(second["first_gen"], first["last_gen"] + 1)
        wait_until("both are archived", lambda: self.archived() == first["generations"] + second["generations"])
        # FROM and TO are the times that list and fetch mean.
        for row in (first, second):
            found = self.collector.json_lines("list", "--since", rfc3339(row["from_wall_ns"]), "--until", rfc3339(row["to_wall_ns"]))
            generations = {gen for s in found for gen in range(s["first_gen"], s["last_gen"] + 1)}
            self.assertLessEqual(set(range(row["first_gen"], row["last_gen"] + 1)), generations)
            self.assertLessEqual(len(generations), row["generations"] + 1)
        third = self.snap("flight-recorder")
        self.assertEqual(third["first_gen"], second["last_gen"] + 1)
        sent = sum(row["generations"] for row in (first, second, third))
        wait_until("all of it is archived", lambda: self.archived() == sent)
        self.collector.ask("verify")
        self.assertEqual(len(self.read("--service", "flight-recorder")), 2)
        self.end(process)

    def test_a_snap_of_its_own_comes_when_the_collector_is_back(self):
        process = self.recorder()
        self.wait_live()
        self.collector.kill()
        self.wait_kept(2)
        process.send_signal(signal.SIGUSR1)
        wait_until("it was asked", lambda: self.tells(r"on (\d+) requests") == 1)
        self.collector.start()
        wait_until("it has come", lambda: self.archived() >= 3)
        self.read("--service", "flight-recorder")
        self.end(process)

    def test_who_is_killed_while_it_sends_leaves_whole_generations(self):
        process = self.recorder()
        self.wait_kept(3)
        process.send_signal(signal.SIGUSR1)
        wait_until("some of it has come", lambda: self.archived() > 0)
        process.kill()
        process.wait()
        self.read("--service", "flight-recorder")
        self.collector.ask("verify")
        wait_until("it has gone", lambda: "is connected (streams known: 1)" in self.refused("--service", "flight-recorder"))

    def test_who_cannot_be_asked_is_told_by_name(self):
        process = self.recorder(keep_s=0)
        self.wait_live()
        self.assertIn('no service "nobody"; known services: flight-recorder', self.refused("--service", "nobody"))
        self.assertIn("not a flight recorder: it sends records as they are made", self.refused("--service", "flight-recorder"))
        self.end(process)
        stuck = self.recorder()
        self.wait_live()
        stuck.send_signal(signal.SIGSTOP)
        asked = ("--service", "flight-recorder", "--timeout")
        self.assertIn("no answer in time", self.refused(*asked, "100ms"))
        command = ("tracectl", "snap", *asked, "20s")
        waits = self.spawn("snap", BUILD / "bin/tracectl", *command[1:], "--server", self.collector.to, "--certs", self.certs)
        stuck.kill()
        stuck.wait()
        self.assertEqual(waits.wait(), 1)
        self.assertRegex(self.log("snap"), "connection lost|is connected")
        self.collector.ask("verify")

    def test_it_keeps_nothing_on_disk(self):
        environment = {**os.environ, "TRACEAGENT_SPOOL_DIR": str(self.folder / "spool")}
        self.assertEqual(self.recorder(env=environment).wait(), 1)
        self.assertIn("spool_dir: a flight recorder (record_ms) keeps nothing on disk", self.log("recorder"))

    @suites("release")  # there is no C in it
    def test_a_go_program_records_too(self):
        if self.go is None:
            self.skipTest("no Go >= 1.22 here")
        server = self.go.program(self, "examples/go-server")
        environment = {**self.go.environment, "TRACEAGENT_RECORD_MS": "600000"}
        process = self.spawn("go-server", server, "-server", self.collector.to, "-certs", self.certs, "-clients", 1, "-pause", "20ms",
                             env=environment)
        self.wait_live()
        first = self.snap("demo")
        second = self.snap("demo", "--last", "10m")
        self.assertEqual(second["first_gen"], first["last_gen"] + 1)
        self.read("--service", "demo")
        self.end(process)

    @suites("release")  # a sanitizer's runtime cannot be preloaded into a plain program: the library is not built
    def test_a_program_that_nobody_changed_records_until_a_signal(self):
        environment = {**os.environ, "LD_PRELOAD": str(PRELOAD), "TRACEAGENT_SERVER": self.collector.to,
                       "TRACEAGENT_CERTS": str(self.certs), "TRACEAGENT_RECORD_MS": "20000",
                       "TRACEAGENT_RECORD_SIGNAL": "USR2", "TRACEAGENT_GENERATION_MS": "100"}
        process = self.spawn("sleep", "sleep", "1000", env=environment)
        self.wait_live()
        process.send_signal(signal.SIGUSR2)
        wait_until("it has come", lambda: self.archived() > 0)
        self.assertIsNone(process.poll())
        self.read("--service", "sleep")
