# SPDX-License-Identifier: Apache-2.0
"""A program's own experiments, from its calls to a reader of the archive: F1 to F17, I24, J10."""
import collections
import json
import os
import re
import shlex
import unittest
import urllib.request

from harness import BUILD, SANITIZE, SOURCE, TRACECTL, Case, Collector, local_go, wait_until

GETS = 40000
OWN = ("Hit", "Miss", "Evict", "Content")


class Experiments(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()

    def cache(self, collector, gets=GETS):
        """The example, built as a user builds it, and run to its end."""
        pkg_config = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        flags = self.run_program("pkg-config", "--cflags", "--libs", "traceagent", env=pkg_config).out
        sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        program = self.folder / "cache"
        if not program.exists():
            self.run_program("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitize,
                             SOURCE / "examples/cache/cache.c", *shlex.split(flags), "-o", program)
        said = self.run_program(program, collector.to, self.certs, gets).out
        self.assertIn(f"{gets} gets, ", said)
        self.assertIn(" 0 dropped, 0 misused", said)

    def fetch(self, collector, name, *more):
        trace = self.folder / name
        return trace, collector.ask("fetch", "--service", "cache", "-o", trace, "--no-progress", *more)

    def events(self, trace):
        return [json.loads(line) for line in self.tracectl("cat", "--json", trace).out.splitlines()]

    def check_story(self, events):
        """Each get is told once, and the evictions in their order."""
        own = [event for event in events if event["event"] in OWN]
        count = collections.Counter(event["event"] for event in own)
        self.assertEqual(count["Hit"] + count["Miss"], GETS)
        self.assertEqual(count["Content"], 1)
        self.assertEqual({event["experiment"] for event in own}, {"Cache"})
        self.assertEqual({event["kind"] for event in own}, {"Experimental"})
        reasons = {event["args"]["reason_string"] for event in own if event["event"] == "Miss"}
        self.assertEqual(reasons, {"never seen", "gone again"})
        number = 0
        for event in events:
            if event["event"] == "Sync":
                number = 0
            elif event["event"] == "Evict":
                number += 1
                self.assertEqual(event["args"]["shelf_seq"], number)
        self.assertGreater(count["Evict"], 0)
        return count

    def test_all_of_it_is_archived_and_go_reads_the_rest(self):
        collector = Collector(self)
        self.cache(collector)
        full, said = self.fetch(collector, "full.trace", "--full")
        self.assertNotIn("left out", said.err)
        events = self.events(full)
        self.check_story(events)
        self.assertIn(": ok:", self.tracectl("check", full).out)
        parsed = self.tracectl("cat", "-d", "parsed", full).out
        self.assertRegex(parsed, r' Experimental Time=\d+ Name=Miss Args=\[page_value=Value\{Uint64\(\d+\)\}, reason_string="never seen"\]')

        safe, said = self.fetch(collector, "safe.trace")
        self.assertIn("of experiments Go's tools cannot read were left out; --full keeps them", said.err)
        rest = self.events(safe)
        self.assertEqual([event["event"] for event in rest],
                         [event["event"] for event in events if event["event"] not in OWN])
        if self.go is not None:
            utc = {**os.environ, "TZ": "UTC"}
            theirs = self.run_program(self.go.command, "tool", "trace", "-d=parsed", safe, env=self.go.environment)
            self.assertEqual(theirs.out, self.tracectl("cat", "-d", "parsed", safe, env=utc).out)
        collector.ask("verify")

    @unittest.skipIf(SANITIZE, "sends bytes, as the tests of send do")
    def test_a_file_says_it_all_to_another_collector(self):
        collector = Collector(self)
        self.cache(collector)
        full, _ = self.fetch(collector, "full.trace", "--full")
        other = Collector(self, name="other")
        other.send(full, "cache")
        again, _ = self.fetch(other, "again.trace", "--full")
        self.assert_same_bytes(again, full)

    def test_a_restarted_collector_orders_what_it_finds(self):
        """What was not ordered before a kill is ordered after it, and not taken for broken."""
        collector = Collector(self)
        self.cache(collector)
        collector.kill()
        collector.restart()
        full, said = self.fetch(collector, "full.trace", "--full")
        self.assertNotIn("broken", said.err)
        self.check_story(self.events(full))
        collector.ask("verify")

    def leases(self, collector):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics") as page:
            return float(re.search(r"^tracecollect_leases (\S+)$", page.read().decode(), re.M).group(1))

    def test_a_reader_that_leases_them_gets_them_by_name(self):
        collector = Collector(self)
        lines = self.folder / "tail.out"
        with open(lines, "wb") as out:
            tail = self.spawn("tail", TRACECTL, "tail", "cache/", "--kind", "experiments", "--json", "--server", collector.to,
                              "--certs", self.certs, stdout=out)
        wait_until("a lease", lambda: self.leases(collector) == 1)
        self.cache(collector, 2000)
        wait_until("the last event", lambda: '"event":"Content"' in lines.read_text())
        tail.terminate()
        tail.wait()
        got = [json.loads(line) for line in lines.read_text().splitlines()]
        got = [event for event in got if event.get("record") == "event"]
        count = collections.Counter(event["event"] for event in got)
        self.assertEqual(count["Hit"] + count["Miss"], 2000)
        miss = next(event for event in got if event["event"] == "Miss")
        self.assertEqual(miss["experiment"], "Cache")
        self.assertEqual(miss["args"]["reason_string"], "never seen")
