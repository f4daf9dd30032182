# SPDX-License-Identifier: Apache-2.0
"""Several listeners of one collector: sockets of this host beside TLS, how readers find the feed, and wrong ports."""
import os
import re
import shutil
import stat
import urllib.request

from harness import DEADLINE, TRACECTL, WITHOUT_LEAKS, Case, Collector, wait_until

BOTH = ("listen.archive=ipc:// tls+tcp://127.0.0.1:0", "listen.feed=ipc:// tls+tcp://127.0.0.1:0")


def port_of(url):
    return url.rsplit(":", 1)[1]


class Listeners(Case):
    def setUp(self):
        super().setUp()
        self.collector = Collector(self, *BOTH)
        self.ready = self.collector.ready

    def _ask(self, server, verb, *args, **options):
        return self.tracectl(verb, "--server", server, "--certs", options.pop("certs", self.certs), *args, **options)

    def _metric(self, name):
        with urllib.request.urlopen(f"http://{self.ready['http']}/metrics") as answer:
            return int(re.search(rf"(?m)^tracecollect_{name} (\d+)$", answer.read().decode())[1])

    def _tail(self, name, server, *args):
        before = self._metric("feed_subscriptions_total")
        process = self.spawn(name, TRACECTL, "tail", "--server", server, "--certs", self.certs, *args)
        wait_until(f"{name} is counted", lambda: self._metric("feed_subscriptions_total") > before)
        return process

    def test_the_ready_file_names_all_the_first_without_a_number(self):
        self.assertEqual(self.ready["archive"], f"ipc://{self.collector.state}/archive.sock")
        self.assertEqual(self.ready["feed"], f"ipc://{self.collector.state}/feed.sock")
        self.assertRegex(self.ready["archive.2"], r"^tls\+tcp://127\.0\.0\.1:[1-9]\d*$")
        self.assertRegex(self.ready["feed.2"], r"^tls\+tcp://127\.0\.0\.1:[1-9]\d*$")
        self.assertIn(f"archive={self.ready['archive']},{self.ready['archive.2']} ", self.log("collector"))
        self.assertEqual(self.ready["sock"], f"{self.collector.state}/http.sock")
        self.assertIn(f"sock={self.ready['sock']}: ready", self.log("collector"))

    def test_the_socket_answers_what_the_page_does_and_outlives_a_kill(self):
        other = Collector(self, "listen.http=", name="other")
        self.assertEqual(other.ready["http"], "")
        for collector in (self.collector, other):
            collector.send(self.trace("g26-labels"), "shop")
            for path, words in (("/healthz", "ok\n"), ("/metrics", "tracecollect_build_info"), ("/api/v1/streams", '"service":"shop"')):
                self.assertIn(words, self._curl(collector, path))
        self.assertEqual(os.stat(other.ready["sock"]).st_mode, stat.S_IFSOCK | 0o660)
        other.kill()
        self.assertTrue(os.path.exists(other.ready["sock"]))
        other.start()
        other.wait_ready()
        self.assertIn('"service":"shop"', self._curl(other, "/api/v1/streams"))
        other.stop()
        self.assertFalse(os.path.exists(other.ready["sock"]))

    def _curl(self, collector, path):
        return self.run_program("curl", "-sS", "--fail-with-body", "--unix-socket", collector.ready["sock"], f"http://localhost{path}").out

    def test_each_listener_answers_the_same(self):
        self.collector.send(self.trace("g26-labels"), "shop")
        port = port_of(self.ready["archive.2"])
        said = [self._ask(server, "list", "--json").out for server in
                (self.collector.to, self.ready["archive"], self.ready["archive.2"], f"127.0.0.1:{port}", f"localhost:{port}")]
        self.assertIn('"shop"', said[0])
        self.assertEqual(set(said), {said[0]})

    def test_tail_finds_the_feed_from_any_address_of_the_archive(self):
        servers = {"ipc": self.ready["archive"], "url": self.ready["archive.2"], "file": self.collector.to,
                   "port": f"localhost:{port_of(self.ready['archive.2'])}"}
        tails = {name: self._tail(name, server, "shop/") for name, server in servers.items()}
        # A tail that waits too long for an answer dials again: for a moment it is counted not at all, or twice.
        wait_until("four are counted", lambda: self._metric("feed_subscribers") == 4)
        self.collector.send(self.trace("g26-labels"), "shop")
        for name in servers:
            wait_until(f"{name} sees the generation", lambda name=name: "shop/one/generation" in self.log(name))
        for left, name in enumerate(("port", "ipc", "url", "file")):
            tails[name].terminate()
            tails[name].wait()
            wait_until("it is counted as gone", lambda left=left: self._metric("feed_subscribers") == 3 - left)

    def test_tls_asks_for_a_certificate_although_the_socket_beside_it_does_not(self):
        stranger = self.folder / "stranger"
        self.tracectl("certs", "init", stranger)
        for file in ("reader.pem", "reader.key"):
            shutil.copy(self.certs / file.replace("reader", "agent"), self.folder / file)
        shutil.copy(self.certs / "ca.pem", self.folder)
        for verb, name in (("list", "archive"), ("tail", "archive"), ("list", "feed")):
            port = port_of(self.ready[f"{name}.2"])
            for certs in (stranger, self.folder):
                self._ask(f"127.0.0.1:{port}", verb, certs=certs, expect=1)
        self.assertEqual(self._metric("feed_subscriptions_total"), 0)
        self._ask(self.ready["archive"], "list", certs=stranger)

    def test_a_feed_that_is_not_open_to_a_reader_is_named(self):
        other = Collector(self, "listen.archive=tls+tcp://127.0.0.1:0", name="other")
        done = self._ask(f"127.0.0.1:{port_of(other.ready['archive'])}", "tail", expect=1)
        self.assertIn(f"listen.feed has only {other.ready['feed'][:60]}", done.err)

    def test_a_wrong_port_says_which_it_may_be(self):
        for port, words in ((port_of(self.ready["agents"]), "is it the port for agents?"),
                            (port_of(self.ready["http"]), "is it the port for HTTP?"),
                            (port_of(self.ready["feed.2"]), "is it another port?")):
            # nng 1.5.2 may not let go of a socket whose peer speaks another of its protocols: tracectl leaves it.
            asks = {verb: self.spawn(f"{verb}-{port}", TRACECTL, verb, "--server", f"127.0.0.1:{port}", "--certs", self.certs, env=WITHOUT_LEAKS)
                    for verb in ("list", "tail")}
            for verb, ask in asks.items():
                self.assertEqual(ask.wait(DEADLINE), 1)
                self.assertIn(words, self.log(f"{verb}-{port}"))
                self.assertIn("Readers use 7072 (archive) and 7071 (feed)", self.log(f"{verb}-{port}"))
        done = self.tracectl("send", self.trace("g26-labels"), "--to", f"127.0.0.1:{port_of(self.ready['archive.2'])}",
                             "--certs", self.certs, "--service", "shop", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is it the port for agents?", done.err)
        self.spawn("send", TRACECTL, "send", self.trace("g26-labels"), "--to", self.ready["http"], "--certs", self.certs,
                   "--service", "shop", "--no-progress")
        wait_until("it says why it waits", lambda: "is it the port for agents?; trying again" in self.log("send"))

    def test_a_port_that_is_taken_is_named(self):
        other = Collector(self, f"listen.archive=ipc:// {self.ready['archive.2']}", name="other", wait=False)
        self.assertNotEqual(other.process.wait(), 0)
        self.assertIn(f"cannot listen on {self.ready['archive.2']}: Address in use", self.log("other"))
