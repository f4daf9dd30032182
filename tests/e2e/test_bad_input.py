# SPDX-License-Identifier: Apache-2.0
"""Faults around a program cost it its trace and nothing else: its output and exit code are the same as without the agent,
and the reason is where its owner looks: on stderr for the preload library, in ta_strerror(), the log callback and
last_error for a program that links the agent."""
import contextlib
import fcntl
import itertools
import os
import platform
import pty
import re
import resource
import select
import socket
import termios
import unittest

from harness import BUILD, PATIENCE, SANITIZE, SOURCE, Collector, held_port
from served import Served

HERE = SOURCE / "tests/e2e"
LIBRARY = BUILD / "lib/libtraceagent-preload.so"
OURS = "libtraceagent-preload: "
SECONDS_MAX = 60 * PATIENCE  # a run of a program; most take a tenth of a second
NOBODY = 65534
OWN_USERS = itertools.count(64000)  # a run has one of its own: what the run before left behind does not count against its limit of processes
SHELL = ("/bin/sh", "-c", "echo one; (echo two) | cat; sleep 0.01; ls /nowhere; exit 7")


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class BadInput(Served):
    @classmethod
    def prepare(cls, host):
        cls.plain = host.folder / "plain"
        host.run_program("cc", "-O1", "-Wall", "-Werror", "-pthread", HERE / "plain.c", "-o", cls.plain)
        cls.linked = host.program_of(HERE / "plain.c", "linked", flags=("-DLINKED",))
        host.folder.chmod(0o755)

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.certs = self.folder / "certs"  # some change them
        self.run_program("cp", "-r", self.host.certs, self.certs)

    def _run(self, command, variables, **options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRACEAGENT_")}
        options.setdefault("timeout", SECONDS_MAX)
        return self.run_program(*command, expect=None, env={**environment, **variables}, **options)

    def _environment(self, **variables):
        """A program's that would be traced, were it not for these variables; None takes one away."""
        all = {"TRACEAGENT_SERVER": "127.0.0.1:9", "TRACEAGENT_CERTS": str(self.certs), "TRACEAGENT_EXIT_MS": "100"}
        all.update({f"TRACEAGENT_{name}": value for name, value in variables.items()})
        return {name: str(value) for name, value in all.items() if value is not None}

    def _same(self, done, plain, is_ours, any_number=False):
        """All but the lines of ours is as it is without us; answers ours. any_number: of the program's next descriptor."""
        def said(text):
            return re.sub(r"descriptor \d+", "descriptor", text) if any_number else text

        self.assertEqual((done.returncode, said(done.out)), (plain.returncode, said(plain.out)), done.err)
        lines = done.err.splitlines()
        self.assertEqual([line for line in lines if not is_ours(line)], plain.err.splitlines())
        return [line for line in lines if is_ours(line)]

    def _expect(self, reason, variables, linked=True, launcher=(), late=False, **options):
        """In the preload library's only line (reason "": it says nothing), and in what the linked agent tells."""
        environment = self._environment(**variables)
        preload = {"CONFINED_PRELOAD" if launcher else "LD_PRELOAD": str(LIBRARY), **environment}
        for command in ((self.plain, "a", "b"), SHELL):
            plain = self._run((*launcher, *command), {}, **options)
            ours = self._same(self._run((*launcher, *command), preload, **options), plain,
                              lambda line: line.startswith(OURS) or "ld.so: object" in line)
            if reason:
                if not late:  # else the program may have ended before its stream began
                    self.assertTrue(ours, f"{command[0]} says nothing")
                for line in ours:  # one a process
                    self.assertIn(reason, line)
            else:
                self.assertEqual(ours, [])
        if linked:
            plain = self._run((*launcher, self.plain), {}, **options)
            told = self._same(self._run((*launcher, self.linked), environment, **options), plain,
                              lambda line: line.startswith(("start: ", "log ", "sync: ")))
            self.assertIn(reason, "\n".join(told))

    # Variables.

    def test_a_wrong_variable_is_named(self):
        long = "x" * 100000
        for variables, reason, linked in (
                ({"SERVER": None}, "server is not given", True),
                ({"SERVER": ""}, "server", True),
                ({"SERVER": "nohost"}, "server", True),
                ({"SERVER": "host:port"}, "server", True),
                ({"SERVER": "host:99999"}, "server", True),
                ({"SERVER": long}, "server", True),
                ({"CERTS": None}, "ca is not given (TRACEAGENT_CERTS)", True),
                ({"CERTS": ""}, "ca.pem", True),
                ({"CERTS": long}, "folder of certificates xxx", True),
                ({"SERVICE": "a b"}, 'service "a b"', True),
                ({"SERVICE": ""}, "service", True),
                ({"SERVICE": long}, "service", True),
                ({"INSTANCE": "a/b"}, 'instance "a/b"', True),
                ({"RECORD_MS": "soon"}, "TRACEAGENT_RECORD_MS", True),
                ({"RECORD_MS": "99999999999"}, "record_ms", True),
                ({"RECORD_MS": "1000", "SPOOL_DIR": "spool"}, "spool_dir", True),
                ({"TRACE": "locks,cats"}, "TRACEAGENT_TRACE", False),
                ({"STACKS": "many"}, "TRACEAGENT_STACKS", False),
                ({"STACKS": "129"}, "TRACEAGENT_STACKS", False),
                ({"SAMPLES": "-1"}, "TRACEAGENT_SAMPLES", False),
                ({"GENERATION_MS": "1"}, "generation_ms", False),
                ({"SPOOL_BYTES": "1"}, "spool_bytes", False),
                ({"SPOOL_BYTES": str(2**62)}, "out of memory", False),
                ({"VERSION": "7"}, "version", False),
                ({"RECORD_SIGNAL": "KILL"}, "TRACEAGENT_RECORD_SIGNAL", False),
                ({"EXIT_MS": "1s"}, "TRACEAGENT_EXIT_MS", False)):
            with self.subTest(str(variables)[:80]):
                self._expect(reason, variables, linked)

    # Certificates.

    def _certs(self, change):
        folder = self.folder / "wrong"
        self.run_program("rm", "-rf", folder)
        self.run_program("cp", "-r", self.certs, folder)
        for file in folder.iterdir():
            file.chmod(0o644)
        folder.chmod(0o755)
        change(folder)
        return folder

    def test_a_certificate_that_cannot_be_used_is_named_with_the_reason(self):
        def replaced(name, text=None):
            def change(folder):
                (folder / name).unlink()
                if text is None:
                    (folder / name).mkdir()
                else:
                    (folder / name).write_text(text)
            return change

        for name, kind in (("ca.pem", "certificate"), ("agent.pem", "certificate"), ("agent.key", "private key")):
            cut = (self.certs / name).read_text()[:100] + "\n"
            for change, reason in ((lambda folder: (folder / name).unlink(), "No such file or directory"),
                                   (replaced(name), "Is a directory"), (replaced(name, ""), f"no {kind} in PEM"),
                                   (replaced(name, "no certificate\n"), f"no {kind} in PEM"), (replaced(name, cut), f"no {kind} in PEM")):
                folder = self._certs(change)
                with self.subTest(name=name, reason=reason):
                    self._expect(f"{folder}/{name}: {reason}", {"CERTS": folder}, late="PEM" in reason)
        self._expect("No such file or directory", {"CERTS": "/nowhere"})
        folder = self._certs(lambda f: (f / "reader.key").replace(f / "agent.key"))
        self._expect(f"key {folder}/agent.key does not fit certificate {folder}/agent.pem", {"CERTS": folder}, late=True)

    def test_a_revocation_list_that_cannot_be_used_is_named_with_the_reason(self):
        for crl, reason in (("/nowhere/crl.pem", "/nowhere/crl.pem: No such file or directory"),
                            (self.folder, f"{self.folder}: Is a directory")):
            with self.subTest(crl=crl):
                self._expect(f"revocation list {reason}", {"CRL": crl})
        self._expect(f"revocation list {self.certs}/ca.pem: no whole list in PEM", {"CRL": self.certs / "ca.pem"}, late=True)
        self._expect("", {"CRL": ""})  # as if it were not there

    def test_a_passphrase_is_never_asked_for(self):
        def encrypt(folder):
            key = folder / "agent.key"
            self.run_program("openssl", "pkey", "-aes128", "-passout", "pass:secret", "-in", self.certs / "agent.key", "-out", key)
            key.chmod(0o644)

        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)

        def take_terminal():  # to ask at: the program would wait for an answer
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        folder = self._certs(encrypt)
        done = self._run((self.linked,), self._environment(CERTS=folder), preexec_fn=take_terminal)
        self.assertIn(f"start: key {folder}/agent.key: encrypted, and the agent takes no passphrase", done.out + done.err)
        self.assertEqual(select.select([ours], [], [], 0)[0], [], "the terminal was written to")

    @unittest.skipIf(os.geteuid() != 0, "another user's file needs root")
    def test_a_certificate_that_may_not_be_read_is_named_with_the_reason(self):
        folder = self._certs(lambda f: (f / "agent.key").chmod(0o600))
        self._expect(f"{folder}/agent.key: Permission denied", {"CERTS": folder}, user=NOBODY)

    # The collector.

    def test_a_collector_that_cannot_be_reached_is_named_where_it_is_asked(self):
        with contextlib.ExitStack() as open_sockets:
            silent = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for server, reason in ((f"127.0.0.1:{held_port(self)}", "refused"), (f"127.0.0.1:{silent}", ""),
                                   ("nowhere.invalid:7070", "nowhere.invalid"), (f"@{self.folder}/none", "none")):
                with self.subTest(server=server):
                    environment = self._environment(SERVER=server)
                    plain = self._run((self.plain,), {})
                    quiet = self._run((self.plain,), {"LD_PRELOAD": str(LIBRARY), **environment})
                    self.assertEqual(self._same(quiet, plain, lambda line: line.startswith(OURS)), [])
                    told = self._same(self._run((self.linked,), {**environment, "REASON_MS": str(int(500 * SECONDS_MAX) if reason else 0)}), plain,
                                      lambda line: line.startswith(("log ", "sync: ")))
                    self.assertIn(reason, "\n".join(told))

    # The folder of the spool.

    def test_a_spool_folder_that_cannot_be_used_is_named(self):
        file = self.folder / "file"
        file.write_text("")
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        for folder, reason in ((file, "Not a directory"), ("/proc/none", "/proc/none"), ("/nowhere/spool", "/nowhere/spool"),
                               (shared, "others may write")):
            with self.subTest(folder=folder):
                self._expect(reason, {"SPOOL_DIR": folder})

    @unittest.skipIf(os.geteuid() != 0, "another user needs root")
    def test_a_spool_folder_that_is_read_only_is_named(self):
        folder = self.folder / "spool"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o555)
        self.run_program("chmod", "-R", "a+rX", self.certs)
        self._expect(f"{folder}: Permission denied", {"SPOOL_DIR": folder}, user=NOBODY)

    def test_a_spool_folder_that_is_full_costs_the_spool(self):
        mount = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16k,mode=700 none {self.folder}/small && "$@"', "sh")
        (self.folder / "small").mkdir()
        if self.run_program(*mount, "true", expect=None).returncode != 0:
            self.skipTest("no mounts here")
        environment = self._environment(SPOOL_DIR=self.folder / "small")
        plain = self._run((self.plain,), {})
        done = self._run((*mount, "env", f"LD_PRELOAD={LIBRARY}", self.plain), environment)
        self._same(done, plain, lambda line: line.startswith(OURS))
        told = self._same(self._run((*mount, self.linked), environment), plain,
                          lambda line: line.startswith(("start: ", "log ", "sync: ")))
        self.assertIn("No space left on device", "\n".join(told))

    # Seccomp.

    @unittest.skipUnless(platform.machine() == "x86_64", "system calls by their numbers on x86-64")
    def test_a_seccomp_filter_costs_what_it_forbids(self):
        confined = self.folder / "confined"
        self.run_program("cc", "-O1", "-Wall", "-Werror", HERE / "confined.c", "-o", confined)
        membarrier, close_range, unshare = 324, 436, 272
        timers = (222, 223, 226)  # timer_create, timer_settime, timer_delete
        scheduling = (144, 145, 203)  # sched_setscheduler, sched_getscheduler, sched_setaffinity
        uncommon = (membarrier, close_range, unshare, *timers, *scheduling)
        collector = Collector(self)
        for action in ("kill", "trap", "fail"):
            for calls in ((membarrier,), uncommon):
                with self.subTest(action=action, calls=calls):
                    self._expect("", {"SERVER": collector.to}, launcher=(confined, action, ",".join(map(str, calls))))
            with self.subTest(action=action, samples=True):
                self._expect("timer_create", {"SERVER": collector.to, "SAMPLES": "100"}, linked=False,
                             launcher=(confined, action, ",".join(map(str, timers))))

    # Limits.

    def _limited(self, limit, value, **variables):
        def set_limit():
            resource.setrlimit(limit, (value, value))

        environment = self._environment(SERVER=self.collector.ready["agents"], **variables)
        def run(program, variables):
            is_of_user = limit == resource.RLIMIT_NPROC and os.geteuid() == 0
            return self._run((program,), variables, preexec_fn=set_limit, **({"user": next(OWN_USERS)} if is_of_user else {}))

        for program, more in ((self.plain, {"LD_PRELOAD": str(LIBRARY)}), (self.linked, {})):
            plain = run(self.plain, {})
            self.assertEqual(plain.returncode, 7, "the program itself does not run so")
            done = run(program, {**environment, **more})
            if done.returncode == 127 and "error while loading shared libraries" in done.err:
                continue  # the loader's answer: OpenSSL does not fit into such a limit
            self._same(done, plain, lambda line: line.startswith((OURS, "start: ", "log ", "sync: ", "ERROR: ld.so")),
                       any_number="SPOOL_DIR" in variables)  # a file of ours has a low number until it is raised

    def test_limits_at_their_minimum_cost_the_trace_at_most(self):
        self.run_program("chmod", "-R", "a+rX", self.certs)
        spool = self.folder / "spool"
        self.collector = Collector(self)
        for limit, values, variables in (
                (resource.RLIMIT_NOFILE, (4, 5, 6, 7, 8, 10, 12, 16, 20), {}),
                (resource.RLIMIT_NOFILE, (4, 6, 8, 10, 12, 16), {"SPOOL_DIR": spool}),
                (resource.RLIMIT_FSIZE, (0, 1, 4096, 100000), {"SPOOL_DIR": spool}),
                (resource.RLIMIT_MEMLOCK, (0,), {}),
                (resource.RLIMIT_STACK, (64 << 10, 128 << 10, 256 << 10), {"STACKS": "16"}),
                (resource.RLIMIT_SIGPENDING, (0,), {"SAMPLES": "100"}),
                (resource.RLIMIT_AS, tuple(mb << 20 for mb in (4, 8, 12, 16, 20, 24, 32, 48, 64)), {}),
                (resource.RLIMIT_DATA, tuple(mb << 20 for mb in (1, 2, 4, 8, 16, 32)), {}),
                (resource.RLIMIT_NPROC, (0, 1, 2, 3), {})):
            for value in values:
                with self.subTest(limit=limit, value=value, **variables):
                    self._limited(limit, value, **variables)
