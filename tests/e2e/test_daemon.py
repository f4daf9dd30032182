# SPDX-License-Identifier: Apache-2.0
"""The daemon from its operator's view: configuration, bad folders, drain, health and metrics."""
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.request

from harness import DAEMON, DEADLINE, TRACECTL, Case, Collector, suites, wait_until

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
                    r'(?:,(?=[a-zA-Z_])|(?=\})))*\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|[+-]Inf|NaN)$')
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


def parse_metrics(text):
    """Samples as {name+labels: value}; ValueError where Prometheus' text format 0.0.4 is not kept."""
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    kinds, helps, samples, family = {}, set(), {}, None
    for number, line in enumerate(text.splitlines(), 1):
        where = f"line {number}: {line!r}"
        if line.startswith("# "):
            _, word, name, *rest = line.split(" ", 3)
            if word not in ("HELP", "TYPE"):
                continue
            seen = helps if word == "HELP" else kinds
            if name in seen:
                raise ValueError(f"{where}: a second {word}")
            if word == "HELP":
                helps.add(name)
            elif rest[0] in TYPES and not any(s.split("{")[0] == name for s in samples):
                kinds[name] = rest[0]
            else:
                raise ValueError(f"{where}: no such type, or after its samples")
            continue
        match = SAMPLE.match(line)
        if not match:
            raise ValueError(f"{where}: no sample")
        name, labels, value = match.groups()
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        base = base if kinds.get(base) in ("histogram", "summary") else name
        if base not in kinds or base not in helps:
            raise ValueError(f"{where}: without TYPE or HELP")
        if kinds[base] == "counter" and not name.endswith("_total"):
            raise ValueError(f"{where}: a counter's name ends in _total")
        if base != family and any(key.split("{")[0].startswith(base + "{") for key in samples):
            raise ValueError(f"{where}: its family is in two pieces")
        if name + (labels or "") in samples:
            raise ValueError(f"{where}: twice")
        family = base
        samples[name + (labels or "")] = float(value)
    return samples


class Daemon(Case):
    def _get(self, collector, path):
        with urllib.request.urlopen(f"http://{collector.ready['http']}{path}", timeout=DEADLINE) as answer:
            return answer.status, answer.headers, answer.read().decode()

    @suites("release", "asan")
    def test_threads_take_no_signals(self):
        """Threads that the collector starts itself block signals: a signal must not end a sync
        early."""
        collector, seen = Collector(self), set()
        for task in pathlib.Path(f"/proc/{collector.process.pid}/task").iterdir():
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
            if not fields["Name"].startswith("tc-"):
                continue
            seen.add(fields["Name"])
            self.assertTrue(int(fields["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1, fields["Name"])
        self.assertLessEqual({"tc-commit", "tc-sealer", "tc-feed", "tc-leases", "tc-loop-0"}, seen)

    @suites("release", "asan")
    def test_the_default_configuration_loads_back(self):
        config = self.folder / "config.yaml"
        config.write_text(self.run_program(DAEMON, "--print-default-config").out)
        self.run_program(DAEMON, "--check-config", "--config", config)
        self.assertIn("listen", config.read_text())

    @suites("release", "asan")
    def test_what_cannot_be_printed_is_a_failure(self):
        for program, *arguments in ((DAEMON, "--version"), (DAEMON, "--help"), (DAEMON, "--print-default-config"),
                                    (TRACECTL, "--version"), (TRACECTL, "help"), (TRACECTL, "tables", "config")):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                ended = subprocess.run([program, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(ended.returncode, 1)
                self.assertIn(b"No space left on device", ended.stderr)

    @suites("release", "asan")
    def test_an_unknown_key_is_named_with_its_line(self):
        config = self.folder / "config.yaml"
        config.write_text("loops: 1\nlisten:\n  agents: 127.0.0.1:0\n  bogus: 1\n")
        done = self.run_program(DAEMON, "--check-config", "--config", config, expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{config}:4", done.err)
        self.assertIn("bogus", done.err)
        done = self.run_program(DAEMON, "--set", "listen.bogus=1", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bogus", done.err)

    @suites("release", "asan")
    def test_a_named_folder_without_certificates_ends_the_start_and_is_not_filled(self):
        typo, half, state = self.folder / "TYPO", self.folder / "half", self.folder / "unused-state"
        half.mkdir()
        for name in ("ca.pem", "server.pem"):
            shutil.copy(self.certs / name, half)
        for folder, reason in ((typo, "TYPO: No such file or directory; tracectl certs init makes such a folder"),
                               (half, "half/server.key: No such file or directory; ca.pem, server.pem and server.key are needed there")):
            for check in ([], ["--check-config"]):
                done = self.run_program(DAEMON, *check, "--set", f"certs={folder}", "--set", f"state={state}", expect=1)
                self.assertIn(f"certs: {folder.parent}/{reason}", done.err)
        self.assertFalse(typo.exists() or state.exists())
        self.assertEqual(sorted(path.name for path in half.iterdir()), ["ca.pem", "server.pem"])

    @suites("release", "asan")
    def test_an_authority_that_is_made_is_reported_with_its_fingerprint(self):
        collector = Collector(self, "certs=")
        made = collector.state / "certs/ca.pem"
        fingerprint = self.run_program("openssl", "x509", "-in", made, "-noout", "-fingerprint", "-sha256").out.split("=")[1].strip()
        warning = f"certificates={made.parent} sha256={fingerprint}: a new authority was made"
        self.assertIn(warning, self.log("collector"))
        self.assertEqual(collector.stop(), 0)
        collector = Collector(self, "certs=")
        self.assertEqual(self.log("collector").count("a new authority was made"), 1)
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_state_folder_that_cannot_be_made_is_named(self):
        (self.folder / "file").write_text("in the way")
        state = self.folder / "file/state"
        done = self.run_program(DAEMON, "--set", f"state={state}", "--set", "listen.agents=127.0.0.1:0",
                                "--set", "listen.http=127.0.0.1:0", "--set", f"certs={self.certs}", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertIn(str(state), done.err)
        self.assertIn("Not a directory", done.err)

    @suites("release", "asan")
    def test_two_daemons_do_not_share_a_state_folder(self):
        collector = Collector(self)
        done = self.run_program(DAEMON, "--set", f"state={collector.state}", "--set", "listen.agents=127.0.0.1:0",
                                "--set", "listen.http=127.0.0.1:0", "--set", f"certs={self.certs}", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertIn(str(collector.state), done.err)
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_killed_runs_ready_file_is_gone_before_the_next_run_listens(self):
        collector = Collector(self)
        collector.kill()
        self.assertTrue(collector.ready_file.exists())
        (self.folder / "in-the-way").write_text("")
        done = self.run_program(DAEMON, "--set", f"state={self.folder}/in-the-way", "--ready-file",
                                collector.ready_file, expect=None)
        self.assertEqual(done.returncode, 1)
        self.assertFalse(collector.ready_file.exists(), "it named addresses where nobody listens")

    @suites("release", "asan")
    def test_a_living_daemons_ready_file_stays(self):
        collector = Collector(self)
        done = self.run_program(DAEMON, "--set", f"state={collector.state}", "--set", f"certs={self.certs}",
                                "--ready-file", collector.ready_file, expect=None)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"pid={collector.process.pid}", collector.ready_file.read_text())
        self.assertEqual(collector.stop(), 0)

    def test_sigterm_under_load_drains_long_before_its_deadline_and_loses_nothing_acked(self):
        trace = self.trace("g26-gens")
        deadline_s = DEADLINE / 2  # a slow machine, too, is far from it
        collector = Collector(self, f"shutdown.deadline={deadline_s:.0f}s")
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs",
                            self.certs, "--service", "drain", "--instance", "one", "--rate",
                            f"{trace.stat().st_size / 4e6:.6f}", "--no-progress")
        wait_until("a third is acked", lambda: any(
            row.get("bytes", 0) > trace.stat().st_size / 3 for row in collector.json_lines("status")))
        started = time.monotonic()
        self.assertEqual(collector.stop(), 0)
        self.assertLess(time.monotonic() - started, deadline_s / 2)
        collector.start()
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "drain"), trace)
        self.assertEqual(collector.stop(), 0)

    def test_health_and_metrics(self):
        collector = Collector(self)
        trace = self.trace("g26-gens")
        collector.send(trace, "metrics")
        self.assertEqual(self._get(collector, "/healthz")[0], 200)

        def analysed():
            status, headers, text = self._get(collector, "/metrics")
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith("text/plain"))
            samples = parse_metrics(text)
            return samples if any(key.startswith("trace_stw_seconds") for key in samples) else None
        samples = wait_until("the traced program's figures are in /metrics", analysed)
        self.assertTrue(any(key.startswith("tracecollect_") for key in samples))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self._get(collector, "/nothing-here")
        refused.exception.close()
        self.assertEqual(refused.exception.code, 404)
        self.assertEqual(collector.stop(), 0)
