#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tracectl report gc` and `procs` against plain sums over `go tool trace -d=parsed`: cycles, assists and sweeps, times of Ps, how many
were busy at once, and the lowest utilisation of every window, tried at each moment at which an edge of it meets a change.

usage: collector_time.py TRACECTL FOLDER|TRACE...     (.zst too)
Exit: 0 equal, 1 not, 77 skipped: no Go >= 1.22, no zstd or no traces here.
"""
import bisect
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import parsed
import reports

NAME = re.compile(r'Name="([^"]*)"')
LENGTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]  # ms
EXECUTING = ("Running", "Syscall")


class Utilization:
    """Steps of the time the program has, as changes of what is taken from it. What is found to have been so from the start is
    taken from all steps before."""

    def __init__(self):
        self.steps = []  # [time, level]

    def put(self, time, level):
        if not self.steps or self.steps[-1][1] != level:
            self.steps.append([time, level])

    def lowest(self, length):
        times = [time for time, _ in self.steps]
        sums = [0.0]
        for (begin, level), (end, _) in zip(self.steps, self.steps[1:]):
            sums.append(sums[-1] + level * (end - begin))
        length = min(length, times[-1] - times[0])
        if length <= 0:
            return 1.0

        def integral(time):
            i = bisect.bisect_right(times, time) - 1
            return sums[i] + self.steps[i][1] * (time - times[i])
        begins = {time for time in times if time + length <= times[-1]}
        begins |= {time - length for time in times if time - length >= times[0]}
        return min((integral(time + length) - integral(time)) / length for time in begins)


class Shares:
    """The program's share of its Ps over time. sweep: sweeps count as taken, too. per_proc: a curve for each P, of
    which the lowest counts."""

    def __init__(self, sweep, per_proc):
        self.sweep, self.per_proc, self.curves, self.ended = sweep, per_proc, {}, []
        self.on, self.maxprocs, self.workers, self.works = collections.Counter(), 0, set(), set()
        self.exactly = collections.Counter()
        self.noted = None  # whether the world stood still; None: what is taken has changed since

    def procs(self, procs, now):
        self.noted = None
        for proc in [proc for proc in range(procs, self.maxprocs) if self.per_proc]:
            for curve in self.curves.pop(proc):
                curve.put(now, 0.0)
                self.ended.append(curve)
        for taken in (self.on, self.exactly):
            for proc in [proc for proc in taken if int(proc) >= procs]:
                del taken[proc]
        for proc in range(procs) if self.per_proc else [0]:
            if proc not in self.curves:
                self.curves[proc] = (Utilization(), Utilization())
                for curve in self.curves[proc]:
                    curve.put(now, 1.0)
        self.maxprocs = procs

    def met(self, as_go, exact):
        """The range has been active since the trace began. A single P had no known state before."""
        for curve, goes in zip(self.curves[0], (as_go, exact)) if not self.per_proc else []:
            for step in curve.steps if goes else []:
                step[1] = max(0.0, step[1] - 1 / self.maxprocs)

    def take(self, proc, as_go, exact):
        if as_go or exact:
            self.on[proc] += as_go
            self.exactly[proc] += exact
            self.noted = None

    def label(self, proc, goroutine, label):
        if not self.per_proc or label != "GC (dedicated)":
            self.take(proc, 1, goroutine not in self.works)
            self.workers.add(goroutine)
            self.works.add(goroutine)

    def move(self, proc, ident, change, assists):
        works = change < 0 and ident in self.works
        self.take(proc, change * (assists or ident in self.workers), change * assists - works)
        if works:
            self.works.discard(ident)

    def note(self, now, stopped):
        if self.noted == stopped:
            return
        self.noted = stopped
        for proc, curves in self.curves.items():
            for curve, on in zip(curves, (self.on, self.exactly)):
                if stopped:
                    level = 0.0
                elif self.per_proc:
                    level = 0.0 if on[str(proc)] > 0 else 1.0
                else:
                    level = 1 - sum(n > 0 for n in on.values()) / self.maxprocs
                curve.put(now, level)

    def lowest(self, way, length):
        return min(curve.lowest(length) for curve in [curves[way] for curves in self.curves.values()]
                   + self.ended[way::2] if curve.steps[-1][0] > curve.steps[0][0])


class Expected:
    def __init__(self):
        self.cycles, self.assists, self.sweeps = [], [], []
        self.since = {}
        self.running, self.idle = collections.Counter(), collections.Counter()
        self.at_once = collections.Counter()
        self.procs = {}  # P: (state, since)
        self.calls, self.in_calls = {}, collections.Counter()  # P: (goroutine, since, thread); time by P
        self.losses = {name: collections.Counter() for name in ("retaken", "claimed", "stopped")}
        self.given_up = collections.Counter()  # by the call itself
        self.busy_since = None
        self.syncs, self.now, self.first = 0, 0, None
        self.maxprocs, self.changes = 0, 0
        self.as_go, self.exact = Utilization(), Utilization()
        self.shares = [Shares(True, False), Shares(False, True), Shares(True, True)]
        self.taken, self.exactly = collections.Counter(), collections.Counter()  # by P
        self.stops, self.assisting, self.workers, self.working = 0, set(), set(), set()

    def event(self, event):
        before, self.now = self.now, event.time
        self.first = self.first or self.now
        _, proc, goroutine, kind, _, rest = event[:6]
        if kind == "Sync":
            self.syncs += 1
            self.before_sync = before
        elif kind == "StateTransition":
            what, ident, old, new, _ = parsed.MOVE.match(rest).groups()
            self._call(event, what, ident, old, new)
            if not self._move(proc, what, ident, old, new):
                return
        elif kind == "Metric":
            if NAME.match(rest).group(1) == "/sched/gomaxprocs:threads":
                self._maxprocs(int(re.search(r"Uint64\((\d+)\)", rest).group(1)))
        elif kind.startswith("Range"):
            self._range(kind, NAME.match(rest).group(1), proc, goroutine, rest)
        elif kind == "Label":
            self._label(proc, goroutine, re.search(r'Label="([^"]*)"', rest).group(1))
        else:
            return  # nothing changes
        self._note()

    def _note(self):
        if not self.maxprocs:
            return
        for curve, taken in ((self.as_go, self.taken), (self.exact, self.exactly)):
            gone = sum(n > 0 for n in taken.values())
            curve.put(self.now, 0.0 if self.stops > 0 else 1 - gone / self.maxprocs)
        for shares in self.shares:
            shares.note(self.now, self.stops > 0)

    def _maxprocs(self, procs):
        if self.maxprocs and procs != self.maxprocs:
            self.changes += 1
        if not self.as_go.steps:
            self.as_go.put(self.now, 1.0)
            self.exact.put(self.now, 1.0)
        for taken in (self.taken, self.exactly):
            for proc in [proc for proc in taken if int(proc) >= procs]:
                del taken[proc]
        self.maxprocs = procs
        for shares in self.shares:
            shares.procs(procs, self.now)

    def _range(self, kind, name, proc, goroutine, rest):
        whole = kind == "RangeEnd"
        scope = re.search(r"Scope=(\S+)", rest).group(1)
        lists = {"GC concurrent mark phase": self.cycles, "GC mark assist": self.assists,
                 "GC incremental sweep": self.sweeps}
        if name in lists:
            if whole:
                lists[name].append(self.now - self.since.pop((name, scope)))
            elif kind == "RangeBegin" or (name, scope) not in self.since:
                self.since[name, scope] = self.now if kind == "RangeBegin" or name.endswith("phase") else self.first
        if name.startswith("stop-the-world") and "GC" in name:
            self.stops += -1 if whole else 1
        if name == "GC incremental sweep" and self.maxprocs and (kind != "RangeActive" or self.syncs <= 1):
            for shares in [shares for shares in self.shares if shares.sweep]:
                if kind == "RangeActive":
                    shares.met(True, True)
                shares.take(proc, -1 if whole else 1, -1 if whole else 1)
        if name != "GC mark assist" or not self.maxprocs:
            return
        whose = re.search(r"Goroutine\((\d+)\)", scope).group(1)
        if whole:
            self.taken[proc] -= 1
            self.exactly[proc] -= whose in self.assisting
            for shares in self.shares:
                shares.take(proc, -1, -(whose in self.assisting))
            self.assisting.discard(whose)
            return
        if kind == "RangeActive":
            if self.syncs > 1:
                return
            for curve, goes in ((self.as_go, goroutine != "-1"), (self.exact, goroutine == whose)):
                for step in curve.steps if goes else []:
                    step[1] = max(0.0, step[1] - 1 / self.maxprocs)
            for shares in self.shares:
                shares.met(goroutine != "-1", goroutine == whose)
        for shares in self.shares:
            shares.take(proc, 1, whose == goroutine)
        self.taken[proc] += 1
        self.exactly[proc] += whose == goroutine
        self.assisting.add(whose)

    def _label(self, proc, goroutine, label):
        if label.startswith("GC ") and label != "GC (idle)":
            self.taken[proc] += 1
            self.exactly[proc] += goroutine not in self.working
            self.workers.add(goroutine)
            self.working.add(goroutine)
            for shares in self.shares:
                shares.label(proc, goroutine, label)

    def _call(self, event, what, ident, old, new):
        """A call holds the P on which it began until the goroutine leaves it, or the P is taken."""
        thread, proc, goroutine = event[:3]
        if what == "GoID":
            for its, (whose, _, _) in list(self.calls.items()):
                if whose == ident and old == "Syscall" != new:
                    self._end_call(its)
            if new == "Syscall" != old and proc != "-1":
                self.calls[proc] = (ident, self.now, thread)
        elif new == "Idle" and old == "Running":
            if proc == ident:
                self.given_up[ident] += goroutine != "-1"
            elif proc != "-1":
                self.losses["stopped"][ident] += 1
            elif thread != self.calls.get(ident, ("", 0, ""))[2]:
                self.losses["retaken" if goroutine == "-1" else "claimed"][ident] += 1
            self._end_call(ident)

    def _end_call(self, proc):
        if proc in self.calls:
            self.in_calls[proc] += self.now - self.calls.pop(proc)[1]

    def _move(self, proc, what, ident, old, new):
        """Returns whether the transition gives a P to a goroutine or takes it away."""
        if what == "ProcID":
            self._proc(ident, new)
            return False
        change = (new in EXECUTING) - (old in EXECUTING)
        if not change or old == "Undetermined":
            return False
        if ident in self.assisting or ident in self.workers:
            self.taken[proc] += change
        self.exactly[proc] += change * (ident in self.assisting)
        for shares in self.shares:
            shares.move(proc, ident, change, ident in self.assisting)
        if change < 0 and ident in self.working:
            self.exactly[proc] -= 1
            self.working.discard(ident)
        return True

    def _proc(self, proc, new):
        busy = sum(state == "Running" for state, _ in self.procs.values())
        self._settle(proc)
        if self.busy_since is not None:
            self.at_once[busy] += self.now - self.busy_since
        self.busy_since = self.now
        self.procs[proc] = (new, self.now)

    def _settle(self, proc):
        state, since = self.procs.get(proc, ("", self.now))
        {"Running": self.running, "Idle": self.idle}.get(state, collections.Counter())[proc] += self.now - since

    def end(self):
        """The last Sync belongs to no generation: time ends before it but for utilisation."""
        for curve in (self.as_go, self.exact):
            curve.put(self.now, 0.0)
        for curves in [curves for shares in self.shares for curves in shares.curves.values()]:
            for curve in curves:
                curve.put(self.now, 0.0)
        self.now = self.before_sync
        for proc in self.procs:
            self._settle(proc)
        for proc in list(self.calls):
            self._end_call(proc)
        if self.busy_since is not None:
            busy = sum(state == "Running" for state, _ in self.procs.values())
            self.at_once[busy] += self.now - self.busy_since


def check_trace(check, tracectl, trace):
    want = Expected()
    for event in parsed.events(parsed.print_of(reports.GO_TRACE, trace)):
        want.event(event)
    want.end()
    got = {}
    for kind in ("all", "gc"):  # that of gc alone has more tables
        run = subprocess.run([tracectl, "report", kind, "--json", "--top", "0", "--no-progress", trace],
                             check=True, stdout=subprocess.PIPE)
        got[kind] = {report["kind"]: report for report in map(json.loads, run.stdout.splitlines())}
    gc, procs = got["gc"]["gc"], got["all"]["procs"]
    within = got["all"]["gc"]
    for table in ("mmu", "by_entry", "cycles"):
        check.equal(f"{table} of all", within["tables"][table], gc["tables"][table])
    check.equal("figures of all", within["figures"], gc["figures"])
    check.distribution("cycles", gc["figures"]["cycles"], want.cycles)
    check.distribution("assists", gc["figures"]["assist"], want.assists)
    check.distribution("sweeps", gc["figures"]["sweep"], want.sweeps)
    check.equal("sum of entries", sum(row["assist"]["total_ns"] for row in gc["tables"]["by_entry"]), sum(want.assists))
    check.equal("windows", [row["window_ns"] for row in gc["tables"]["mmu"]],
                [length * 10**6 for length in LENGTHS] if want.maxprocs else [])
    for row in gc["tables"]["mmu"]:
        for curve, column in ((want.as_go, "utilization"), (want.exact, "exact_utilization")):
            lowest = curve.lowest(row["window_ns"])
            if abs(row[column] - lowest) > 1e-9:
                check.equal(f"{column} of {row['window_ns']} ns", row[column], lowest)
    sweep, proc, both = want.shares
    for table, columns in (("mmu_with_sweep", {"utilization": (sweep, 0), "exact_utilization": (sweep, 1)}),
                           ("mmu_per_proc", {"utilization": (proc, 0), "exact_utilization": (proc, 1),
                                             "with_sweep_utilization": (both, 0),
                                             "with_sweep_exact_utilization": (both, 1)})):
        check.equal(f"rows of {table}", len(gc["tables"][table]), len(gc["tables"]["mmu"]))
        for row in gc["tables"][table]:
            for column, (shares, way) in columns.items():
                lowest = shares.lowest(way, row["window_ns"])
                if abs(row[column] - lowest) > 1e-9:
                    check.equal(f"{table}: {column} of {row['window_ns']} ns", row[column], lowest)
    check.equal("procs", procs["figures"]["procs"], want.maxprocs or None)
    check.equal("changes", procs["figures"]["changes"], want.changes)
    for column, sums in (("running_ns", want.running), ("idle_ns", want.idle), ("syscall_ns", want.in_calls),
                         *want.losses.items()):
        check.equal(column, {row["proc"]: row[column] for row in procs["tables"]["by_proc"] if row[column]},
                    {int(proc): ns for proc, ns in sums.items() if ns})
    for row in procs["tables"]["by_proc"]:  # the text does not tell a thread that stops its P from one that takes it from itself
        others = row["stolen"] - sum(row[name] for name in want.losses)
        if not 0 <= want.given_up[str(row["proc"])] - row["handed_off"] <= others:
            check.equal("handed off", row["handed_off"], (want.given_up[str(row["proc"])], others))
    check.equal("busy at once", {row["busy"]: row["time_ns"] for row in procs["tables"]["by_busy"]},
                {busy: ns for busy, ns in want.at_once.items() if ns})


def main():
    tracectl, traces = sys.argv[1], list(reports.find_traces(sys.argv[2:], None))
    reports.GO_TRACE = reports.find_go_tool("trace")
    if not reports.GO_TRACE:
        return reports.skip("there is no Go >= 1.22 here")
    if not traces or shutil.which("zstd") is None:
        return reports.skip("there are no traces here, or no zstd")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            check, path = reports.Check(trace.name), trace
            if trace.suffix == ".zst":
                path = pathlib.Path(folder) / trace.stem
                subprocess.run(["zstd", "-dqf", trace, "-o", path], check=True)
            check_trace(check, tracectl, path)
            print(f"{trace.name}: {'differs' if check.wrong else 'equal'}", flush=True)
            failed += check.wrong > 0
    print(f"{len(traces) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
