#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [--build DIR] [--results]: docs/requirements.md against the requirements and against the tests it names.

Without options: each row of ../shared/design/requirements.md is in the table once, each row that says Y names a test, and
each test stands in the file that is named. --build: the binaries of that build register the test too (C), and its ctest has
the entry. --results: each test that is named ran in that build's last run (DIR/results) and passed.

In CI a missing ../shared and a named test that was skipped are failures; elsewhere they are warnings. The last line is
"N passed, N failed", a case a row.
"""
import argparse
import ast
import difflib
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TABLE = SOURCE / "docs/requirements.md"
WANTED = SOURCE.parent / "shared/design/requirements.md"
CI = bool(os.environ.get("CI"))
ROW = re.compile(r"^\| *([A-L][0-9]+) *\|(.*)\| *$")
NAMED = re.compile(r"`([^`]+)`")


class Fault(Exception):
    """What is wrong with a row."""


def rows_of(path):
    """(row, its other cells) of each line of a table whose first cell is a row's number."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := ROW.match(line):
            yield match.group(1), [cell.strip() for cell in re.split(r"(?<!\\)\|", match.group(2))]


def nearest(name, names):
    close = difflib.get_close_matches(name, names, 1, 0.5)
    return f"; the nearest is {close[0]}" if close else ""


# What there is.

@functools.cache
def tests_in(path):
    """Names of the cases in a source file, as docs/requirements.md writes them."""
    file = SOURCE / path
    if not file.is_file():
        raise Fault(f"there is no {path}{nearest(path, [str(p.relative_to(SOURCE)) for p in (SOURCE / 'tests').rglob('test_*')])}")
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".c":
        return [f"{suite}/{name}" for suite, name in re.findall(r"^Test\((\w+),\s*(\w+)", text, re.M)]
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    return [f"{node.name}.{case.name}" for node in classes for case in node.body
            if isinstance(case, ast.FunctionDef) and case.name.startswith("test")]


@functools.cache
def entries(build):
    """ctest's entries by name, with their commands."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"]: test.get("command", []) for test in json.loads(shown.stdout)["tests"]}


@functools.cache
def registered(build):
    """Cases that the build's Criterion binaries run."""
    names = set()
    for command in entries(build).values():
        if len(command) != 1 or not pathlib.Path(command[0]).name.startswith("test_"):
            continue
        suite = None
        for line in subprocess.run([command[0], "--list"], capture_output=True, text=True, check=True).stdout.splitlines():
            if match := re.match(r"(\w+): \d+ tests?$", line):
                suite = match.group(1)
            elif match := re.match(r"\W+(\w+)", line):
                names.add(f"{suite}/{match.group(1)}")
    return names


@functools.cache
def ran(build):
    """(how a case ended, what was said) by name, of the build's last run: "ok", "failed" or "skipped"."""
    ended, folder = {}, build / "results"
    for file in folder.glob("*.tap"):
        for line in file.read_text(encoding="utf-8").splitlines():
            match = re.match(r"(not )?ok - (\S+)(?:.*# SKIP ?(.*))?", line)
            if match is None:
                continue
            failed, name, skip = match.groups()
            how = ("failed", "") if failed else ("ok", "") if skip is None else ("skipped", skip)
            if ended.get(name, ("ok",))[0] != "failed":  # a subtest failed before its case passed
                ended[name] = how
    junit = folder / "ctest.xml"
    for case in xml.etree.ElementTree.parse(junit).iter("testcase") if junit.exists() else ():
        how = {"run": "ok", "notrun": "skipped", "disabled": "skipped"}.get(case.get("status"), "failed")
        ended[f"ctest {case.get('name')}"] = (how, "ctest left it out" if how == "skipped" else "")
    return ended


# One named test: its name in the results, once it is known to exist.

def find(named, build):
    if match := re.fullmatch(r"ctest: (\S+)", named):
        name = match.group(1)
        if build and name not in entries(build):
            raise Fault(f"ctest has no {name}{nearest(name, list(entries(build)))}")
        return f"ctest {name}"
    match = re.fullmatch(r"(\S+\.(?:c|py)): (\S+)", named)
    if match is None:
        raise Fault(f'"{named}" is neither "FILE: TEST" nor "ctest: ENTRY"')
    path, name = match.groups()
    there = tests_in(path)
    if name not in there:
        raise Fault(f"{path} has no test {name}{nearest(name, there)}")
    if not path.endswith(".c"):
        return f"{pathlib.Path(path).stem}.{name}"
    if build and name not in registered(build):
        raise Fault(f"{path}: no test binary registers {name}")
    return name.replace("/", "::")


def look(row, cells, args):
    """Faults and warnings of one row."""
    faults, warnings = [], []
    if len(cells) != 3:
        return [f"{len(cells) + 1} columns instead of 4"], []
    says, proven, proof = cells
    if not says:
        faults.append("it does not say what the system does")
    if proven == "N":
        return faults, warnings
    if proven != "Y":
        return faults + [f'"{proven}" is neither Y nor N'], warnings
    named = NAMED.findall(proof)
    if not named:
        faults.append("it names no test")
    for test in named:
        try:
            key = find(test, args.build)
        except Fault as fault:
            faults.append(str(fault))
            continue
        if not args.results:
            continue
        how, why = ran(args.build).get(key, ("missing", ""))
        if how == "skipped":
            (faults if CI else warnings).append(f"{test} was skipped: {why}")
        elif how != "ok":
            faults.append(f"{test} {'failed' if how == 'failed' else 'did not run'}")
    return faults, warnings


def compare(rows):
    """The rows of the table against those that are wanted."""
    if not WANTED.exists():
        said = f"no {os.path.relpath(WANTED, SOURCE)} to compare the rows with"
        if not CI:
            print(f"warning: {said}")
        return [said] if CI else []
    wanted, have = [row for row, _ in rows_of(WANTED)], [row for row, _ in rows]
    faults = [f"{row} is not in the table" for row in wanted if row not in have]
    faults += [f"{row} is no requirement" for row in dict.fromkeys(have) if row not in wanted]
    return faults + [f"{row} is in the table {have.count(row)} times" for row in dict.fromkeys(have) if have.count(row) > 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--results", action="store_true")
    args = parser.parse_args()
    if args.results and not args.build:
        parser.error("--results needs --build")
    rows = list(rows_of(TABLE))
    wrong = compare(rows)
    for fault in wrong:
        print(f"docs/requirements.md: {fault}")
    bad = 0
    for row, cells in rows:
        faults, warnings = look(row, cells, args)
        for text in warnings:
            print(f"warning: {row}: {text}")
        for text in faults:
            print(f"docs/requirements.md: {row}: {text}")
        bad += bool(faults)
    open_rows = [row for row, cells in rows if len(cells) == 3 and cells[1] == "N"]
    print(f"requirements: {len(rows)} rows, not proven: {', '.join(open_rows) or 'none'}")
    print(f"{len(rows) - bad} passed, {bad + len(wrong)} failed")
    return 1 if bad or wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
