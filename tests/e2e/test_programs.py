# SPDX-License-Identifier: Apache-2.0
"""The matrix of real programs: traced by the preload library they do what they do without it, and their traces are good.

Each program of programs/ is run as it is, with the collector up, and with the collector away: the same output, the same
exit code, and no word on stderr that was not there before. Every stream of the traced run ends, and its trace is valid
for our reader and for Go's; calls, waits and threads have their names.
"""
import os
import pathlib
import re
import shutil
import unittest

from harness import BUILD, SANITIZE, Case, Collector, local_go, wait_until
from test_c_words import GOS_WORDS
from programs import commands, languages, postgres, servers
from programs.program import free_port

LIBRARY = BUILD / "lib/libtraceagent-preload.so"
MODULES = (commands, languages, postgres, servers)


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Programs(Case):
    maxDiff = 4000

    def environment(self, server, **more):
        """As a user sets it; programs/program.py says how long each lasts."""
        return {**self.plain, "LD_PRELOAD": str(self.library), "TRACEAGENT_SERVER": server, "TRACEAGENT_CERTS": str(self.certs),
                "TRACEAGENT_DELAY_MS": "100", **more}

    def run_in(self, name, program, environment):
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(0o755)
        if program.user() is not None:
            shutil.chown(folder, program.user())
        return program.run(folder, environment)

    def assert_same(self, got, want, when):
        self.assertEqual(got.err, want.err, f"stderr, {when}")
        self.assertEqual(got.out, want.out, f"output, {when}")
        self.assertEqual(got.code, want.code, f"exit code, {when}")

    def streams(self, collector):
        """All of them, when each has ended. A status may come before the row of a stream whose program has ended; a list waits for it."""
        known = {row["stream"] for row in collector.json_lines("list")}

        def rows():
            found = [row for row in collector.json_lines("status") if row["type"] == "stream"]
            return found if found and all(row["state"] == "closed" for row in found) and known <= {row["stream"] for row in found} else None

        try:
            return wait_until("every stream has ended", rows)
        except AssertionError:
            left = {(row["service"], row["state"]) for row in collector.json_lines("status") if row["type"] == "stream"}
            self.fail(f"not every stream has ended: {sorted(left)}")

    def text(self, collector, row, number):
        """A stream's trace, printed by our reader as by Go's; None if it has no generation."""
        if row["generations"] == 0:
            return None
        trace = self.folder / f"{number}.trace"
        collector.ask("fetch", "--service", row["service"], "--instance", row["instance"], "-o", trace, "--no-progress")
        self.assertIn(": ok: ", self.tracectl("check", trace).out)
        ours = self.tracectl("cat", "-d", "parsed", trace, env={**os.environ, "TZ": "UTC"}).out
        report = self.tracectl("report", "all", trace, "--no-progress").out
        self.assertEqual([line for line in report.splitlines() if GOS_WORDS.search(line)], [], row["service"])
        if self.go is not None:
            self.assertEqual(self.go.parsed(self, trace).out, ours, row["service"])
        return ours

    def names(self, text):
        """The names in a trace: calls, reasons, threads."""
        calls = set(re.findall(r"Running->(?:Waiting|Syscall).*\nTransitionStack=\n\t(\S+) @", text))
        reasons = set(re.findall(r'Running->Waiting Reason="(.*)"', text))
        threads = set(re.findall(r"(?:NotExist|Undetermined)->\w+.*\nTransitionStack=\n\t(.+) @", text))
        return calls, reasons, threads

    def assert_names(self, service, texts, expected):
        calls, reasons, threads = (set().union(*found) for found in zip(*(self.names(text) for text in texts)))
        self.assertLessEqual(expected.calls, calls, service)
        self.assertLessEqual(expected.reasons, reasons, service)
        for pattern in expected.threads:
            self.assertTrue(any(re.fullmatch(pattern, thread) for thread in threads), f"{service}: {pattern}: {threads}")

    def try_program(self, program):
        why = program.missing()
        if why:
            self.skipTest(f"because {why}")
        self.go = local_go()
        self.folder.chmod(0o755)  # a server's other user must reach its files; the keys are for their owner only
        self.library = pathlib.Path(shutil.copy(LIBRARY, self.folder))
        if program.user() is not None:
            for path in (self.certs, *(self.certs / name for name in ("ca.pem", "agent.pem", "agent.key"))):
                shutil.chown(path, program.user())
        self.plain = {name: value for name, value in os.environ.items() if not name.startswith("TRACEAGENT_")}
        as_it_is = self.run_in("plain", program, self.plain)
        collector = Collector(self)
        traced = self.run_in("traced", program, self.environment(collector.to, TRACEAGENT_EXIT_MS="60000", **program.variables))
        self.assert_same(traced, as_it_is, "traced")
        away = self.run_in("away", program, self.environment(f"127.0.0.1:{free_port()}", **program.variables))
        self.assert_same(away, as_it_is, "with the collector away")
        texts = {}
        for number, row in enumerate(self.streams(collector)):
            self.assertEqual((row["broken"], row["lost_batches"], row["lost_generations"]), (0, 0, 0), row["service"])
            text = self.text(collector, row, number)
            if text is not None:
                texts.setdefault(row["service"], []).append(text)
        for service, expected in program.expects.items():
            self.assertIn(service, texts)
            self.assert_names(service, texts[service], expected)
        program.check(self, texts)
        collector.ask("verify")


def add_cases():
    for module in MODULES:
        for program in module.PROGRAMS:
            setattr(Programs, f"test_{program.name}", lambda self, program=program: self.try_program(program))


add_cases()

if __name__ == "__main__":
    unittest.main()
