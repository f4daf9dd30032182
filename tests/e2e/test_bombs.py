# SPDX-License-Identifier: Apache-2.0
"""A small trace that costs many tries: two threads claim one proc among 20,000, and one of them takes another proc again and again
(tests/unit/online/trace/test_bomb_costs.c has more). Neither tracectl nor the collector spends more than a second a megabyte on it."""
import os
import resource

from clock import numbers
from harness import SANITIZE, Case, Collector, wait_until

FREQUENCY, PROC_STATUS, GO_STATUS = 8, 13, 25
GO_SYSCALL, PROC_SYSCALL, PROC_ABANDONED = 3, 3, 4
THREADS = 20000
SECONDS_A_MB = 20 if SANITIZE else 1


def batch(thread, time, events):
    return numbers(1, 1, thread, time, len(events)) + events


def bomb(n_bytes):
    parts = [b"go 1.22 trace\0\0\0", batch(2**64 - 1, 1, numbers(FREQUENCY, 10**9))]
    for n in range(1, THREADS + 1):
        events = numbers(GO_STATUS, 1, n + 1, n, GO_SYSCALL)
        if n == THREADS:
            events += numbers(PROC_STATUS, 100, 0, PROC_SYSCALL)
        parts.append(batch(n, 1, events))
    claims = numbers(PROC_STATUS, 1, 0, PROC_SYSCALL, PROC_STATUS, 1, 1, PROC_SYSCALL, PROC_STATUS, 1, 0, PROC_ABANDONED)
    while sum(map(len, parts)) < n_bytes:
        parts.append(batch(0, 1000 * len(parts), claims * (60000 // len(claims))))
    return b"".join(parts)


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def process_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bombs(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.folder / "bomb.trace"
        self.trace.write_bytes(bomb(2 << 20))
        self.seconds_max = SECONDS_A_MB * self.trace.stat().st_size / (1 << 20)

    def cost(self, *verb, expect):
        before = children_s()
        done = self.tracectl(*verb, self.trace, expect=expect)
        self.assertLess(children_s() - before, self.seconds_max, verb)
        return done

    def test_check_and_report_give_up_in_time_and_say_why(self):
        self.assertIn("generation 1: too many attempts", self.cost("check", expect=1).out)
        self.assertIn("generation 1: too many attempts", self.cost("report", "all", expect=1).err)

    def test_a_collector_gives_up_in_time_and_keeps_the_bytes(self):
        collector = Collector(self)
        before = process_s(collector.process.pid)
        collector.send(self.trace, "bomb")
        wait_until("it has a verdict", lambda: "pending" not in collector.ask("list", "--json").out)
        self.assertLess(process_s(collector.process.pid) - before, self.seconds_max)
        self.assertIn("too many attempts", self.log(collector.name))
        out = self.folder / "fetched.trace"
        collector.fetch(out, "bomb")
        self.assertEqual(out.read_bytes(), self.trace.read_bytes())
        self.assertEqual(collector.stop(), 0)
