# SPDX-License-Identifier: Apache-2.0
"""One agent sends tiny generations as fast as it can: others are acked and archived as before, it learns why it waits, and a stop
ends in time."""
import json
import time

from harness import BUILD, SANITIZE, Collector, wait_until
from faults import Agent, FaultCase, full

FLOODER = BUILD / "tests" / "flooding_agent"
DEADLINE_S = 5  # shutdown.deadline


class Flood(FaultCase):
    def start(self, *settings):
        self.tracectl("certs", "agent", self.certs, "other")
        return Collector(self, "segment.generations_max=1", *settings)  # each generation costs a file

    def flood(self, collector, *size):
        with open(self.folder / "flood.out", "wb") as out:
            return self.spawn("flood", FLOODER, "flood", collector.ready["agents"], self.certs, "agent", *size, stdout=out)

    def pace(self, collector, generations):
        out = self.run_program(FLOODER, "pace", collector.ready["agents"], self.certs, "other", generations, collector.state).out
        return json.loads(out)

    def is_held(self):
        return ": held for " in self.log("collector")

    def beside(self, *settings):
        collector = self.start(*settings)
        alone = self.pace(collector, 50)
        flood = self.flood(collector, 150_000)
        wait_until("it is held", self.is_held)
        beside = self.pace(collector, full(20, 100))
        self.assertIsNone(flood.poll(), "the flood was over")
        began = time.monotonic()
        self.assertEqual(collector.stop(), 0)
        stopped = time.monotonic() - began
        print(f"flood: alone {alone}; beside {beside}; stopped in {stopped:.2f} s", flush=True)
        if not SANITIZE:
            self.assertLess(beside["archived_max"], 3000)
            self.assertLess(stopped, DEADLINE_S + 1)
        return collector

    def test_another_name_is_archived_in_time_and_a_stop_ends(self):
        self.beside()

    def test_an_agent_learns_that_it_is_too_fast_and_loses_nothing(self):
        collector = self.start("agents.stream_generations_rate=20")
        agent = Agent(self, collector.ready["agents"], 5, mb_s=4, generation_bytes=60_000)
        wait_until("it is slowed down", lambda: agent.status.get("slowed"))
        said = agent.finish()
        self.assertEqual(said["lost_bytes"], 0, said)
        self.assertIn("agents.stream_generations_rate", self.log("collector"))
        self.assert_kept(collector, agent, said)
        collector.stop()

    def test_without_rates_the_share_holds(self):
        collector = self.beside("agents.stream_generations_rate=0", "agents.identity_generations_rate=0")
        self.assertIn("agents.generations_max", self.log("collector"))
        began = time.monotonic()
        collector.restart()
        print(f"flood: started again in {time.monotonic() - began:.2f} s", flush=True)
        self.assertEqual(collector.stop(), 0)

    def test_a_stop_in_a_backlog_ends_at_its_deadline(self):
        collector = self.start("agents.stream_generations_rate=0", "agents.identity_generations_rate=0",
                               "agents.generations_max=0", "agents.records_max=1GiB", "shutdown.deadline=1s")
        flood = self.flood(collector, full(4_000, 40_000))
        self.assertEqual(flood.wait(120), 0, self.log("flood"))
        began = time.monotonic()
        self.assertEqual(collector.stop(), 0)
        stopped = time.monotonic() - began
        print(f"flood: a backlog of {(self.folder / 'flood.out').read_text().strip()} stopped in {stopped:.2f} s", flush=True)
        if not SANITIZE:
            self.assertLess(stopped, 1 + 1)
        collector.restart()
        self.assertEqual(collector.stop(), 0)
