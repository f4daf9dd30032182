# SPDX-License-Identifier: Apache-2.0
"""Rows 1, 2, 5 and 24: the collector is killed at random moments, also while it recovers, or told to end under load;
programs are killed with their agents. What was acked is there afterwards, once."""
import os
import random
import signal
import time

from harness import BUILD, SANITIZE, Collector, wait_until
from faults import FULL, Agent, FaultCase, Proxy, full

AGENTS = 4


class Crash(FaultCase):
    def agents(self, collector, mb_s):
        return [Agent(self, collector.ready["agents"], seed, mb_s=mb_s) for seed in range(1, AGENTS + 1)]

    def live_for(self, collector, agents, seconds):
        """Until the collector has run for so long, and has acked something since it began."""
        began = self.acked(agents)
        end = time.monotonic() + seconds
        wait_until("time passes and something is acked",
                   lambda: time.monotonic() >= end and self.acked(agents) > began)

    def states(self, collector):
        return [row["state"] for row in collector.json_lines("status") if row.get("service") == "fault"]

    def test_row_1_kill_under_load(self):
        kills = full(2 if SANITIZE else 6, 100)
        collector = Collector(self)
        agents = self.agents(collector, full(1, 5))
        chance, recoveries = random.Random(1), []
        for _ in range(kills):
            self.live_for(collector, agents, chance.uniform(0.05, 0.6))
            collector.kill()
            began = time.monotonic()
            collector.start()
            recoveries.append(time.monotonic() - began)
        words = self.finish_all(collector, agents)
        recoveries.sort()
        print(f"row 1: {kills} kills, {sum(w['acked_bytes'] for w in words) / 1e6:.0f} MB acked, "
              f"{sum(w['resent_batches'] for w in words)} batches resent, ready again after {recoveries[len(recoveries) // 2] * 1e3:.0f} ms, "
              f"p99 {recoveries[len(recoveries) * 99 // 100] * 1e3:.0f} ms, "
              f"at most {recoveries[-1] * 1e3:.0f} ms", flush=True)

    def forget(self, folder):
        """The page cache does, so that what reads these files reads the disk."""
        files = sorted(folder.glob("*.wal"))
        for path in files:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return files

    def read_plainly(self, folder):
        """Seconds that reading the log takes a program that does nothing with it."""
        files, room = self.forget(folder), bytearray(1 << 20)
        began = time.monotonic()
        for path in files:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(room):
                    pass
        return time.monotonic() - began

    def test_row_1_a_large_log(self):
        """All of it is replayed: four generations that had not ended when the collector was killed."""
        mib, turns = full(64, 1024), full(1, 5)
        state = self.folder / "collector.state"
        self.assertFalse(state.exists())
        records = int(self.run_program(BUILD / "tests/log_maker", state, mib).out.split()[0])
        ready, plain = [], []
        for _ in range(turns):
            plain.append(self.read_plainly(state / "wal"))
            self.forget(state / "wal")
            began = time.monotonic()
            collector = Collector(self, "log.checkpoint_bytes=64GiB", "log.held_bytes_max=64GiB")
            ready.append(time.monotonic() - began)
            replayed = self.metrics(collector)["tracecollect_recovered_records_total"]
            self.assertGreaterEqual(replayed, records)
            collector.kill()
        print(f"row 1: a log of {mib} MiB, {records} records: ready after {min(ready):.2f} to {max(ready):.2f} s; "
              f"to read it and do nothing with it: {min(plain):.2f} to {max(plain):.2f} s", flush=True)

    def test_row_2_kill_during_recovery(self):
        rounds = full(2, 67)  # of three kills, each in the recovery of the one before
        collector = Collector(self)
        agents = self.agents(collector, full(1, 2))
        chance = random.Random(2)
        for _ in range(rounds):
            self.live_for(collector, agents, 0.1)
            collector.kill()
            collector.wait = False
            for _ in range(3):
                collector.start()
                time.sleep(chance.uniform(0, 0.05))  # not for a condition: the moment is the dice's
                collector.kill()
            collector.wait = True
            collector.start()
        words = self.finish_all(collector, agents)
        print(f"row 2: {rounds * 3} kills of a collector that was starting, {sum(w['acked_bytes'] for w in words) / 1e6:.0f} MB acked",
              flush=True)

    def test_row_24_sigterm_under_load(self):
        collector = Collector(self)
        agents = self.agents(collector, full(1, 5))
        ends = []
        for _ in range(full(3, 50)):
            self.live_for(collector, agents, 0.2)
            began = time.monotonic()
            self.assertEqual(collector.stop(), 0)
            ends.append(time.monotonic() - began)
            collector.start()
        words = self.finish_all(collector, agents)
        if FULL:
            self.assertLess(max(ends), 5)
        print(f"row 24: {len(ends)} times SIGTERM, gone after at most {max(ends):.2f} s, "
              f"{sum(w['resent_batches'] for w in words)} batches resent", flush=True)

    def test_row_5_programs_are_killed_with_their_agents(self):
        """Without a spool on disk: what was acked is kept, the stream ends unclean, its open generation is lost."""
        kills = full(4, 200)
        collector = Collector(self, "agents.heartbeat=1s", "agents.abandon_after=3s")
        killed = []
        for n in range(kills):
            agent = Agent(self, collector.ready["agents"], 1000 + n, mb_s=4, generation_bytes=50_000)
            wait_until("something is acked", lambda: agent.status["acked_generations"] > 0)
            agent.process.kill()
            agent.process.wait()
            killed.append((agent, agent.status))
        wait_until("all have ended", lambda: not {"live", "waiting"}.intersection(self.states(collector)))
        states = self.states(collector)
        self.assertEqual(states.count("unclean"), kills, states)
        for agent, said in killed:
            got = agent.check(*self.fetched(collector, agent))
            self.assertEqual(len(got), 1, "a hole in what was acked")
            self.assertEqual(got[0][0], 1)
            self.assertGreaterEqual(got[0][1], said["acked_generations"], said)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)
        print(f"row 5: {kills} programs killed, {states.count('unclean')} ended unclean, all acked generations there", flush=True)

    def test_row_5_with_a_spool_on_disk(self):
        """Killed at any moment, with a collector, without one, or with one that dies as well: the next program with the same
        folder sends what ta_forward_sync() had vouched for, once; those streams end unclean."""
        kills = full(6, 200)
        spool = self.folder / "spool"
        collector = Collector(self, "agents.heartbeat=1s")
        chance, killed = random.Random(5), []
        for n in range(kills):
            away = chance.random() < 0.3
            # The agent goes on meanwhile: the spool cannot fill within the time of a test.
            agent = Agent(self, collector.ready["agents"], 2000 + n, mb_s=4, generation_bytes=50_000, spool_bytes=1 << 30, spool_dir=spool)
            wait_until("something is safe", lambda: agent.status.get("safe", 0) > 0)
            if away:
                collector.kill()
                had = agent.status["safe"]
                wait_until("more is safe without a collector", lambda: agent.status["safe"] > had)
            time.sleep(chance.uniform(0, 0.05))  # not for a condition: the moment is the dice's
            agent.process.kill()
            agent.process.wait()
            killed.append((agent, agent.status))
            if away:
                collector.start()
        heir = Agent(self, collector.ready["agents"], 1999, mb_s=1, generation_bytes=50_000, spool_dir=spool)
        wait_until("it is at work", lambda: heir.status.get("safe", 0) > 0)
        said = heir.finish()
        self.assertEqual(said["old_streams"], 0, said)
        self.assertEqual(list(spool.iterdir()), [], "files nobody needs")
        self.assertEqual(collector.stop(), 0)
        collector.settings.append("agents.abandon_after=3s")  # not before: a stream that was given up has lost what was open
        collector.start()
        wait_until("all have ended", lambda: not {"live", "waiting"}.intersection(self.states(collector)))
        states = self.states(collector)
        self.assertEqual(states.count("unclean"), kills, states)
        self.assert_kept(collector, heir, said)
        vouched = 0
        for agent, said in killed:
            self.assertEqual((said["begun_anew"], said["faults"], said["disk_faults"], said["lost_bytes"]), (0, 0, 0, 0))
            got = agent.check(*self.fetched(collector, agent))
            self.assertEqual(len(got), 1, f"a hole: {got} {said}")
            self.assertEqual(got[0][0], 1)
            self.assertGreaterEqual(got[0][1], said["safe"], said)
            vouched += said["safe"] - said["acked_generations"]
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)
        print(f"row 5: {kills} programs with a spool on disk killed, {states.count('unclean')} ended unclean, nothing lost that "
              f"ta_forward_sync() had vouched for, {vouched} generations of it not acked before", flush=True)

    def test_row_5_an_heir_whose_connection_breaks(self):
        """A program dies without a collector; its heir sends what it had vouched for over connections that are cut, and goes on
        where the collector is."""
        spool, cuts = self.folder / "spool", full(5, 100)
        collector = Collector(self)
        address = collector.ready["agents"]
        collector.kill()
        agent = Agent(self, address, 4000, mb_s=20, generation_bytes=200_000, spool_bytes=1 << 30, spool_dir=spool)
        wait_until("much is safe", lambda: agent.status.get("safe", 0) >= cuts * 4)
        agent.process.kill()
        agent.process.wait()
        said = agent.status
        collector.start()
        proxy = Proxy(self, address, 4, "cut:300000-900000", "reset:600000-1500000")
        heir = Agent(self, proxy.address, 3999, mb_s=0.1, generation_bytes=50_000, spool_bytes=1 << 30, spool_dir=spool)  # half of four times that
        wait_until("all of it is sent", lambda: heir.status.get("old_streams_sent", 0) == 1)
        heir.finish()
        self.assertGreaterEqual(proxy.count()["cuts"], cuts // 2)
        self.assertEqual(list(spool.iterdir()), [], "files nobody needs")
        got = agent.check(*self.fetched(collector, agent))
        self.assertEqual([run[0] for run in got], [1], f"a hole: {got} {said}")
        self.assertGreaterEqual(got[0][1], said["safe"], said)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)
        print(f"row 5: an heir over {proxy.count()['cuts']} connections that were cut: all {said['safe']} generations there", flush=True)
