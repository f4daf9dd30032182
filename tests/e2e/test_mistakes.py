# SPDX-License-Identifier: Apache-2.0
"""A hundred mistakes: each is answered with what is wrong and what to do, in one or two lines, and the exit code of its kind.

mistakes.txt is the table of them.
"""
import gzip
import os
import re
import shlex
import shutil

from harness import BUILD, DAEMON, SANITIZE, SOURCE, TRACECTL, Collector, wait_until
from served import Served

PRELOAD = BUILD / "lib/libtraceagent-preload.so"
PROGRAMS = {"tracectl": TRACECTL, "tracecollectd": DAEMON}
LEAST = 100


def mistakes():
    """Yields each mistake: line, exit code, command, what is wrong, what to do."""
    head = None
    for number, line in enumerate((SOURCE / "tests/e2e/mistakes.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if head is None:
            code, command = line.split(None, 1)
            head = number, int(code), command
        else:
            yield (*head, *(words.strip() for words in line.split(" | ", 1)))
            head = None


class Mistakes(Served):
    @classmethod
    def prepare(cls, host):
        cls.collector = Collector(host)
        cls.collector.send(host.trace("g26-gens"), "shop")
        wait_until("the trace is in order", lambda: all(row["analysis"] == "ok" for row in cls.collector.json_lines("list")))

    def setUp(self):
        super().setUp()
        trace = self.trace("g26-annot").read_bytes()
        v1 = trace.replace(b"go 1.26 trace", b"go 1.21 trace", 1)
        self.run_program("zstd", "-q", "-o", self.folder / "t.zst", given=trace)
        packed = (self.folder / "t.zst").read_bytes()
        for name, content in (("t.trace", trace), ("v1.trace", v1), ("cut.trace", trace[:len(trace) * 2 // 3]), ("cut.zst", packed[:len(packed) // 2]),
                              ("t.trace.gz", gzip.compress(trace)), ("empty", b""), ("junk", bytes(range(256)) * 16), ("some.txt", b"hello world\n"),
                              ("page.html", b"<!DOCTYPE html><title>Sign in</title>"), ("404.txt", b"404 page not found\n"), ("some.json", b'{"a": 1}\n'),
                              ("key.yaml", b"lops: 1\n"), ("value.yaml", b"loops: many\n"), ("tab.yaml", b'listen:\n\tagents: ""\n')):
            (self.folder / name).write_bytes(content)
        shutil.copy(self.trace("g26-gens"), self.folder / "gens.trace")
        (self.folder / "dir").mkdir()
        shutil.copytree(self.host.certs, self.folder / "certs")
        self.tracectl("certs", "init", self.folder / "other")
        (self.folder / "collector.state").symlink_to(self.collector.state)
        (self.folder / "ready").symlink_to(self.collector.ready_file)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACE")}
        ports = {key: self.collector.ready[key].rsplit(":", 1)[1] for key in ("agents", "http")}
        self.names = {"{agents}": ports["agents"], "{http}": ports["http"], "{preload}": str(PRELOAD)}

    def type(self, command, code):
        words = shlex.split(re.sub(r"\{\w+\}", lambda name: self.names[name.group()], command))
        variables = {}
        while "=" in words[0]:
            name, _, variables[name] = words.pop(0).partition("=")
        program = PROGRAMS.get(words[0], words[0])
        return self.run_program(program, *words[1:], expect=code, cwd=self.folder, env={**self.environment, **variables})

    def test_each_is_told_what_is_wrong_and_what_to_do(self):
        tried = 0
        for line, code, command, wrong, to_do in mistakes():
            if SANITIZE and "{preload}" in command:  # not built
                continue
            with self.subTest(f"mistakes.txt:{line}: {command}"):
                done = self.type(command, code)
                answer = done.err + (done.out if command.startswith("tracectl check") else "")  # its verdicts are its output
                self.assertIn(wrong, answer)
                self.assertIn(to_do, answer)
                # The place in a statement is shown by two lines more, and many complaints are followed by where the help is.
                lines = [text for text in answer.splitlines() if not text.startswith("Try '")]
                if lines[2:] and lines[2].strip() == "^":
                    del lines[1:3]
                self.assertLessEqual(len(lines), 2, answer)
            tried += 1
        self.assertGreaterEqual(tried, LEAST)
