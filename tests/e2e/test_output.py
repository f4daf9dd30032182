# SPDX-License-Identifier: Apache-2.0
"""Writing the output: a full disk is reported and fails; a reader that closes early is not an
error."""
import os
import pathlib
import re
import subprocess
import tty
import unittest

from harness import DEADLINE, TRACECTL, Case, Collector


class Output(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)
        trace = self.trace("g26-gens")
        self.collector.send(trace, "shop")
        at = ["--server", self.collector.to, "--certs", self.certs]
        self.commands = [
            ["--version"], ["help"], ["help", "cat"], ["tables", "events"],
            ["tables", "config", "--json"], ["check", trace], ["check", "--json", trace], ["index", trace],
            ["index", "--json", trace], ["report", "all", trace], ["report", "all", "--json", trace],
            ["report", "syscall", "--pprof", "-", trace],
            *(["cat", "-d", form, trace] for form in ("parsed", "wire", "footprint", "json")),
            ["status", *at], ["status", "--json", *at], ["list", *at], ["list", "--json", *at],
            ["report", "all", "--json", *at], ["fetch", "--no-progress", "-o", "-", *at], ["verify", "--json", *at],
        ]

    def run_into(self, command, out):
        return subprocess.run([str(word) for word in (TRACECTL, *command)], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE)

    def test_a_reader_that_is_gone_is_no_fault(self):
        for command in self.commands:
            with self.subTest(command=command):
                reader, writer = os.pipe()
                os.close(reader)
                done = self.run_into(command, writer)
                os.close(writer)
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0)

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no /dev/full")
    def test_a_full_disk_is_told_once_and_fails(self):
        for command in self.commands:
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                done = self.run_into(command, full)
                self.assertRegex(done.stderr, "No space left on device|earlier write failed")
                self.assertNotIn("out of memory", done.stderr)
                self.assertEqual(done.returncode, 1)


class Terminal(Case):
    """Control sequences never get to a terminal, whatever the traced program calls its functions."""

    def on_terminal(self, *command):
        master, slave = os.openpty()
        tty.setraw(slave)
        process = self.spawn("terminal", TRACECTL, *command, stdout=slave)
        os.close(slave)
        shown = bytearray()
        try:
            while piece := os.read(master, 1 << 16):
                shown += piece
        except OSError: # the other side is closed
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        return bytes(shown)

    def test_text_of_the_program_cannot_steer_the_terminal(self):
        data = self.trace("g26-labels").read_bytes()
        for harmless, hostile in ((b"main.", b"m\xc2\x9b2."), (b"syscall.", b"sys\xc2\x9d2\x07."),
                                  (b"runtime.", b"runt\x9bJ\x1b.")):
            self.assertEqual(len(harmless), len(hostile))
            self.assertIn(harmless, data)
            data = data.replace(harmless, hostile)
        hostile = self.folder / "hostile.trace"
        hostile.write_bytes(data)
        query = "SELECT * FROM goroutines ORDER BY id"
        for command in (("report", "all", "--frames", "0", hostile), ("report", "sched", "--csv", "--table", "by_entry", hostile),
                        ("report", "all", "--json", hostile), ("cat", "-d", "parsed", hostile), ("cat", "-d", "wire", hostile),
                        ("cat", "-d", "json", hostile), ("check", hostile), ("query", "--csv", hostile, query), ("query", hostile, query),
                        ("query", "--json", hostile, query), ("convert", "--to", "csv", "--table", "goroutines", hostile, "-o", "-"),
                        ("state", "--at", "2269900000000", hostile), ("state", "--at", "2269900000000", "--json", hostile),
                        ("diff", hostile, hostile)):
            with self.subTest(command=command):
                shown = self.on_terminal(*command)
                own = re.sub(rb"\x1b\[[01]?m", b"", shown).replace(b"\r\n", b"\n")
                self.assertNotRegex(own, rb"[\x00-\x08\x0b-\x1f\x7f]")
                self.assertNotRegex(own.decode(), "[\x80-\x9f]")
        whole = self.tracectl("cat", "-d", "parsed", hostile)
        self.assertIn(b"\tm\xc2\x9b2.", whole.stdout, "a file gets the names as they are")
        self.assertIn(b"m\xc2\x9b2.", self.tracectl("query", "--csv", hostile, query).stdout)
