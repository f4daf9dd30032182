# SPDX-License-Identifier: Apache-2.0
"""Revocation: a connected peer is closed within 5 s, a new connection is refused, and others are
not affected."""
import http.client
import os
import shutil
import signal
import ssl
import time

from harness import DEADLINE, FULL, TRACECTL, Case, Collector, https, suites, wait_until

SECONDS = 5 if FULL else DEADLINE


class Revoke(Case):
    def replace(self, path, content):
        """The collector looks at the file when it likes: half of it is never there."""
        (self.folder / "next").write_bytes(content)
        (self.folder / "next").rename(path)

    def metric(self, collector, name):
        for line in collector.get("/metrics").splitlines():
            if line.startswith(f"tracecollect_{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def issue(self, role, name, *options):
        """Issues another certificate, as a folder for --certs."""
        self.tracectl("certs", role, self.certs, name, *options)
        return self.folder_of(role, name)

    def folder_of(self, role, name):
        folder = self.folder / f"{name}.certs"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.certs / "ca.pem", folder)
        for kind in ("pem", "key"):
            shutil.copy(self.certs / f"{name}.{kind}", folder / f"{role}.{kind}")
        return folder

    def sender(self, collector, certs, service, trace, seconds):
        return self.spawn(service, TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs", certs, "--service", service,
                          "--instance", "one", "--rate", f"{trace.stat().st_size / seconds / 1e6:.6f}", "--no-progress")

    def tail(self, collector, certs, name, *args):
        return self.spawn(name, TRACECTL, "tail", "--server", https(collector), "--certs", certs, *args,
                          stdout=open(self.folder / f"{name}.out", "wb"))

    def collector(self, *settings):
        return Collector(self, "listen.feed=tls+tcp://127.0.0.1:0", "listen.http=0.0.0.0:0", *settings)

    def test_connection_lease_and_feed_of_a_revoked_certificate_end_and_others_go_on(self):
        bad, mallory, good = self.issue("agent", "bad"), self.issue("reader", "mallory"), self.issue("reader", "good")
        collector, trace = self.collector(), self.trace("g26-gens")
        sender = self.sender(collector, bad, "bad", trace, 600)  # revoked long before its end
        growing, content = self.folder / "growing.trace", trace.read_bytes()
        os.mkfifo(growing)
        other = self.spawn("other", TRACECTL, "send", growing, "--to", collector.ready["agents"], "--certs", self.certs, "--service", "other",
                           "--instance", "one", "--no-progress")
        writer = open(growing, "wb", buffering=0)
        self.addCleanup(writer.close)
        writer.write(content[:len(content) // 2])
        for who, certs in (("mallory", mallory), ("good", good)):
            self.tail(collector, certs, f"{who}.feed", "other/")
            self.tail(collector, certs, f"{who}.lease", "--kind", "GoBlock", "--service", "other")
        wait_until("two leases", lambda: self.metric(collector, "leases_polled") == 2)
        wait_until("two subscribers", lambda: self.metric(collector, "feed_subscribers") == 2)
        wait_until("both agents are there, and records stored", lambda: self.metric(collector, "connections") == 2
                   and self.metric(collector, "records_stored_total") > 4)
        self.assertEqual(self.metric(collector, "revoked_certificates"), 0)

        self.tracectl("certs", "revoke", self.certs, "bad", "mallory")
        began = time.monotonic()
        wait_until("the list is read", lambda: self.metric(collector, "revoked_certificates") == 2, SECONDS)
        wait_until("the agent is out", lambda: self.metric(collector, "connections") == 1, SECONDS)
        wait_until("the lease is over", lambda: self.metric(collector, "leases") == 1, SECONDS)
        wait_until("the feed is closed", lambda: self.metric(collector, "feed_subscribers") == 1, SECONDS)
        took = time.monotonic() - began
        self.assertLess(took, SECONDS)
        self.assertEqual(sender.wait(), 1)
        self.assertIn("revoked", self.log("bad"))
        self.assertIn('identity="tracecollect:agent/bad": refused: certificate revoked', self.log("collector"))

        # The peer stays locked out.
        again = collector.case.tracectl("send", trace, "--to", collector.to, "--certs", bad, "--service", "again", "--instance", "one",
                                        "--no-progress", expect=1)
        self.assertIn("revoked", again.err)
        self.tracectl("status", "--server", https(collector), "--certs", mallory, expect=1)
        writer.write(content[len(content) // 2:])
        writer.close()
        self.assertEqual(other.wait(DEADLINE), 0, self.log("other"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "other"), trace)
        for name in ("good.feed", "good.lease"):
            wait_until(f"{name} has heard of it", lambda: (self.folder / f"{name}.out").stat().st_size > 0)
        self.assertEqual(self.metric(collector, "leases"), 1)
        self.assertNotIn("lost", self.log("good.feed"))

        # A new key, and the stream's owner is let in again.
        self.tracectl("certs", "renew", self.certs, "bad", "--new-key")
        collector.case.tracectl("send", trace, "--to", collector.to, "--certs", self.folder_of("agent", "bad"), "--service", "renewed",
                                "--instance", "one", "--no-progress")
        self.assert_same_bytes(collector.fetch(self.folder / "renewed", "renewed"), trace)
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_reader_over_https_is_closed_too(self):
        collector = self.collector()
        port = int(collector.ready["http"].rsplit(":", 1)[1])

        def connect():
            context = ssl.create_default_context(cafile=self.certs / "ca.pem")
            context.load_cert_chain(self.certs / "reader.pem", self.certs / "reader.key")
            return http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=DEADLINE)

        live = connect()
        live.request("GET", "/api/v1/live")
        answer = live.getresponse()
        self.assertEqual(answer.status, 200)
        began = time.monotonic()
        self.tracectl("certs", "revoke", self.certs, self.certs / "reader.pem")
        try:
            while answer.readline():
                self.assertLess(time.monotonic() - began, SECONDS, self.log("collector"))
        except (ConnectionError, ssl.SSLError, http.client.HTTPException):
            pass
        self.assertLess(time.monotonic() - began, SECONDS, self.log("collector"))
        live.close()
        refused = connect()
        with self.assertRaises((ConnectionError, ssl.SSLError)) as why:
            refused.request("GET", "/readyz")
            refused.getresponse()
        self.assertIn("REVOKED", str(why.exception).upper())
        refused.close()
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_stolen_collectors_certificate_is_refused_by_agents_and_readers_that_have_the_list(self):
        collector, trace, listed = self.collector(), self.trace("g26-labels"), self.folder / "lists.pem"
        self.tracectl("certs", "revoke", self.certs, "5A01")
        shutil.copy(self.certs / "crl.pem", listed)
        sends = ("send", trace, "--to", collector.ready["agents"], "--certs", self.certs, "--service", "shop", "--instance", "one",
                 "--no-progress", "--timeout", f"{DEADLINE:.0f}s")
        with_list = {**os.environ, "TRACEAGENT_CRL": str(listed)}
        asks = ("status", "--server", https(collector), "--certs", self.certs, "--tls-crl", listed)
        self.tracectl(*sends, env=with_list)
        self.tracectl(*asks)

        self.tracectl("certs", "revoke", self.certs, "server")
        shutil.copy(self.certs / "crl.pem", listed)
        self.assertIn("certificate revoked", self.tracectl(*asks, expect=1).err)
        self.assertIn("certificate revoked", self.tracectl(*sends, env=with_list, expect=1).err)
        self.assertIn("certificate revoked", self.tracectl(*sends, "--tls-crl", listed, expect=1).err)
        self.assertIn("No such file", self.tracectl(*asks[:-1], self.folder / "none.pem", expect=1).err)
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_list_that_is_not_one_changes_nothing_and_is_named(self):
        listed = self.folder / "lists.pem"
        self.tracectl("certs", "revoke", self.certs, "agent")
        shutil.move(self.certs / "crl.pem", listed)
        collector, trace = self.collector(f"tls.crl={listed}"), self.trace("g26-labels")
        good = listed.read_bytes()
        foreign = self.folder / "foreign"
        self.tracectl("certs", "init", foreign)
        self.tracectl("certs", "revoke", foreign, "agent")
        for wrong, words in ((b"", "holds no revocation list in PEM"),
                             (good[:len(good) // 2], "not a revocation list in PEM"),
                             (good + good[:len(good) // 2], "not a revocation list in PEM"),
                             (good + (foreign / "crl.pem").read_bytes(), "not signed by an authority")):
            with self.subTest(words):
                failed = self.metric(collector, "reloads_failed_total")
                self.replace(listed, wrong)
                wait_until("it is looked at", lambda: self.metric(collector, "reloads_failed_total") > failed)
                self.assertIn(words, self.log("collector"))
                self.assertEqual(self.metric(collector, "revoked_certificates"), 1)
        listed.unlink()
        wait_until("it is missed", lambda: f"{listed}: No such file or directory; the old revocations stay in use" in self.log("collector"))
        collector.process.send_signal(signal.SIGHUP)
        wait_until("the reload is refused", lambda: "the old configuration and certificates stay in use" in self.log("collector"))
        collector.case.tracectl("send", trace, "--to", collector.to, "--certs", self.certs, "--service", "out", "--instance", "one",
                                "--no-progress", expect=1)

        # Taken back by mistake: a list without it lets it in again.
        self.tracectl("certs", "revoke", self.certs, "5A01")
        self.replace(listed, (self.certs / "crl.pem").read_bytes())
        collector.process.send_signal(signal.SIGHUP)
        wait_until("it is read anew", lambda: self.log("collector").count("read again") + self.log("collector").count(": reloaded") > 0)
        collector.send(trace, "in")
        self.assertEqual(collector.stop(), 0)

        # Without its list a collector does not start.
        listed.unlink()
        collector.wait = False
        collector.start()
        self.assertEqual(collector.process.wait(DEADLINE), 1)

    @suites("release", "asan")
    def test_what_expires_within_30_days_is_warned_of(self):
        shutil.rmtree(self.certs)
        self.tracectl("certs", "init", self.certs, "--days", "12", "--authority-days", "20")
        soon = self.issue("agent", "soon", "--days", "3")
        collector, trace, now = self.collector(), self.trace("g26-gens"), time.time()
        log = self.log("collector")
        self.assertRegex(log, "the collector's certificate expires in 1[12] days")
        self.assertRegex(log, "the authority's certificate expires in (19|20) days")
        self.assertAlmostEqual(self.metric(collector, "authority_expires_seconds"), now + 20 * 86400, delta=600)
        self.assertEqual(self.metric(collector, "agent_certificate_expires_seconds"), 0)
        self.sender(collector, soon, "soon", trace, 600)
        wait_until("the earliest is an agent's", lambda: self.metric(collector, "agent_certificate_expires_seconds") > 0)
        self.assertAlmostEqual(self.metric(collector, "agent_certificate_expires_seconds"), now + 3 * 86400, delta=600)
        self.assertRegex(self.log("collector"), 'identity="tracecollect:agent/soon": its certificate expires in [23] days')

        # Renewed, with the authority, while the agent goes on.
        for name in ("ca", "server", "soon"):
            self.tracectl("certs", "renew", self.certs, name)
        collector.process.send_signal(signal.SIGHUP)
        wait_until("it is loaded", lambda: self.metric(collector, "certificate_expires_seconds") > now + 700 * 86400)
        self.assertGreater(self.metric(collector, "authority_expires_seconds"), now + 3600 * 86400)
        self.assertEqual(self.metric(collector, "connections"), 1)
        collector.send(self.trace("g26-labels"), "after")
        self.assertEqual(collector.stop(), 0)
