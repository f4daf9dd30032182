# SPDX-License-Identifier: Apache-2.0
"""One agent sends tiny generations as fast as it can: others are acked and archived as before, it learns why it waits, and a stop
ends in time."""
import json
import time

from harness import BUILD, DEADLINE, SANITIZE, Collector, wait_until
from faults import Agent, FaultCase, full

FLOODER = BUILD / "tests" / "flooding_agent"
DEADLINE_S = 5  # shutdown.deadline
FLOOD = 150_000  # generations
WAITING = 32  # agents.generations_max, or what is archived in a quarter of a second


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
        flood = self.flood(collector, FLOOD)
        wait_until("it is held", self.is_held)
        began, before = time.monotonic(), self.archived(collector)
        beside = self.pace(collector, full(8, 100))
        self.assertIsNone(flood.poll(), "the flood was over")
        rate = (self.archived(collector) - before) / (time.monotonic() - began)
        passed = rate * beside["archived_max"] / 1000  # by the flood's, while one of the other name waited
        began = time.monotonic()
        self.assertEqual(collector.stop(), 0)
        stopped = time.monotonic() - began
        left = FLOOD - self.archived(collector)
        print(f"flood: alone {alone}; beside {beside}, {rate:.0f} generations/s archived; stopped in {stopped:.2f} s, {left} not archived", flush=True)
        # However slow the disk: in front of it are as many as may wait for the archive, and those that it is at.
        self.assertLess(passed, 16 * max(WAITING, rate / 4))
        if not SANITIZE:
            self.assertTrue(stopped < DEADLINE_S + 1 or left > 0, "it has not stopped before all was done")
        return collector

    def archived(self, collector):
        """Generations, which are files here."""
        return sum(1 for _ in (collector.state / "archive").rglob("*.trace"))

    def test_another_name_is_archived_in_time_and_a_stop_ends(self):
        self.beside()

    def test_an_agent_learns_that_it_is_too_fast_and_loses_nothing(self):
        collector = self.start("agents.stream_generations_rate=20")
        # The agent goes on meanwhile: the spool cannot fill within the time of a test.
        agent = Agent(self, collector.ready["agents"], 5, mb_s=2, generation_bytes=60_000, spool_bytes=1 << 30)
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
        many = full(1_500, 40_000)
        flood = self.flood(collector, many)
        self.assertEqual(flood.wait(DEADLINE), 0, self.log("flood"))
        began = time.monotonic()
        self.assertEqual(collector.stop(), 0)
        stopped = time.monotonic() - began
        print(f"flood: a backlog of {(self.folder / 'flood.out').read_text().strip()} stopped in {stopped:.2f} s", flush=True)
        # As long as the deadline on a quiet machine; on any it is over before all is archived, or soon.
        if not SANITIZE:
            self.assertTrue(stopped < 2 or self.archived(collector) < many, "it did not end at its deadline")
        collector.restart()
        self.assertEqual(collector.stop(), 0)
