# SPDX-License-Identifier: Apache-2.0
"""Parses the text of `go tool trace -d=parsed`, event by event. Traces repeat their stacks, so each stack's text is
parsed once."""
import collections
import os
import re
import subprocess

HEAD = re.compile(r"(-?\d+) P=(-?\d+) G=(-?\d+) (\w+) Time=(\d+) ?(.*)")
FRAME = re.compile(r"^\t(|[^\t].*) @ 0x([0-9a-f]+)$", re.M)
MOVE = re.compile(r'(GoID|ProcID)=(\d+) (\w+)->(\w+)(?: Reason="(.*)")?$')

# Numbers but for the time are as they stand there, as text; what follows the time is in rest. own is the stack of a transition,
# context the one of who did it.
Event = collections.namedtuple("Event", "thread proc goroutine kind time rest own context")
Stack = collections.namedtuple("Stack", "pcs entry")  # program counters, innermost first; the outermost function
NO_STACK = Stack((), "")


def stacks_of(text):
    """Returns the stacks in the lines after an event's first one: the transition's, and that of the goroutine
    that caused it."""
    stacks = {"TransitionStack=": NO_STACK, "Stack=": NO_STACK}
    for part in re.split(r"^(?=TransitionStack=$|Stack=$)", text, flags=re.M):
        if frames := FRAME.findall(part):
            stacks[part.partition("\n")[0]] = Stack(tuple(int(pc, 16) for _, pc in frames), frames[-1][0])
    return stacks["TransitionStack="], stacks["Stack="]


def events(text):
    """Every event of such a text."""
    known = {"": (NO_STACK, NO_STACK)}
    for chunk in text.removeprefix("M=").split("\nM="):
        first, _, more = chunk.partition("\n")
        stacks = known.get(more)
        if stacks is None:
            stacks = known[more] = stacks_of(more)
        thread, proc, goroutine, kind, time, rest = HEAD.match(first).groups()
        yield Event(thread, proc, goroutine, kind, int(time), rest, *stacks)


def print_of(tool, trace, mode="parsed"):
    """Returns the output of Go's tool for a trace, up to its first error."""
    run = subprocess.run([tool, f"-d={mode}", trace], env={**os.environ, "TZ": "UTC"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.stdout.decode(errors="replace")
