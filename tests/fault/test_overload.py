# SPDX-License-Identifier: Apache-2.0
"""Row 17: a program makes more than goes out, because the collector is gone, says nothing, or is slow to reach: eight threads
write what they have, or four emit events as fast as they can, with a flight recorder too."""
import json
import signal

from harness import BUILD, DEADLINE, SANITIZE, Collector, wait_until
from faults import FULL, FaultCase, Proxy, full

WRITER, EMITTER = BUILD / "tests" / "overloaded_agent", BUILD / "tests" / "overloaded_emitter"
THREADS = 8


class OverloadCase(FaultCase):
    def lines(self, out):
        return [json.loads(line) for line in out.read_bytes().splitlines() if line.startswith(b"{")]

    def run_against(self, kind, program, *args):
        """The two lines of a program, of its path and words of its own; and the collector, which is well again when the first has come."""
        collector = Collector(self, "agents.heartbeat=1s", name=kind)
        address = collector.ready["agents"]
        if kind == "slow":  # 200 ms of rest in every 50 KB or so
            address = Proxy(self, address, 17, "stall:20000-80000:200").address
        elif kind == "dead":
            collector.kill()
        elif kind == "blackholed":  # the kernel still takes what is sent
            collector.process.send_signal(signal.SIGSTOP)
        out = self.folder / f"{kind}.out"
        with open(out, "wb") as file:
            writer = self.spawn(kind + "-writer", *program, address, self.certs, *args, stdout=file)
        wait_until("all is written", lambda: self.lines(out) or writer.poll() is not None)
        if kind == "dead":
            collector.start()
        elif kind == "blackholed":
            collector.process.send_signal(signal.SIGCONT)
        self.assertEqual(writer.wait(DEADLINE), 0, f"{kind}: {self.log(kind + '-writer')}")
        return *self.lines(out), collector


class Overload(OverloadCase):
    writer, memory_beside = [WRITER], 2 << 20  # of a stream

    def write_against(self, kind):
        calls, totals, collector = self.run_against(kind, self.writer, full(1, 12), 32)
        self.assertEqual(totals["produced_bytes"], totals["acked_bytes"] + totals["lost_bytes"], totals)
        if kind in ("dead", "blackholed"):
            self.assertGreater(totals["lost_bytes"], 0, "that was no overload")
        self.assert_proven(collector, THREADS, totals["lost_bytes"])
        self.assertLessEqual(calls["memory"], calls["spools"] + THREADS * self.memory_beside, calls)
        print(f"row 17: {kind}: {calls['calls']} calls of 16 KiB, p50 {calls['wall_p50'] / 1e3:.1f} us, p99.99 "
              f"{calls['wall_p9999'] / 1e3:.1f} us ({calls['cpu_p50'] / 1e3:.1f} and {calls['cpu_p9999'] / 1e3:.1f} us of CPU), "
              f"{calls['memory'] / 2**20:.1f} MiB of memory for {calls['spools'] / 2**20:.0f} MiB of spools, "
              f"{totals['lost_bytes'] / 1e6:.1f} MB of {totals['produced_bytes'] / 1e6:.1f} lost, all told", flush=True)

    def test_row_17_healthy(self):
        if not FULL:
            self.skipTest("to compare with, in full")
        self.write_against("healthy")

    def test_row_17_collector_dead(self):
        self.write_against("dead")

    def test_row_17_collector_blackholed(self):
        self.write_against("blackholed")

    def test_row_17_collector_slow(self):
        self.write_against("slow")


class Emitter(OverloadCase):
    """The emitter never waits and its memory is bounded; events without room are lost in whole generations, and
    reported."""

    def emit_against(self, kind, *record_ms):
        pace, totals, collector = self.run_against(kind, [EMITTER], full(1, 10), *record_ms)
        self.assert_proven(collector, 1, totals["lost_bytes"])
        if not SANITIZE:
            self.assertLessEqual(pace["memory"], pace["budget"] + (2 << 20), pace)
        print(f"row 17: emitter{', a recorder' if record_ms else ''}: {kind}: {pace['events'] / pace['seconds'] / 1e6:.1f} M events/s, "
              f"p50 {pace['p50']} ns, p99.99 {pace['p9999']} ns, {pace['memory'] / 2**20:.1f} MiB of memory for a budget of "
              f"{pace['budget'] >> 20}; {totals['lost_generations']} of {totals['generations']} generations given up for want of batches, "
              f"{totals['lost_bytes'] / 1e6:.1f} MB of {totals['produced_bytes'] / 1e6:.1f} lost, all told", flush=True)
        return totals

    def test_row_17_emitter_healthy(self):
        if not FULL:
            self.skipTest("to compare with, in full")
        self.emit_against("healthy")

    def test_row_17_emitter_collector_dead(self):
        self.emit_against("dead")

    def test_row_17_emitter_collector_blackholed(self):
        if not FULL:
            self.skipTest("as the one before, in full")
        self.emit_against("blackholed")

    def test_row_17_emitter_collector_slow(self):
        if not FULL:
            self.skipTest("as the one before, in full")
        self.emit_against("slow")

    def test_row_17_recorder_collector_dead(self):
        totals = self.emit_against("dead", 60000)
        self.assertGreater(totals["acked_bytes"] + totals["lost_bytes"], 0)  # it was asked for what it kept

    def test_row_17_recorder_healthy(self):
        if not FULL:
            self.skipTest("as the one before, in full")
        self.emit_against("healthy", 60000)
