#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""circles.py BUILD [ROOM...] [--show]: circles of calls between the files of a room, from the symbols of its objects.

Exit 1 where more than three files of one room call each other in a circle: none of them can be read without the others.
A call through a pointer is none; data counts like a function. --show prints smaller circles, too, and what makes them.
"""
import collections
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FILES_MAX = 3
# Rooms that still have larger circles, and their sizes.
OTHERS = {"agent/emit/events": 5, "agent/emit/generation": 5, "collector/http": 16, "lib/online/order": 4, "lib/online/spans": 10}


def read_room(build, room):
    """The symbols that each object defines, and those that it needs."""
    folder = f"CMakeFiles/room_{room.replace('/', '_')}.dir"
    objects = sorted(path for level in ("*", "*/*") for path in build.glob(f"{level}/{folder}/**/*.o"))
    objects = [path for path in objects if (SOURCE / room / path.name.removesuffix(".o")).exists()]  # neither generated nor left by an earlier build
    home, needs = {}, {path.name.removesuffix(".o"): set() for path in objects}
    for line in subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout.splitlines() if objects else ():
        path, *_, kind, symbol = line.replace(":", " ", 1).split()
        name = pathlib.Path(path).name.removesuffix(".o")
        if kind == "U":
            needs[name].add(symbol)
        elif kind in "TDBR":
            home[symbol] = name
    calls = {name: collections.defaultdict(list) for name in needs}
    for name, symbols in needs.items():
        for symbol in sorted(symbols & home.keys()):
            calls[name][home[symbol]].append(symbol)
    return calls


def circles(calls):
    """Tarjan's strongly connected components with more than one file."""
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in calls[name]:
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            circle = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in calls:
        if name not in number:
            visit(name)
    return found


def main():
    show = "--show" in sys.argv
    build, *rooms = (argument for argument in sys.argv[1:] if argument != "--show")
    build = pathlib.Path(build)
    if not rooms:
        rooms = [line.split("|")[0] for line in (build / "rooms.txt").read_text(encoding="utf-8").splitlines()]
    files = faults = 0
    for room in rooms:
        calls = read_room(build, room)
        files += len(calls)
        for circle in circles(calls):
            is_fault = len(circle) > OTHERS.get(room, FILES_MAX)
            faults += is_fault
            if not is_fault and not show:
                continue
            print(f"{room}: a circle of {len(circle)} files: {' '.join(circle)}")
            for name in circle:
                for other in sorted(calls[name].keys() & set(circle)):
                    print(f"    {name} calls {other}: {' '.join(calls[name][other])}")
    print(f"{len(rooms)} rooms, {files} files, {faults} circles of more than {FILES_MAX} files")
    if files == 0:
        sys.exit("no object is built")
    sys.exit(bool(faults))


main()
