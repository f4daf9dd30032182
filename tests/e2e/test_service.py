# SPDX-License-Identifier: Apache-2.0
"""The daemon under a service manager: readiness, status, watchdog, sockets it is handed."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import socket
import sys
import urllib.request

from harness import DAEMON, DEADLINE, SANITIZE, TRACECTL, Case, Collector, Manager, held_port, suites, wait_until

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
THREADS = ("tc-loop-0", "tc-loop-1", "tc-commit", "tc-sealer", "tc-feed", "tc-leases")


class Halted:
    """A single thread of a process, stopped while the others go on (a signal would stop them
    all)."""

    def __init__(self, process, name):
        tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
        self.thread = next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def _ptrace(self, request):
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if self.libc.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self._ptrace(PTRACE_SEIZE)
        self._ptrace(PTRACE_INTERRUPT)
        os.waitpid(self.thread, WALL)
        return self

    def __exit__(self, *_):
        self._ptrace(PTRACE_DETACH)


class Watched:
    """A collector of which one thread will stand still. Loops turn each 100 ms, the sealer each second; the watchdog asks each one
    and a half."""

    def __init__(self, case, thread):
        self.case, self.thread, self.manager = case, thread, Manager(case, thread)
        self.collector = Collector(case, "loops=2", name=thread, env=self.manager.environment(WATCHDOG_USEC="3000000"))

    def times_still(self):
        return self.case.log(self.thread).count(f"thread={self.thread}: is stuck")

    def count(self):
        """Lines that name the thread, and signs of life."""
        return self.times_still(), self.manager.count("WATCHDOG")


def await_more(watched, what, which):
    """Each of them has one more line (0) or sign of life (1) than at the call."""
    before = [one.count()[which] for one in watched]
    for one, count in zip(watched, before):
        wait_until(f"{what}: {one.thread}", lambda: one.count()[which] > count)


class Service(Case):
    def setUp(self):
        super().setUp()
        self.manager = Manager(self)

    def test_ready_comes_once_and_stopping_before_the_end(self):
        collector = Collector(self, env=self.manager.environment())
        wait_until("READY", lambda: self.manager.count("READY"))
        self.assertEqual(collector.stop(), 0)
        self.assertEqual(self.manager.count("READY"), 1)
        self.assertEqual(self.manager.count("STOPPING"), 1)
        self.assertIn("STOPPING", self.manager.messages[-1])

    @suites("release")
    def test_the_status_tells_streams_rate_and_health(self):
        collector = Collector(self, env=self.manager.environment())
        wait_until("a status", lambda: any("0 streams, 0.0 MB/s, ok" in m.get("STATUS", "")
                                           for m in self.manager.messages))
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_the_watchdog_is_fed_while_every_thread_turns(self):
        """A collector for each thread, so that all can stand still at once."""
        watched = [Watched(self, thread) for thread in (THREADS if not SANITIZE else THREADS[1:4])]
        await_more(watched, "the watchdog is fed", 1)
        with contextlib.ExitStack() as all_halted:
            try:
                for one in watched:
                    all_halted.enter_context(Halted(one.collector.process, one.thread))
            except PermissionError:
                self.skipTest("skipped, because this machine does not let us ptrace")
            # A slow machine may have let it stand before.
            await_more(watched, "the log names the thread that stands still", 0)
            fed = [one.manager.count("WATCHDOG") for one in watched]
            await_more(watched, "it was asked again", 0)
            for one, count in zip(watched, fed):
                self.assertEqual(one.manager.count("WATCHDOG"), count, f"fed while {one.thread} stood still")
        await_more(watched, "the watchdog is fed again", 1)
        for one in watched:
            self.assertEqual(one.collector.stop(), 0)

    @suites("release")
    def test_a_watchdog_for_another_process_is_left_alone(self):
        collector = Collector(self, env=self.manager.environment(WATCHDOG_USEC="200000", WATCHDOG_PID="1"))
        wait_until("a status", lambda: self.manager.count("STATUS") > 1)
        self.assertEqual(self.manager.count("WATCHDOG"), 0)
        self.assertEqual(collector.stop(), 0)


class Sockets(Case):
    """Sockets that the service manager opened, as a small launcher hands them over."""

    LAUNCHER = ("import os, sys\n"
                "for number, fd in enumerate(sys.argv[1].split(',')):\n"
                "    os.dup2(int(fd), 103 + number)\n"  # out of the way of 3, 4, ...
                "for number, _ in enumerate(sys.argv[1].split(',')):\n"
                "    os.dup2(103 + number, 3 + number)\n"
                "os.environ.update(LISTEN_FDS=str(number + 1), LISTEN_PID=str(os.getpid()),\n"
                "                  LISTEN_FDNAMES=sys.argv[2])\n"
                "os.execv(sys.argv[3], sys.argv[3:])\n")

    def _launcher(self, names, *sockets):
        fds = ",".join(str(one.fileno()) for one in sockets)
        return [sys.executable, "-c", self.LAUNCHER, fds, names]

    def _listen(self, kind=socket.SOCK_STREAM, listening=True):
        one = socket.socket(socket.AF_INET, kind)
        self.addCleanup(one.close)
        one.bind(("127.0.0.1", 0))
        if listening and kind == socket.SOCK_STREAM:
            one.listen()
        return one

    def _refused(self, names, *sockets):
        done = self.run_program(*self._launcher(names, *sockets), DAEMON, "--set", f"state={self.folder}/state",
                                pass_fds=[one.fileno() for one in sockets], expect=1)
        return done.err

    def test_the_daemon_serves_on_sockets_it_is_handed(self):
        agents, http = self._listen(), self._listen()
        collector = Collector(self, launcher=self._launcher("agents:http", agents, http),
                              pass_fds=[agents.fileno(), http.fileno()])
        self.assertEqual(collector.ready["agents"], "127.0.0.1:%d" % agents.getsockname()[1])
        self.assertEqual(collector.ready["http"], "127.0.0.1:%d" % http.getsockname()[1])
        trace = self.trace("g26-labels")
        collector.send(trace, "handed")
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "handed"), trace)
        with urllib.request.urlopen(f"http://{collector.ready['http']}/healthz", timeout=DEADLINE) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(collector.stop(), 0)

    def test_who_comes_while_the_daemon_is_away_waits_in_the_queue(self):
        agents = self._listen()
        collector = Collector(self, launcher=self._launcher("agents", agents), pass_fds=[agents.fileno()])
        self.assertEqual(collector.stop(), 0)
        trace = self.trace("g26-labels")
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs",
                            self.certs, "--service", "early", "--instance", "one", "--no-progress")
        self.assertIsNone(sender.poll())
        collector.start()
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "early"), trace)
        self.assertEqual(collector.stop(), 0)

    def test_what_is_no_socket_for_us_is_named(self):
        one, two = self._listen(), self._listen()
        self.assertIn('named "feed": FileDescriptorName= must be agents or http', self._refused("feed", one))
        self.assertIn('named "": FileDescriptorName= must be', self._refused("", one))
        self.assertIn('descriptor 4 from the service manager is a second "agents"',
                      self._refused("agents:agents", one, two))
        for wrong in (self._listen(socket.SOCK_DGRAM), self._listen(listening=False)):
            self.assertIn('"agents": is not a listening TCP socket', self._refused("agents", wrong))

    @suites("release")
    def test_systemds_own_tool_hands_them_over(self):
        tool = shutil.which("systemd-socket-activate")
        if tool is None:
            self.skipTest("skipped, because systemd-socket-activate is not installed")
        host, port = "127.0.0.1", held_port(self)
        collector = Collector(self, launcher=[tool, "--listen", f"{host}:{port}", "--fdname", "agents"],
                              wait=False)
        trace = self.trace("g26-labels")
        self.tracectl("send", trace, "--to", f"{host}:{port}", "--certs", self.certs, "--service", "first",
                      "--instance", "one", "--no-progress")  # this is what starts the daemon
        collector.wait_ready()
        self.assertEqual(collector.ready["agents"], f"{host}:{port}")
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "first"), trace)
        self.assertEqual(collector.stop(), 0)
