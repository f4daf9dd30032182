# SPDX-License-Identifier: Apache-2.0
"""The installed service in a booted Debian: systemd-nspawn over a root made by mmdebstrap.

Where no root can be made or booted, the cases are skipped and say why.
"""
import os
import re
import shlex
import shutil
import subprocess

from harness import BUILD, Case, wait_until
from machine import Machine, Unavailable

UNIT = "tracecollectd.service"

# Each of these the sandbox must not allow. Written as the service's own program by a drop-in.
FORBIDDEN = (
    "echo x >/etc/probe", "echo x >/usr/probe", "echo x >/run/probe", "cat /etc/shadow", "ls /root", "ls /home/*",
    "cat /etc/credstore/tracecollect.server.key", "unshare -U true", "unshare -n true", "mount -t tmpfs none /mnt",
    "chroot / true", "setpriv --clear-groups true", "chrt -f 1 true", "head -c1 /dev/kmsg", "head -c1 /dev/sda",
    "cat /proc/1/environ", "hostname probe", "echo 1 >/proc/sys/kernel/panic", "echo $$ >/sys/fs/cgroup/cgroup.procs",
    "mknod /tmp/n c 1 3", "chmod u+s /var/lib/tracecollect/s", "date -s 2001-01-01",
)


def install(root):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, capture_output=True,
                   env={**os.environ, "DESTDIR": str(root)})


def tearDownModule():
    Machine.close_shared()


class Boot(Case):
    def setUp(self):
        super().setUp()
        try:
            self.machine = Machine.get(install)
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")
        self.addCleanup(self._back_to_installed)

    def _back_to_installed(self):
        self.machine.run(f"systemctl stop {UNIT} tracecollectd-agents.socket tracecollectd-http.socket;"
                         f"rm -rf /run/systemd/system/{UNIT}.d /etc/credstore; systemctl daemon-reload;"
                         f"systemctl reset-failed {UNIT}")

    def _run(self, command, expect=0):
        done = self.machine.run(command)
        self.assertEqual(done.returncode, expect, f"{command}\n{done.stdout}\n{done.stderr}\n" +
                         self.machine.run(f"journalctl --no-pager -n 30 -u {UNIT}").stdout)
        return done.stdout.strip()

    def _show(self, name):
        return self._run(f"systemctl show -P {name} {UNIT}")

    def _drop_in(self, text):
        self._run(f"mkdir -p /run/systemd/system/{UNIT}.d; printf %s {shlex.quote(text)} "
                  f">/run/systemd/system/{UNIT}.d/test.conf; systemctl daemon-reload")

    def _logged(self, pattern):
        """Returns the unit's newest log lines. The journal writes them with a delay."""
        newest = f"journalctl --no-pager -o cat -u {UNIT} -n 60"
        wait_until(f"the log says {pattern}", lambda: re.search(pattern, self._run(newest)))
        return self._run(newest)

    def _copy_in(self, path, to):
        shutil.copy(path, self.machine.root / to.lstrip("/"))

    def test_it_starts_as_installed_and_stops_in_order(self):
        self._run(f"systemctl start {UNIT}")
        self.assertEqual(self._show("ActiveState"), "active")
        # The first is what it says for its first five seconds.
        self.assertRegex(self._show("StatusText"), "Listening for agents on 127.0.0.1:7070|^0 streams, ")
        self._run("bash -c '</dev/tcp/127.0.0.1/7070'")
        self.assertNotEqual(self._run(f"ps -o user= -p {self._show('MainPID')} 2>/dev/null || "
                                      f"stat -c %u /proc/{self._show('MainPID')}"), "0")
        self._run(f"systemctl stop {UNIT}")  # had it taken too long, the result would be "timeout"
        self.assertEqual((self._show("Result"), self._show("ExecMainStatus")), ("success", "0"))

    def test_who_is_in_the_group_reads_and_nobody_else(self):
        self._run(f"systemctl start {UNIT}")
        self._run("id member 2>/dev/null || { useradd -G tracecollect member && useradd stranger; }")
        self.assertIn("health: ok", self._run("su member -s /bin/sh -c 'tracectl status'"))
        self._run("su stranger -s /bin/sh -c 'tracectl status'", expect=1)

    def test_a_stream_sent_to_it_is_read_back_and_outlives_a_restart(self):
        trace = self.trace("g26-labels")
        self._copy_in(trace, "/root/trace")
        self._run("rm -rf /root/certs; mkdir -p /etc/credstore; tracectl certs init /root/certs >/dev/null;"
                  "for f in ca.pem server.pem server.key;"
                  "do install -m 0600 /root/certs/$f /etc/credstore/tracecollect.$f; done")
        self._run(f"systemctl start {UNIT}")
        self._run("tracectl send /root/trace --to 127.0.0.1:7070 --certs /root/certs --service boot --instance one")
        self._run(f"systemctl restart {UNIT}")
        self._run("rm -f /root/fetched; tracectl fetch --service boot -o /root/fetched && cmp /root/trace /root/fetched")

    def test_reload_reads_the_configuration_anew(self):
        config = "/etc/tracecollect/tracecollectd.yaml"
        self._run(f"systemctl start {UNIT}; cp {config} /root/saved.yaml")
        self.addCleanup(lambda: self.machine.run(f"cp /root/saved.yaml {config}"))

        # systemctl is through when the signal is sent
        self._run(f"printf 'retention:\\n  age: 3d\\n' >>{config}; systemctl reload {UNIT}")
        self._logged("key=retention.age: changed")
        self._run(f"printf 'bogus: 1\\n' >>{config}; systemctl reload {UNIT}")
        self._logged(r"tracecollectd.yaml:\d+: bogus: unknown key; the old configuration")
        self.assertEqual(self._show("ActiveState"), "active")

    def test_one_that_stands_still_is_killed_by_the_watchdog_and_comes_back(self):
        self._drop_in("[Service]\nWatchdogSec=3\n")
        self._run(f"systemctl start {UNIT}")
        first = self._show("MainPID")
        self._run(f"sh -c 'kill -STOP {first}'")
        wait_until("systemd starts it again", lambda: self._show("MainPID") not in ("0", first)
                   and self._show("ActiveState") == "active")
        self.assertGreaterEqual(int(self._show("NRestarts")), 1)  # a machine under load may be too slow for the next one, too
        self._logged("Watchdog timeout")

    def test_the_first_peer_on_systemds_socket_starts_it(self):
        self._run("systemctl start tracecollectd-agents.socket tracecollectd-http.socket")
        self.assertEqual(self._show("ActiveState"), "inactive")
        self._copy_in(self.trace("g26-labels"), "/root/trace")
        self._run("mkdir -p /etc/credstore; rm -rf /root/certs; tracectl certs init /root/certs >/dev/null;"
                  "for f in ca.pem server.pem server.key;"
                  "do install -m 0600 /root/certs/$f /etc/credstore/tracecollect.$f; done")
        self._run("tracectl send /root/trace --to 127.0.0.1:7070 --certs /root/certs --service socket --instance one")
        wait_until("it is active", lambda: self._show("ActiveState") == "active")  # systemd hears of it a little later than a peer

    def test_the_sandbox_lets_nothing_out(self):
        lines = ["#!/bin/sh"] + [f"sh -c {shlex.quote(line)} >/dev/null 2>&1 && echo {shlex.quote('allowed: ' + line)}"
                                 for line in FORBIDDEN] + ["echo probed"]
        (self.machine.root / "usr/share/probe.sh").write_text("\n".join(lines) + "\n")
        self._run("umask 077; mkdir -p /etc/credstore; echo secret >/etc/credstore/tracecollect.server.key")
        self._drop_in("[Service]\nType=oneshot\nRestart=no\nWatchdogSec=0\nLoadCredential=\nExecStart=\n"
                      "ExecStart=sh /usr/share/probe.sh\n")
        self._run(f"systemctl start {UNIT}")
        self.assertNotIn("allowed:", self._logged("(?m)^probed$"))
