#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_cpu.py URL FOLDER SECONDS: what part of a core a headless Chromium takes that shows this page, all its processes together.
It draws without a GPU, so pixels are part of it. Prints the share of the renderer, and of all."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
import browser  # noqa: E402

TICKS = 100
SETTLES_S = 8  # until what a page does once is done


class Place:
    """The part of a test case that a browser uses."""

    def __init__(self, folder):
        self.folder, self.processes = pathlib.Path(folder), []


def parent_and_ticks(process):
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[1]), int(fields[11]) + int(fields[12])


def seconds_used(root):
    """By the process and those that it began: pid -> (seconds, whether it renders pages)."""
    found = {}
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                found[int(process.name)] = (*parent_and_ticks(process), b"--type=renderer" in (process / "cmdline").read_bytes())
            except OSError:
                pass  # it has ended meanwhile
    used, todo = {}, [root]
    while todo:
        pid = todo.pop()
        if pid in found:
            used[pid] = found[pid][1] / TICKS, found[pid][2]
        todo += [child for child, (parent, *_) in found.items() if parent == pid]
    return used


def main(url, folder, seconds):
    page = browser.Browser(Place(folder))
    page.look(width=1280)
    page.open(url)
    time.sleep(SETTLES_S)
    before, began = seconds_used(page.process.pid), time.monotonic()
    time.sleep(seconds)
    after, took = seconds_used(page.process.pid), time.monotonic() - began
    spent = [(used - before.get(pid, (0, False))[0], renders) for pid, (used, renders) in after.items()]
    print(f"{sum(s for s, renders in spent if renders) / took:.3f} {sum(s for s, _ in spent) / took:.3f}")
    page.close()


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
