# SPDX-License-Identifier: Apache-2.0
"""Rows 6 and 7: connections that are cut, reset, stalled, delayed, cut into single bytes or swallowed."""
import time
import unittest

from harness import DEADLINE, Collector, wait_until
from faults import FULL, STREAMING, Agent, FaultCase, Proxy, full


class Network(FaultCase):
    def test_row_6_cut_stalled_delayed_and_in_single_bytes(self):
        cuts = full(15, 500)
        collector = Collector(self)
        # An agent backs off up to half a minute after many failures: what is cut had a byte acked before.
        proxy = Proxy(self, collector.ready["agents"], 6, "cut:60000-900000", "reset:60000-900000",
                      "stall:100000-600000:200", "drip:20000-300000:300")
        slow = Proxy(self, collector.ready["agents"], 7, "delay:0-0:200", "reset:400000-4000000")
        agents = [Agent(self, proxy.address, seed, mb_s=full(2, 8), generation_bytes=50_000) for seed in (1, 2, 3)]
        agents.append(Agent(self, slow.address, 4, mb_s=1))
        began = time.monotonic()
        wait_until(f"{cuts} cuts", lambda: proxy.count()["cuts"] >= cuts, 4 * DEADLINE)
        seconds = time.monotonic() - began
        words = self.finish_all(collector, agents)
        reconnects = sum(w["reconnects"] for w in words)
        self.assertGreaterEqual(reconnects, cuts // 2)
        print(f"row 6: {proxy.count()['cuts'] + slow.count()['cuts']} cuts, {reconnects} reconnects in {seconds:.0f} s, "
              f"{sum(w['acked_bytes'] for w in words) / 1e6:.0f} MB acked, {sum(w['lost_bytes'] for w in words)} bytes lost", flush=True)

    @unittest.skipUnless(FULL, "takes long")
    def test_row_6_goodput_outside_the_cuts(self):
        """Two agents write the same; one's connection is cut again and again. While it is connected it gets as
        much acked as the other."""
        cuts = 60
        collector = Collector(self)
        cut = Proxy(self, collector.ready["agents"], 66, "cut:1000000-6000000", "reset:1000000-6000000")
        whole = Proxy(self, collector.ready["agents"], 67)
        agents = [Agent(self, proxy.address, seed, mb_s=6, generation_bytes=200_000) for seed, proxy in ((61, cut), (62, whole))]
        wait_until("both are at work", lambda: all(a.status["acked_bytes"] > 0 for a in agents))
        began, before = time.monotonic(), [len(a.history()) for a in agents]
        wait_until(f"{cuts} cuts", lambda: cut.count()["cuts"] >= cuts, 4 * DEADLINE)
        seconds = time.monotonic() - began
        lines = [a.history()[n - 1:] for a, n in zip(agents, before)]
        acked = [of[-1]["acked_bytes"] - of[0]["acked_bytes"] for of in lines]
        connected = sum(line["state"] == STREAMING for line in lines[0]) / len(lines[0])
        goodput = acked[0] / connected / acked[1]
        words = self.finish_all(collector, agents)
        self.assertGreaterEqual(goodput, 0.9)
        print(f"row 6: {cut.count()['cuts']} cuts in {seconds:.0f} s, connected {connected * 100:.0f} % of it; goodput then "
              f"{goodput * 100:.0f} % of an agent's that is not cut, and of all the time {acked[0] / acked[1] * 100:.0f} %, "
              f"{words[0]['resent_batches']} batches resent, {words[0]['lost_bytes']} bytes lost", flush=True)

    def test_row_7_a_peer_that_swallows_silently(self):
        beat = full(1, 5)  # almost three missed end a connection
        collector = Collector(self, f"agents.heartbeat={beat}s")
        proxy = Proxy(self, collector.ready["agents"], 7)
        agent = Agent(self, proxy.address, 1)
        times = []
        for turn in range(full(1, 3)):
            wait_until("something is acked", lambda: agent.status["acked_generations"] > 3 * turn)
            before = agent.status["reconnects"]
            gone = self.metrics(collector)["tracecollect_peers_timed_out_total"]
            proxy.tell("swallow")
            began = time.monotonic()
            wait_until("the agent notices", lambda: agent.status["reconnects"] > before)
            times.append(time.monotonic() - began)
            wait_until("the collector notices, or has seen the new connection",
                       lambda: self.metrics(collector)["tracecollect_peers_timed_out_total"] > gone or
                       agent.status["acked_bytes"] > 0)
        words = self.finish_all(collector, [agent])
        if FULL:
            self.assertLess(max(times), 3 * beat)
        print(f"row 7: {len(times)} silent peers noticed after at most {max(times):.1f} s with heartbeats of {beat} s, "
              f"{words[0]['resent_batches']} batches resent", flush=True)
