# SPDX-License-Identifier: Apache-2.0
"""Agents with a valid certificate that send odd things, a disk without inodes, and folders full of foreign files. Memory stays
bounded, the log or a metric says what happens, what was acked is in the archive or in the accounts, health and readiness hold, and
another agent is acked as before. TC_FULL=1 gives each case its full size; without it a case takes some seconds."""
import ctypes
import json
import os
import re
import secrets
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import BUILD, DEADLINE, FULL, SANITIZE, Case, Collector, patient, wait_until

FLOODER = BUILD / "tests" / "flooding_agent"
MIB = 1 << 20


def full(short, long):
    return long if FULL else short


PACE = full(50, 100)  # generations of the other agent, one after the other
# Limits for the other agent's acks: a full run has the machine to itself.
ACKED_P50_MS, ACKED_P99_MS = full(DEADLINE * 1000, 1000), full(DEADLINE * 1000, 3000)

READING = 20  # descriptors that workers and what watches may have meanwhile
KEPT_FREE = 128  # no peer gets one of the last: TC_FDS_KEPT_FREE

WAITING = full(30, 1000)  # generations that an archive without inodes owes


class Watch:
    """Looks at a collector while something goes on: its memory, its health, and how long another agent waits for acks."""

    def __init__(self, case, collector, well=True):
        """well: it has all that it needs, and says so; else it answers."""
        self.case, self.collector, self.well = case, collector, well
        self.memory, self.paces, self.answered, self.fault = [case.resident(collector)], [], [], None
        self.over = threading.Event()

    def __enter__(self):
        self.threads = [threading.Thread(target=self._repeat, args=(what,)) for what in (self._look, self._pace)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if kind is None and self.fault is not None:
            raise self.fault

    def _repeat(self, what):
        try:
            what()  # once at least, however short the attack
            while not self.over.is_set():
                what()
        except BaseException as fault:  # for the thread that waits
            self.fault = self.fault or fault

    def _look(self):
        began = time.monotonic()
        health = self.case.get(self.collector, "/healthz")
        self.answered.append(1000 * (time.monotonic() - began))
        ready = self.case.readiness(self.collector)
        if self.well:
            self.case.assertEqual(health, (200, "ok\n"))
            self.case.assertTrue(ready["ready"] and all(check["ok"] for check in ready["checks"]), ready)
        self.memory.append(self.case.resident(self.collector))
        self.over.wait(0.1)

    def _pace(self):
        self.paces.append(self.case.pace(self.collector))
        self.over.wait(0.5)

    def expect(self, growth_max, p99_ms=ACKED_P99_MS):
        """Bytes by which its memory may have grown, and how long the other agent may wait."""
        growth = max(self.memory) - self.memory[0]
        p50, p99 = (max(pace[f"acked_{part}"] for pace in self.paces) for part in ("p50", "p99"))
        if not SANITIZE:  # which has memory and a pace of its own
            self.case.assertLess(growth, growth_max)
            self.case.assertLess(p50, ACKED_P50_MS)
            self.case.assertLess(p99, p99_ms)
        return (f"memory +{growth / MIB:.1f} MiB to {max(self.memory) / MIB:.0f} MiB, another's acks p50 {p50:.1f} p99 {p99:.1f} ms, "
                f"{len(self.memory) - 1} looks at its health, answered within {max(self.answered):.1f} ms")


class AttackCase(Case):
    def start(self, *settings, **options):
        self.tracectl("certs", "agent", self.certs, "other")
        return Collector(self, *settings, **options)

    def attack(self, collector, verb, *size):
        """Runs it to its end; answers what it says was acked."""
        return json.loads(self.run_program(FLOODER, verb, collector.ready["agents"], self.certs, "agent", *size).out)

    def pace(self, collector, generations=PACE):
        done = subprocess.run([str(word) for word in (FLOODER, "pace", collector.ready["agents"], self.certs, "other", generations)],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def resident(self, collector):
        """Bytes of memory that are the process's own: mapped files can be had back."""
        with open(f"/proc/{collector.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * 1024

    def descriptors(self, collector):
        return len(os.listdir(f"/proc/{collector.process.pid}/fd"))

    def get(self, collector, path):
        try:
            with urllib.request.urlopen(f"http://{collector.ready['http']}{path}", timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def readiness(self, collector):
        return json.loads(self.get(collector, "/readyz")[1])

    def metric(self, collector, name):
        return float(re.search(rf"^tracecollect_{re.escape(name)} (\S+)$", self.get(collector, "/metrics")[1], re.M).group(1))

    def streams(self, collector, service):
        return [row for row in json.loads(self.get(collector, "/api/v1/streams")[1])["streams"] if row["service"] == service]

    def accounted(self, collector, service):
        """Batches of a service's streams that are in the archive or lost."""
        return sum(row["batches"] + row["lost_batches"] for row in self.streams(collector, service))

    def expect_paces(self, collector, watch):
        """All of the other agent's is archived, which comes a little later than its acks."""
        wait_until("the other's is archived", lambda: self.accounted(collector, "pace") == PACE * len(watch.paces))

    def verify(self, collector):
        """The proof of a collector that may still have what the attack left it to do: it says so, and is asked again."""
        def proof():
            done = collector.ask("verify", "--json", expect=None)
            return done.out if done.returncode == 0 else self.assertIn("the store is still busy", done.err)
        return json.loads(wait_until("the store has time for a proof", proof).splitlines()[-1])

    def expect_proven(self, collector):
        """All accounts of the running collector are closed, and those of its files when it has ended."""
        proof = self.verify(collector)
        self.assertEqual(proof["problems"], 0, proof)
        for unit in ("batches", "bytes"):
            self.assertEqual(proof[f"produced_{unit}"], sum(proof[f"{part}_{unit}"] for part in ("archived", "taken", "lost")), proof)
            self.assertEqual(proof[f"live_produced_{unit}"], sum(
                proof[f"live_{part}_{unit}"] for part in ("archived", "taken", "lost", "open", "spooled")), proof)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)


class Attacks(AttackCase):
    def test_a_generation_that_never_ends_is_given_up(self):
        held = full(32, 256)
        collector = self.start(f"agents.heartbeat={patient(1)}", f"agents.abandon_after={patient(3)}", "log.file_bytes=4MiB", "log.checkpoint_bytes=16MiB", 
                               f"log.held_bytes_max={held}MiB", f"agents.generation_bytes_max={held}MiB")
        with Watch(self, collector) as watch:
            said = self.attack(collector, "endless", *full((1500, 10), (100000, 10)))
        text = watch.expect(32 * MIB)
        wait_until("it is given up", lambda: "gen=1: its end did not come in time; its bytes are in quarantine" in self.log("collector"))
        wait_until("all of it is told as lost", lambda: self.accounted(collector, "endless") == said["acked_batches"])
        self.assertEqual(self.streams(collector, "endless")[0]["lost_batches"], said["acked_batches"])
        self.expect_paces(collector, watch)
        kept = sum(file.stat().st_size for folder in ("open", "quarantine") for file in (collector.state / folder).iterdir())
        self.assertLess(kept, 2 * held * MIB)
        self.assertLess(self.metric(collector, "log_bytes"), 2 * held * MIB)
        print(f"endless: {said['acked_bytes'] / MIB:.0f} MiB of one generation, {kept / MIB:.0f} MiB of it kept; {text}", flush=True)
        self.expect_proven(collector)

    def test_ends_of_generations_without_a_batch_take_no_memory(self):
        collector = self.start("agents.stream_generations_rate=0", "agents.identity_generations_rate=0")
        generations = full(30_000, 1_000_000)
        with Watch(self, collector) as watch:
            said = self.attack(collector, "empty", generations)
        text = watch.expect(full(16, 64) * MIB)  # those of the other agent's streams are most of it
        wait_until("all is told", lambda: self.streams(collector, "empty")[0]["acked_seq"] == 1 + generations)
        self.assertEqual(self.accounted(collector, "empty"), 0)
        self.expect_paces(collector, watch)
        print(f"empty: {generations} ends without a batch in {said['ms'] / 1000:.1f} s; {text}", flush=True)
        self.expect_proven(collector)

    def test_many_streams_that_send_one_record_each(self):
        """At once; then they leave without a word. What a quarter of them has open takes no descriptor that agents need: of all descriptors
        the files of streams have a quarter at most, and there are more of these than would fit in otherwise."""
        streams, heartbeat = full((80, 1), (10_000, 60))  # these send none
        collector = self.start(f"agents.heartbeat={patient(heartbeat)}", f"agents.abandon_after={patient(3 * heartbeat)}", "retention.every=1s")
        rounds = 1 if FULL else self.leave_descriptors(collector, streams)
        words = []
        with Watch(self, collector) as watch:
            for _ in range(rounds):
                words.append(self.attack(collector, "single", streams))
                wait_until("they have left", lambda: self.metric(collector, "connections") <= 1)  # the other agent may be there
        text = watch.expect(rounds * streams * 64 * 1024)
        self.assertEqual(self.metric(collector, "peers_turned_away_total"), 0)
        wait_until("all are known", lambda: len(self.streams(collector, "single")) == rounds * streams)  # what status says comes a little later
        began = time.monotonic()
        collector.restart()
        again = time.monotonic() - began
        batches = sum(said["acked_batches"] for said in words)
        wait_until("their beginnings are kept", lambda: len(os.listdir(collector.state / "quarantine")) == rounds * streams // 4)
        wait_until("they are given up", lambda: self.accounted(collector, "single") == batches)
        wait_until("they are counted", lambda: self.metric(collector, "quarantine_files") == rounds * streams // 4)
        self.assertIn("its agent did not come back to end it; its bytes are in quarantine", self.log("collector"))
        print(f"single: {rounds} times {streams} streams in {sum(said['ms'] for said in words) / 1000:.1f} s; {text}; "
              f"started again in {again:.2f} s", flush=True)
        self.expect_proven(collector)

    def leave_descriptors(self, collector, streams):
        """Starts it again with as many as it needs for so many connections at once; answers after how many rounds of them the files of
        their streams would have taken these."""
        if shutil.which("prlimit") is None:
            self.skipTest("skipped, because prlimit is not installed")
        needed = self.descriptors(collector) + streams + READING + KEPT_FREE
        limit = needed * 4 // 3 + 1
        collector.launcher = ["prlimit", f"--nofile={limit}:{limit}"]
        collector.restart()
        return (limit // 4 + READING) // (streams // 4) + 1

    def test_an_agent_that_opens_and_leaves_streams_shuts_out_none_for_long(self):
        most = full(20, 2000)
        collector = self.start(f"agents.heartbeat={patient(1)}", f"agents.abandon_after={patient(3)}", f"agents.identity_streams_max={most}",
                               "analysis.memory_max=32MiB")
        with Watch(self, collector) as watch:
            words = []
            while sum(said["streams"] for said in words) <= most:  # later ones have the place of those that are over
                words.append(self.attack(collector, "churn", full(1500, 120_000)))
        text = watch.expect(64 * MIB)
        for said in words:
            if said["refused"] > 0:
                self.assertEqual(said["refusal"], f"agents.identity_streams_max is {most} for one certificate name")
        batches = sum(said["acked_batches"] for said in words)
        wait_until("all that was acked is archived", lambda: self.accounted(collector, "churn") == batches)
        self.assertEqual(sum(row["batches"] for row in self.streams(collector, "churn")), batches)
        wait_until("there is place again", lambda: self.run_program(
            FLOODER, "endless", collector.ready["agents"], self.certs, "agent", 1, expect=None).returncode == 0)
        streams, refused, ms = (sum(said[what] for said in words) for what in ("streams", "refused", "ms"))
        print(f"churn: {streams} streams and {refused} refusals in {ms / 1000:.1f} s; {text}", flush=True)
        self.expect_proven(collector)

    def test_a_disk_without_inodes_loses_nothing_that_was_acked(self):
        disk = self.folder / "disk"
        disk.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(disk).encode(), b"tmpfs", 0, b"size=256m,nr_inodes=400") != 0:
            self.skipTest(f"no tmpfs: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: libc.umount2(str(disk).encode(), 2))  # MNT_DETACH; before the folder is removed
        collector = self.start(f"state={disk}/state", "log.file_bytes=64MiB", "disk.reserve_bytes=0", "disk.free_min=4MiB",
                               "retention.free_bytes=0", "segment.generations_max=1", f"agents.generations_max={2 * WAITING}")
        collector.state = disk / "state"
        self.pace(collector, 1)  # the log has a file now, and room in it
        before = self.resident(collector)
        fillers = []
        while os.statvfs(disk).f_favail > 0:
            fillers.append(disk / f"filler-{len(fillers)}")
            fillers[-1].touch()
        pace = self.pace(collector, WAITING)
        wait_until("the archive waits", lambda: self.metric(collector, 'store_waits{part="archive",reason="inodes"}') == 1)
        self.assertEqual(self.get(collector, "/healthz"), (503, "full: no inodes left on the disk (archive)\n"))
        wait_until("it is not ready", lambda: not self.readiness(collector)["ready"])
        ready = self.readiness(collector)
        self.assertEqual([check["name"] for check in ready["checks"] if not check["ok"]], ["disk"])
        self.assertIn("inodes", next(check["state"] for check in ready["checks"] if check["name"] == "disk"))
        self.assertEqual(self.metric(collector, "disk_free_inodes"), 0)
        said = wait_until("the log says it", lambda: [line for line in self.log("collector").split("\n")[:-1] if "no inodes left on the disk: " in line])
        self.assertEqual(len(said), 1, said)
        self.assertIn("the archive waits, the log keeps what is acked", said[0])
        growth = self.resident(collector) - before
        if not SANITIZE:
            self.assertLess(growth, 16 * MIB)
        for filler in fillers:
            filler.unlink()
        done = libc.mount(b"none", str(disk).encode(), b"tmpfs", 32, b"size=256m,nr_inodes=100000")  # MS_REMOUNT
        self.assertEqual(done, 0, os.strerror(ctypes.get_errno()))
        wait_until("all that was acked is archived", lambda: self.accounted(collector, "pace") == 1 + WAITING)
        wait_until("all is well", lambda: self.readiness(collector)["ready"])
        print(f"inodes: {WAITING} generations acked without an inode and archived later, acks p99 "
              f"{pace['acked_p99']:.1f} ms, memory +{growth / MIB:.1f} MiB", flush=True)
        self.expect_proven(collector)

    def test_folders_with_many_foreign_files(self):
        many = full(300, 1_000_000)
        collector = self.start()
        trace = self.trace("g26-gens")
        collector.send(trace, "good")
        self.assertEqual(collector.stop(), 0)
        usual = self.starts(collector)
        day = next((collector.state / "archive").iterdir())
        stream = next(day.iterdir())
        spots = [(collector.state / "quarantine", lambda n: f"note-{n}", True),
                 (collector.state / "quarantine", lambda n: f"{secrets.token_hex(16)}-{n:016x}.part", False),  # under retention
                 (collector.state / "open", lambda n: f"note-{n}", True),
                 (collector.state / "open", lambda n: f"{secrets.token_hex(16)}-{n:016x}.part", False),  # no log is behind it
                 (collector.state / "wal", lambda n: f"note-{n}", True),
                 (day, lambda n: f"{secrets.token_hex(16)}", True),
                 (stream, lambda n: f"note-{n}", True)]
        for group in [[spot] for spot in spots] if FULL else [spots]:
            files = [(folder / name(n), stay) for folder, name, stay in group for n in range(many)]
            for file, _ in files:
                file.touch()
            (collector.state / "catalog.stale").touch()  # all folders are looked through
            taken, peak = self.starts(collector)
            print(f"folder: {many} files each in {', '.join(str(file.parent.name) for file, _ in files[::many])}: started with {taken:.2f} s of CPU, "
                  f"usually {usual[0]:.2f}, memory at most {peak / MIB:.0f} MiB, usually {usual[1] / MIB:.0f}", flush=True)
            if not SANITIZE:
                self.assertLess(peak, usual[1] + full(16, 320) * MIB)
                self.assertLess(taken, full(5, 60))
            self.assertEqual(list((collector.state / "open").glob("*.part")), [])
            for file, stay in files:
                file.unlink(missing_ok=not stay)

    def starts(self, collector):
        """Seconds of CPU until it is ready, and the most memory it had; a stream is taken and archived meanwhile."""
        collector.start()
        with open(f"/proc/{collector.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        taken = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self.assertTrue(self.readiness(collector)["ready"])
        pace = self.pace(collector, 20)
        if not SANITIZE:
            self.assertLess(pace["acked_p50"], ACKED_P50_MS)
        proof = self.verify(collector)
        self.assertEqual((proof["problems"], proof["closed_streams"]), (0, 1), proof)
        with open(f"/proc/{collector.process.pid}/status", encoding="ascii") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * 1024
        self.assertEqual(collector.stop(), 0)
        return taken, peak
