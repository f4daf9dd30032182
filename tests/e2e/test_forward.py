# SPDX-License-Identifier: Apache-2.0
"""A real Go server streams its trace through the agent: the fetched trace equals what it wrote."""
import json
import os
import re
import shutil

from harness import DEADLINE, FULL, SANITIZE, Case, Collector, Go, local_go, wait_until

OLDEST, BETWEEN, NEWEST = "go1.22.12", ("go1.23.12", "go1.24.11", "go1.25.5"), "go1.27.3"
SPOOL = 2 << 20
SHORT = {"GODEBUG": "traceadvanceperiod=200000000",  # generations of a fifth of a second: as many in less time
         "TRACEAGENT_ALLOW_FAULTY_GO": "1"}  # test_go_faults is about those that it is not tried with
PROGRAMS = {}  # the server by toolchain: to find it up to date takes longer than some cases


def resident(pid):
    """Bytes of memory a process holds."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024


class Forward(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        if self.go is None:
            self.skipTest("no Go >= 1.22 here")

    def _server(self, go, collector, *flags, name="server"):
        out = open(self.folder / f"{name}.out", "wb")
        self.addCleanup(out.close)
        return self.spawn(name, self._program(go), "-server", collector, "-certs", self.certs, "-instance", "one",
                          "-clients", "2", "-pause", "20ms", *flags, env={**go.environment, **SHORT}, stdout=out)

    def _program(self, go):
        if go.toolchain not in PROGRAMS:
            PROGRAMS[go.toolchain] = go.program(self, "examples/go-server")
        return PROGRAMS[go.toolchain]

    def _status(self, name="server"):
        """The agent's counters as the server last printed them."""
        lines = [line for line in (self.folder / f"{name}.out").read_text().splitlines(True)
                 if line.endswith("\n")]
        return json.loads(lines[-1]) if lines else None

    def _forward_with(self, toolchain):
        go = Go(self.go.command, toolchain)
        version = go.version()
        if version is None:
            self.skipTest(f"{toolchain} cannot be had here")
        collector, teed = Collector(self), self.folder / "teed.trace"
        server = self._server(go, collector.to, "-service", version, "-tee", teed, "-seconds", "1.2")
        self.assertEqual(server.wait(DEADLINE), 0, self.log("server"))
        status = self._status()
        self.assertEqual(status["LostBatches"], 0)
        self.assertGreater(status["AckedGenerations"], 1)
        self.assertEqual(status["AckedBytes"], status["ProducedBytes"])
        fetched = collector.fetch(self.folder / "fetched.trace", version)
        self.assert_same_bytes(fetched, teed)
        self.assertIn(f"{fetched}: ok:", self.tracectl("check", fetched).out)
        minor = int(re.match(r"go1\.(\d+)", self.go.version()).group(1))
        if minor >= 26:  # the printing that ours follows
            parsed = self.go.parsed(self, fetched).stdout
            ours = self.tracectl("cat", "-d", "parsed", fetched, env={**os.environ, "TZ": "UTC"}).stdout
            self.assertTrue(ours == parsed, "tracectl cat -d parsed differs from go tool trace -d=parsed")
        self.assertEqual(collector.stop(), 0)

    def test_the_local_go(self):
        self._forward_with("local")

    def test_the_collector_is_killed_while_a_server_runs(self):
        collector, teed = Collector(self), self.folder / "teed.trace"
        server = self._server(self.go, collector.ready["agents"], "-service", "kill", "-tee", teed)
        acked = 0
        for kill in range(3):  # each of a connection that the one before has not cut
            wait_until("more is acked", lambda: (s := self._status()) and s["Reconnects"] >= kill and s["AckedGenerations"] > acked)
            acked = self._status()["AckedGenerations"]
            collector.restart()
        wait_until("it has come again", lambda: self._status()["Reconnects"] >= 3)
        server.terminate()
        self.assertEqual(server.wait(DEADLINE), 0, self.log("server"))
        self.assertEqual(self._status()["LostBatches"], 0)
        self.assert_same_bytes(collector.fetch(self.folder / "fetched.trace", "kill"), teed)
        self.assertEqual(collector.stop(), 0)

    def _goes_on_as_another_stream(self, collector, server, before, service):
        """After the collector came back without what it had acked. Answers the new stream's trace."""
        wait_until("the new stream is acked", lambda: (s := self._status())["BegunAnew"] == 1 and s["AckedGenerations"] > 1)
        server.terminate()
        self.assertEqual(server.wait(DEADLINE), 0, self.log("server"))
        after = self._status()
        self.assertNotEqual(after["Stream"], before["Stream"])
        self.assertGreaterEqual(after["LostBytes"], before["AckedBytes"])
        self.assertEqual(after["ProducedBytes"], after["AckedBytes"] + after["LostBytes"])
        fetched = self.folder / "fetched.trace"
        collector.ask("fetch", "--service", service, "--stream", after["Stream"], "-o", fetched, "--no-progress")
        self.assertIn(f"{fetched}: ok:", self.tracectl("check", fetched).out)
        self.run_program(self.go.tool("trace"), "-pprof=sync", fetched)  # Go's own reader takes it, too
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)
        return fetched

    def test_the_collectors_state_is_wiped_while_a_server_runs(self):
        collector, teed = Collector(self), self.folder / "teed.trace"
        server = self._server(self.go, collector.ready["agents"], "-service", "wiped", "-tee", teed)
        wait_until("two generations are acked", lambda: (s := self._status()) and s["AckedGenerations"] > 1)
        self.assertEqual(collector.stop(), 0)
        shutil.rmtree(collector.state)
        before = self._status()
        collector.start()
        fetched = self._goes_on_as_another_stream(collector, server, before, "wiped")
        written, kept = teed.read_bytes(), fetched.read_bytes()
        self.assertEqual(kept[:16], written[:16])
        self.assertTrue(written.endswith(kept[16:]), "what the new stream has is not the end of what was written")

    def test_an_older_copy_of_the_collectors_state_is_restored_while_a_server_runs(self):
        collector, copy = Collector(self), self.folder / "copy"
        server = self._server(self.go, collector.ready["agents"], "-service", "restored")
        wait_until("a generation is acked", lambda: (s := self._status()) and s["AckedGenerations"] > 0)
        self.assertEqual(collector.stop(), 0)
        shutil.copytree(collector.state, copy)
        wait_until("it says what it had acked", lambda: self._status()["LastError"] != "")
        had = self._status()["AckedGenerations"]
        collector.start()
        wait_until("more is acked", lambda: self._status()["AckedGenerations"] > had + 1)
        self.assertEqual(collector.stop(), 0)
        shutil.rmtree(collector.state)
        copy.rename(collector.state)
        before = self._status()
        collector.start()
        self._goes_on_as_another_stream(collector, server, before, "restored")

    def test_a_server_without_a_collector_keeps_running_in_bounded_memory(self):
        server = self._server(self.go, "127.0.0.1:9", "-service", "alone", "-clients", "0", "-dense", "2", "-spool-bytes", str(SPOOL))
        wait_until("the server runs", lambda: self._status())
        start, produced = resident(server.pid), self._status()["ProducedBytes"]
        wait_until("eight spools of trace are produced", lambda: self._status()["ProducedBytes"] - produced > 8 * SPOOL)
        self.assertIsNone(server.poll())
        # Counts one spool, and the buffers of Go's runtime that a busy machine has not handed on.
        self.assertLess(resident(server.pid) - start, 5 * SPOOL)
        self.assertGreater(self._status()["LostGenerations"], 0)
        server.kill()  # its Stop would wait for a collector


def _add(case, *toolchains):
    for toolchain in toolchains:
        setattr(case, f"test_{toolchain.replace('.', '_')}", lambda self, toolchain=toolchain: self._forward_with(toolchain))


# Each takes a minute to build for. A sanitized run tries the local one: what differs is in the trace.
if not SANITIZE:
    _add(Forward, OLDEST, *(BETWEEN if FULL else ()), NEWEST)
