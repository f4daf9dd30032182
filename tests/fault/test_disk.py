# SPDX-License-Identifier: Apache-2.0
"""Rows 8, 13 and 22: a disk that is full, one that takes half a second for each sync, a wall clock that jumps."""
import ctypes
import errno
import http.client
import json
import os
import random
import re
import resource
import socket
import sys
import time
import urllib.error
import urllib.request

from harness import DEADLINE, Collector, wait_until
from faults import FULL, STREAMING, Agent, FaultCase, Shim, full

GREETING = b"\0SP\0\0\x21\0\0"  # of a subscriber of nng's


def resident(pid):
    """Bytes of memory that are the process's own: mapped files can be had back."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * 1024


class Disk(FaultCase):
    def tmpfs(self, mib, *options):
        """A small disk of its own; needs root."""
        folder = self.folder / "disk"
        folder.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(folder).encode(), b"tmpfs", 0, ",".join((f"size={mib}m", *options)).encode()) != 0:
            self.skipTest(f"no tmpfs: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: libc.umount2(str(folder).encode(), 2))  # MNT_DETACH; before the folder is removed
        return folder

    def healthz(self, collector):
        began = time.monotonic()
        with urllib.request.urlopen(f"http://{collector.ready['http']}/healthz", timeout=DEADLINE) as answer:
            answer.read()
        return time.monotonic() - began

    def test_row_8_a_full_disk(self):
        # The agents do not rest while we look: with the filler gone there is room for half a minute of theirs.
        mib, soon_mib, rounds = full(256, 1024), full(32, 341), full(1, 3)
        disk = self.tmpfs(mib)
        filler = disk / "filler"
        collector = Collector(self, f"state={disk}/state", "log.file_bytes=4MiB", "disk.reserve_bytes=4MiB",
                              f"disk.free_min={soon_mib // 4}MiB", "retention.free_bytes=0", "retention.age=0")
        collector.state = disk / "state"
        agents = [Agent(self, collector.ready["agents"], seed, mb_s=full(4, 5), spool_bytes=4 << 20) for seed in (1, 2)]
        wait_until("something is acked", lambda: self.acked(agents) > 0)
        resumes = []
        for _ in range(rounds):
            left = os.statvfs(disk)
            self.fill(disk, left.f_bavail * left.f_frsize - (soon_mib << 20))
            wait_until("the disk is full", lambda: "acks" in self.ready_text(collector) or "full" in self.ready_text(collector), 2 * DEADLINE)
            acked, lost = self.acked(agents), sum(agent.status["lost_bytes"] for agent in agents)
            wait_until("the agents have to drop", lambda: sum(a.status["lost_bytes"] for a in agents) > lost)
            self.expect_reason(agents, "collector stores nothing: its disk is full")
            self.assertIsNone(collector.process.poll())
            began = time.monotonic()
            filler.unlink()
            wait_until("acks go on", lambda: self.acked(agents) > acked)
            resumes.append(time.monotonic() - began)
        filler.unlink(missing_ok=True)
        words = self.finish_all(collector, agents)
        if FULL:
            self.assertLess(max(resumes), 2)
        print(f"row 8: {mib} MiB disk full {rounds} times, acks go on after at most {max(resumes):.2f} s, "
              f"{sum(w['acked_bytes'] for w in words) / 1e6:.0f} MB acked and there, "
              f"{sum(w['lost_bytes'] for w in words) / 1e6:.0f} MB told as lost", flush=True)

    def expect_reason(self, agents, text):
        wait_until(f"an agent says {text!r}", lambda: any(agent.status["last_error"] == text for agent in agents))

    def fill(self, disk, most=sys.maxsize):
        """To the last page at most; others write there meanwhile."""
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while filler.tell() < most and filler.write(bytes(65536)):
                    pass
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)

    def samples(self, client):
        """Returns what each part of the store waits for, over a connection that is already open."""
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        return {tuple(found[:2]) for found in re.findall(r'store_waits\{part="(\w+)",reason="(\w+)"\} 1', text)}

    def client_of(self, collector):
        host, port = collector.ready["http"].rsplit(":", 1)
        client = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
        self.addCleanup(client.close)
        self.samples(client)
        return client

    def lines(self, collector, words):
        return [line for line in self.log(collector.name).splitlines() if words in line]

    def live_through(self, collector, agents, begin, end, reason, text):
        """A shortage begins, is felt, is told once by its name, and ends."""
        client = self.client_of(collector)
        wait_until("something is acked", lambda: self.acked(agents) > 0)
        begin()
        wait_until("it is felt", lambda: ("log", reason) in self.samples(client))
        acked, lost = self.acked(agents), sum(agent.status["lost_bytes"] for agent in agents)
        wait_until("the agents have to drop", lambda: sum(a.status["lost_bytes"] for a in agents) > lost)
        full = reason in ("space", "inodes", "quota", "free_min")
        self.expect_reason(agents, f"collector stores nothing: its {'disk is full' if full else 'log says why'}")
        self.assertLessEqual({why for _, why in self.samples(client)}, {reason})
        self.assertIsNone(collector.process.poll())
        end()
        wait_until("acks go on", lambda: self.acked(agents) > acked)
        wait_until("all is well", lambda: not self.samples(client))
        began = self.lines(collector, f" error store: {text}: ")
        self.assertIn(len(began), (1, 2), began)  # the log's, and the archive's where it came to that
        self.assertEqual(len(self.lines(collector, " is written again after ")), len(began), self.log(collector.name))
        self.assertEqual(len(self.lines(collector, "nothing is acked")), 1, self.log(collector.name))
        return self.finish_all(collector, agents)

    def test_row_8_a_disk_without_inodes(self):
        disk = self.tmpfs(256, "nr_inodes=400")
        collector = Collector(self, f"state={disk}/state", "log.file_bytes=4MiB", "disk.reserve_bytes=0", "disk.free_min=4MiB",
                              "retention.free_bytes=0", "retention.age=0")
        collector.state = disk / "state"
        agents = [Agent(self, collector.ready["agents"], seed, mb_s=full(4, 5), spool_bytes=4 << 20) for seed in (1, 2)]
        names = []

        def begin():
            for n in range(400):
                try:
                    (disk / f"empty-{n}").touch()
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)
                    return
                names.append(disk / f"empty-{n}")

        self.live_through(collector, agents, begin, lambda: [name.unlink() for name in names], "inodes",
                          "no inodes left on the disk")

    def readiness(self, collector):
        """Ready, and is its check of retention well?"""
        ready = json.loads(self.ready_text(collector))
        return ready["ready"], next(check["ok"] for check in ready["checks"] if check["name"] == "retention")

    def live_at_the_floor(self, goes_on, *settings):
        """Others fill the disk under an agent that goes on: told once, and its end once; meanwhile the collector is ready."""
        disk = self.tmpfs(512)
        collector = Collector(self, f"state={disk}/state", "log.file_bytes=4MiB", "disk.reserve_bytes=0", "disk.free_min=8MiB",
                              "retention.free_bytes=256MiB", "retention.every=100ms", "retention.age=0", "segment.generations_max=1", *settings)
        collector.state = disk / "state"
        agents = [Agent(self, collector.ready["agents"], 1, mb_s=1)]
        wait_until("something is acked", lambda: self.acked(agents) > 0)
        self.assertEqual(self.readiness(collector), (True, True))
        left = os.statvfs(disk)
        # The agent does not rest while we look: to disk.free_min there is room for four minutes of its.
        self.fill(disk, left.f_bavail * left.f_frsize - (248 << 20))
        wait_until("retention is at its floor", lambda: self.readiness(collector) == (True, False))
        acked, before = self.acked(agents), self.metrics(collector)
        wait_until("the agent goes on", lambda: self.acked(agents) > acked + 2_000_000 and goes_on(before, self.metrics(collector)))
        self.assertEqual(self.readiness(collector), (True, False))
        self.assertIn("nothing is left to delete", collector.ask("status").out)
        (disk / "filler").unlink()
        wait_until("there is room again", lambda: self.readiness(collector) == (True, True))
        acked = self.acked(agents)
        wait_until("the agent goes on", lambda: self.acked(agents) > acked)
        for words in ("retention.floor protects all that is left", "the disk has room again, or retention something to delete"):
            self.assertEqual(len(self.lines(collector, words)), 1, self.log(collector.name))
        return collector, agents

    def test_row_8_an_archive_at_its_floor(self):
        """All of it is of the newest hour: nothing goes."""
        collector, agents = self.live_at_the_floor(lambda before, now: True)
        self.assertEqual(self.metrics(collector)["tracecollect_segments_expired_total"], 0)
        self.assertEqual(self.finish_all(collector, agents)[0]["lost_bytes"], 0)

    def test_row_8_a_floor_that_moves_on(self):
        """Segments that grow older than the floor are deleted, and the disk stays short: the finding must not end."""
        expired = "tracecollect_segments_expired_total"
        collector, agents = self.live_at_the_floor(lambda before, now: now[expired] > before[expired] + 5, "retention.floor=1s")
        said = agents[0].finish()
        self.assertEqual((said["lost_bytes"], said["acked_bytes"]), (0, said["produced_bytes"]))
        self.assert_proven(collector, 1)

    def test_row_8_no_descriptors(self):
        collector = Collector(self, "log.file_bytes=4MiB")
        agents = [Agent(self, collector.ready["agents"], seed, mb_s=full(4, 5), spool_bytes=4 << 20) for seed in (1, 2)]
        pid, before = collector.process.pid, resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE)
        self.live_through(collector, agents, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1])),
                          lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before), "descriptors", "no file descriptors left")

    def test_row_5_the_disk_of_a_spool_is_full(self):
        """No collector, and a full disk: the program goes on, is killed, and what ta_forward_sync() had vouched for is sent by
        the next one; with room again it vouches for more; a spool that runs over tells what it drops."""
        kills = full(2, 60)
        disk = self.tmpfs(64)  # room for all that comes while this waits, however slow the machine
        spool = disk / "spool"
        collector = Collector(self, "agents.heartbeat=1s")
        address, killed, goes_on = collector.ready["agents"], [], []
        for n in range(kills):
            agent = Agent(self, address, 3000 + n, mb_s=1, generation_bytes=50_000, spool_bytes=256 << 20, spool_dir=spool)
            wait_until("something is safe, and what was left is sent", lambda: agent.status.get("safe", 0) > 0 and
                       agent.status["old_streams"] == 0)
            collector.kill()
            wait_until("files hold what is not acked", lambda: agent.status["state"] != STREAMING and
                       agent.status["safe"] > agent.status["acked_generations"])
            self.fill(disk)
            wait_until("the disk is full", lambda: agent.status["disk_faults"] > 0)
            written = agent.status["generations"]
            wait_until("the program goes on", lambda: agent.status["generations"] > written + 20)
            if n % 2:
                safe, began = agent.status["safe"], time.monotonic()
                (disk / "filler").unlink()
                wait_until("more is safe", lambda: agent.status["safe"] > safe)
                goes_on.append(time.monotonic() - began)
            agent.process.kill()
            agent.process.wait()
            killed.append((agent, agent.status))
            (disk / "filler").unlink(missing_ok=True)
            collector.start()
        last = Agent(self, address, 2999, mb_s=50, generation_bytes=200_000, spool_bytes=4 << 20, spool_dir=spool)
        wait_until("what was left is sent", lambda: last.status.get("safe", 0) > 0 and last.status["old_streams"] == 0)
        collector.kill()
        self.fill(disk)
        wait_until("its spool runs over", lambda: last.status["lost_bytes"] > 0)
        collector.start()
        (disk / "filler").unlink()
        said = last.finish()
        self.assert_kept(collector, last, said)
        self.assertEqual(list(spool.iterdir()), [], "files nobody needs")
        vouched = 0
        for agent, words in killed:
            self.assertEqual((words["begun_anew"], words["faults"], words["lost_bytes"]), (0, 0, 0), words)
            got = agent.check(*self.fetched(collector, agent))
            self.assertEqual(len(got), 1, f"a hole: {got} {words}")
            self.assertEqual(got[0][0], 1)
            self.assertGreaterEqual(got[0][1], words["safe"], words)
            vouched += words["safe"]
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)
        print(f"row 5: {kills} programs killed while the disk of their spool was full or had been, all {vouched} generations there that "
              f"ta_forward_sync() had vouched for; it vouches again after at most {max(goes_on):.2f} s of room; "
              f"{said['lost_bytes']} bytes told as lost where the spool ran over", flush=True)

    def ready_text(self, collector):
        try:
            with urllib.request.urlopen(f"http://{collector.ready['http']}/readyz", timeout=DEADLINE) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def test_row_13_a_slow_disk(self):
        shim, seconds = Shim(self), full(3, 40)
        collector = Collector(self, env=shim.environment)
        agents = [Agent(self, collector.ready["agents"], seed, mb_s=full(1, 2)) for seed in (1, 2, 3, 4)]
        wait_until("something is acked", lambda: all(a.status["acked_generations"] > 0 for a in agents))
        usual = sorted(self.healthz(collector) for _ in range(50))
        shim.order(sync_ns=500_000_000)
        began, before, answers, memory = time.monotonic(), self.acked(agents), [], []

        def look():
            answers.append(self.healthz(collector))
            memory.append(resident(collector.process.pid))
            return time.monotonic() - began >= seconds

        wait_until("time passes", look)
        wait_until("acks go on", lambda: self.acked(agents) > before)
        metrics = self.metrics(collector)
        self.assertEqual(metrics["tracecollect_peers_timed_out_total"], 0)
        shim.order()
        words = self.finish_all(collector, agents)
        self.assertEqual(sum(w["reconnects"] for w in words), 0)
        answers.sort()
        print(f"row 13: {seconds} s with 500 ms for each sync, 0 reconnects, the loop answers in p50 {answers[len(answers) // 2] * 1e3:.1f} "
              f"p99 {answers[len(answers) * 99 // 100] * 1e3:.1f} ms (before: p99 {usual[-1] * 1e3:.1f} ms), "
              f"memory {min(memory) >> 20} to {max(memory) >> 20} MiB", flush=True)

    def test_row_22_after_a_jump_the_feed_takes_subscribers(self):
        """nng's pauses go by the wall clock. Its listener is to have none: not while readers hang up, nor while no descriptor is left."""
        shim, day = Shim(self), 86_400_000_000_000
        collector = Collector(self, "readers.source_connections_max=1024", env=shim.environment)
        few, many = 3, resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE)

        def come():
            reader = socket.socket(socket.AF_UNIX)
            self.addCleanup(reader.close)
            reader.connect(str(collector.state / "feed.sock"))
            return reader

        def count():
            return self.metrics(collector)["tracecollect_feed_subscriptions_total"]

        for _ in range(10):
            with self.subTest("they hang up"):
                shim.order(clock_ns=day)
                for _ in range(50):
                    reader = come()
                    self.assertEqual(len(reader.recv(8, socket.MSG_WAITALL)), 8)
                    reader.close()
                shim.order()
                before = count()
                reader = come()
                reader.send(GREETING)
                wait_until("one is let in", lambda: count() > before)
                reader.close()
            with self.subTest("no descriptor is left"):
                shim.order(clock_ns=day)
                before = count()
                resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE, (few, many[1]))
                readers = [come() for _ in range(20)]
                shim.order()
                resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE, many)
                for reader in readers:
                    reader.send(GREETING)
                wait_until("all are let in", lambda: count() >= before + len(readers))
                for reader in readers:
                    reader.close()
        shim.order(clock_ns=-day)  # an end goes by another as well
        self.assertEqual(collector.stop(), 0)

    def test_row_22_a_clock_that_jumps(self):
        shim, jumps = Shim(self), full(12, 100)
        collector = Collector(self, "retention.age=1h", "retention.every=100ms", env=shim.environment)
        agents = [Agent(self, collector.ready["agents"], seed) for seed in (1, 2)]
        wait_until("all are connected", lambda: all(a.status["acked_generations"] > 0 for a in agents))
        chance, day = random.Random(22), 86_400_000_000_000
        for _ in range(jumps):
            acked = self.acked(agents)
            shim.order(clock_ns=chance.choice((-1, 1)) * chance.choice((day, 50 * 365 * day)))
            # A generation more and two looks of retention.
            turns = self.metrics(collector)["tracecollect_commits_total"]
            wait_until("more is acked", lambda: self.acked(agents) > acked and
                       self.metrics(collector)["tracecollect_commits_total"] > turns + 3)
        shim.order()
        metrics = self.metrics(collector)
        self.assertEqual(metrics["tracecollect_segments_expired_total"], 0)
        self.assertEqual(metrics["tracecollect_peers_timed_out_total"], 0)
        words = self.finish_all(collector, agents)
        self.assertEqual(sum(w["reconnects"] for w in words), 0)
        print(f"row 22: {jumps} jumps of the wall clock, nothing deleted, no time-out", flush=True)
