# SPDX-License-Identifier: Apache-2.0
"""Shared by the fault rows: agents whose traces are made from a seed, a proxy that misbehaves, a disk and a clock
that do, and the oracle, which compares the acks that agents report with the archive.
"""
import errno
import json
import os
import re
import signal
import struct
import subprocess

from harness import BUILD, DEADLINE, SANITIZE, Case, Collector, die_with_parent, wait_until

FULL = bool(os.environ.get("TC_FULL"))
AGENT, PROXY, SHIM = (BUILD / "tests" / name for name in ("seeded_agent", "fault_proxy", "disk_shim.so"))
STREAMING = 2  # TA_STATE_STREAMING


def full(short, long):
    """A row's number: of the table if all of it is wanted, else small enough for every run of the tests."""
    return long if FULL else short


class Agent:
    """A program that streams the generations of a seed; what the agent says of itself is printed as it runs."""

    def __init__(self, case, address, seed, mb_s=2, generation_bytes=200_000, spool_bytes=16 << 20, spool_dir=None, program=None):
        self.case, self.seed, self.generation_bytes = case, seed, generation_bytes
        self.name = f"agent-{seed}"
        self.out = case.folder / f"{self.name}.out"
        with open(self.out, "wb") as out:
            self.process = case.spawn(self.name, program or case.agent, "send", address, case.certs, f"i{seed}", seed, generation_bytes,
                                      mb_s, spool_bytes, *([spool_dir] if spool_dir else []), stdout=out)

    @property
    def status(self):
        """As last printed; zeroes before the first."""
        with open(self.out, "rb") as out:
            out.seek(max(os.fstat(out.fileno()).st_size - 4096, 0))
            lines = [line for line in out.read().split(b"\n")[:-1] if line.startswith(b"{")]
        return json.loads(lines[-1]) if lines else dict.fromkeys(
            ("acked_batches", "acked_bytes", "acked_generations", "reconnects", "produced_bytes", "lost_bytes"), 0)

    def history(self):
        """All it printed, ten times a second."""
        return [json.loads(line) for line in self.out.read_bytes().split(b"\n")[:-1] if line.startswith(b"{")]

    def hold(self):
        """Stops in the middle of a generation; half of it is acked, and all before it."""
        wait_until(f"{self.name} is at work", lambda: self.status.get("stream"))
        self.process.send_signal(signal.SIGUSR1)
        wait_until(f"{self.name} is in the middle of a generation", lambda: self.status["held"])

    def go_on(self):
        self.process.send_signal(signal.SIGUSR2)

    def finish(self, seconds=DEADLINE):
        """SIGTERM; answers its last words. All must be acked."""
        self.process.send_signal(signal.SIGTERM)
        self.case.assertEqual(self.process.wait(seconds), 0, f"{self.name}: {self.status} {self.case.log(self.name)}")
        return self.status

    def check(self, *files):
        """Byte for byte what was written; answers (first, last, batches, bytes) of each file."""
        out = self.case.run_program(AGENT, "check", self.seed, self.generation_bytes, *files).out
        return [tuple(map(int, line.split())) for line in out.splitlines()]


class Proxy:
    """fault_proxy between agents and a collector."""

    def __init__(self, case, upstream, seed, *faults):
        self.process = subprocess.Popen([str(PROXY), upstream, str(seed), *faults], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        case.processes.append(self.process)
        case.addCleanup(self.process.stdin.close)
        case.addCleanup(self.process.stdout.close)
        self.address = self.process.stdout.readline().decode().split()[1]

    def tell(self, command):
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()

    def count(self):
        """Connections, cuts and bytes so far."""
        self.tell("count")
        return {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", self.process.stdout.readline().decode())}


class Shim:
    """The disk and the clock of a daemon started with .environment; see disk_shim.c."""
    BYTES = 256

    def __init__(self, case):
        if SANITIZE:
            case.skipTest("a preloaded disk does not go with a sanitizer's runtime")
        self.path = case.folder / "shim"
        self.environment = {**os.environ, "LD_PRELOAD": str(SHIM), "TT_SHIM": str(self.path)}
        self.path.write_bytes(bytes(self.BYTES))

    def order(self, sync_ns=0, write_errno=0, clock_ns=0):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<3q", sync_ns, write_errno, clock_ns))

    def _put(self, offset, content):
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(offset)
            file.write(content)

    def unreadable(self, pattern, first=0, end=1 << 40, inode=0):
        """From now on bytes first to end, without it, of files with such a path cannot be read. inode: of that one only."""
        self.readable()
        self._put(32, struct.pack("<4q", first, end, 0, inode))
        self._put(64, pattern.encode() + b"\0")
        self._put(24, struct.pack("<q", errno.EIO))

    def readable(self):
        self._put(24, struct.pack("<q", 0))

    @property
    def failed_reads(self):
        """Since unreadable()."""
        return struct.unpack_from("<q", self.path.read_bytes(), 48)[0]


class FaultCase(Case):
    """A case with the oracle."""
    agent = AGENT

    def metrics(self, collector):
        """Every sample without labels, by name."""
        import urllib.request
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            return {name: float(value) for name, value in
                    re.findall(r"^(\w+) ([-+0-9.e]+)$", answer.read().decode(), re.M)}

    def fetched(self, collector, agent, *more):
        """The files of what the archive has of an agent; a hole begins another one."""
        out = self.folder / f"fetched-{agent.seed}"
        for old in self.folder.glob(f"{out.name}*"):
            old.unlink()
        collector.fetch(out, "fault", f"i{agent.seed}", *more)
        rest = sorted((p for p in self.folder.glob(f"{out.name}.*")), key=lambda p: int(p.suffix[1:]))
        return [out, *rest]

    def assert_kept(self, collector, agent, said):
        """I1, I2, I3 and I7 for one agent whose last words these are: what it was acked is in the archive, once,
        byte for byte, and the rest is told as lost."""
        self.assertEqual(said["begun_anew"], 0, f"acked records were gone: {said}")
        self.assertEqual(said["faults"], 0)
        self.assertEqual(said["produced_bytes"], said["acked_bytes"] + said["lost_bytes"], said)
        runs = agent.check(*self.fetched(collector, agent))
        for before, after in zip(runs, runs[1:]):
            self.assertLess(before[1], after[0], "generations twice, or out of order")
        self.assertEqual(sum(run[2] for run in runs), said["acked_batches"], (runs, said))
        self.assertEqual(sum(run[3] for run in runs), said["acked_bytes"], (runs, said))
        self.assertEqual(sum(last - first + 1 for first, last, _, _ in runs), said["acked_generations"])

    def assert_proven(self, collector, streams, lost_bytes=0):
        """I4, I6, I7: the running collector proves its archive, and so do its files when it has ended."""
        proof = collector.json_lines("verify")[-1]
        self.assertEqual(proof["closed_streams"], streams, proof)
        self.assertEqual(proof["lost_bytes"], lost_bytes, proof)
        self.assertEqual(proof["produced_bytes"], proof["archived_bytes"] + proof["taken_bytes"] + lost_bytes)
        self.assertEqual(collector.stop(), 0, self.log(collector.name))
        self.tracectl("verify", collector.state)

    def finish_all(self, collector, agents):
        """Ends the agents and checks everything there is to check."""
        for agent in agents:
            agent.process.send_signal(signal.SIGTERM)
        words = [agent.finish() for agent in agents]
        for agent, said in zip(agents, words):
            self.assert_kept(collector, agent, said)
        self.assert_proven(collector, len(agents), sum(said["lost_bytes"] for said in words))
        return words

    def acked(self, agents):
        return sum(agent.status["acked_bytes"] for agent in agents)
