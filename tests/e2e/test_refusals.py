# SPDX-License-Identifier: Apache-2.0
"""Peers that may not connect: refused with a reason on both sides, without effect on others."""
import os
import shutil
import socket
import ssl

from harness import DAEMON, DEADLINE, TRACECTL, Case, Collector, wait_until

ALPN = "tracecollect/1"


class Refusals(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self)
        host, port = self.collector.ready["agents"].rsplit(":", 1)
        self.address = (host, int(port))

    def _answer(self, name="agent", alpn=ALPN, version=ssl.TLSVersion.TLSv1_3):
        """Returns what a client reads after a handshake with this certificate (None: without one)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.certs / "ca.pem")
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = version
        if alpn:
            context.set_alpn_protocols([alpn])
        if name:
            context.load_cert_chain(self.certs / f"{name}.pem", self.certs / f"{name}.key")
        with socket.create_connection(self.address, timeout=DEADLINE) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as tls:
                    return f"closed after {len(tls.recv(1))} bytes"
            except ssl.SSLError as e:
                return str(e)
            except ConnectionResetError:
                return "reset"

    def _send_refused(self, certs):
        done = self.collector.case.tracectl(
            "send", self.trace("g26-labels"), "--to", self.collector.to, "--certs", certs, "--service", "x",
            "--no-progress", "--timeout", f"{DEADLINE:.0f}s", expect=1)
        return done.err

    def _expect_log(self, text):
        wait_until(f"the collector's log names {text!r}", lambda: text in self.log("collector"))

    def test_a_client_without_a_certificate(self):
        self.assertIn("certificate required", self._answer(name=None).lower().replace("_", " "))
        self._expect_log("certificate")

    def test_a_client_without_our_alpn(self):
        self.assertIn("no application protocol", self._answer(alpn="h2").lower().replace("_", " "))

    def test_tls_1_2(self):
        self.assertIn("protocol version", self._answer(version=ssl.TLSVersion.TLSv1_2).lower().replace("_", " "))

    def test_a_certificate_of_another_ca(self):
        other = self.folder / "other"
        self.tracectl("certs", "init", other)
        shutil.copy(self.certs / "ca.pem", other / "ca.pem")  # trusts the collector, is not trusted itself
        self.assertRegex(self._send_refused(other), "(?i)certificate|unknown ca")
        self._expect_log("certificate")

    def test_an_agent_that_does_not_trust_the_collector(self):
        other = self.folder / "other"
        self.tracectl("certs", "init", other)
        for name in ("agent.pem", "agent.key"):
            shutil.copy(self.certs / name, other / name)
        self.assertRegex(self._send_refused(other), "(?i)certificate")

    def test_a_reader_that_wants_to_send(self):
        other = self.folder / "other"
        shutil.copytree(self.certs, other)
        for end in ("pem", "key"):
            shutil.copy(self.certs / f"reader.{end}", other / f"agent.{end}")
        self.assertRegex(self._send_refused(other), "(?i)role|may not|identity|reader")
        self._expect_log("reader")

    def test_garbage_on_the_port_and_a_refusal_leave_another_stream_alone(self):
        trace = self.trace("g26-gens")
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", self.collector.to, "--certs", self.certs,
                            "--service", "good", "--instance", "one", "--rate",
                            f"{trace.stat().st_size / 3e6:.6f}", "--no-progress")
        wait_until("the good stream flows", lambda: any(
            row.get("service") == "good" for row in self.collector.json_lines("status")))
        for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(range(256)) * 64):
            with socket.create_connection(self.address, timeout=DEADLINE) as plain:
                plain.sendall(junk)
        self._answer(name=None)
        self._answer(name="reader")
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(self.collector.fetch(self.folder / "fetched", "good"), trace)
        self.assertEqual(self.collector.stop(), 0)


class UnusableFiles(Case):
    """Collector and reader name a file of certificates that cannot be used, and what is wrong with it."""

    def _wrong(self, name, change):
        folder = self.folder / "wrong"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.certs, folder)
        (folder / name).unlink()
        change(folder / name)
        return folder

    def _expect(self, name, reason, change):
        folder = self._wrong(name, change)
        if name.startswith(("ca", "server")):
            with self.subTest(program="collector", name=name, reason=reason):
                done = self.run_program(DAEMON, "--set", f"state={self.folder}/state", "--set", f"certs={folder}",
                                        "--set", "listen.agents=127.0.0.1:0", "--set", "listen.http=127.0.0.1:0", expect=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{folder}/{name}: {reason}", done.err)
        if name.startswith(("ca", "reader")):
            with self.subTest(program="tracectl", name=name, reason=reason):
                done = self.tracectl("status", "--server", "https://127.0.0.1:9", "--certs", folder, expect=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"{folder}/{name}: {reason}", done.err)

    def test_each_is_named_with_the_reason(self):
        for name, kind in (("ca.pem", "certificate"), ("server.pem", "certificate"), ("server.key", "private key"),
                           ("reader.pem", "certificate"), ("reader.key", "private key")):
            self._expect(name, "Is a directory", lambda path: path.mkdir())
            self._expect(name, "not a regular file", os.mkfifo)
            self._expect(name, "not a regular file", lambda path: path.symlink_to("/dev/zero"))
            self._expect(name, f"no {kind} in PEM", lambda path: path.write_text(""))
            self._expect(name, f"no {kind} in PEM", lambda path: path.write_text("something else\n"))
        for name in ("server.key", "reader.key"):
            self._expect(name, "does not fit the certificate", lambda path: shutil.copy(self.certs / "agent.key", path))


class Settings(Case):
    """What the collector refuses at its start, in one line that names the place."""

    def _refused(self, words, *args, **variables):
        done = self.run_program(DAEMON, *args, cwd=self.folder, env={**os.environ, **variables}, expect=1)
        self.assertEqual(done.err.count("\n"), 1, done.err)
        self.assertIn(words, done.err)

    def test_an_unusable_setting_is_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for words, args, variables in (
                    ("tracecollectd: environment: TRACECOLLECTD_SET_LISTEN_HTPP: unknown key; did you mean TRACECOLLECTD_SET_LISTEN_HTTP?",
                     (), {"TRACECOLLECTD_SET_LISTEN_HTPP": "x"}),
                    ('tracecollectd: TRACECOLLECTD_SET_AGENTS_CREDIT: agents.credit: "much" is not a size', (), {"TRACECOLLECTD_SET_AGENTS_CREDIT": "much"}),
                    ("TRACECOLLECTD_SET_LOOPS: loops: 999 is too large: at most 256", (), {"TRACECOLLECTD_SET_LOOPS": "999"}),
                    (f"tracecollectd: {self.folder}: Is a directory", ("--config", self.folder), {}),
                    ("listen.http: ", (), {"TRACECOLLECTD_SET_LISTEN_HTTP": "nowhere"}),
                    (f"certs: {self.folder}/none: No such file or directory; tracectl certs init makes such a folder", (),
                     {"TRACECOLLECTD_SET_CERTS": f"{self.folder}/none"}),
                    (f"listen on 127.0.0.1:{port}: Address already in use", (), {
                        "TRACECOLLECTD_SET_LISTEN_AGENTS": f"127.0.0.1:{port}", "TRACECOLLECTD_SET_LISTEN_HTTP": "", "TRACECOLLECTD_SET_CERTS": str(self.certs)}),
            ):
                with self.subTest(words):
                    self._refused(words, *args, "--set", f"state={self.folder}/state", **variables)

    def test_the_environment_overrides_the_file_and_set_overrides_both(self):
        file = self.folder / "c.yaml"
        file.write_text(f"state: {self.folder}/state\nlisten:\n  http: in the file\n")
        check = ("--check-config", "--config", file)
        self._refused('listen.http: "in the file"', *check)
        good = {**os.environ, "TRACECOLLECTD_SET_LISTEN_HTTP": "127.0.0.1:0"}
        self.run_program(DAEMON, *check, env=good)
        self._refused('listen.http: "in set"', *check, "--set", "listen.http=in set", **good)
        self.run_program(DAEMON, *check, "--set", "listen.http=", env={**os.environ, "TRACECOLLECTD_SET_LISTEN_HTTP": "in the environment"})


class Outsiders(Case):
    def test_who_is_not_of_the_group_is_told_so(self):
        folder = self.folder / "tracecollect-data"
        folder.mkdir(mode=0)
        plain = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
        done = self.run_program(*plain, TRACECTL, "status", cwd=self.folder, expect=1)
        self.assertIn("./tracecollect-data/http.sock: permission denied", done.err)
