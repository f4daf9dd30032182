#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rooms.py BUILD [--write]: the rooms of the house (cmake/rooms.cmake) against docs/DESIGN.md, and their limits.

BUILD/rooms.txt has what the compiler enforces. The picture and the table between the marks in docs/DESIGN.md are made
from it; --write makes them again. Exit 1 where they differ, where rooms include each other in a circle, where a room has
more than 30 C files, or a file of the product more than 600 lines; where two structs (unions, enums) that several files
see share a tag, where a header declares what a room above it defines, or
where headers include each other.
"""
import collections
import pathlib
import re
import sys
import textwrap

SOURCE = pathlib.Path(__file__).resolve().parent.parent
DESIGN = SOURCE / "docs/DESIGN.md"
BEGIN, END = "<!-- rooms: made by tools/rooms.py -->\n", "<!-- rooms: end -->\n"
FILES_MAX, LINES_MAX = 30, 600
TREES = (("collector", "collector"), ("tracectl", "tools"), ("agent", "agent"), ("online", "lib/online"), ("shared", ""))


class Room:
    def __init__(self, line):
        self.folder, self.about, shown, inside = line.rstrip("\n").split("|")
        self.shown, self.inside = shown.split(), inside.split()

    @property
    def below(self):
        return self.shown + self.inside

    @property
    def sources(self):
        return sorted(path for path in (SOURCE / self.folder).iterdir() if path.suffix in (".c", ".h"))


def read_rooms(build):
    with open(pathlib.Path(build) / "rooms.txt", encoding="utf-8") as lines:
        return {room.folder: room for room in map(Room, lines)}


def levels(rooms):
    """The level of each room: one above the highest that it includes. Fails for a circle."""
    known, open_ = {}, []

    def level(folder):
        if folder in open_:
            raise ValueError("circle: " + " > ".join(open_[open_.index(folder):] + [folder]))
        if folder not in known:
            open_.append(folder)
            known[folder] = 1 + max((level(below) for below in rooms[folder].below), default=0)
            open_.pop()
        return known[folder]

    for folder in rooms:
        level(folder)
    return known


def tree_of(folder):
    return next(name for name, start in TREES if folder == start or folder.startswith(start + "/") or not start)


def picture(rooms, level):
    """A line a level, the highest first; a room includes rooms of lines below its own."""
    lines = []
    for name, start in TREES:
        mine = [folder for folder in rooms if tree_of(folder) == name]
        lines.append(f"{name}")
        for height in sorted({level[folder] for folder in mine}, reverse=True):
            short = sorted(folder.removeprefix(start + "/").removeprefix("lib/").removeprefix("tracectl/")
                           for folder in mine if level[folder] == height)
            lines += textwrap.wrap("   ".join(short), 110, initial_indent="    ", subsequent_indent="        ",
                                   break_on_hyphens=False)
    return "\n".join(lines)


def page(rooms, level):
    rows = [f"| `{room.folder}` | {room.about} | {' '.join(sorted(room.below)) or '-'} |" for room in rooms.values()]
    return (BEGIN + "\n```text\n" + picture(rooms, level) + "\n```\n\n"
            "| room | what is in it | may include |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" + END)


def too_large(rooms):
    for room in rooms.values():
        if len(room.sources) > FILES_MAX:
            yield f"{room.folder}: {len(room.sources)} files, at most {FILES_MAX}"
        for path in room.sources:
            lines = path.read_text(encoding="utf-8").count("\n")
            if lines > LINES_MAX:
                yield f"{path.relative_to(SOURCE)}: {lines} lines, at most {LINES_MAX}"


TAG = re.compile(r"(?m)^(?:typedef )?(?:struct|union|enum) (\w+) \{")
FUNCTION = re.compile(r"(?m)^(?!static|typedef|struct \w+ \{|#)[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\s*\{")
PROTOTYPE = re.compile(r"(?m)^(?!static|typedef|#)[A-Za-z_][\w \t*]*?\b(t[a-z]_\w+)\([^;{}]*\)[^;{}]*;")
OPAQUE = re.compile(r"(?m)^struct (\w+);")
CALLS_UP = {"agent/emit/core"}  # its inline calls continue in higher rooms if the fast path does not suffice


def below(folder, rooms, known):
    """The room, and all rooms that it may include, directly or through others."""
    if folder not in known:
        known.add(folder)
        for other in rooms[folder].below:
            below(other, rooms, known)
    return known


def misplaced(rooms):
    """Tags with two meanings, and declarations that belong to a higher room. Tags used in one .c only have no prefix."""
    tags, functions, headers = collections.defaultdict(set), collections.defaultdict(set), []
    for room in rooms.values():
        for path in room.sources:
            text = re.sub(r"(?s)/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"))
            for tag in TAG.findall(text):
                if path.suffix == ".h" or re.match(r"t[a-z]_", tag):
                    tags[tag].add(path)
            if path.suffix == ".h":
                headers.append((room.folder, path, text))
            else:
                for name in FUNCTION.findall(text):
                    functions[name].add(room.folder)
    for tag, paths in sorted(tags.items()):
        if len(paths) > 1:
            yield f"struct {tag} has two meanings: {', '.join(str(path.relative_to(SOURCE)) for path in sorted(paths))}"
    for folder, path, text in headers:
        sight = below(folder, rooms, set())
        for name in PROTOTYPE.findall(text):
            if functions[name] and not functions[name] & sight and folder not in CALLS_UP:
                yield f"{path.relative_to(SOURCE)} declares {name}(), which {' '.join(functions[name])} defines"
        for tag in OPAQUE.findall(text) if folder.startswith("lib/") else ():
            homes = {str(of.parent.relative_to(SOURCE)) for of in tags[tag]}
            if homes and not homes & sight:
                yield f"{path.relative_to(SOURCE)} declares struct {tag}, which {' '.join(homes)} defines"


def circles(rooms):
    """Headers that include each other, directly or through others."""
    includes = {}
    for room in rooms.values():
        for path in room.sources:
            if path.suffix == ".h":
                name = str(path.relative_to(SOURCE)).removeprefix("lib/")
                includes[name] = re.findall(r'(?m)^#include "([^"]+\.h)"', path.read_text(encoding="utf-8"))
    done, open_ = set(), []

    def walk(name):
        if name in open_:
            yield "headers include each other: " + " > ".join(open_[open_.index(name):] + [name])
        elif name not in done:
            open_.append(name)
            for other in includes.get(name, ()):
                yield from walk(other)
            open_.pop()
            done.add(name)

    for name in sorted(includes):
        yield from walk(name)


def main():
    rooms = read_rooms(sys.argv[1])
    try:
        level = levels(rooms)
    except ValueError as circle:
        sys.exit(str(circle))
    faults = list(too_large(rooms)) + list(misplaced(rooms)) + list(circles(rooms))
    text = DESIGN.read_text(encoding="utf-8")
    wanted = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: page(rooms, level), text, flags=re.S)
    if "--write" in sys.argv:
        DESIGN.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        faults.append("docs/DESIGN.md shows other rooms than the build has: tools/rooms.py BUILD --write")
    print("\n".join(faults + [f"{len(rooms)} rooms, {len(faults)} faults"]))
    sys.exit(bool(faults))


main()
