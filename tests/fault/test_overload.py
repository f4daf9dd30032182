# SPDX-License-Identifier: Apache-2.0
"""Row 17: eight threads write more than goes out, because the collector is gone, says nothing, or is slow to reach."""
import json
import signal

from harness import BUILD, Collector, wait_until
from faults import FULL, FaultCase, Proxy, full

WRITER = BUILD / "tests" / "overloaded_agent"
THREADS = 8


class Overload(FaultCase):
    def lines(self, out):
        return [json.loads(line) for line in out.read_bytes().splitlines() if line.startswith(b"{")]

    def run_against(self, kind):
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
            writer = self.spawn(kind + "-writer", WRITER, address, self.certs, full(1, 12), 32, stdout=file)
        wait_until("all is written", lambda: self.lines(out) or writer.poll() is not None)
        if kind == "dead":
            collector.start()
        elif kind == "blackholed":
            collector.process.send_signal(signal.SIGCONT)
        self.assertEqual(writer.wait(180), 0, f"{kind}: {self.log(kind + '-writer')}")
        calls, totals = self.lines(out)
        self.assertEqual(totals["produced_bytes"], totals["acked_bytes"] + totals["lost_bytes"], totals)
        if kind in ("dead", "blackholed"):
            self.assertGreater(totals["lost_bytes"], 0, "that was no overload")
        self.assert_proven(collector, THREADS, totals["lost_bytes"])
        self.assertLessEqual(calls["memory"], calls["spools"] + THREADS * (2 << 20), calls)
        print(f"row 17: {kind}: {calls['calls']} calls of 16 KiB, p50 {calls['wall_p50'] / 1e3:.1f} us, p99.99 "
              f"{calls['wall_p9999'] / 1e3:.1f} us ({calls['cpu_p50'] / 1e3:.1f} and {calls['cpu_p9999'] / 1e3:.1f} us of CPU), "
              f"{calls['memory'] / 2**20:.1f} MiB of memory for {calls['spools'] / 2**20:.0f} MiB of spools, "
              f"{totals['lost_bytes'] / 1e6:.1f} MB of {totals['produced_bytes'] / 1e6:.1f} lost, all told", flush=True)

    def test_row_17_healthy(self):
        if not FULL:
            self.skipTest("to compare with, in full")
        self.run_against("healthy")

    def test_row_17_collector_dead(self):
        self.run_against("dead")

    def test_row_17_collector_blackholed(self):
        self.run_against("blackholed")

    def test_row_17_collector_slow(self):
        self.run_against("slow")
