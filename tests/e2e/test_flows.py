# SPDX-License-Identifier: Apache-2.0
"""docs/FLOWS.md names functions that are defined where it says; docs/DESIGN.md names every file that starts a thread;
docs/HACKING.md names every file that an event of Go stands in."""
import re
import unittest

from harness import SOURCE, Case

TREES = ("agent", "collector", "lib", "proto", "tools")
CALLS = ("pthread_create", "tc_thread_start", "ta_spawn", "ta_spawn_detached", "uv_queue_work", "uv_thread_create")
CALL = re.compile(rf"\b(?:{'|'.join(CALLS)})\(")
# Threads that these files start belong to their callers, or to the traced program.
OTHERS = {"agent/host/spawn.c", "agent/preload/threads.c"}
NOT_CODE = re.compile(r'(?s)/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"')


def rows(page, columns):
    """The rows of tables with these columns, without the line below the heads."""
    found, inside = [], False
    for line in (SOURCE / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells == columns:
            inside = True
        elif len(cells) != len(columns):
            inside = False
        elif inside and set("".join(cells)) != {"-"}:
            found.append(cells)
    return found


def defines(text, function):
    return re.search(rf"(?m)^[a-zA-Z][^;={{}}()]*\b{function}\([^;{{}}]*\)\s*\{{", text) is not None


def code(path):
    return NOT_CODE.sub("", path.read_text())


class Flows(Case):
    def test_each_function_is_defined_in_the_file_beside_it(self):
        count = 0
        for thread, functions, path, what in rows("docs/FLOWS.md", ["thread", "function", "file", "what it does"]):
            text = code(SOURCE / path.strip("`"))
            for function in re.findall(r"`(\w+)\(\)`", functions):
                self.assertTrue(defines(text, function), f"{path} does not define {function}()")
                count += 1
            self.assertTrue(thread and what, functions)
        self.assertGreater(count, 150)

    def test_its_threads_are_those_of_design(self):
        known = {"program"}  # a thread of the program that is traced
        for columns in (["thread", "how many", "owns", "talks to others by", "started in"], ["thread", "how many", "does", "started in"]):
            known |= {row[0].split(" (")[0].split(",")[0] for row in rows("docs/DESIGN.md", columns)}
        for thread, functions, *_ in rows("docs/FLOWS.md", ["thread", "function", "file", "what it does"]):
            for name in thread.split(", "):
                self.assertIn({"agent": "traceagent"}.get(name, name), known, functions)

    def test_design_names_every_file_that_starts_a_thread(self):
        named = set()
        for columns in (["thread", "how many", "owns", "talks to others by", "started in"], ["thread", "how many", "does", "started in"]):
            for row in rows("docs/DESIGN.md", columns):
                named |= set(re.findall(r"`([^`]+)`", row[-1]))
        starts = {str(path.relative_to(SOURCE)) for tree in TREES for path in (SOURCE / tree).rglob("*.c")
                  if CALL.search(path.read_text()) and CALL.search(code(path))} - OTHERS
        self.assertEqual(named, starts)

    def test_hacking_names_every_file_that_an_event_of_go_stands_in(self):
        row = next(line for line in (SOURCE / "docs/HACKING.md").read_text().splitlines() if line.startswith("| event of Go |"))
        # An event that changes a goroutine, has a sequence number, and has no other special rules.
        stands_in = {str(path.relative_to(SOURCE)) for path in (SOURCE / "lib").rglob("*.*")
                     if path.suffix in (".c", ".h", ".def") and re.search(r"\b(?:TW_EV_)?GO_SWITCH_DESTROY\b", path.read_text())}
        self.assertEqual(set(re.findall(r"`(lib/[^`]+)`", row)) - {"lib/wire/spec.c"}, stands_in)


if __name__ == "__main__":
    unittest.main()
