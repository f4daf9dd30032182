# SPDX-License-Identifier: Apache-2.0
"""The daemon under a service manager: readiness, status, watchdog, sockets it is handed."""
import ctypes
import os
import pathlib

from harness import Case, Collector, Manager, wait_until

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


class Halted:
    """One thread of a process, stopped while the others go on (a signal would stop them all)."""

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

    def test_the_status_tells_streams_rate_and_health(self):
        collector = Collector(self, env=self.manager.environment())
        wait_until("a status", lambda: any("0 streams, 0.0 MB/s, ok" in m.get("STATUS", "")
                                           for m in self.manager.messages))
        self.assertEqual(collector.stop(), 0)

    def test_the_watchdog_is_fed_while_every_thread_turns(self):
        # Loops turn each 100 ms, the segment thread each second; the watchdog asks each one and a half.
        collector = Collector(self, "loops=2", env=self.manager.environment(WATCHDOG_USEC="3000000"))
        for thread in ("tc-loop-0", "tc-loop-1", "tc-commit", "tc-segment"):
            with self.subTest(thread):
                fed = self.manager.count("WATCHDOG")
                wait_until("the watchdog is fed", lambda: self.manager.count("WATCHDOG") > fed)
                try:
                    halted = Halted(collector.process, thread)
                    with halted:
                        wait_until("the log names the thread that stands still",
                                   lambda: f"thread={thread}: stands still" in self.log("collector"))
                        fed = self.manager.count("WATCHDOG")
                        lines = self.log("collector").count(f"thread={thread}: stands still")
                        wait_until("it was asked again",
                                   lambda: self.log("collector").count(f"thread={thread}: stands still") > lines)
                        self.assertEqual(self.manager.count("WATCHDOG"), fed, "fed while a thread stood still")
                except PermissionError:
                    self.skipTest("skipped, because this machine does not let us ptrace")
                wait_until("the watchdog is fed again", lambda: self.manager.count("WATCHDOG") > fed)
        self.assertEqual(collector.stop(), 0)

    def test_a_watchdog_for_another_process_is_left_alone(self):
        collector = Collector(self, env=self.manager.environment(WATCHDOG_USEC="200000", WATCHDOG_PID="1"))
        wait_until("a status", lambda: self.manager.count("STATUS") > 1)
        self.assertEqual(self.manager.count("WATCHDOG"), 0)
        self.assertEqual(collector.stop(), 0)
