# SPDX-License-Identifier: Apache-2.0
"""`tracectl top` on a real terminal: tmux, whose screen is read back."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import DEADLINE, TRACECTL, Case, Collector, https, suites, wait_until

COLOR = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38)[0-9;]*m")


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Top(Case):
    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *map(str, args)],
                              check=True, capture_output=True, text=True, timeout=DEADLINE).stdout

    def setUp(self):
        super().setUp()
        self.sockets = (str(self.folder / f"tmux-{n}") for n in itertools.count())

    def start(self, collector, columns=80, rows=24, environment="", server=None):
        """A shell that runs top, then says its exit code."""
        top = f"{TRACECTL} top --server {server or collector.to} --certs {self.certs} 2>{self.folder}/top.log"
        self.socket = next(self.sockets)  # a server of its own: one that is ending takes no new session
        self.addCleanup(subprocess.run, ["tmux", "-S", self.socket, "kill-server"], capture_output=True)
        self.tmux("new-session", "-d", "-x", columns, "-y", rows,
                  f"env LC_ALL=C.UTF-8 {environment} bash --norc -c '{top}; echo over: $?; exec cat'")

    def screen(self, *flags):
        return self.tmux("capture-pane", "-p", *flags)

    def wait_for(self, *patterns):
        """The first screen that shows all of them: what is looked at while top draws may be half of each."""
        shown = ""

        def shows_all():
            nonlocal shown
            time.sleep(0.08)  # each look is a process
            shown = self.screen()
            return all(re.search(pattern, shown) for pattern in patterns)

        wait_until(f"the screen shows {patterns}", shows_all)
        return shown

    def send_until(self, collector, instance, pattern):
        """A stream that goes on, or comes again, until top follows it and shows the pattern."""
        def send():
            return self.spawn("send", TRACECTL, "send", self.trace("g26-gens"), "--to", collector.to, "--certs", self.certs, "--service", "shop",
                              "--instance", instance, "--rate", "0.04", "--no-progress")

        def shows():
            nonlocal sender
            time.sleep(0.08)
            if sender.poll() is not None:
                sender = send()
            return re.search(pattern, self.screen())

        sender = send()
        wait_until(f"the screen shows {pattern}", shows)
        sender.kill()

    def footer(self, rows):
        """A pattern: the last of so many rows is top's."""
        return rf"\A(.*\n){{{rows - 1}}}q quit"

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def terminal(self):
        """The modes of top's terminal."""
        tty = self.tmux("display-message", "-p", "#{pane_tty}").strip()
        return self.run_program("stty", "-F", tty, "-a").out

    def top_pid(self):
        pane = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(self.run_program("pgrep", "-P", pane).out.split()[0])

    @suites("release")
    def test_a_key_shows_a_report_of_each_kind(self):
        collector = Collector(self)
        collector.send(self.trace("g26-gens"), "shop")
        self.start(collector, columns=100, rows=50)
        self.wait_for("shop/one", "BLOCKED NOW", "r report")
        kinds = [json.loads(line) for line in self.tracectl("report", "all", "--schema", "--json").out.splitlines()]
        for kind in kinds:
            self.keys("r")
            headings = "|".join(re.escape(table["about"]) for table in kind["tables"])
            self.assertNotIn("BLOCKED NOW", self.wait_for(f"REPORT {kind['name']}, last", rf"(?m)^{kind['name']} +shop/one",
                                                          rf"(?m)^({headings})"))
        self.keys("r")
        self.wait_for("BLOCKED NOW", "STOP THE WORLD")

    @suites("release", "asan")
    def test_streams_are_shown_in_any_size_and_keys_work(self):
        collector = Collector(self)
        collector.send(self.trace("g26-gens"), "shop")
        self.start(collector)
        self.wait_for("shop/one", "health: ok", "STATE", "BLOCKED NOW", "STOP THE WORLD, last 10s", "ALERTS", self.footer(24))
        self.assertRegex(self.screen("-e"), COLOR)
        self.tmux("resize-window", "-x", 200, "-y", 50)
        self.wait_for("CALL P99", self.footer(50))
        self.tmux("resize-window", "-x", 30, "-y", 8)
        self.wait_for("too small")
        self.tmux("resize-window", "-x", 80, "-y", 24)
        self.keys("?")
        self.wait_for("q, \\^C")
        self.keys("?", "w")
        self.wait_for("STOP THE WORLD, last 1m")
        self.keys("Space")
        self.wait_for("PAUSED")
        self.keys("q")
        self.wait_for("over: 0")
        self.assertNotIn("-icanon", self.terminal())
        self.assertEqual(self.log("top"), "")

    @suites("release")
    def test_calls_of_a_stream_that_is_silent_are_not_blocked_now(self):
        """As from a flight recorder after its snap: the stream is live, and what was blocked then is shown with its time."""
        collector = Collector(self)
        growing = self.folder / "growing.trace"
        os.mkfifo(growing)
        self.spawn("send", TRACECTL, "send", growing, "--to", collector.to, "--certs", self.certs, "--service", "shop", "--instance", "one",
                   "--no-progress")
        with open(growing, "wb", buffering=0) as writer:
            writer.write(self.trace("g26-gens").read_bytes()[:150_000])
            self.start(collector, columns=120, rows=40)
            self.wait_for(r"live +shop/one", r"BLOCKED NOW: 0\n.*shop/one +as of \d\d:\d\d:\d\d ")
            report = collector.json_lines("report", "syscall", "--window", "10s", "--top", "0")[0]
            self.assertGreater(report["rows_total"]["blocked_now"], 0)
            self.keys("q")
            self.wait_for("over: 0")

    def test_alerts_come_from_the_feed_of_a_restarted_collector_too(self):
        collector = Collector(self, "alert.stw=1us", "alert.every=0s")
        self.start(collector)
        for instance in ("one", "two"):
            self.send_until(collector, instance, f"shop/{instance}: world stopped")
            collector.restart()
            self.wait_for("health: ok")

    @suites("release")
    def test_alerts_come_over_https(self):
        collector = Collector(self, "alert.stw=1us", "alert.every=0s", "listen.http=0.0.0.0:0")
        self.start(collector, server=https(collector))
        self.send_until(collector, "one", "shop/one: world stopped")

    @suites("release", "asan")
    def test_a_collector_that_restarts_is_waited_for(self):
        collector = Collector(self)
        collector.send(self.trace("g26-gens"), "shop")
        self.start(collector, environment="NO_COLOR=1")
        self.wait_for("shop/one")
        collector.kill()
        shown = self.wait_for("no answer for")
        self.assertIn("shop/one", shown, "what was known stays")
        self.assertNotRegex(self.screen("-e"), COLOR)
        collector.start()
        self.wait_for("health: ok")
        self.keys("C-c")
        self.wait_for("over: 130")

    @suites("release", "asan")
    def test_the_terminal_is_itself_again_however_top_ends(self):
        collector = Collector(self)
        collector.stop()
        for sent, code in ((signal.SIGTERM, 130), (signal.SIGHUP, 130), (signal.SIGABRT, 134)):
            with self.subTest(signal=sent):
                self.start(collector)
                self.wait_for("q quit")
                self.assertIn("-icanon", self.terminal())
                self.run_program("kill", f"-{sent.value}", self.top_pid())
                self.wait_for(f"over: {code}")
                self.assertNotIn("-icanon", self.terminal())
                self.assertNotIn("q quit", self.screen())
                self.tmux("kill-server")

    @suites("release", "asan")
    def test_without_a_terminal_it_is_refused(self):
        done = self.tracectl("top", expect=2)
        self.assertEqual(done.out, "")
        self.assertIn("this is for a terminal", done.err)
