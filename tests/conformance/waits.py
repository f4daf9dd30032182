# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom, summed from the text of `go tool trace -d=parsed` in the plainest way."""
import collections
import re

EVENT = re.compile(r"^M=.* StateTransition Time=(\d+) GoID=(\d+) (\w+)->(\w+)(?: Reason=\"(.*)\")?$")
SYNC = re.compile(r"^M=.* Sync Time=(\d+)")
FRAME = re.compile(r"^\t(|[^\t].*) @ 0x([0-9a-f]+)$")
REASONS = {"sync", "sync.(*Cond).Wait", "chan send", "chan receive", "select"}
CONVOYS = {"sync", "chan send"}


class Life:
    """One goroutine, from its creation or from where the trace met it."""

    def __init__(self):
        self.entry, self.state, self.since, self.reason, self.stack = "", None, None, "", ()


class Sum:
    def __init__(self):
        self.count = self.total = self.longest = 0

    def add(self, length):
        self.count += 1
        self.total += length
        self.longest = max(self.longest, length)

    def __iter__(self):
        return iter((self.count, self.total, self.longest))


class Waits:
    def __init__(self):
        self.pairs = collections.defaultdict(Sum)  # (reason, stack, waker's stack)
        self.wakes = []  # (waker's entry, life, state, length)
        self.waiting, self.longest = collections.Counter(), collections.Counter()  # by stack
        self.convoys = set()  # stacks
        self._reasons, self._generation, self._runs = {}, collections.Counter(), collections.Counter()
        self._lives = {}
        self._began = self._event = self._frames = None
        self._own, self._context = [], []
        self._syncs = 0

    def line(self, line):
        line = line.rstrip("\n")
        if line.startswith("M="):
            self.end()
            match = EVENT.match(line)
            if self._began is None:
                self._began = int(re.search(r" Time=(\d+)", line).group(1))
            self._event, self._own, self._context = match and match.groups(), [], []
            if SYNC.match(line):
                self._generation_begins()
        elif line in ("TransitionStack=", "Stack="):
            self._frames = self._own if line[0] == "T" else self._context
        elif match := FRAME.match(line):
            self._frames.append((int(match.group(2), 16), match.group(1)))

    def end(self):
        """The event whose lines came last."""
        if self._event is None:
            return
        time, ident, old, new, reason = self._event
        self._event = None
        life = self._lives.get(ident)
        if old == "NotExist" or life is None:
            life = self._lives[ident] = Life()
            life.since = int(time) if old == "NotExist" else self._began
        if not life.entry and self._own:
            life.entry = self._own[-1][1]
        if old == new:
            return
        if life.state is not None:
            self._leave(life, int(time))
            life.since = int(time)
        self._enter(life, new, reason or "")
        if new == "NotExist":
            del self._lives[ident]

    def _enter(self, life, state, reason):
        was_waiting, life.state = life.state == "Waiting", state
        life.woken_by = (self._context[-1][1] if self._context else "") if was_waiting else None
        if state != "Waiting":
            return
        life.reason, life.stack = reason, tuple(pc for pc, _ in self._own)
        if reason not in REASONS:
            return
        stack = life.stack
        self.waiting[stack] += 1
        self._reasons[stack] = reason
        for most in (self.longest, self._generation):
            most[stack] = max(most[stack], self.waiting[stack])

    def _leave(self, life, time):
        length = time - life.since
        waker = tuple(pc for pc, _ in self._context)
        if life.state == "Waiting":
            self.wakes.append((self._context[-1][1] if waker else "", life, "waits", length))
            if life.reason in REASONS:
                self.waiting[life.stack] -= 1
                self.pairs[life.reason, life.stack, waker].add(length)
        elif life.state == "Runnable" and life.woken_by is not None:
            self.wakes.append((life.woken_by, life, "latency", length))

    def _generation_begins(self):
        for stack, length in self._generation.items():
            is_long = length >= 3 and self._reasons[stack] in CONVOYS
            self._runs[stack] = self._runs[stack] + 1 if is_long else 0
            if self._runs[stack] >= 3:
                self.convoys.add(stack)
        self._generation = collections.Counter({stack: n for stack, n in self.waiting.items()})

    def by_entry(self):
        sums = collections.defaultdict(lambda: {"waits": Sum(), "latency": Sum()})
        for waker, life, what, length in self.wakes:
            sums[waker, life.entry][what].add(length)
        return sums
