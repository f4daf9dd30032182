# SPDX-License-Identifier: Apache-2.0
"""Sums every wait in Go's text output, and the reports block, sync and net for comparison."""
import collections
import json
import subprocess

import parsed


class Waits:
    """Every wait of a goroutine: reason, stack and waker's stack (program counters), length, and whether its begin was seen."""

    def __init__(self):
        self.ended, self.open = [], {}
        self._began = None

    def event(self, event):
        self._began = self._began or event.time
        if event.kind != "StateTransition":
            return
        what, ident, old, new, reason = parsed.MOVE.match(event.rest).groups()
        if what != "GoID":
            return
        if new == "Waiting" and ident not in self.open:
            known = old != "Undetermined"
            self.open[ident] = (event.time if known else self._began, known, reason, event.own.pcs)
        elif old == "Waiting" and new != "Waiting":
            since, known, reason, own = self.open.pop(ident)
            self.ended.append((reason, own, event.context.pcs, event.time - since, known))


def is_sync(reason):
    return any(word in reason for word in ("chan", "sync", "select"))  # as Go's own profile has it


KINDS = {"block": lambda reason: True, "sync": is_sync, "net": lambda reason: reason == "network"}


def check_block(check, tracectl, trace, waits, usual):
    """With nothing idle every wait is compared; with the usual rules blocked and idle ones are the same together."""
    for kind, takes in KINDS.items():
        run = subprocess.run([tracectl, "report", kind, "--json", "--top", "0", "--idle", "!*", "--no-progress", trace],
                             check=True, stdout=subprocess.PIPE)
        report = json.loads(run.stdout)
        figures, tables = report["figures"], report["tables"]
        want = [wait for wait in waits.ended if takes(wait[0])]
        check.distribution(f"{kind} blocked", figures["blocked"], [wait[3] for wait in want])
        check.equal(f"{kind} lower bounds", figures["blocked"]["lower_bounds"], sum(not wait[4] for wait in want))
        check.equal(f"{kind} idle", figures["idle"]["count"], 0)
        check.equal(f"{kind} waiting", figures["waiting"], sum(takes(one[2]) for one in waits.open.values()))
        check.equal(f"{kind} longest", [row["waited_ns"] for row in tables["longest"]],
                    sorted((wait[3] for wait in want), reverse=True)[:16])
        for table, key, columns in (("by_reason", lambda wait: (wait[0],), ("reason",)),
                                    ("by_stack", lambda wait: (wait[1], wait[0]), ("stack", "reason")),
                                    ("by_waker", lambda wait: (wait[1], wait[2]), ("stack", "waker_stack"))):
            check_rows(check, f"{kind} {table}", tables[table], columns, want, key)
        check.equal(f"{kind} by_entry", sum(row["blocked"]["total_ns"] for row in tables["by_entry"]),
                    figures["blocked"]["total_ns"])
        parts = usual[kind]["figures"]
        for field in ("count", "total_ns", "lower_bounds"):
            check.equal(f"{kind} blocked and idle {field}", parts["blocked"][field] + parts["idle"][field],
                        figures["blocked"][field])
        check.equal(f"{kind} idle_ns", sum(row["idle_ns"] for row in usual[kind]["tables"]["by_stack"]), parts["idle"]["total_ns"])


def check_rows(check, what, rows, columns, waits, key):
    want = collections.defaultdict(list)
    for wait in waits:
        want[key(wait)].append(wait[3])
    got = {tuple(tuple(frame["pc"] for frame in row[name]) if "stack" in name else row[name] for name in columns): row for row in rows}
    check.equal(f"{what}: rows", len(rows), len(want))
    for one, lengths in want.items():
        if one in got:
            check.sum(f"{what} {one}", got[one]["blocked"], lengths)
        else:
            check.equal(f"{what} {one}", None, len(lengths))
