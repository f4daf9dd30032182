#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of `tracectl report` against an independent sum over `go tool trace -d=parsed`, and its
profiles against `go tool trace -pprof=KIND`: equal to the nanosecond.

usage: reports.py TRACECTL FOLDER|TRACE...|--fresh     (.zst too; --fresh makes some here and now)
Exit: 0 equal, 1 not, 77 skipped: no Go >= 1.22, no zstd or no traces here.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import blocked_waits
import lock_waits
import parsed
from waits import Waits

STOP = re.compile(r'Name="stop-the-world \((.*)\)" ')
METRIC = re.compile(r'Name="(.*)" Value=Value{Uint64\((\d+)\)}')
TASK = re.compile(r'ID=(\d+) Parent=\d+ Type=(".*")$')
REGION = re.compile(r'Task=\d+ Type=(".*")$')
OBJECT = re.compile(r"Name=HeapObject(|Alloc|Free) Args=\[id=Value{Uint64\((\d+)\)}")
WAITS_OF = {"sync": "sync_ns", "sync.(*Cond).Wait": "sync_ns", "synctest": "sync_ns", "chan send": "chan_ns", "chan receive": "chan_ns",
            "select": "chan_ns", "network": "net_ns", "sleep": "sleep_ns"}
LOCATION = re.compile(r"^ +(\d+): (0x[0-9a-f]+) (?:M=\d+ )?(.*)$")
SAMPLE = re.compile(r"^ +(\d+) +(\d+): ?([\d ]*)$")


SOURCE = pathlib.Path(__file__).resolve().parents[2]
GO_TRACE = GO_PPROF = None
REASON_NAMES = {"sync": "sync", "sync.Cond": "sync.(*Cond).Wait", "channel send": "chan send",
                "channel receive": "chan receive", "select": "select"}
GO_PROFILES = ("net", "sync", "syscall", "sched")


class User:
    """Tasks and regions, and what goroutines do in regions."""

    def __init__(self):
        self.states = {}  # goroutine: its state
        self.tasks = collections.defaultdict(list)  # type: lengths
        self.regions = collections.defaultdict(list)
        self.times = collections.defaultdict(collections.Counter)  # type of region: nanoseconds by column
        self.tasks_begin_unknown = self.regions_begin_unknown = self.regions_cut = 0
        self.open_tasks, self._open = {}, collections.defaultdict(list)
        self._since, self._reason, self._without_p, self._calls_on = {}, {}, set(), {}

    def _count(self, goroutine, time):
        """Adds the time since the goroutine's last count to all regions that are open on it."""
        state, since = self.states.get(goroutine), self._since.get(goroutine)
        self._since[goroutine] = time
        if since is None:
            return
        column = {"Running": "execution_ns", "Runnable": "sched_wait_ns",
                  "Syscall": "syscall_block_ns" if goroutine in self._without_p else "syscall_ns",
                  }.get(state) or WAITS_OF.get(self._reason.get(goroutine), "block_other_ns")
        for _, _, times in self._open[goroutine]:
            times[column] += time - since

    def transition(self, event, what, ident, old, new, reason):
        time = event.time
        if what == "ProcID":
            goroutine = self._calls_on.get(ident)
            if new == "Idle" and old != new and goroutine is not None:
                self._count(goroutine, time)
                self._without_p.add(goroutine)
            return
        if old == new:
            return
        self._count(ident, time)
        self.states[ident] = new
        self._without_p.discard(ident)
        self._calls_on = {proc: caller for proc, caller in self._calls_on.items() if caller != ident}
        self._reason[ident] = reason or ""
        if new == "Syscall":
            self._calls_on[event.proc] = ident
        if new == "NotExist":
            self.regions_cut += len(self._open.pop(ident, []))
            del self.states[ident], self._since[ident]

    def task(self, event):
        ident, name = TASK.match(event.rest).groups()
        if event.kind == "TaskBegin":
            self.open_tasks[ident] = (name, event.time)
        elif ident in self.open_tasks:
            name, since = self.open_tasks.pop(ident)
            self.tasks[name].append(event.time - since)
        else:
            self.tasks_begin_unknown += 1

    def region(self, event):
        goroutine, name = event.goroutine, REGION.match(event.rest).group(1)
        self._count(goroutine, event.time)
        if event.kind == "RegionBegin":
            self._open[goroutine].append((name, event.time, collections.Counter()))
        elif self._open[goroutine]:
            name, since, times = self._open[goroutine].pop()
            self.regions[name].append(event.time - since)
            self.times[name] += times
        else:
            self.regions_begin_unknown += 1

    def open_regions(self):
        return sum(map(len, self._open.values()))


class Expected:
    """Figures summed from the parsed text in the plainest way."""

    def __init__(self):
        self.events = self.locks = 0
        self.calls, self.blocked, self.ended_inside = [], [], []
        self.lower_bounds = self.born = 0
        self.stops = collections.defaultdict(list)
        self.by_goroutine = collections.defaultdict(list)
        self.time_to_stop = []
        self.waits, self.waits_lower_bounds = [], 0  # for a P
        self.wasted = 0
        self.stopped, self._standing, self._last = 0, 0, None  # waits for a P while the world stands still
        self._began = None
        self._runnable, self._idle, self.wasting_since = {}, set(), None
        self._in_call = {}
        self._stopped_since = {}
        self._running, self._syncs, self._procs_known = set(), 0, False
        self._pending = None  # a stop whose other Ps still run: (begin, own P)
        self.user = User()
        self.sizes, self.goal = [], None
        self.alive, self.allocations, self.samples = set(), 0, collections.Counter()

    def event(self, event):
        self.events += 1
        kind, now = event.kind, event.time
        if self._began is None:
            self._began = self._last = now
        if self._standing:
            self.stopped += len(self._runnable) * (now - self._last)
        self._last = now
        if kind == "Sync":
            self._syncs += 1
            self._procs_known |= self._syncs > 1
        elif kind == "StateTransition":
            what, ident, old, new, reason = parsed.MOVE.match(event.rest).groups()
            (self._goroutine if what == "GoID" else self._proc)(now, ident, old, new)
            self._waste(now)
            self.user.transition(event, what, ident, old, new, reason)
        elif kind in ("TaskBegin", "TaskEnd"):
            self.user.task(event)
        elif kind in ("RegionBegin", "RegionEnd"):
            self.user.region(event)
        elif kind == "Metric" and (match := METRIC.match(event.rest)):
            self._metric(now, match.group(1), int(match.group(2)))
        elif kind == "Experimental" and (match := OBJECT.match(event.rest)):
            verb, ident = match.groups()
            (self.alive.discard if verb == "Free" else self.alive.add)(ident)
            self.allocations += verb == "Alloc"
        elif kind == "StackSample":
            goroutine = event.goroutine  # it may have ended, or not begun, when the sample is read
            self.samples["" if goroutine == "-1" else self.user.states.get(goroutine, "NotExist")] += 1
        elif kind in ("RangeBegin", "RangeEnd") and (match := STOP.match(event.rest)):
            (self._begin if kind == "RangeBegin" else self._end)(event.goroutine, now, match.group(1), event.proc)

    def _metric(self, time, name, value):
        if name == "/memory/classes/heap/objects:bytes":
            self.sizes.append(value)
        elif name == "/gc/heap/goal:bytes":
            self.goal = value
        elif name == "/sched/gomaxprocs:threads":
            self._idle -= {ident for ident in self._idle if int(ident) >= value}
            self._waste(time)

    def _waste(self, time):
        """Time in which a goroutine was runnable while a P was idle."""
        wasting = bool(self._runnable) and bool(self._idle)
        if wasting and self.wasting_since is None:
            self.wasting_since = time
        elif not wasting and self.wasting_since is not None:
            self.wasted += time - self.wasting_since
            self.wasting_since = None

    def _wait(self, time, ident, old, new):
        if new == "Runnable" and ident not in self._runnable:
            known = old != "Undetermined"
            self._runnable[ident] = (time if known else self._began, known)
        elif old == "Runnable" and new != "Runnable":
            since, known = self._runnable.pop(ident)
            self.waits.append(time - since)
            self.waits_lower_bounds += not known

    def _goroutine(self, time, ident, old, new):
        self._wait(time, ident, old, new)
        if new == "Syscall":
            if ident not in self._in_call:
                self._in_call[ident] = time
                self.lower_bounds += old == "Undetermined"
                self.born += old == "NotExist"
        elif ident in self._in_call:
            length = time - self._in_call.pop(ident)
            self.calls.append(length)
            if new == "Runnable":
                self.blocked.append(length)
            if new == "NotExist":
                self.ended_inside.append(length)

    def _proc(self, time, ident, old, new):
        if new == "Idle":
            self._idle.add(ident)
        else:
            self._idle.discard(ident)
        if new == "Running":
            self._running.add(ident)
            return
        self._running.discard(ident)
        if self._pending and old == "Running" and not self._running - {self._pending[1]}:
            self.time_to_stop.append(time - self._pending[0])
            self._pending = None

    def _begin(self, goroutine, time, reason, own):
        self._standing += 1
        self._stopped_since[goroutine] = time
        if reason == "start trace":
            self._procs_known = True
        elif self._procs_known:
            if self._running - {own}:
                self._pending = (time, own)
            else:
                self.time_to_stop.append(0)

    def _end(self, goroutine, time, reason, _):
        self._standing -= 1
        self._pending = None
        length = time - self._stopped_since.pop(goroutine)
        self.stops[reason].append(length)
        self.by_goroutine[int(goroutine), reason].append(length)


def quantile(values, permille):
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * permille // 1000) - 1)] if ranked else 0


FIGURE_ERROR = 0.011  # rows may have a greater one, and say so


class Check:
    def __init__(self, trace):
        self.trace, self.wrong = trace, 0

    def equal(self, what, got, want):
        if got != want:
            self.wrong += 1
            print(f"{self.trace}: {what}: {got}, not {want}")

    def sum(self, what, got, values):
        self.equal(what, (got["count"], got["total_ns"], got["max_ns"]),
                   (len(values), sum(values), max(values, default=0)))
        self.equal(f"{what} min", got["min_ns"], min(values, default=0))

    def distribution(self, what, got, values):
        self.sum(what, got, values)
        for permille, name in ((500, "p50_ns"), (900, "p90_ns"), (990, "p99_ns")):
            exact = quantile(values, permille)
            if abs(got[name] - exact) > exact * got["error_share"] + 0.5:
                self.equal(f"{what} {name}", got[name], exact)


def check_figures(check, tracectl, trace):
    want, waits, blocked = Expected(), Waits(), blocked_waits.Waits()
    text = parsed.print_of(GO_TRACE, trace)
    for event in parsed.events(text):
        for sums in (want, waits, blocked):
            sums.event(event)
    run = subprocess.run([tracectl, "report", "all", "--json", "--top", "0", "--no-progress", trace],
                         check=True, stdout=subprocess.PIPE)
    reports = {report["kind"]: report for report in map(json.loads, run.stdout.splitlines())}

    for kind, report in reports.items():
        for name, figure in report["figures"].items():
            if isinstance(figure, dict) and (figure["error_share"] is None or figure["error_share"] > FIGURE_ERROR):
                check.equal(f"{kind} {name} error", figure["error_share"], FIGURE_ERROR)
    bare = {kind: nothing_idle(check, tracectl, trace, kind, reports[kind]["figures"]) for kind in ("syscall", "contention")}
    syscall, stw = ({**report["figures"], **report["tables"]} for report in (bare["syscall"], reports["stw"]))
    check.equal("events", reports["stw"]["events"], want.events - 1)  # the file's last Sync
    check.distribution("calls", syscall["calls"], want.calls)
    if not want.ended_inside:  # the text does not say whether those had lost their P
        check.distribution("blocked", syscall["blocked"], want.blocked)
    check.equal("born", syscall["born"], want.born)
    check.equal("died", syscall["died"], len(want.ended_inside))
    for name in ("calls", "blocked"):
        rows = [row[name] for row in syscall["by_stack"]]
        for field in ("count", "total_ns"):
            check.equal(f"sum of rows: {name} {field}", sum(row[field] for row in rows),
                        syscall[name][field])
    check.equal("reasons", {row["reason"] for row in stw["by_reason"] if row["stopped"]["count"]},
                set(want.stops))
    for row in stw["by_reason"]:
        check.distribution(row["id"], row["stopped"], want.stops[row["reason"]])
    check.distribution("stopped", stw["stopped"], sum(want.stops.values(), []))
    check.distribution("time to stop", stw["time_to_stop"], want.time_to_stop)
    check.equal("stoppers", len(stw["by_goroutine"]), len(want.by_goroutine))
    for row in stw["by_goroutine"]:
        check.distribution(f"goroutine {row['goroutine']}", row["stopped"],
                           want.by_goroutine[row["goroutine"], row["reason"]])
    check_sched(check, reports["sched"], want)
    check_user(check, reports["tasks"], want.user.tasks, want.user.tasks_begin_unknown, len(want.user.open_tasks))
    check_user(check, reports["regions"], want.user.regions, want.user.regions_begin_unknown,
               want.user.open_regions())
    check.equal("cut regions", reports["regions"]["figures"]["cut"], want.user.regions_cut)
    check_region_times(check, reports["regions"]["tables"]["by_type"], want.user.times)
    check_heap(check, reports["heap"], want)
    check_cpu(check, reports["cpu"], want)
    check_contention(check, bare["contention"], waits)
    if lock_waits.HEAD in trace.read_bytes():
        wire = parsed.print_of(GO_TRACE, trace, "wire")
        want.locks = lock_waits.check_locks(check, bare["contention"], wire.splitlines(), text.splitlines())
    else:
        check.equal("locks", reports["contention"]["figures"]["locks"], 0)
    check_wake(check, reports["wake"], waits)
    blocked_waits.check_block(check, tracectl, trace, blocked, reports)
    return want


def nothing_idle(check, tracectl, trace, kind, usual):
    """The report with every wait and call in it, which is what Go counts. The usual one has the same, its idle ones apart."""
    run = subprocess.run([tracectl, "report", kind, "--json", "--top", "0", "--idle", "!*", "--no-progress", trace],
                         check=True, stdout=subprocess.PIPE)
    report = json.loads(run.stdout)
    busy = {"syscall": "calls", "contention": "waits"}[kind]
    for field in ("count", "total_ns", "lower_bounds"):
        check.equal(f"{kind}: idle or not, {field}", usual[busy][field] + usual["idle"][field], report["figures"][busy][field])
    return report


def unquote(name):
    """As the report has a name that the text shows in Go's quotes; None: not all of it can be said in JSON."""
    try:
        return json.loads(name)
    except ValueError:
        return None


def check_user(check, report, want, begin_unknown, still_open):
    kind, figures = report["kind"], report["figures"]
    check.distribution(kind, figures["latency"], sum(want.values(), []))
    check.equal(f"{kind}: begin unknown", figures["begin_unknown"], begin_unknown)
    check.equal(f"{kind}: open", figures["open"], still_open)
    rows = {row["type"]: row["latency"] for row in report["tables"]["by_type"] if row["latency"]["count"]}
    check.equal(f"{kind}: types", len(rows), len(want))
    for name, lengths in want.items():
        if unquote(name) in rows:
            check.distribution(f"{kind} {name}", rows[unquote(name)], lengths)
    if kind == "tasks":
        longest = sorted(sum(want.values(), []), reverse=True)[:16]
        check.equal("slowest tasks", [row["latency_ns"] for row in report["tables"]["slowest"]], longest)


def check_region_times(check, rows, want):
    by_name = {unquote(name): times for name, times in want.items()}
    for row in rows:
        times = {name: row[name] for name in row if name in (*WAITS_OF.values(), "execution_ns", "sched_wait_ns",
                                                             "block_other_ns", "syscall_ns", "syscall_block_ns")}
        if not row["latency"]["count"]:
            continue
        check.equal(f"times of {row['type']}: sum", sum(times.values()), row["latency"]["total_ns"])
        if row["type"] in by_name:
            check.equal(f"times of {row['type']}", {name: time for name, time in times.items() if time},
                        {name: time for name, time in by_name[row["type"]].items() if time})


def check_heap(check, report, want):
    figures, tables = report["figures"], report["tables"]
    check.equal("heap", (figures["heap_bytes"], figures["heap_min_bytes"], figures["heap_max_bytes"]),
                (want.sizes[-1], min(want.sizes), max(want.sizes)) if want.sizes else (None, None, None))
    check.equal("heap goal", figures["goal_bytes"], want.goal)
    if not figures["has_objects"]:
        check.equal("objects", len(want.alive), 0)
        return
    check.equal("live objects", figures["live_objects"], len(want.alive))
    check.equal("allocations", figures["allocations"], want.allocations)
    for table in ("by_type", "by_entry"):
        for name in ("live_objects", "live_bytes", "allocations", "allocated_bytes"):
            check.equal(f"sum of {table}: {name}", sum(row[name] for row in tables[table]), figures[name])


def check_cpu(check, report, want):
    figures, tables = report["figures"], report["tables"]
    check.equal("samples", figures["samples"], sum(want.samples.values()))
    for table in ("by_stack", "by_entry", "by_label"):
        check.equal(f"sum of {table}", sum(row["samples"] for row in tables[table]), figures["samples"])
    names = {"Running": "running", "Syscall": "syscall", "": "no goroutine"}
    states = collections.Counter()
    for state, count in want.samples.items():
        states[names.get(state, "not running")] += count
    check.equal("samples by state", {row["state"]: row["samples"] for row in tables["by_state"]}, dict(states))


def check_sched(check, report, want):
    figures, tables = report["figures"], report["tables"]
    check.distribution("latency", figures["latency"], want.waits)
    check.equal("latency lower bounds", figures["latency"]["lower_bounds"], want.waits_lower_bounds)
    for table in ("by_entry", "by_cause", "by_stack"):
        for field in ("count", "total_ns"):
            check.equal(f"sum of {table}: {field}", sum(row["latency"][field] for row in tables[table]),
                        figures["latency"][field])
    longest = sorted(want.waits, reverse=True)[:16]
    check.equal("longest waits", [row["latency_ns"] for row in tables["longest"]], longest)
    check.equal("waits while the world stands still", figures["stopped_ns"], want.stopped)
    wall = report["until_ns"] - report["from_ns"]
    wasted = want.wasted + (report["until_ns"] - want.wasting_since if want.wasting_since is not None else 0)
    check.equal("wasted share", round(figures["wasted_share"], 9), round(wasted / wall if wall else 0, 9))


def stack_of(row, name):
    return tuple(frame["pc"] for frame in row[name] or ())


def sum_of(spread):
    return spread["count"], spread["total_ns"], spread["max_ns"]


def check_contention(check, report, want):
    figures, tables = report["figures"], report["tables"]
    pairs = {}
    for row in tables["by_pair"]:  # one that is exact and one that is not may have the same stacks
        key = REASON_NAMES[row["reason"]], stack_of(row, "stack"), stack_of(row, "waker_stack")
        count, total, longest = sum_of(row["waits"])
        before = pairs.get(key, (0, 0, 0))
        pairs[key] = before[0] + count, before[1] + total, max(before[2], longest)
    for key in set(pairs) | set(want.pairs):
        check.equal(f"contention: {key}", pairs.get(key), tuple(want.pairs[key]) if key in want.pairs else None)
    queues = {stack_of(row, "stack"): (row["longest_queue"], row["waiting"]) for row in tables["queues"]}
    check.equal("queues", queues, {stack: (length, want.waiting[stack])
                                   for stack, length in want.longest.items() if length > 1})
    check.equal("waiting", figures["waiting"], sum(want.waiting.values()))
    check.equal("longest queue", figures["longest_queue"], max(list(queues.values()) + [(0, 0)])[0])
    check.equal("convoys", {stack_of(row, "stack") for row in tables["convoys"] if not row["object"]}, want.convoys)


def check_wake(check, report, want):
    pairs = {(row["waker"], row["woken"]): (sum_of(row["waits"]), sum_of(row["latency"]))
             for row in report["tables"]["by_pair"]}
    check.equal("wakes", pairs, {pair: (tuple(sums["waits"]), tuple(sums["latency"]))
                                 for pair, sums in want.by_entry().items()})


def read_profile(path):
    """{stack of (address, frame): [count, nanoseconds]} and the types of a profile."""
    raw = subprocess.run([GO_PPROF, "-raw", path], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
    locations, samples, part = {}, [], ""
    for line in raw:
        if line.endswith(":") and not line.startswith(" "):
            part = line[:-1]
        elif line == "Locations":
            part = line
        elif part == "Samples" and (match := SAMPLE.match(line)):
            samples.append((match.group(3).split(), int(match.group(1)), int(match.group(2))))
        elif part == "Locations" and (match := LOCATION.match(line)):
            locations[match.group(1)] = match.group(2, 3)
    stacks = {}
    for ids, count, nanoseconds in samples:
        stack = tuple(locations[ident] for ident in ids)
        assert stack not in stacks, stack
        stacks[stack] = (count, nanoseconds)
    return stacks, raw[:4]


def check_profile(check, tracectl, trace, folder, kind):
    theirs, ours = folder / "go.pprof", folder / "our.pprof"
    with open(theirs, "wb") as file:
        subprocess.run([GO_TRACE, f"-pprof={kind}", trace], check=True, stdout=file,
                       stderr=subprocess.DEVNULL)
    subprocess.run([tracectl, "report", kind, trace, "--pprof", ours, "--no-progress"],
                   check=True, stdout=subprocess.DEVNULL)
    (want, want_head), (got, got_head) = read_profile(theirs), read_profile(ours)
    check.equal(f"{kind}: head of the profile", [line for line in got_head if "Binary" not in line],
                [line for line in want_head if "Binary" not in line])
    check.equal(f"{kind}: stacks of the profile", len(got), len(want))
    for stack in sorted(set(want) | set(got)):
        if got.get(stack) != want.get(stack):
            check.equal(f"{kind}: profile at {stack[:2]}...", got.get(stack), want.get(stack))
    return len(want)


def skip(why):
    print(f"skipped, because {why}")
    if os.environ.get("CI"):
        print("0 passed, 1 failed")
        return 1
    return 77


def find_go_tool(name):
    found = subprocess.run([SOURCE / "tools/go-tool.sh", name], stdout=subprocess.PIPE, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


# Some of several generations: what goes on from one to the next is one span.
FRESH = ("chan,mutex,gc,stw", "syscall,net,annot", "longrun,labels,manyg", "midstart,sleep,gc")


def make_traces(folder):
    made = subprocess.run([SOURCE / "tests/workload/build.sh", "local", folder / "tracegen"], stdout=subprocess.DEVNULL)
    for scenarios in FRESH if made.returncode == 0 else ():
        trace = folder / f"fresh-{scenarios}.trace"
        env = {**os.environ, "GODEBUG": "traceadvanceperiod=20000000"}
        done = subprocess.run([folder / "tracegen", "-scenario", scenarios, "-ops", "300", "-seconds", "0.15", "-o", trace],
                              env=env, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            yield trace


def find_traces(names, folder):
    for path in map(pathlib.Path, names):
        if str(path) == "--fresh":
            yield from make_traces(folder)
        elif path.is_dir():
            sample = subprocess.run([SOURCE / "tests/conformance/sample.sh", path], stdout=subprocess.PIPE, text=True, check=True)
            yield from map(pathlib.Path, sample.stdout.split("\n")[:-1])
        elif path.exists():
            yield path


def main():
    global GO_TRACE, GO_PPROF
    tracectl = sys.argv[1]
    GO_TRACE, GO_PPROF = find_go_tool("trace"), find_go_tool("pprof")
    if not GO_TRACE or not GO_PPROF:
        return skip("there is no Go >= 1.22 here")
    if shutil.which("zstd") is None:
        return skip("there is no zstd")
    schema = subprocess.run([tracectl, "report", "all", "--schema", "--json"], check=True, stdout=subprocess.PIPE)
    ours = {report["name"] for report in map(json.loads, schema.stdout.splitlines())}
    kinds = [kind for kind in GO_PROFILES if kind in ours]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for trace in find_traces(sys.argv[2:], folder):
            check, path = Check(trace.name), trace
            if trace.suffix == ".zst":
                path = folder / trace.stem
                subprocess.run(["zstd", "-dqf", trace, "-o", path], check=True)
            want = check_figures(check, tracectl, path)
            stacks = sum(check_profile(check, tracectl, path, folder, kind) for kind in kinds)
            print(f"{trace.name}: {'differs' if check.wrong else 'equal'}: {len(want.calls)} calls, "
                  f"{stacks} stacks in {len(kinds)} profiles, {sum(map(len, want.stops.values()))} stops, "
                  f"{len(want.time_to_stop)} times to stop, {sum(map(len, want.user.tasks.values()))} tasks, "
                  f"{sum(map(len, want.user.regions.values()))} regions, {want.allocations} allocations, "
                  f"{sum(want.samples.values())} samples, {want.locks} locks", flush=True)
            failed += check.wrong > 0
            passed += check.wrong == 0
            if path != trace:
                path.unlink()
    if passed + failed == 0:
        return skip("there are no traces here")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
