#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_reference.py BUILD [--write]: the reference of the HTTP interface against the tables of the program.

docs/openapi.json is made by tools/openapi.py; what stands between the marks in docs/HTTP.md is printed by BUILD's tracectl. --write writes
both again. Exit 1 where they differ.
"""
import pathlib
import re
import subprocess
import sys

import openapi

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OPENAPI, MANUAL = SOURCE / "docs/openapi.json", SOURCE / "docs/HTTP.md"
MARKS = re.compile(r"(?s)(<!-- tracectl tables (\w+) -->\n).*?(<!-- end -->\n)")


def main():
    tracectl = pathlib.Path(sys.argv[1]) / "bin/tracectl"

    def tables(*args):
        return subprocess.run([tracectl, "tables", *args], check=True, capture_output=True, text=True).stdout

    def table(mark):
        printed = tables(mark[2], "--markdown")
        return mark[1] + printed[printed.index("|"):].strip() + "\n" + mark[3]

    made = {OPENAPI: openapi.text(), MANUAL: MARKS.sub(table, MANUAL.read_text())}
    differ = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in differ:
        if "--write" in sys.argv:
            path.write_text(made[path])
        else:
            print(f"{path} is not what the tables say: tools/http_reference.py {sys.argv[1]} --write")
    return 1 if differ and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
