# SPDX-License-Identifier: Apache-2.0
"""Sums who waits for whom from the text of `go tool trace -d=parsed`, in the plainest way."""
import collections

import parsed

REASONS = {"sync", "sync.(*Cond).Wait", "chan send", "chan receive", "select"}
CONVOYS = {"sync", "chan send"}


class Life:
    """A goroutine, from its creation or its first event in the trace."""

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
        self._left, self._before = set(), collections.Counter()
        self._moves, self._still = collections.Counter(), collections.Counter()
        self._lives = {}
        self._began = self._event = None

    def event(self, event):
        if self._began is None:
            self._began = event.time
        if event.kind == "Sync":
            self._generation_begins()
        elif event.kind == "StateTransition":
            self._event = event
            what, ident, old, new, reason = parsed.MOVE.match(event.rest).groups()
            if what == "GoID":
                self._transition(event.time, ident, old, new, reason)

    def _transition(self, time, ident, old, new, reason):
        life = self._lives.get(ident)
        if old == "NotExist" or life is None:
            life = self._lives[ident] = Life()
            life.since = time if old == "NotExist" else self._began
        life.entry = life.entry or self._event.own.entry
        if old == new:
            return
        if life.state is not None:
            self._leave(life, time)
            life.since = time
        self._enter(life, new, reason or "")
        if new == "NotExist":
            del self._lives[ident]

    def _enter(self, life, state, reason):
        was_waiting, life.state = life.state == "Waiting", state
        life.woken_by = self._event.context.entry if was_waiting else None
        if state != "Waiting":
            return
        life.reason, life.stack = reason, self._event.own.pcs
        if reason not in REASONS:
            return
        stack = life.stack
        self.waiting[stack] += 1
        self._reasons[stack] = reason
        for most in (self.longest, self._generation):
            most[stack] = max(most[stack], self.waiting[stack])

    def _leave(self, life, time):
        length, waker = time - life.since, self._event.context
        if life.state == "Waiting":
            self.wakes.append((waker.entry, life, "waits", length))
            if life.reason in REASONS:
                self.waiting[life.stack] -= 1
                self._left.add(life.stack)
                self.pairs[life.reason, life.stack, waker.pcs].add(length)
        elif life.state == "Runnable" and life.woken_by is not None:
            self.wakes.append((life.woken_by, life, "latency", length))

    def _generation_begins(self):
        for stack, length in self._generation.items():
            is_long = length >= 3 and self._reasons[stack] in CONVOYS
            self._runs[stack] = self._runs[stack] + 1 if is_long else 0
            self._moves[stack] = is_long and (self._moves[stack] or stack in self._left)
            if self._runs[stack] >= 3 and (self._moves[stack] or self._still[stack] >= 10):
                self.convoys.add(stack)
            self._still[stack] = 0 if self.waiting[stack] > self._before[stack] else self._still[stack] + 1
            self._before[stack] = self.waiting[stack]
        self._left = set()
        self._generation = collections.Counter({stack: n for stack, n in self.waiting.items()})

    def by_entry(self):
        sums = collections.defaultdict(lambda: {"waits": Sum(), "latency": Sum()})
        for waker, life, what, length in self.wakes:
            sums[waker, life.entry][what].add(length)
        return sums
