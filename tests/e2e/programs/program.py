# SPDX-License-Identifier: Apache-2.0
"""A real program as the matrix runs it: once as it is, once traced, once with the collector away.

A program is run in an empty folder and answers an Outcome: what its user sees. The matrix (test_programs.py) compares
the outcomes and reads the streams. Each lasts well over 100 ms, the TRACEAGENT_DELAY_MS of these tests, on the fastest machine
too, or has no such delay: a shorter program leaves no stream.
"""
import dataclasses
import os
import random
import shutil
import signal
import socket
import subprocess

from harness import DEADLINE, die_with_parent, wait_until


@dataclasses.dataclass
class Outcome:
    """What the user of a program sees. For a server: the answers that its clients get, and its
    log."""
    out: str
    err: str
    code: int


@dataclasses.dataclass
class Names:
    """Names that the trace of one service must contain, among others."""
    calls: set = dataclasses.field(default_factory=set)  # system calls and waits
    reasons: set = dataclasses.field(default_factory=set)  # of waits, as Go's tools group them
    threads: set = dataclasses.field(default_factory=set)  # patterns, each for the name of a thread


class Program:
    """name: in the test's name. expects: {service: Names}. variables: of the agent, for this program."""
    name = None
    expects = {}
    variables = {}

    def missing(self):
        """Why the program cannot be tried here, or None."""
        raise NotImplementedError

    def user(self):
        """Whom it runs as, where root starts it; None: as whom the tests run."""
        return None

    def run(self, folder, environment):
        raise NotImplementedError

    def check(self, case, texts):
        """Claims of its own about the traced run; texts: {service: [a printed trace each stream]}."""

    def once(self, folder, environment, *command, **options):
        """Runs a command to its end."""
        done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE, preexec_fn=die_with_parent, **options)
        return Outcome(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.returncode)


class Command(Program):
    """A program that runs to its end. command: its words after the path; files: what lies in its folder before."""
    executable = None
    command = ()
    files = {}

    def path(self):
        return shutil.which(self.executable)

    def missing(self):
        return None if self.path() else f"there is no {self.executable} here"

    def run(self, folder, environment):
        for name, text in self.files.items():
            (folder / name).write_text(text)
        return self.once(folder, environment, self.path(), *self.command)


class Server(Program):
    """A program that answers clients until it is ended. Subclasses say how it starts, what it is asked, and how it ends."""
    executable = None
    called = None  # by this name, if it is another
    stop_signal = signal.SIGTERM

    def path(self):
        return shutil.which(self.executable, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

    def missing(self):
        return None if self.path() else f"there is no {self.executable} here"

    def command(self, folder, port):
        """The words after the path."""
        raise NotImplementedError

    def ask(self, folder, port):
        """Runs the clients; returns all their answers as text."""
        raise NotImplementedError

    def settled(self, err):
        """Returns the log without what differs from run to run."""
        return err

    def prepare(self, folder):
        """Before each run, not traced."""

    def answers(self, port):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def run(self, folder, environment):
        self.prepare(folder)
        port = free_port()
        log = folder / "server.log"
        with open(log, "wb") as out:
            server = subprocess.Popen([str(self.called or self.path()), *map(str, self.command(folder, port))], executable=self.path(),
                                      cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                      preexec_fn=die_with_parent, user=self.user())
        try:
            wait_until(f"{self.name} answers", lambda: server.poll() is not None or self.answers(port))
            if server.poll() is not None:
                return Outcome("", log.read_text(errors="replace"), server.returncode)
            said = self.ask(folder, port)
            server.send_signal(self.stop_signal)
            code = server.wait(DEADLINE)
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
        return Outcome(said, self.settled(log.read_text(errors="replace").replace(str(folder), "FOLDER")), code)


KEPT = []  # what says that a port is ours


def free_port():
    """Returns a port that nobody else gets: the kernel chooses none so low by itself, and each of these tests reserves its
    own until it ends."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as span:
        lowest = int(span.read().split()[0])
    ports = list(range(max(lowest // 2, 1024), lowest)) or list(range(10000, 65536))
    random.shuffle(ports)
    for port in ports:
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0tracecollect-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            name.close()
            continue
        KEPT.append(name)
        return port
    raise AssertionError("no port is free")
