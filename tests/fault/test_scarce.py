# SPDX-License-Identifier: Apache-2.0
"""Row 10, the daemon's side: every allocation of a tracecollectd, the libraries' in it too, and every call of the system
fails in turn, once, and then with all behind it, while it starts, works and ends. See scarce_shim.c.

It may say no, end a connection, or end as a program that cannot go on; it must not crash, hang, or lose what was acked.
"""
import http.client
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import time
import unittest
import urllib.request

from harness import BUILD, DEADLINE, SANITIZE, TRACECTL, Collector, die_with_parent, wait_until
from faults import FULL, FaultCase, full

SHIM = BUILD / "tests/scarce_shim.so"
OWN, LIBRARIES, CALLS_FAIL, CALLS_INTERRUPTED, CALLS_SHORT = range(1, 6)
NAMES = {OWN: "own allocations", LIBRARIES: "libraries' allocations", CALLS_FAIL: "failed calls",
         CALLS_INTERRUPTED: "interrupted calls", CALLS_SHORT: "short transfers"}
STAYING = (OWN, LIBRARIES, CALLS_FAIL, CALLS_SHORT)  # an interruption that stays would be a call that never ends
STEP_FROM = int(os.environ.get("TC_SEED", "0"))  # which of each step
SHORTAGE_S = 0.03  # of one that stays
# Libraries that answer with abort(): the daemon ends as by kill -9, and the next start has all that was acked. Lines of another thread may
# stand between those of the stack: then the frame that called abort() shows it.
LIBRARY_ABORTS = re.compile(r"SIGABRT\n(?:(?:.*(?:scarce_shim|libc|libasan)\S*\n)*|(?:.*\n)*?.*\(abort\+\S*\n).*(libnng|libuv|libcrypto|libstdc)")
# nng that cannot set itself up takes down what it has not made yet: it crashes, or waits for itself.
NNG_CRASHES = re.compile(r"a signal that ends the process\n(?:.*(?:scarce_shim|libc)\S*\n)*.*libnng")
NNG_FAILED = re.compile(r"scarce: fails: .*\n(?:.*(?:scarce_shim|libc|ld-linux)\S*\n)*.*libnng")
NNG_STUCK_S = 15


def frames(said):
    """The names in the backtrace of such an end, from the library on."""
    lines = said[re.search("scarce: (SIGABRT|a signal)", said).start():].splitlines()[1:40]
    return " < ".join(re.sub(r"^.*/|\[.*$", "", line) for line in lines if "(" in line and "scarce_shim" not in line)[:700]


class Orders:
    """The file a shim reads its orders from, and counts in."""

    def __init__(self, path):
        path.write_bytes(bytes(40))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 40)

    def give(self, kind, fail_at=0, for_ever=False):
        struct.pack_into("<q", self.map, 0, 0)  # nobody counts while the numbers change
        struct.pack_into("<5q", self.map, 0, 0, fail_at, for_ever, 0, 0)
        struct.pack_into("<q", self.map, 0, kind)

    def failed(self):
        return struct.unpack_from("<q", self.map, 32)[0]

    def end(self):
        """There is enough again; answers how many there were and how many failed."""
        count, failed = struct.unpack_from("<2q", self.map, 24)
        struct.pack_into("<q", self.map, 0, 0)
        return count, failed


class Scarce(FaultCase):
    def setUp(self):
        super().setUp()
        path = self.folder / "orders"
        self.orders = Orders(path)
        self.addCleanup(self.orders.map.close)
        environment = {**os.environ, "LD_PRELOAD": str(SHIM), "TT_SCARCE": str(path)}
        if SANITIZE:
            environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
            # The dynamic linker's are known to the leak checker, but for the frame that the shim puts between.
            suppressions = self.folder / "lsan"
            suppressions.write_text("leak:_dl_\n")
            environment["LSAN_OPTIONS"] = f"suppressions={suppressions}:print_suppressions=0"
        self.trace_file = self.three_generations()
        self.sent, self.log_from, self.ends, self.aborts, self.refused, self.stuck = 0, 0, 0, [], 0, 0
        self.collector = Collector(self, env=environment)
        self.collector.wait = False

    def three_generations(self):
        whole = self.trace("g26-gens")
        fourth = json.loads(self.tracectl("index", "--json", whole).out.splitlines()[3])
        part = self.folder / "three.trace"
        part.write_bytes(whole.read_bytes()[:fourth["offset"]])
        return part

    # --- what is asked of a daemon ---

    def send(self):
        """A whole trace of an instance of its own, acked."""
        self.sent += 1
        return subprocess.Popen([str(TRACECTL), "send", str(self.trace_file), "--to", self.collector.ready["agents"], "--certs",
                                 str(self.certs), "--service", "fault", "--instance", f"i{self.sent}", "--no-progress",
                                 "--timeout", f"{DEADLINE - 30:.0f}s"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, preexec_fn=die_with_parent)

    def ask(self, *question):
        """A question may be refused or cut off while something is scarce; it has an end in any case. Answers whether it
        was answered."""
        done = self.tracectl(*question, "--server", self.collector.to, "--certs", self.certs, expect=None)
        self.assertIn(done.returncode, (0, 1), done.err)
        return done.returncode == 0

    def look(self, path):
        """Returns None if the request was refused or cut off."""
        try:
            with urllib.request.urlopen(f"http://{self.collector.ready['http']}{path}", timeout=DEADLINE) as answer:
                return answer.read()
        except (OSError, http.client.HTTPException):
            return None

    # --- what may happen ---

    def judge(self, what):
        """The daemon has ended: by itself, with a reason, or by a library's abort(). Anything else is ours."""
        code = self.collector.process.returncode
        said = self.collector_log()
        if (code == -6 and LIBRARY_ABORTS.search(said)) or (code == -11 and NNG_CRASHES.search(said)):
            self.aborts.append(said)
            return
        self.assertEqual(code, 1, f"{what}: {said[-6000:]}")
        self.assertRegex(said, r"(?m)( (fatal|error) main: |^tracecollectd: )", f"{what}: ended without a word: {said[-3000:]}")
        self.ends += 1

    def collector_log(self):
        """Returns the daemon's log since its start."""
        with open(self.folder / "collector.log", "rb") as log:
            log.seek(self.log_from)
            return log.read().decode(errors="replace")

    def gone(self):
        return self.collector.process.poll() is not None

    def begin(self, kind, n, for_ever):
        self.orders.give(kind, n, for_ever)

    def start_again(self):
        """With enough of everything."""
        self.orders.end()
        self.start()
        wait_until("the collector is ready", self.collector._is_ready)

    def start(self):
        self.log_from = (self.folder / "collector.log").stat().st_size
        self.collector.start()

    def let_last(self, settled):
        """A shortage that stays is felt, and ends."""
        wait_until("it is felt, or was not", lambda: self.orders.failed() or settled() or self.gone())
        time.sleep(SHORTAGE_S)  # not for a condition: how long a shortage lasts
        self.orders.end()

    # --- turns: each answers how many there were to fail ---

    def turn_of_work(self, kind, n, for_ever):
        what = f"{NAMES[kind]}, number {n}{' and all behind it' if for_ever else ''}"
        if self.gone():
            self.start_again()
        self.begin(kind, n, for_ever)
        sender = self.send()
        if for_ever:
            self.let_last(lambda: sender.poll() is not None)
        wait_until(f"{what}: the trace is acked, or the daemon gone", lambda: sender.poll() is not None or self.gone())
        if not self.gone():
            for path in ("/metrics", "/readyz", "/api/v1/streams"):
                self.look(path)
            self.ask("list", "--json", "--service", "fault", "--instance", f"i{self.sent}")
            self.ask("fetch", "--service", "fault", "--instance", f"i{self.sent}", "-o", self.folder / "scarce")
        count, _ = self.orders.end()
        wait_until(f"{what}: the trace is acked, and the daemon answers",
                   lambda: (not self.gone() or self.answers(what)) and sender.poll() is not None and self.answers(what))
        said = sender.communicate()[1].decode()
        if sender.returncode != 0 and ("TLS alert" in said or "out of memory" in said):
            # OpenSSL short of memory calls a good certificate weak, or of an unknown authority, or cannot read its names.
            # An agent comes again by itself; `tracectl send` believes it.
            self.refused += 1
            self.sent -= 1
            sender = self.send()
            said = sender.communicate()[1].decode()
        self.assertEqual(sender.returncode, 0, f"{what}: {said} {self.collector_log()[-6000:]}")
        return count

    def answers(self, what):
        """A daemon that has ended is started again."""
        if self.gone():
            self.judge(what)
            self.start_again()
        return self.look("/readyz") and self.ask("list", "--service", "fault")

    def turn_of_start(self, kind, n, for_ever):
        what = f"start, {NAMES[kind]}, number {n}{' and all behind it' if for_ever else ''}"
        if not self.gone():
            self.assertEqual(self.collector.stop(), 0)
        self.begin(kind, n, for_ever)
        self.start()
        if for_ever:
            self.let_last(self.collector.ready_file.exists)
        began = time.monotonic()
        wait_until(f"{what}: it is ready, or says why not", lambda: self.collector.ready_file.exists() or self.gone() or
                   (time.monotonic() - began > NNG_STUCK_S and NNG_FAILED.search(self.collector_log())))
        count, _ = self.orders.end()
        if not self.gone() and not self.collector.ready_file.exists():
            self.collector.kill()
            self.stuck += 1
            return count
        if not self.gone():
            self.collector.process.send_signal(signal.SIGTERM)
            wait_until(f"{what}: it ends", self.gone)
        if self.collector.process.returncode != 0:
            self.judge(what)
        return count

    def turn_of_end(self, kind, n, for_ever):
        what = f"end, {NAMES[kind]}, number {n}{' and all behind it' if for_ever else ''}"
        if self.gone():
            self.start_again()
        self.assertEqual(self.send().wait(), 0)
        self.begin(kind, n, for_ever)
        self.collector.process.send_signal(signal.SIGTERM)
        wait_until(f"{what}: it ends", self.gone)
        count, _ = self.orders.end()
        if self.collector.process.returncode != 0:
            self.judge(what)
        return count

    # --- all of them ---

    def sweep(self, turn, kind, step):
        """Every step-th of them, or one if not all is wanted; answers how many there are, and turns."""
        turns, many = 0, turn(kind, 0, False)
        step = full(many, step)
        for for_ever in (False, True) if kind in STAYING else (False,):
            for n in range(1 + STEP_FROM % step if FULL else many // 2, many + 1, step):
                with self.subTest(kind=NAMES[kind], n=n, for_ever=for_ever):  # the next is tried in any case
                    turn(kind, n, for_ever)
                turns += 1
        return many, turns

    def prove(self):
        """All that was acked is there, byte for byte."""
        if self.gone():
            self.start_again()
        for n in range(1, self.sent + 1):
            out = self.collector.fetch(self.folder / "fetched", "fault", f"i{n}")
            self.assert_same_bytes(out, self.trace_file)
        self.assert_proven(self.collector, self.sent)

    def row(self, *sweeps):
        for turn, kind, step in sweeps:
            many, turns = self.sweep(turn, kind, step)
            print(f"row 10: {turn.__name__.replace('_', ' ')}: {NAMES[kind]}: {many}, {turns} turns", flush=True)
        self.prove()
        print(f"row 10: {self.ends} ends that said why, {len(self.aborts)} by abort() of a library or a crash of nng, {self.stuck} in which nng waited for itself, "
              f"{self.refused} certificates refused for want of memory", flush=True)
        for text in sorted({frames(text) for text in self.aborts}):
            print(f"row 10: a library aborts: {text}", flush=True)

    @unittest.skipIf(FULL, "all of it is run")
    def test_row_10_in_short(self):
        self.row((self.turn_of_start, OWN, 1), (self.turn_of_start, LIBRARIES, 1), (self.turn_of_start, CALLS_FAIL, 1),
                 (self.turn_of_work, OWN, 1), (self.turn_of_work, LIBRARIES, 1), (self.turn_of_work, CALLS_FAIL, 1),
                 (self.turn_of_work, CALLS_SHORT, 1))

    @unittest.skipUnless(FULL, "takes long")
    def test_row_10_start(self):
        self.row((self.turn_of_start, OWN, 1), (self.turn_of_start, LIBRARIES, 37), (self.turn_of_start, CALLS_FAIL, 1),
                 (self.turn_of_start, CALLS_INTERRUPTED, 1), (self.turn_of_start, CALLS_SHORT, 1))

    @unittest.skipUnless(FULL, "takes long")
    def test_row_10_work(self):
        self.row((self.turn_of_work, OWN, 1), (self.turn_of_work, CALLS_FAIL, 1), (self.turn_of_work, CALLS_INTERRUPTED, 1),
                 (self.turn_of_work, CALLS_SHORT, 1))

    @unittest.skipUnless(FULL, "takes long")
    def test_row_10_work_libraries(self):
        self.row((self.turn_of_work, LIBRARIES, 37))

    @unittest.skipUnless(FULL, "takes long")
    def test_row_10_end(self):
        self.row((self.turn_of_end, OWN, 1), (self.turn_of_end, LIBRARIES, 37), (self.turn_of_end, CALLS_FAIL, 1),
                 (self.turn_of_end, CALLS_INTERRUPTED, 1), (self.turn_of_end, CALLS_SHORT, 1))
