#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py store|check [BUILD [BASELINE]]: the binary interface of the agent's libraries against what was stored.

store  writes the baseline (tests/data/abi) from BUILD (build/release); `make abi` does it.
check  0: a program that was built against the stored libraries still runs with those in BUILD.

libtraceagent.so: every public function, and every struct that a program passes, by abidw and abidiff (Debian:
abigail-tools). A struct whose first field is its size may grow at its end. Any other change of it fails the check, as
does a function that changes or goes. A function that comes is fine.
libtraceagent-preload.so: the names it puts before libc's. A name that goes fails the check: its calls would no longer
be seen.
"""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parent.parent
KNOW_THEIR_SIZE = ("ta_forward_config", "ta_forward_status", "ta_emit_config", "ta_emit_status")
DESCRIBE = ("abidw", "--exported-interfaces-only", "--headers-dir", TOP / "agent/include", "--drop-private-types",
            "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash")
COMPARE = ("abidiff", "--harmless", "--no-added-syms")


def describe(library, out):
    subprocess.run([*DESCRIBE, "--out-file", out, library], check=True)


def preload_names(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sorted({line.split()[-1].split("@")[0] for line in lines.splitlines()})


def structs(tree):
    return {s.get("name"): s for s in tree.iter("class-decl") if s.get("name") in KNOW_THEIR_SIZE and s.get("size-in-bits")}


def cut_what_was_appended(now, then):
    """Takes from the structs in `now` what lies behind the end they had: the rest must be as it was."""
    tree, before = xml.parse(now), structs(xml.parse(then))
    for name, struct in structs(tree).items():
        if name not in before or int(struct.get("size-in-bits")) < int(before[name].get("size-in-bits")):
            continue
        end = before[name].get("size-in-bits")
        struct.set("size-in-bits", end)
        for member in [m for m in struct.findall("data-member") if int(m.get("layout-offset-in-bits")) >= int(end)]:
            struct.remove(member)
    tree.write(now)


def check(build, baseline):
    good = True
    with tempfile.TemporaryDirectory() as folder:
        now = pathlib.Path(folder) / "now.abi"
        describe(build / "lib/libtraceagent.so", now)
        cut_what_was_appended(now, baseline / "libtraceagent.abi")
        done = subprocess.run([*COMPARE, baseline / "libtraceagent.abi", now], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="")
        good = False
    gone = set((baseline / "libtraceagent-preload.names").read_text().split())
    gone.difference_update(preload_names(build / "lib/libtraceagent-preload.so"))
    if gone:
        print("libtraceagent-preload.so no longer has:", *sorted(gone))
        good = False
    return good


def store(build, baseline):
    baseline.mkdir(parents=True, exist_ok=True)
    describe(build / "lib/libtraceagent.so", baseline / "libtraceagent.abi")
    names = preload_names(build / "lib/libtraceagent-preload.so")
    (baseline / "libtraceagent-preload.names").write_text("".join(f"{name}\n" for name in names))


def main():
    what, *paths = sys.argv[1:] or [""]
    build = pathlib.Path(paths[0]) if paths else TOP / "build/release"
    baseline = pathlib.Path(paths[1]) if len(paths) > 1 else TOP / "tests/data/abi"
    if what == "store":
        store(build, baseline)
    elif what == "check":
        sys.exit(0 if check(build, baseline) else 1)
    else:
        sys.exit(__doc__)


main()
