# SPDX-License-Identifier: Apache-2.0
"""Peers that demand everything: each gets its share and no more, and a well-behaved agent is not
disturbed."""
import concurrent.futures
import os
import pathlib
import shutil
import socket
import ssl
import time
import urllib.request

from harness import DEADLINE, TRACECTL, Case, Collector, suites, wait_until

HOSTILE, OTHER = "127.0.0.1", "127.0.0.2"  # two sources, as the collector sees it
HANGING_S = 1  # TC_HANDSHAKE_LIMITER_PATIENCE_NS


class Hostile(Case):
    def _collector(self, *settings, **options):
        collector = Collector(self, *settings, **options)
        host, port = collector.ready["agents"].rsplit(":", 1)
        self.address = (host, int(port))
        return collector

    def _connect(self, source=HOSTILE):
        plain = socket.create_connection(self.address, timeout=DEADLINE, source_address=(source, 0))
        self.addCleanup(plain.close)
        return plain

    def _is_closed(self, plain):
        """Has the collector closed it, or does it do so by the time that it would have spoken?"""
        plain.settimeout(0.05)
        try:
            return plain.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True

    def _shake_hands(self, source):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.certs / "ca.pem")
        context.set_alpn_protocols(["tracecollect/1"])
        context.load_cert_chain(self.certs / "agent.pem", self.certs / "agent.key")
        with context.wrap_socket(self._connect(source), server_hostname="localhost") as tls:
            return tls.version()

    def _metric(self, collector, name):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"tracecollect_{name} "):
                    return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def _stream(self, collector):
        """A good agent that takes a few seconds."""
        trace = self.trace("g26-gens")
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs",
                            self.certs, "--service", "good", "--instance", "one", "--rate",
                            f"{trace.stat().st_size / 3e6:.6f}", "--no-progress")
        wait_until("the good stream flows", lambda: any(
            row.get("service") == "good" for row in collector.json_lines("status")))
        return sender, trace

    def _expect_unharmed(self, collector, sender, trace):
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "good"), trace)
        self.assertEqual(collector.stop(), 0)

    def test_failing_handshakes_shut_their_source_out_and_nobody_else(self):
        # A burst that is refilled once a second is smaller than the failures of even a slow machine.
        collector = self._collector("agents.source_failures_rate=1", "agents.source_failures_burst=10")
        sender, trace = self._stream(collector)

        def is_turned_away():
            with self._connect() as plain:
                try:
                    plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    while plain.recv(100):
                        pass
                except OSError:
                    pass  # turned away already
            return "too many failed handshakes from this address" in self.log("collector")
        wait_until("it is turned away", is_turned_away)
        self.assertGreater(self._metric(collector, "peers_turned_away_total"), 0)
        wait_until("those that failed are counted", lambda: self._metric(collector, "handshakes_failed_total") >= 10)
        self.assertEqual(self._shake_hands(OTHER), "TLSv1.3")
        self._expect_unharmed(collector, sender, trace)

    @suites("release", "asan")
    def test_half_open_handshakes_of_one_source_leave_room_for_others(self):
        collector = self._collector("agents.source_handshakes_max=8", "agents.handshakes_max=16",
                                    "agents.handshake_timeout=60s")
        sender, trace = self._stream(collector)
        silent = [self._connect() for _ in range(40)]
        wait_until("all but eight are closed", lambda: sum(map(self._is_closed, silent)) == 32)
        self.assertIn("too many handshakes at once from this address", self.log("collector"))
        self.assertEqual(self._shake_hands(OTHER), "TLSv1.3")
        for plain in silent:
            plain.close()
        wait_until("its places are free again", lambda: self._can_shake_hands(HOSTILE))
        self._expect_unharmed(collector, sender, trace)

    def _can_shake_hands(self, source):
        try:
            return self._shake_hands(source) == "TLSv1.3"
        except OSError:
            return False

    def test_a_herd_behind_one_address_waits_its_turn_and_nobody_is_turned_away(self):
        collector = self._collector("agents.source_handshakes_max=2")
        with concurrent.futures.ThreadPoolExecutor(24) as herd:
            seconds = list(herd.map(self._seconds_until_let_in, [HOSTILE] * 96))
        # A machine that stands still in the middle of two handshakes is what the collector calls hanging.
        if max(seconds) < HANGING_S:
            self.assertEqual(self._metric(collector, "peers_turned_away_total"), 0)
        self.assertEqual(collector.stop(), 0)

    def _seconds_until_let_in(self, source):
        """Returns the seconds until a rejected peer, which retries as agents do, is let in."""
        began = time.monotonic()
        wait_until("it is let in", lambda: self._can_shake_hands(source))
        return time.monotonic() - began

    @suites("release")
    def test_out_of_descriptors_it_rests_instead_of_spinning(self):
        if shutil.which("prlimit") is None:
            self.skipTest("skipped, because prlimit is not installed")
        collector = self._collector("agents.handshake_timeout=60s", "agents.source_handshakes_max=60000",
                                    "agents.handshakes_max=60000", launcher=["prlimit", "--nofile=240:240"])
        stat = pathlib.Path(f"/proc/{collector.process.pid}/stat")

        def cpu_seconds():
            fields = stat.read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = cpu_seconds()
        for _ in range(300):  # 200 and more of them are turned away, eight at a time, with a rest after each time
            self._connect()
        wait_until("most of them are turned away", lambda: self.log("collector").count("peers were turned away") >= 20)
        self.assertLess(cpu_seconds() - before, 1)
        self.assertEqual(collector.stop(), 0)
