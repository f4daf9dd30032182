# SPDX-License-Identifier: Apache-2.0
"""The listeners of one collector: its socket on this host, HTTP, the feed; how readers find them, and wrong
ports."""
import json
import os
import re
import shutil
import socket
import stat
import threading

from harness import DEADLINE, SOURCE, TRACECTL, Case, Collector, https, wait_until

BOTH = ("listen.http=0.0.0.0:0", "listen.feed=ipc:// tls+tcp://127.0.0.1:0")


def port_of(address):
    return address.rsplit(":", 1)[1]


def pass_on(source, to):
    try:
        while data := source.recv(65536):
            to.sendall(data)
    except OSError:
        pass
    for end in (source, to):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Listeners(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self, *BOTH)
        self.ready = self.collector.ready

    def _ask(self, server, verb, *args, **options):
        return self.tracectl(verb, "--server", server, "--certs", options.pop("certs", self.certs), *args, **options)

    def _metric(self, name):
        return int(re.search(rf"(?m)^tracecollect_{name} (\d+)$", self.collector.get("/metrics"))[1])

    def _tail(self, name, server, *args):
        return self.spawn(name, TRACECTL, "tail", "--server", server, "--certs", self.certs, *args)

    def _forward(self, port):
        """The port of a forward of TCP to that one, as ssh -L makes."""
        door = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(door.close)

        def serve():
            while True:
                try:
                    near, _ = door.accept()
                except OSError:
                    return
                far = socket.create_connection(("127.0.0.1", port))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pass_on, args=pair, daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        return door.getsockname()[1]

    def test_the_ready_file_names_all(self):
        self.assertEqual(self.ready["sock"], f"{self.collector.state}/http.sock")
        self.assertEqual(self.ready["feed"], f"ipc://{self.collector.state}/feed.sock")
        self.assertRegex(self.ready["feed.2"], r"^tls\+tcp://127\.0\.0\.1:[1-9]\d*$")
        self.assertRegex(self.ready["http"], r"^0\.0\.0\.0:[1-9]\d*$")
        self.assertIn(f"sock={self.ready['sock']}: ready", self.log("collector"))

    def test_the_socket_answers_what_the_page_does_and_outlives_a_kill(self):
        other = Collector(self, "listen.http=", name="other")
        self.assertEqual(other.ready["http"], "")
        for collector in (self.collector, other):
            collector.send(self.trace("g26-labels"), "shop")
            for path, words in (("/healthz", "ok\n"), ("/metrics", "tracecollect_build_info"), ("/api/v1/streams", '"service":"shop"')):
                self.assertIn(words, collector.get(path))
        self.assertEqual(os.stat(other.ready["sock"]).st_mode, stat.S_IFSOCK | 0o660)
        other.kill()
        self.assertTrue(os.path.exists(other.ready["sock"]))
        other.start()
        other.wait_ready()
        self.assertIn('"service":"shop"', other.get("/api/v1/streams"))
        other.stop()
        self.assertFalse(os.path.exists(other.ready["sock"]))

    def _send(self, collector):
        """A list is the same from then on: its verdict is in it."""
        collector.send(self.trace("g26-labels"), "shop")
        wait_until("it is ordered", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))

    def test_each_answers_the_same(self):
        self._send(self.collector)
        port = int(port_of(self.ready["http"]))
        said = [self._ask(server, "list", "--json").out for server in
                (self.collector.to, f"unix:{self.ready['sock']}", f"https://127.0.0.1:{port}", f"https://localhost:{port}/",
                 f"https://localhost:{self._forward(port)}")]
        self.assertIn('"shop"', said[0])
        self.assertEqual(set(said), {said[0]})

    def test_the_manuals_lines_for_one_machine_are_answered_over_tls(self):
        manual = (SOURCE / "docs/HTTP.md").read_text().split("To try it on one machine", 1)[1]
        first, second, *asked = re.findall(r"(?m)^    (.*)$", manual.split("\n### In a browser", 1)[0])
        self.assertEqual(second, "tracecollectd --set certs=certs --set listen.http=0.0.0.0:7073")
        self.assertEqual(len(asked), 2)
        here = self.folder / "here"
        here.mkdir()
        self.run_program("bash", "-c", first.replace("tracectl", str(TRACECTL)), cwd=here)
        collector = Collector(self, f"certs={here}/certs", "listen.http=0.0.0.0:0", name="one")
        for line in asked:
            with self.subTest(line=line):
                line = line.replace(":7073", f":{port_of(collector.ready['http'])}").replace("tracectl", str(TRACECTL))
                self.assertNotEqual(self.run_program("bash", "-c", line, cwd=here).out, "")

    def test_plain_http_is_for_this_host(self):
        plain = Collector(self, name="plain")
        self._send(plain)
        said = [self._ask(server, "list", "--json").out for server in
                (plain.to, plain.ready["http"], f"localhost:{port_of(plain.ready['http'])}", f"http://{plain.ready['http']}")]
        self.assertIn('"shop"', said[0])
        self.assertEqual(set(said), {said[0]})

    def test_tail_finds_the_feed_from_wherever_the_collector_is_asked(self):
        servers = {"socket": f"unix:{self.ready['sock']}", "url": https(self.collector), "file": self.collector.to,
                   "name": f"https://localhost:{port_of(self.ready['http'])}"}
        tails = {name: self._tail(name, server, "shop/") for name, server in servers.items()}

        def all_see_it():
            """A tail that waits too long for an answer dials again: it is counted, and hears nothing until it is there."""
            self.collector.send(self.trace("g26-labels"), "shop")
            return all("shop/one/generation" in self.log(name) for name in servers)

        wait_until("each sees a generation", all_see_it)
        wait_until("four are counted", lambda: self._metric("feed_subscribers") == 4)
        for left, name in enumerate(servers):
            tails[name].terminate()
            tails[name].wait()
            wait_until("it is counted as gone", lambda left=left: self._metric("feed_subscribers") == 3 - left)

    def test_tls_asks_for_a_certificate_although_the_socket_beside_it_does_not(self):
        stranger = self.folder / "stranger"
        self.tracectl("certs", "init", stranger)
        for file in ("reader.pem", "reader.key"):
            shutil.copy(self.certs / file.replace("reader", "agent"), self.folder / file)
        shutil.copy(self.certs / "ca.pem", self.folder)
        for verb in ("list", "tail"):
            self.assertIn("handshake", self._ask(https(self.collector), verb, certs=stranger, expect=1).err)
            self.assertIn("reader", self._ask(https(self.collector), verb, certs=self.folder, expect=1).err)
            nobody = self.tracectl(verb, "--server", https(self.collector), "--tls-ca", self.certs / "ca.pem", expect=1)
            self.assertIn("certificate", nobody.err)
        self.assertEqual(self._metric("feed_subscriptions_total"), 0)
        self._ask(f"unix:{self.ready['sock']}", "list", certs=stranger)

    def test_a_feed_that_is_not_open_to_a_reader_is_named(self):
        other = Collector(self, "listen.http=0.0.0.0:0", name="other")
        done = self._ask(https(other), "tail", expect=1)
        self.assertIn(f"listen.feed has only {other.ready['feed'][:60]}", done.err)

    def test_a_wrong_port_says_which_it_may_be(self):
        plain = Collector(self, name="plain")
        for server, words in ((f"https://127.0.0.1:{port_of(self.ready['agents'])}", "is it the port for agents? Readers use 7073"),
                              (f"https://{plain.ready['http']}", "it does not speak TLS: try http://"),
                              (f"http://127.0.0.1:{port_of(self.ready['http'])}", "https://"),
                              (f"https://127.0.0.1:{port_of(self.ready['feed.2'])}", "is it the feed's port"),
                              (f"ipc://{self.ready['sock']}", "unix:PATH"),
                              ("127.0.0.1:1", "no collector answers on 127.0.0.1:1: Connection refused")):
            for verb in ("list", "tail"):
                with self.subTest(server, verb=verb):
                    self.assertIn(words, self._ask(server, verb, expect=None).err)
        done = self.tracectl("send", self.trace("g26-labels"), "--to", f"127.0.0.1:{port_of(self.ready['http'])}",
                             "--certs", self.certs, "--service", "shop", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is it the port for agents?", done.err)
        self.spawn("send", TRACECTL, "send", self.trace("g26-labels"), "--to", plain.ready["http"], "--certs", self.certs,
                   "--service", "shop", "--no-progress")
        wait_until("it says why it waits", lambda: "is it the port for agents?; trying again" in self.log("send"))

    def test_a_port_that_is_taken_is_named(self):
        other = Collector(self, f"listen.feed=ipc:// {self.ready['feed.2']}", name="other", wait=False)
        self.assertNotEqual(other.process.wait(DEADLINE), 0)
        self.assertRegex(self.log("other"), f"cannot listen on {re.escape(self.ready['feed.2'])}: Address in use")


class ForABrowser(Case):
    """`tracectl certs reader --p12`."""

    def opened(self, pack, password, *what, **options):
        return self.run_program("openssl", "pkcs12", "-in", pack, "-passin", f"pass:{password}", *what, **options)

    def blocks(self, text):
        return re.findall(r"-----BEGIN .*?-----END [A-Z ]*-----", text, re.DOTALL)

    def expect_pack(self, name, password):
        pack = self.certs / f"{name}.p12"
        self.assertEqual(pack.stat().st_mode & 0o7777, 0o600)
        self.assertEqual(self.blocks(self.opened(pack, password, "-nokeys", "-clcerts").out), self.blocks((self.certs / f"{name}.pem").read_text()))
        self.assertEqual(self.blocks(self.opened(pack, password, "-nokeys", "-cacerts").out), self.blocks((self.certs / "ca.pem").read_text()))
        self.assertEqual(self.blocks(self.opened(pack, password, "-nocerts", "-nodes").out), self.blocks((self.certs / f"{name}.key").read_text()))
        said = self.opened(pack, password, "-info", "-noout").err
        self.assertIn("PBES2, PBKDF2, AES-256-CBC", said)
        self.assertIn("MAC: sha256", said)
        self.opened(pack, password + "x", "-noout", expect=1)

    def test_one_is_made_with_a_password_that_is_printed_once(self):
        out = self.tracectl("certs", "reader", self.certs, "alice", "--p12").out.splitlines()
        self.assertEqual(out[0], f"{self.certs}/alice.pem {self.certs}/alice.key")
        password = re.fullmatch(rf"{self.certs}/alice.p12, its password: ([a-km-np-z2-9]{{4}}(-[a-km-np-z2-9]{{4}}){{4}})", out[1])[1]
        self.expect_pack("alice", password)
        collector = Collector(self, "listen.http=0.0.0.0:0")
        curl = self.run_program("curl", "-fsS", "--cacert", self.certs / "ca.pem", "--cert", f"{self.certs}/alice.p12:{password}", "--cert-type", "P12", https(collector) + "/api/v1/streams")
        self.assertEqual(json.loads(curl.out)["streams"], [])

    def test_a_reader_that_exists_is_packed_without_the_authoritys_key(self):
        (self.certs / "ca.key").unlink()
        word = self.folder / "word"
        word.write_text("correct horse\nbattery\n")
        out = self.tracectl("certs", "reader", self.certs, "reader", "--p12", "--p12-password-file", word, "--json").out
        self.assertEqual(json.loads(out), {"p12": f"{self.certs}/reader.p12"})
        self.expect_pack("reader", "correct horse")
        before = (self.certs / "reader.p12").read_bytes()
        done = self.tracectl("certs", "reader", self.certs, "reader", "--p12", expect=1)
        self.assertIn("reader.p12; nothing was changed", done.err)
        self.assertEqual((self.certs / "reader.p12").read_bytes(), before)

    def test_what_is_no_readers_or_has_no_password_is_refused(self):
        empty = self.folder / "empty"
        empty.write_text("\n")
        for words, code, said in ((("agent", self.certs, "--p12"), 2, "--p12 is for reader only"),
                                  (("reader", self.certs, "--p12-password-file", empty), 2, "--p12-password-file is for --p12 only"),
                                  (("reader", self.certs, "agent", "--p12"), 1, "agent.pem is tracecollect:agent/agent, which may not read"),
                                  (("reader", self.certs, "reader", "--p12", "--p12-password-file", empty), 1, "its first line is no password"),
                                  (("reader", self.certs, "reader", "--p12", "--p12-password-file", self.folder), 1, "Is a directory"),
                                  (("reader", self.certs, "reader", "--p12", "--p12-password-file", self.folder / "no"), 1, "No such file")):
            self.assertIn(said, self.tracectl("certs", *words, expect=code).err)
        (self.certs / "reader.key").write_bytes((self.certs / "agent.key").read_bytes())
        self.assertIn("reader.key: ", self.tracectl("certs", "reader", self.certs, "reader", "--p12", expect=1).err)
        self.assertEqual(list(self.certs.glob("*.p12")), [])
