#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py [--seed N] [--count N] [--room ROOM] [--jobs N] [--only FILE:LINE[:COLUMN]] [--show]: are faults found?

Plants faults in our code, one at a time, and runs the unit tests and the simulations that see the room, until one fails.
A line for each fault says which test found it; then follows a table of the rooms, and "N of M found". Fewer than 92 of
100: the exit code is 1.

The faults are drawn by chance from all that faults.py finds, the same number in each room and of each kind; the same seed
draws the same ones. A fault does not count, and the next is taken, if it does not compile, if it makes the same machine
code, or if equivalent.txt says why no test can see it.

--only: every fault of that line, or the one at that column; what was drawn does not matter. --show: what would be planted,
as a diff; nothing runs.

It works on copies of the tree in build/mutants, one for each job, each with a build of its own.
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import faults

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build/mutants"
ROOMS = {"wire": "lib/wire", "order": "lib/online/order", "spans": "lib/online/spans", "wal": "collector/wal",
         "sealer": "collector/sealer", "ingest": "collector/ingest", "spool": "agent/spool"}
WANTED = 92  # of 100
LABELS = {"unit", "sim"}
# As quick to build as to run. Some tests want lines (-g1); columns would differ where the code does not.
FLAGS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1 -gno-column-info", "-DTC_WERROR=OFF"]
TARGETS = ["tests/unit/all", "tests/sim/all", "tests/fuzz/all"]  
PATIENCE = float(os.environ.get("TC_PATIENCE") or 1)
HANG_S, HANG_TIMES = 15, 5      # a test that takes longer than 15 s and 5 times what it takes unchanged hangs
FILE_BYTES_MAX = 8 << 30        # what a fault makes of a size ends here
BATCHES = (1, 2, 4, 8)          # so many tests are linked at once; then the rest


def fail(text):
    sys.exit(f"mutants.py: {text}")


def run(command, log, **more):
    """The exit code; what it writes goes to the file log."""
    with open(log, "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, **more)
    return done.returncode


def tail(log, lines=25):
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class Test:
    """An entry of ctest, and what is known of it once it has run unchanged."""

    def __init__(self, entry):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command")
        self.labels = set(properties.get("LABELS", []))
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
        self.skip_code = properties.get("SKIP_RETURN_CODE")
        self.says_failed = [re.compile(p) for p in properties.get("FAIL_REGULAR_EXPRESSION", [])]
        self.target = None      # its program, as ninja calls it
        self.objects = set()    # that are in it, or in a program that it starts
        self.headers = set()    # that its own sources include


class Tree:
    """A copy of the sources with its build."""

    def __init__(self, number):
        self.number = number
        self.base = WORK / str(number)
        self.src, self.build, self.log = self.base / "src", self.base / "build", self.base / "log"
        self.output, self.folders = self.base / "output", self.base / "folders"
        self.hashes = {}
        self.tests = {}

    def copy(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=True).stdout.decode().split("\0")
        wanted = {name for name in listed if name and (ROOT / name).is_file()}
        for there in [p for p in self.src.rglob("*") if p.is_file() or p.is_symlink()]:
            if str(there.relative_to(self.src)) not in wanted:
                there.unlink()
        for name in sorted(wanted):
            here, there = ROOT / name, self.src / name
            if there.is_file() and there.stat().st_size == here.stat().st_size and there.read_bytes() == here.read_bytes():
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)

    def prepare(self, jobs):
        self.copy()
        options = list(FLAGS)
        if shutil.which("mold"):
            options.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold")
        if run(["cmake", "-S", self.src, "-B", self.build, *options], self.log):
            fail(f"cmake: {tail(self.log)}")
        if run(["ninja", "-C", self.build, f"-j{jobs}", *TARGETS], self.log):
            fail(f"the tree does not build:\n{tail(self.log)}")
        self.tests = self.read_tests()
        self.map_objects()
        self.hashes = {name: self.hash(name) for name in self.dependents}

    def read_tests(self):
        shown = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], capture_output=True, check=True)
        tests = {}
        for entry in json.loads(shown.stdout)["tests"]:
            test = Test(entry)
            if test.labels & LABELS and test.command and test.command[0].startswith(f"{self.build}/"):
                test.target = os.path.relpath(test.command[0], self.build)
                tests[test.name] = test
        return tests

    def ninja(self, *tool):
        return subprocess.run(["ninja", "-C", self.build, "-t", *tool], capture_output=True, check=True).stdout.decode()

    def map_objects(self):
        """Which objects are made from which file, and which of them are in which test's programs."""
        self.dependents, made_from = {}, {}
        src = f"{self.src}/"
        links = re.compile(re.escape(f"{self.build}/rooms/") + r"[^/]+/")
        shown = {}
        for line in self.ninja("deps").splitlines():
            if not line.startswith(" "):
                name = line.split(":", 1)[0]
                if (self.build / name).is_file():
                    self.dependents[name] = made_from.setdefault(name, set())
                else:
                    name = None
            elif name:
                path = os.path.normpath(os.path.join(self.build, line.strip()))
                if links.match(path):
                    if path not in shown:
                        shown[path] = os.path.realpath(path)
                    path = shown[path]
                if path.startswith(src):
                    made_from[name].add(path[len(src):])
        symbols = self.symbols_of(sorted(self.dependents), "-g")
        owners = {}
        for name, own in symbols.items():
            for symbol in own - {"main"}:
                owners.setdefault(symbol, set()).add(name)
        programs = {}
        queried = self.ninja("query", *sorted({test.target for test in self.tests.values()}))
        program, part = None, None
        for line in queried.splitlines():
            if not line.startswith(" "):
                program, part = line.rstrip(":"), None
                programs[program] = (set(), {program})
            elif line.strip().startswith(("input:", "outputs:")):
                part = line.strip()
            elif part and part.startswith("input:"):
                mark, _, name = line.strip().rpartition(" ")
                if name in self.dependents and not mark:
                    programs[program][0].add(name)
                elif mark == "||" and self.is_program(name):
                    programs[program][1].add(name)
        files = sorted({name for _, used in programs.values() for name in used})
        # In a program the linker may have made them local.
        inside = {name: set().union(*(owners.get(symbol, ()) for symbol in own))
                  for name, own in self.symbols_of(files).items()}
        for test in self.tests.values():
            own, used = programs[test.target]
            test.objects = own.union(*(inside.get(name, ()) for name in used))
            test.headers = set().union(*(made_from[name] for name in own))
        self.made_from = made_from

    def is_program(self, name):
        path = self.build / name
        return name.startswith(("bin/", "tests/", "fuzz/")) and path.is_file() and os.access(path, os.X_OK)

    def symbols_of(self, names, *options):
        """Symbols that each file defines."""
        found = {}
        for i in range(0, len(names), 100):
            shown = subprocess.run(["nm", "-A", "--defined-only", *options, *names[i:i + 100]], cwd=self.build,
                                   capture_output=True, check=False)
            for line in shown.stdout.decode().splitlines():
                name, _, rest = line.partition(":")
                found.setdefault(name, set()).add(rest.split()[-1].partition("@")[0])
        return found

    def hash(self, name):
        return hashlib.sha256((self.build / name).read_bytes()).digest()

    # One test.

    def try_test(self, test, limit_s):
        """(None or how it fails, wall, CPU seconds)."""
        environment = {**os.environ, **test.environment, "CRITERION_FAIL_FAST": "1", "LD_PRELOAD": str(WORK / "folders.so"),
                       "TC_MUTANT_FOLDERS": str(self.folders)}
        began = time.monotonic()
        with open(self.output, "wb") as out:
            child = subprocess.Popen(test.command, cwd=test.folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=narrow)
        running[child.pid] = self.folders
        ended = threading.Event()
        late = []

        def stop():
            starved = Starved(child.pid, self.folders)
            while not ended.wait(1):
                if time.monotonic() - began - starved.look() > limit_s:
                    late.append(True)
                    kill_session(child.pid, self.folders)
                    return
        watcher = threading.Thread(target=stop)
        watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        watcher.join()
        kill_session(child.pid, self.folders)
        running.pop(child.pid)
        took = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        self.sweep()
        text = self.output.read_text(encoding="utf-8", errors="replace")
        if late:
            return "hangs", *took
        if child.returncode not in (0, test.skip_code) or any(p.search(text) for p in test.says_failed):
            return failed_case(text), *took
        return None, *took

    def sweep(self):
        """Away with the folders that it made."""
        if self.folders.exists():
            for name in self.folders.read_text(encoding="utf-8").splitlines():
                shutil.rmtree(name, ignore_errors=True)
            self.folders.unlink()

    # One fault.

    def judge(self, fault, order):
        """(how it ended, which test found it)."""
        file = self.src / fault.path
        plain = file.read_bytes()
        file.write_bytes(fault.planted(plain.decode()).encode())
        try:
            return self.find(fault, order)
        finally:
            file.write_bytes(plain)

    def find(self, fault, order):
        affected = {name for name in self.dependents if fault.path in self.made_from[name]}
        waiting = [test for test in order(fault, self.tests.values()) if test.objects & affected]
        if not waiting:
            return "not in any test", None
        changed, same, sizes = set(), set(), list(BATCHES)
        while waiting:
            size = sizes.pop(0) if sizes else len(waiting)
            batch, waiting = waiting[:size], waiting[size:]
            if run(["ninja", "-C", self.build, "-j1", *dict.fromkeys(t.target for t in batch)], self.log):
                return "does not compile", None
            for name in set().union(*(t.objects for t in batch)) & affected - changed - same:
                (changed if self.hash(name) != self.hashes[name] else same).add(name)
            for test in batch:
                if test.objects & changed:
                    how, _, _ = self.try_test(test, PATIENCE * (HANG_S + HANG_TIMES * known[test.name][0]))
                    learn(fault, test.name, how is not None)
                    if how is not None:
                        return "found", test.name + (f" ({how})" if how else "")
            if not waiting and not changed:
                return "same code", None
            if same and not changed and len(affected) == len(same):
                return "same code", None
        return "NOT FOUND", None


running = {}  # sessions of tests, and their marks


def narrow():
    """In the child: no core files, no file without end, and the first to go when memory is short."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = FILE_BYTES_MAX if hard == resource.RLIM_INFINITY else min(FILE_BYTES_MAX, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


def processes_of(session, mark):
    """All that a test began: of its session, or with its mark in the environment, for Criterion gives each case a session of its own."""
    mark = f"TC_MUTANT_FOLDERS={mark}".encode()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
                if fields[0] == "Z":
                    continue
                with open(f"/proc/{entry}/environ", "rb") as environment:
                    if int(fields[3]) == session or mark in environment.read().split(b"\0"):
                        yield int(entry)
            except (OSError, IndexError, ValueError):
                pass


def kill_session(session, mark):
    for process in processes_of(session, mark):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass


class Starved:
    """How long a test waited for nothing but a core: on a busy machine that is no hang."""

    def __init__(self, session, mark):
        self.session, self.mark, self.before, self.at, self.total = session, mark, {}, time.monotonic(), 0.0

    def look(self):
        now, seen, most = time.monotonic(), {}, 0.0
        for process in processes_of(self.session, self.mark):
            try:
                for thread in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as stat:
                        seen[thread] = int(stat.read().split()[1]) / 1e9
                    most = max(most, seen[thread] - self.before.get(thread, 0.0))
            except (OSError, IndexError, ValueError):
                pass  # it has ended, or the kernel does not say
        since = now - self.at
        self.total += max(min(most, since), since - 2)  # we were called each second: else nobody ran
        self.before, self.at = seen, now
        return self.total


def failed_case(text):
    match = re.search(r"\[(?:FAIL|CRSH|ERR )\S*\] (\S+?)::(\w+)", text)
    return f"{match.group(1)}/{match.group(2)}" if match else ""


# The order in which tests are tried: what finds most for its time first.

known = {}     # by a test's name: how long it takes unchanged, wall and CPU seconds
tally = {}     # (room, test): [found, run]
lock = threading.Lock()


def room_of(path):
    return next(room for room, folder in ROOMS.items() if path.startswith(folder + "/"))


def learn(fault, name, found):
    with lock:
        count = tally.setdefault((room_of(fault.path), name), [0, 0])
        count[0] += found
        count[1] += 1


def guess(fault, test):
    """How likely it is that the test finds the fault, before any has run: by names, and by what its sources include."""
    stem = pathlib.PurePath(fault.path).stem
    words = set(stem.split("_"))
    if test.name == f"test_{stem}":
        return 0.6
    folder = pathlib.PurePath(fault.path).parent
    header = str(folder / f"{stem}.h")
    if words & set(test.name.split("_")) or header in test.headers:
        return 0.3
    if folder.name in test.name.split("_") or any(h.startswith(f"{folder}/") for h in test.headers):
        return 0.15
    return 0.02


def order_of(fault, tests):
    room = room_of(fault.path)

    def worth(test):
        found, tried = tally.get((room, test.name), (0, 0))
        wall, cpu = known[test.name]
        cost = cpu + 0.2 * wall + 0.3
        return (4 * guess(fault, test) + found) / (4 + tried) / cost
    with lock:
        return sorted((t for t in tests if t.name in known), key=lambda t: (-worth(t), t.name))


# What is drawn.

def read_equivalents():
    """(path, line's text, change): why no test can see it."""
    table, entry = {}, {}
    lines = (HERE / "equivalent.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            if entry:
                try:
                    table[entry["file"], entry["line"], entry["change"]] = entry["why"]
                except KeyError as missing:
                    fail(f"equivalent.txt:{number}: an entry without {missing}")
            entry = {}
        else:
            key, _, value = line.partition(": ")
            if key == "" or line.startswith(" "):
                entry["why"] += " " + line.strip()
            else:
                entry[key.strip()] = value.strip()
    return table


def faults_of(folder):
    found = []
    for path in sorted((ROOT / folder).rglob("*.[ch]")):
        found += faults.candidates_of(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    return found


class Room:
    """Hands out the faults of a room, until so many counted."""

    def __init__(self, name, wanted, queue):
        self.name, self.wanted, self.queue = name, wanted, queue
        self.running = self.found = self.missed = 0

    @property
    def counted(self):
        return self.found + self.missed

    def next(self):
        if self.counted + self.running >= self.wanted:
            return None
        fault = next(self.queue, None)
        if fault:
            self.running += 1
        return fault


def show(fault):
    plain = (ROOT / fault.path).read_text(encoding="utf-8")
    diff = difflib.unified_diff(plain.splitlines(), fault.planted(plain).splitlines(), fault.path,
                                f"{fault.path} ({fault.change})", lineterm="")
    print("\n".join(diff) + "\n")


def selected(only):
    """The faults of the places that --only names."""
    for place in only:
        path, _, rest = place.partition(":")
        if not (ROOT / path).is_file() or not re.fullmatch(r"[0-9]+(:[0-9]+)?", rest):
            fail(f"--only {place}: FILE:LINE or FILE:LINE:COLUMN of a file of the tree")
        if not any(path.startswith(folder + "/") for folder in ROOMS.values()):
            fail(f"--only {place}: it is in none of the rooms {' '.join(ROOMS)}")
        at = [int(n) for n in rest.split(":")]
        for fault in faults.candidates_of(path, (ROOT / path).read_text(encoding="utf-8")):
            if [fault.line, fault.column][:len(at)] == at:
                yield fault


def rooms_for(arguments):
    if arguments.only:
        drawn = list(selected(arguments.only))
        by_room = {room: [f for f in drawn if room_of(f.path) == room] for room in ROOMS}
        return [Room(room, len(some), iter(some)) for room, some in by_room.items() if some]
    names = arguments.room or list(ROOMS)
    rooms = []
    for i, name in enumerate(names):
        wanted = arguments.count // len(names) + (i < arguments.count % len(names))
        rooms.append(Room(name, wanted, faults.chosen_from(faults_of(ROOMS[name]), arguments.seed)))
    return rooms


def measure(trees, jobs):
    """Each test runs once, unchanged; one whose program is as it was in the last run keeps its time."""
    tree = trees[0]
    failing = []
    kept = WORK / "times.json"
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    now = {}

    def one(test):
        mark = tree.hash(test.target).hex()
        if before.get(test.name, {}).get("program") == mark:
            now[test.name] = before[test.name]
            known[test.name] = now[test.name]["took"]
            return
        # Each has an output of its own here: several run in the same tree.
        apart = Tree(tree.number)
        apart.output, apart.folders = tree.base / f"output-{test.name}", tree.base / f"folders-{test.name}"
        how, *took = apart.try_test(test, PATIENCE * 900)
        if how is not None:
            failing.append((test.name, how))
            return
        apart.output.unlink()
        known[test.name] = took
        now[test.name] = {"program": mark, "took": took}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, sorted(tree.tests.values(), key=lambda t: t.name)))
    kept.write_text(json.dumps(now, indent=1, sort_keys=True), encoding="utf-8")
    for name, how in failing:
        print(f"{name} fails without a fault ({how}; {tree.base}/output-{name}): it is left out", flush=True)
    for other in trees[1:]:
        other.tests = {name: test for name, test in other.tests.items() if name in known}


class Round:
    """All faults, over all trees."""

    def __init__(self, rooms, trees, equivalents):
        self.rooms, self.trees, self.equivalents = rooms, trees, equivalents
        self.turn = threading.Lock()

    def take(self):
        with self.turn:
            for room in self.rooms:
                while fault := room.next():
                    why = self.equivalents.get((fault.path, fault.text, fault.change))
                    if why is None:
                        return room, fault
                    room.running -= 1
                    print(f"{fault.where}  {fault.change}  equivalent: {why}", flush=True)
            return None, None

    def work(self, tree):
        while True:
            room, fault = self.take()
            if fault is None:
                return
            began = time.monotonic()
            result, by = tree.judge(fault, order_of)
            with self.turn:
                room.running -= 1
                room.found += result == "found"
                room.missed += result == "NOT FOUND"
                said = f"found by {by}" if result == "found" else result
                print(f"{fault.where}  {fault.change}  {said}  [{time.monotonic() - began:.0f} s]", flush=True)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.trees)) as pool:
            for done in [pool.submit(self.work, tree) for tree in self.trees]:
                done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(": ", 1)[1], allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--room", action="append", choices=list(ROOMS))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", action="append", default=[], metavar="FILE:LINE[:COLUMN]")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    rooms = rooms_for(arguments)
    equivalents = read_equivalents()
    if arguments.show:
        for room in rooms:
            while fault := room.next():
                show(fault)
        return 0
    if not any(room.wanted for room in rooms):
        fail("there is nothing to change")
    jobs = max(1, min(arguments.jobs, sum(room.wanted for room in rooms)))
    trees = [Tree(i + 1) for i in range(jobs)]
    for tree in trees:
        tree.base.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    if run([compiler, "-shared", "-fPIC", "-O1", "-o", WORK / "folders.so", HERE / "folders.c", "-ldl"], WORK / "log"):
        fail(tail(WORK / "log"))
    for tree in trees:
        tree.prepare(arguments.jobs)
    print(f"{jobs} trees are built after {time.monotonic() - began:.0f} s", flush=True)
    measure(trees, arguments.jobs)
    print(f"{len(known)} tests pass unchanged after {time.monotonic() - began:.0f} s", flush=True)
    Round(rooms, trees, equivalents).run()
    found, counted = sum(r.found for r in rooms), sum(r.counted for r in rooms)
    print(f"\n{'room':10} {'found':>5} {'of':>5}")
    for room in rooms:
        print(f"{room.name:10} {room.found:5} {room.counted:5}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"in {time.monotonic() - began:.0f} s, with {used.ru_utime + used.ru_stime:.0f} s of CPU")
    print(f"{found} of {counted} found")
    return 0 if counted > 0 and found * 100 >= WANTED * counted else 1


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell has those that it runs in the background ignore the first
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        for session, mark in list(running.items()):
            kill_session(session, mark)
        os._exit(130)
