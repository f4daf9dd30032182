#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_books.py BOOKS TRACECTL SERVER CERTS: compares a fleet's own records of its streams with what the collector has.

A stream that ended: the archive has as many batches as were acked, and as many are told as lost. One that was cut off by a kill: at
least what was acked when it was last looked at; what it wrote in its last 100 ms need not be in its spool. The collector's own
accounts are closed. Prints one line of JSON; exit code 1: something is missing, the lines before say what."""
import json
import os
import subprocess
import sys
import time

PATIENCE_S = 60 * float(os.environ.get("TC_PATIENCE", "1"))  # a cut-off stream is given up, and what ended last is published


def ask(tracectl, server, certs, verb):
    out = subprocess.run([tracectl, verb, "--server", server, "--certs", certs, "--json"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def faults_of(books, rows):
    for stream, state, *counts in books:
        produced, acked, lost = map(int, counts)
        row = rows.get(stream)
        if row is None:
            if acked + lost > 0:
                yield f"{stream}: {acked} batches acked, and the collector does not know it"
        elif state == "ended":
            if (row["batches"], row["lost_batches"]) != (acked, lost):
                yield f"{stream}: {acked} acked and {lost} lost, the collector has {row['batches']} and {row['lost_batches']}"
        elif row["batches"] + row["lost_batches"] < acked:
            yield (f"{stream}, cut off: {acked} of {produced} acked, the collector has {row['batches']} and "
                   f"{row['lost_batches']} lost")


def accounts_of(proof):
    for prefix, parts in (("", ("archived", "taken", "lost")), ("live_", ("archived", "taken", "lost", "open", "spooled"))):
        produced, sum_of = proof[f"{prefix}produced_batches"], sum(proof[f"{prefix}{part}_batches"] for part in parts)
        if produced != sum_of:
            yield f"verify: {prefix}produced {produced} batches, found {sum_of}"
    if proof["problems"]:
        yield f"verify: {proof['problems']} problems"


def main(path, tracectl, server, certs, *options):
    with open(path, encoding="ascii") as file:
        books = [line.rstrip("\n").split("\t") for line in file]
    books = [book for book in books if book[0]]  # else killed before it was looked at
    end = time.monotonic() + PATIENCE_S
    while True:
        rows = {row["stream"]: row for row in ask(tracectl, server, certs, "status") if row["type"] == "stream"}
        faults = list(faults_of(books, rows))
        if not faults or "now" in options or time.monotonic() > end:
            break
        time.sleep(0.2)
    proof = ask(tracectl, server, certs, "verify")[-1]
    faults += accounts_of(proof)
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    print(json.dumps({"streams": len(books), "ended": sum(book[1] == "ended" for book in books), "faults": len(faults),
                      "acked_batches": sum(int(book[3]) for book in books), "lost_batches": sum(int(book[4]) for book in books),
                      "archived_batches": sum(rows[book[0]]["batches"] for book in books if book[0] in rows)}))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
