# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built, looked at by lintian, and used from installation to purge in roots of their own.

Where no root can be made or booted, the cases are skipped and say why.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import SANITIZE, Case, local_go, wait_until
from machine import Machine, Unavailable, check, open_root, packages, remove_root

NAMES = ("libtraceagent-dev", "libtraceagent0", "tracecollect-actions", "tracecollect-preload", "tracecollect-tools", "tracecollectd")
CONFIGURATION = "/etc/tracecollect/tracecollectd.yaml"
SERVICE = "tracecollectd.service"
AGENT = "TRACEAGENT_SERVER=127.0.0.1:7070 TRACEAGENT_CERTS=/etc/tracecollect/agent"

# A C program of one's own. With an argument it goes on until a file of that name is there.
C_PROGRAM = """#include <traceagent.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct ta_forward_config where = { 0 };
  if (ta_emit_start(&where, NULL) != 0) return 3; /* untraced */
  do {
    ta_syscall_begin();
    usleep(20000);
    ta_syscall_end();
  } while (argc > 1 && access(argv[1], F_OK) != 0);
  return ta_emit_stop(60000) == 0 ? 0 : 2;
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C)
find_package(traceagent REQUIRED)
add_executable(mine mine.c)
target_link_libraries(mine PRIVATE traceagent::traceagent)
"""
GO_PROGRAM = """package main

import (
	"context"
	"log"
	"syscall"
	"time"

	"tracecollect.invalid/traceagent"
)

func main() {
	agent, err := traceagent.Start(traceagent.Config{Service: "in-go"})
	if err != nil {
		log.Fatal(err)
	}
	pause := syscall.NsecToTimespec(int64(20 * time.Millisecond))
	syscall.Nanosleep(&pause, nil)
	if err := agent.Stop(context.Background()); err != nil {
		log.Fatal(err)
	}
}
"""


def tearDownModule():
    Machine.close_shared()


@unittest.skipIf(SANITIZE, "packages are made of the release build")
class Packages(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.packages = packages()

    def test_there_is_a_package_for_each_part_and_lintian_finds_no_error(self):
        names = [path.name.split("_")[0] for path in self.packages]
        self.assertEqual(names, list(NAMES))
        if shutil.which("lintian") is None:
            if os.environ.get("CI"):
                self.fail("lintian is not installed: tools/deps.sh installs it")
            self.skipTest("skipped, because lintian is not installed")
        self.run_program("lintian", "--fail-on", "error", "--allow-root", *self.packages)

    # In a root where systemd does not run, as in a container.

    def _root(self):
        try:
            check()
            folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-packages-"))
            self.addCleanup(remove_root, folder)
            root = open_root(folder)
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")
        self._fill(root)
        return root

    def _inside(self, root, command):
        return self.run_program("chroot", root, "sh", "-ec", command,
                                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}).out

    def _fill(self, root):
        """The packages, and the programs of somebody who uses them."""
        mine = root / "srv/mine"
        mine.mkdir(parents=True)
        for package in self.packages:
            shutil.copy(package, root / "srv")
        (mine / "mine.c").write_text(C_PROGRAM)
        (mine / "CMakeLists.txt").write_text(CMAKE)
        (mine / "go").mkdir()
        (mine / "go/main.go").write_text(GO_PROGRAM)

    def test_installed_upgraded_removed_and_purged_where_systemd_does_not_run(self):
        root = self._root()
        said = self._inside(root, "dpkg -i /srv/*.deb; getent group tracecollect; tracecollectd --check-config --config " + CONFIGURATION)
        self.assertIn(f"start the collector: tracecollectd --config {CONFIGURATION}\n", said)
        self.assertIn("TRACEAGENT_CERTS=/var/lib/tracecollect/certs\n", said)
        self.assertFalse((root / "etc/tracecollect/certs").exists(), "no two hosts of one image share a key")
        self.assertIn("libtraceagent.so.0", self._inside(root, "ldconfig -p"))
        self._builds_programs(root)
        configuration = root / CONFIGURATION[1:]
        configuration.write_text(configuration.read_text() + "\n# mine\n")
        state = root / "var/lib/tracecollect"
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
            self._runs_by_hand(root, state)
        state.mkdir(exist_ok=True)
        (state / "trace").write_text("a trace\n")
        self.assertNotIn("start the collector", self._inside(root, "dpkg -i /srv/*.deb"), "who upgrades knows")
        self.assertIn("# mine", configuration.read_text(), "an upgrade keeps what its administrator wrote")
        self._inside(root, "dpkg -r " + " ".join(NAMES))
        self.assertIn("# mine", configuration.read_text(), "a removal keeps the configuration")
        self.assertFalse((root / "usr/bin/tracecollectd").exists())
        self.assertNotIn("libtraceagent", self._inside(root, "ldconfig -p"))
        said = self._inside(root, "dpkg -P " + " ".join(NAMES))
        self.assertIn("the traces in /var/lib/tracecollect are kept", said)
        self.assertFalse(configuration.parent.exists())
        self.assertFalse((root / "etc/credstore").exists())
        self.assertEqual((state / "trace").read_text(), "a trace\n")

    def _runs_by_hand(self, root, state):
        """As the installation has said; on free ports, since the root has this machine's network."""
        self.assertIn("or start one: tracecollectd", self._inside(root, "tracectl status 2>&1 || true"))
        collector = self.spawn("by-hand", "unshare", f"--root={root}", "--mount-proc", "sh", "-c", f"cd /srv; exec tracecollectd --config {CONFIGURATION}", env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TRACECOLLECTD_SET_LISTEN_AGENTS": "127.0.0.1:0", "TRACECOLLECTD_SET_LISTEN_HTTP": ""})
        wait_until("it is ready", lambda: ": ready" in self.log("by-hand") or collector.poll() is not None)
        self.assertIsNone(collector.poll(), self.log("by-hand"))
        agents = re.search(r"agents=(\S+)", self.log("by-hand"))[1]
        self._inside(root, "cd /srv/mine; cc mine.c $(pkg-config --cflags --libs traceagent) -o by-hand; "
                           f"TRACEAGENT_SERVICE=by-hand TRACEAGENT_SERVER={agents} TRACEAGENT_CERTS=/var/lib/tracecollect/certs ./by-hand")
        self.assertIn("by-hand", self._inside(root, "cd /; tracectl list"))
        self.assertFalse((root / "srv/tracecollect-data").exists())
        collector.terminate()
        self.assertEqual(collector.wait(60), 0, self.log("by-hand"))
        self.assertTrue((state / "certs/agent.pem").exists())

    def _builds_programs(self, root):
        self._inside(root, "cd /srv/mine; cc mine.c $(pkg-config --cflags --libs traceagent-static) -o static;"
                           "cmake -S . -B b >/dev/null; cmake --build b >/dev/null")
        for program in ("./static", "b/mine"):
            self._inside(root, f"cd /srv/mine; ldd {program}; result=0; TRACEAGENT_DISABLE=1 {program} || result=$?; test $result = 3")

    # In a machine that systemd has booted.

    def _machine(self):
        go = local_go()
        self.goroot = self.run_program(go.command, "env", "GOROOT", env=go.environment).out.strip() if go else None
        # Go's own cache, in which other tests leave the standard library compiled.
        binds = [(self.goroot, self.goroot), (self.run_program(go.command, "env", "GOCACHE", env=go.environment).out.strip(), "/var/cache/go")] if go else []
        try:
            self.machine = Machine.get(self._fill, binds)
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")

    def _run(self, command, expect=0):
        done = self.machine.run(f"export HOME=/root DEBIAN_FRONTEND=noninteractive; {command}")
        self.assertEqual(done.returncode, expect, f"{command}\n{done.stdout}\n{done.stderr}\n" +
                         self.machine.run(f"journalctl --no-pager -n 30 -u {SERVICE}").stdout)
        return done.stdout.strip()

    def _show(self, name):
        return self._run(f"systemctl show -P {name} {SERVICE}")

    def _report(self, service):
        """The second of two commands: the first report of a program's trace, as soon as a generation is in order."""
        command = f"export HOME=/root {AGENT}; tracectl report syscall --service {service}"
        wait_until(f"{service} has a report", lambda: re.search(r"(?m)^calls +[1-9]", self.machine.run(command).stdout))

    def test_from_installation_to_purge_where_systemd_runs(self):
        self._machine()
        self._run("dpkg -i /srv/*.deb")
        self.assertEqual((self._show("ActiveState"), self._show("UnitFileState")), ("active", "enabled"))
        self._first_reports()
        self._a_member_of_the_group_sends_and_reads()
        self._a_rule_runs_a_command()
        self._an_upgrade_loses_nothing()
        self._run(f"dpkg -r tracecollectd; dpkg -i /srv/tracecollectd_*-1_*.deb")
        self.assertEqual(self._show("ActiveState"), "active", "it comes back after a removal")
        self.assertIn("in-c", self._run("tracectl list"))
        self._run(f"systemctl disable --now --quiet {SERVICE}; dpkg -i /srv/newer/tracecollectd_*.deb")
        self.assertEqual(self._show("ActiveState"), "inactive", "an upgrade does not start what is switched off")
        said = self._run("dpkg -P " + " ".join(NAMES))
        self.assertIn("the traces in /var/lib/private/tracecollect are kept", said)
        self._run("test ! -e /etc/tracecollect && test ! -e /etc/credstore/tracecollect.server.key && "
                  "test -n \"$(find /var/lib/private/tracecollect -name '*.trace*')\"")
        self.assertNotIn("tracecollect", self._run("systemctl list-unit-files"))
        self._run("test ! -e /var/lib/private/tracecollect-actions")

    def _first_reports(self):
        began = time.monotonic()
        self._run(f"cd /srv/mine && cc mine.c $(pkg-config --cflags --libs traceagent) -o mine && TRACEAGENT_SERVICE=in-c {AGENT} ./mine")
        self._report("in-c")
        in_c = time.monotonic()
        self._run(f"LD_PRELOAD=libtraceagent-preload.so TRACEAGENT_DELAY_MS=0 TRACEAGENT_EXIT_MS=60000 {AGENT} sleep 0.1")
        self._report("sleep")
        unchanged = time.monotonic()
        if self.goroot:
            self._run(f"cd /srv/mine/go && export PATH=$PATH:{shlex.quote(self.goroot)}/bin GOCACHE=/var/cache/go GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0"
                      " && go mod init example.com/mine && go mod edit -require=tracecollect.invalid/traceagent@v0.0.0"
                      " -replace=tracecollect.invalid/traceagent=/usr/share/tracecollect/go"
                      f" && go build -o mine . && {AGENT} ./mine")
            self._report("in-go")
        print(f"to the first report: C {in_c - began:.1f} s, unchanged {unchanged - in_c:.1f} s, "
              f"Go {time.monotonic() - unchanged:.1f} s, each with its build")

    def _a_member_of_the_group_sends_and_reads(self):
        self._run("useradd -G tracecollect member && useradd stranger")
        line = shlex.quote(f"export {AGENT}; TRACEAGENT_SERVICE=members /srv/mine/mine && tracectl list --service members")
        self.assertIn("members", self._run(f"su member -s /bin/sh -c {line}"))
        self._run(f"su stranger -s /bin/sh -c 'cat /etc/tracecollect/agent/agent.key'", expect=1)
        self._run(f"su member -s /bin/sh -c 'cat /etc/tracecollect/certs/ca.key'", expect=1)

    def _a_rule_runs_a_command(self):
        """In the sandbox of its unit, which asks the collector over the socket of the group."""
        self._run("echo 'some WHEN goroutines.alive > 0 OF noted DO exec note' >/etc/tracecollect/rules; "
                  "echo 'trigger.file: /etc/tracecollect/rules' >>/etc/tracecollect/tracecollectd.yaml; "
                  "echo 'exec note /usr/bin/tee /var/lib/tracecollect-actions/noted' >/etc/tracecollect/actions; "
                  f"systemctl restart {SERVICE}; systemctl enable --now --quiet tracecollect-actions")
        progress = self.machine.root / "var/lib/private/tracecollect-actions/progress"
        wait_until("it has begun", progress.exists)
        self._run(f"TRACEAGENT_SERVICE=noted {AGENT} /srv/mine/mine")
        noted = wait_until("the command ran", lambda: (f := progress.parent / "noted").exists() and "saw:" in f.read_text() and f.read_text())
        self.assertRegex(noted, r"(?s)^rule: some\nservice: noted\n.*\nsaw: goroutines\.alive is [1-9]\d*\n$")

    def _an_upgrade_loses_nothing(self):
        """A program sends while the collector's package is exchanged for a newer one."""
        newer = self.machine.root / "srv/newer"
        newer.mkdir()
        for package in self.packages:
            self._as_newer(package, newer)
        before = self._show("MainPID")
        self._run(f"(TRACEAGENT_SERVICE=sends {AGENT} /srv/mine/mine /srv/stop; echo $? >/srv/part; mv /srv/part /srv/result)"
                  " </dev/null >/srv/sends.log 2>&1 &")
        wait_until("its trace arrives", lambda: self._generations("sends"))
        self._run("dpkg -i /srv/newer/*.deb")
        self.assertRegex(self._run("dpkg-query -W tracecollectd"), r"-2$")
        self.assertNotEqual(self._show("MainPID"), before, "the newer one runs")
        count = len(self._generations("sends"))
        wait_until("its trace goes on", lambda: len(self._generations("sends")) > count)
        self._run("touch /srv/stop")
        wait_until("it ends", (self.machine.root / "srv/result").exists)
        self.assertEqual(self._run("cat /srv/result /srv/sends.log"), "0")
        generations = self._generations("sends")
        self.assertEqual(generations, list(range(1, len(generations) + 1)))

    def _generations(self, service):
        lines = self._run("tracectl list --json").splitlines()  # with --service it refuses one that has not come yet
        return [number for line in map(json.loads, lines) if line["service"] == service for number in range(line["first_gen"], line["last_gen"] + 1)]

    def _as_newer(self, package, folder):
        """Rebuilds the package with the next release's number."""
        tree = self.folder / package.stem
        self.run_program("dpkg-deb", "-R", package, tree)
        control = tree / "DEBIAN/control"
        control.write_text(re.sub(r"(\d+\.\d+\.\d+)-1", r"\1-2", control.read_text()))
        self.run_program("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, folder)
