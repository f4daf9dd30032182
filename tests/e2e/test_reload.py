# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a new configuration and new certificates take effect together, or nothing changes. Certificates are watched, too."""
import json
import shutil
import signal
import socket
import ssl
import time
import urllib.error
import urllib.request

from harness import DEADLINE, Case, Collector, Manager, suites, wait_until

QUICK = "retention:\n  every: 100ms\n"


class Running(Case):
    """What both see of a collector."""

    def _metric(self, collector, name):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"tracecollect_{name} "):
                    return float(line.split()[1])
        return 0

    def _server_key(self, collector):
        """The public certificate that a new connection is shown."""
        host, port = collector.ready["agents"].rsplit(":", 1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["tracecollect/1"])
        with socket.create_connection((host, int(port)), timeout=DEADLINE) as plain:
            with context.wrap_socket(plain) as tls:
                return tls.getpeercert(binary_form=True)


class Reload(Running):
    def setUp(self):
        super().setUp()
        self.manager = Manager(self)

    def _collector(self, config=QUICK, *settings):
        """Whose own READY is heard: a reload's is the next one."""
        collector = Collector(self, *settings, config=config, env=self.manager.environment(WATCHDOG_USEC="600000"))
        wait_until("it is ready", lambda: self.manager.count("READY") > 0)
        return collector

    def _reload(self, collector, config=None):
        """Sends SIGHUP and waits until the daemon has said that it is through."""
        if config is not None:
            collector.config_file.write_text(config)
        done = self.manager.count("READY")
        collector.process.send_signal(signal.SIGHUP)
        wait_until("READY after SIGHUP", lambda: self.manager.count("READY") > done)

    @suites("release", "asan")
    def test_the_manager_hears_reloading_with_the_time_and_then_ready(self):
        collector = self._collector()
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._reload(collector)
        reloading = next(m for m in self.manager.messages if m.get("RELOADING") == "1")
        self.assertTrue(before <= int(reloading["MONOTONIC_USEC"])
                        <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)

        def states():
            return [m for m in self.manager.messages if "READY" in m or "RELOADING" in m]
        wait_until("it is ready again", lambda: "READY" in states()[-1])
        self.assertEqual(states()[-2], reloading)
        self.assertEqual(collector.stop(), 0)

    def test_retention_is_changed_while_running(self):
        collector = self._collector()
        collector.send(self.trace("g26-gens"), "old")
        wait_until("the archive has it", lambda: self._metric(collector, "archive_segments") > 0)
        self.assertEqual(self._metric(collector, "segments_expired_total"), 0)
        self._reload(collector, QUICK + "  age: 1ms\n")
        self.assertIn("key=retention.age: changed\n", self.log("collector"))
        wait_until("retention deletes by the new age",
                   lambda: self._metric(collector, "segments_expired_total") > 0)
        self.assertEqual(collector.stop(), 0)

    def test_what_is_idle_is_changed_while_running(self):
        trace, idle = self.trace("g26-gens"), "chan receive:main.runLong*,!runtime.*"
        collector = self._collector()
        self._reload(collector, QUICK + f'analysis:\n  idle: "{idle}"\n')
        self.assertIn("key=analysis.idle: changed\n", self.log("collector"))
        collector.send(trace, "new")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "new")))
        of_file, usual = (json.loads(self.tracectl("report", "block", trace, "--json", *more).out)["figures"]
                          for more in (("--idle", idle), ()))
        live = json.loads(collector.ask("report", "block", "--service", "new", "--json").out)["figures"]
        for name in ("idle", "waiting_idle"):
            self.assertEqual(live[name], of_file[name])
        self.assertNotEqual(of_file["idle"], usual["idle"])
        self.assertEqual(collector.stop(), 0)

    def test_a_limit_is_changed_while_running(self):
        collector = self._collector()
        self._reload(collector, QUICK + "agents:\n  connections_max: 1\n")
        host, port = collector.ready["agents"].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=DEADLINE):
            wait_until("the second is turned away", lambda: self._is_closed(host, port))
        self.assertIn("agents.connections_max is 1", self.log("collector"))
        self.assertEqual(collector.stop(), 0)

    @staticmethod
    def _is_closed(host, port):
        with socket.create_connection((host, int(port)), timeout=5) as plain:
            try:
                return plain.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True

    @suites("release", "asan")
    def test_a_key_for_the_next_start_is_named_and_waits_for_it(self):
        collector = self._collector()
        self._reload(collector, QUICK + "  age: 3d\nloops: 3\nanalysis:\n  stacks_max: 99\n")
        log = self.log("collector")
        self.assertIn("key=loops: changed; takes effect at the next start", log)
        self.assertIn("key=analysis.stacks_max: changed; takes effect at the next start", log)
        self.assertIn("key=retention.age: changed\n", log)
        self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_a_broken_file_is_named_by_line_and_key_and_the_old_values_stay(self):
        collector = self._collector()
        shown = self._server_key(collector)
        for broken, words in (("retention:\n  age: 1ms\nagents:\n  credit: 1KiB\n", ":4: agents.credit: 1KiB is too small"),
                              ("retention:\n  age: 1ms\n  agge: 1\n", ":3: retention.agge: unknown key"),
                              ("retention:\n  age: 1ms\n\tx\n", ":3: not YAML"),
                              ("retention:\n  age: 1ms\nlog:\n  group_bytes: 64MiB\n",
                               "log.group_bytes: must be at most half of log.file_bytes")):
            with self.subTest(words):
                self._reload(collector, broken)
                self.assertIn(words, self.log("collector"))
        self.assertNotIn("key=retention.age", self.log("collector"))
        self.assertEqual(self._metric(collector, "reloads_failed_total"), 4)
        collector.config_file.unlink()
        self._reload(collector)
        self.assertIn("No such file or directory; the old configuration and certificates stay in use",
                      self.log("collector"))
        self.assertEqual(self._server_key(collector), shown)
        self.assertEqual(collector.stop(), 0)

    def test_new_certificates_are_shown_to_new_connections_and_a_mixed_pair_never_is(self):
        collector = self._collector()
        old = self._server_key(collector)
        fresh = self.folder / "fresh"
        self.tracectl("certs", "init", fresh)

        shutil.copy(fresh / "server.pem", self.certs / "server.pem")  # its key is still the old one's
        self._reload(collector, QUICK + "  age: 5d\n")
        self.assertIn("stay in use", self.log("collector"))
        self.assertNotIn("key=retention.age", self.log("collector"), "half of a reload was applied")
        self.assertEqual(self._server_key(collector), old)

        shutil.copy(fresh / "server.key", self.certs / "server.key")  # a pair, but of another authority
        self._reload(collector)
        self.assertEqual(self._server_key(collector), old)

        for name in ("ca.pem", "agent.pem", "agent.key", "reader.pem", "reader.key"):
            shutil.copy(fresh / name, self.certs / name)
        expires = self._metric(collector, "certificate_expires_seconds")
        self.assertGreater(expires, time.time())
        self._reload(collector)
        self.assertGreaterEqual(self._metric(collector, "certificate_expires_seconds"), expires)
        self.assertGreaterEqual(self._metric(collector, "reloads_total"), 1)  # they are watched, too
        wait_until("the new certificate is shown", lambda: self._server_key(collector) != old)
        self.assertIn("key=retention.age: changed\n", self.log("collector"))
        trace = self.trace("g26-labels")
        collector.send(trace, "after")
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "after"), trace)
        self.assertEqual(collector.stop(), 0)


class Watched(Running):
    """Certificates as Kubernetes mounts a secret: links over `..data`, which is replaced by a rename."""

    def setUp(self):
        super().setUp()
        self.mount = self.folder / "mount"
        self.mount.mkdir()
        self.versions = 0
        self._mount(self.certs)
        for name in ("ca.crt", "tls.crt", "tls.key"):
            (self.mount / name).symlink_to(f"..data/{name}")
        self.collector = Collector(self, f"certs={self.mount}")
        self.first = self._server_key(self.collector)

    def _mount(self, certs, **other):
        """Replaces the secret at once by the server's files in certs. other: the folder of crt or key."""
        self.versions += 1
        folder = self.mount / f"..{self.versions}"
        folder.mkdir()
        shutil.copy(certs / "ca.pem", folder / "ca.crt")
        shutil.copy(other.get("crt", certs) / "server.pem", folder / "tls.crt")
        shutil.copy(other.get("key", certs) / "server.key", folder / "tls.key")
        (self.mount / "..next").symlink_to(folder.name)
        (self.mount / "..next").rename(self.mount / "..data")

    def _renewed(self, name):
        """A copy of the certificates with another key for the server."""
        folder = self.folder / name
        shutil.copytree(self.certs, folder)
        self.tracectl("certs", "renew", folder, "server", "--new-key")
        return folder

    def _said(self, words):
        return self.log("collector").count(words)

    @suites("release", "asan")
    def test_a_renewal_needs_no_signal(self):
        trace = self.trace("g26-labels")
        self._mount(self._renewed("renewed"))
        wait_until("the new certificate is shown", lambda: self._server_key(self.collector) != self.first)
        self.assertEqual(self._said(f"certificates={self.mount}: read again"), 1)
        self.assertEqual(self._metric(self.collector, "reloads_total"), 1)
        self.assertEqual(self._metric(self.collector, "reloads_failed_total"), 0)
        self.collector.send(trace, "after")
        self.assert_same_bytes(self.collector.fetch(self.folder / "fetched", "after"), trace)
        self.assertEqual(self.collector.stop(), 0)

    def test_half_a_pair_keeps_the_old_one_and_is_named_once(self):
        renewed = self._renewed("renewed")
        self._mount(self.certs, crt=renewed)
        wait_until("it was tried", lambda: self._metric(self.collector, "reloads_failed_total") == 1)
        self.assertIn(f"{self.mount}/tls.key: does not fit the certificate; the old certificates stay in use", self.log("collector"))
        self.assertEqual(self._server_key(self.collector), self.first)
        (self.mount / "..data/tls.key").write_text("-----BEGIN PRIVATE KEY-----\n")  # half written
        wait_until("it was tried again", lambda: self._metric(self.collector, "reloads_failed_total") == 2)
        self.assertEqual(self._server_key(self.collector), self.first)
        self.assertEqual(self._said("the old certificates stay in use"), 2)
        self._mount(renewed)
        wait_until("the new certificate is shown", lambda: self._server_key(self.collector) != self.first)
        self.assertEqual(self._metric(self.collector, "reloads_failed_total"), 2, "a state of the files is tried once")
        self.assertEqual(self.collector.stop(), 0)

    @suites("release", "asan")
    def test_files_that_are_gone_or_have_two_names_change_nothing(self):
        data = self.mount / "..data"
        data.rename(self.mount / "..gone")
        wait_until("it is missed", lambda: self._said("server.pem: No such file or directory; the old certificates stay in use")
                   + self._said("ca.pem: No such file or directory; the old certificates stay in use") == 1)
        (self.mount / "..gone").rename(data)
        wait_until("it is there again", lambda: self._said("read again") == 1)
        shutil.copy(self.certs / "server.key", self.mount)
        wait_until("there are two", lambda: self._said(f"{self.mount} has both server.key and tls.key, two names of the same file: "
                                                       "remove one; the old certificates stay in use") == 1)
        self.assertEqual(self._server_key(self.collector), self.first)
        self.assertEqual(self.collector.stop(), 0)

    @suites("release", "asan")
    def test_agents_and_readers_take_the_same_names(self):
        trace, folders = self.trace("g26-labels"), {}
        for role in ("agent", "reader"):
            folders[role] = self.folder / role
            folders[role].mkdir()
            for source, name in (("ca.pem", "ca.crt"), (f"{role}.pem", "tls.crt"), (f"{role}.key", "tls.key")):
                shutil.copy(self.certs / source, folders[role] / name)
        self.tracectl("send", trace, "--to", self.collector.to, "--certs", folders["agent"], "--service", "kube", "--instance", "one", "--no-progress")
        self.collector.stop()
        self.collector.settings.append("listen.http=0.0.0.0:0")
        self.collector.start()
        server = f"https://localhost:{self.collector.ready['http'].rsplit(':', 1)[1]}"
        self.assertIn("kube", self.tracectl("status", "--server", server, "--certs", folders["reader"]).out)
        for role, command in (("agent", ("send", trace, "--to", self.collector.to, "--service", "x", "--no-progress")),
                              ("reader", ("status", "--server", server))):
            shutil.copy(self.certs / "ca.pem", folders[role])
            done = self.tracectl(*command, "--certs", folders[role], expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{folders[role]} has both ca.pem and ca.crt, two names of the same file: remove one", done.err)

    @suites("release", "asan")
    def test_probes_need_no_certificate_over_tls(self):
        self.collector.stop()
        self.collector.settings.append("listen.http=0.0.0.0:0")
        self.collector.start()
        url = f"https://localhost:{self.collector.ready['http'].rsplit(':', 1)[1]}"
        context = ssl._create_unverified_context()
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 403), ("/api/v1/streams", 403)):
            try:
                with urllib.request.urlopen(url + path, timeout=DEADLINE, context=context) as answer:
                    self.assertEqual((path, answer.status), (path, status))
            except urllib.error.HTTPError as error:
                self.assertEqual((path, error.code), (path, status))
        self.assertEqual(self.collector.stop(), 0)
