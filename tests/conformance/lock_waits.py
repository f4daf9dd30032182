# SPDX-License-Identifier: Apache-2.0
"""The locks of a C program's waits, read from the output of Go's own tool: `go tool trace -d=wire` has the string of each wait
and the batches that name its lock, `-d=parsed` the begin and end of the wait."""
import ast
import collections
import re

REASONS = {"sync", "sync (condition)", "sync.(*Cond).Wait"}  # the last one: Go's name for it
BATCH = re.compile(r"^EventBatch gen=\d+ m=(\d+) ")
BLOCK = re.compile(r"^GoBlock dt=\d+ reason_string=(\d+) ")
STRING = re.compile(r"^String id=(\d+)$")
DATA = re.compile(r'^\tdata=(".*")$')
TRANSITION = re.compile(r'^M=(-?\d+) P=-?\d+ G=(-?\d+) StateTransition Time=(\d+) GoID=(\d+) (\w+)->(\w+)(?: Reason="(.*)")?$')
HEAD = b"\xd5tcsub\x01\x01\x05locks"


def unquote(text):
    """A text as Go quotes it, as bytes: what is a rune there is UTF-8."""
    parts = re.split(r"((?:\\x[0-9a-f]{2})+)", text[1:-1])
    return b"".join(bytes.fromhex(part.replace("\\x", "")) if i % 2 else ast.literal_eval('"' + part + '"').encode()
                    for i, part in enumerate(parts))


def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


class Locks:
    """The locks of one generation, which is enough here: strings belong to a generation."""

    def __init__(self):
        self.blocks = collections.defaultdict(list)  # thread: the strings of its waits, in order
        self.names, self.locks, self.missed = {}, {}, 0
        self.sums, self.longest, self.waiting = collections.defaultdict(list), collections.Counter(), collections.Counter()

    def wire(self, lines):
        thread = string = None
        for line in lines:
            if match := BATCH.match(line):
                thread = int(match.group(1))
            elif match := BLOCK.match(line):
                self.blocks[thread].append(int(match.group(1)))
            elif match := STRING.match(line):
                string = int(match.group(1))
            elif match := DATA.match(line):
                data = unquote(match.group(1))
                if string is not None:
                    self.names[string] = data.decode(errors="replace")
                elif data.startswith(HEAD):
                    missed, *rest = numbers(data[len(HEAD):])
                    self.missed += missed
                    for i in range(0, len(rest), 4):
                        self.locks[rest[i]] = rest[i + 1:i + 4]
                string = None

    def label(self, string):
        address, _, name = self.locks[string]
        return self.names.get(name) or f"{address:#x}"

    def parsed(self, lines):
        """Fills sums, {(lock, entry function of what let go): lengths}, and by lock the longest queue and the waits that have not ended."""
        at, since, entry, frames = collections.Counter(), {}, {}, None
        for line in lines:
            if line.startswith("M=") or line == "Stack=":
                frames = None
            elif line.startswith("\t") and not line.startswith("\t\t") and frames is not None:
                entry[frames] = line[1:].rsplit(" @ ", 1)[0]  # the outermost one stays
            match = TRANSITION.match(line)
            if match is None:
                continue
            thread, by, time, goroutine, old, new, reason = match.groups()
            thread, time = int(thread), int(time)
            frames = goroutine if goroutine not in entry else None
            if (old, new) == ("Running", "Waiting"):
                string = self.blocks[thread][at[thread]]
                at[thread] += 1
                if reason in REASONS and string in self.locks:
                    lock = self.label(string)
                    since[goroutine] = lock, time
                    self.waiting[lock] += 1
                    self.longest[lock] = max(self.longest[lock], self.waiting[lock])
            elif old == "Waiting" and goroutine in since:
                lock, began = since.pop(goroutine)
                self.waiting[lock] -= 1
                self.sums[lock, entry.get(by, "")].append(time - began)

    def read(self, wire, parsed):
        self.wire(wire)
        self.parsed(parsed)


def check_locks(check, report, wire, parsed):
    want = Locks()
    want.read(wire, parsed)
    tables = report["tables"]
    by_lock = collections.defaultdict(list)
    for (lock, _), lengths in want.sums.items():
        by_lock[lock] += lengths
    check.equal("locks", report["figures"]["locks"], len(by_lock))
    check.equal("by_lock", {row["object"] for row in tables["by_lock"]}, set(by_lock))
    for row in tables["by_lock"]:
        check.distribution(f"lock {row['object']}", row["waits"], by_lock[row["object"]])
        longest = want.longest[row["object"]]
        check.equal(f"queue of {row['object']}", row["longest_queue"], longest if longest > 1 else 0)
        check.equal(f"waiting for {row['object']}", row["waiting"], want.waiting[row["object"]])
    holders = collections.defaultdict(list)
    for row in tables["by_holder"]:
        holders[row["object"], row["holder"]].append(row["waits"])
    check.equal("by_holder", set(holders), set(want.sums))
    for key, sums in holders.items():
        check.equal(f"held {key}", (sum(one["count"] for one in sums), sum(one["total_ns"] for one in sums)),
                    (len(want.sums[key]), sum(want.sums[key])))
    check.equal("held", {row["object"]: row["waiting"] for row in tables["held"]}, {lock: n for lock, n in want.waiting.items() if n > 0})
    check.equal("exact pairs", sum(row["waits"]["count"] for row in tables["by_pair"] if row["holder"] != "inferred"),
                sum(map(len, by_lock.values())))
    return len(by_lock)
