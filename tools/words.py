#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words.py: words that we do not use in comments and documents, each with the plain ones. Prints FILE:LINE; exit 1 where it finds any.

A row is added when the last use of its words has gone. History (docs/history) and what is other people's is left alone.
"""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ROWS = (
    (r"finds? no memory", "cannot be allocated"),
    (r"is of no use", "is invalid"),
    (r"\bis none of\b", "is not one of"),
    (r"\bheirs?\b", "successor"),
    (r"\bdrowsy\b", "the state's name"),
    (r"\bdeafness\b", "the error's name"),
    (r"\b(?:let|lets|letting) go of\b", "release"),
    (r"\b(?:TODO|FIXME|XXX)\b", "an issue, or nothing"),
    (r"\b(the|a|an|of|to|in|is|are|and|or|it|its|for|by|as|at) \1\b", "the word once"),
)
# A comment begins with a noun or a verb.
BEGINS = re.compile(r"(?://|/\*)[ *\n]*(Of|What|And|Else|Also|The same for)\b")
PATTERNS = [(re.compile(pattern), plain) for pattern, plain in ROWS]
CODE = (".c", ".h", ".def", ".go", ".proto")
COMMENT = re.compile(r'(?s)"(?:[^"\\\n]|\\.)*"|(/\*.*?\*/|//[^\n]*)')
LEFT_ALONE = ("docs/history/", "tests/data/", "collector/http/page/vendor/")


def texts(path):
    """Yields the comments of code, or the whole text of a document, each with its first line."""
    text = (SOURCE / path).read_text(encoding="utf-8")
    if not path.endswith(CODE):
        yield 1, text
        return
    for match in COMMENT.finditer(text):
        if match.group(1):
            yield text.count("\n", 0, match.start()) + 1, match.group(1)


def main():
    listed = subprocess.run(["git", "ls-files", "*.md", *("*" + suffix for suffix in CODE)], cwd=SOURCE, capture_output=True, text=True, check=True)
    found = 0
    for path in listed.stdout.split():
        if path.startswith(LEFT_ALONE):
            continue
        for line, text in texts(path):
            begin = path.endswith(CODE) and BEGINS.match(text)
            if begin:
                print(f'{path}:{line}: "{begin.group(1)}" begins a comment: a noun or a verb')
                found += 1
            for pattern, plain in PATTERNS:
                for match in pattern.finditer(text):
                    print(f'{path}:{line + text.count(chr(10), 0, match.start())}: "{match.group()}": {plain}')
                    found += 1
    sys.exit(found > 0)


main()
