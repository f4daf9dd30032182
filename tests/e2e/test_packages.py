# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built, looked at by lintian, installed, upgraded, removed and purged in a root of their own."""
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case

INSIDE = ("libssl-dev,gcc,libc6-dev,pkg-config,cmake,make,libuv1,libnng1,libprotobuf-c1,libsqlite3-0,libyaml-0-2,"
          "libhttp-parser2.9,libzstd1,zlib1g,libjansson4,libncursesw6")
NAMES = ("libtraceagent-dev", "libtraceagent0", "tracecollect-preload", "tracecollect-tools", "tracecollectd")
CONFIGURATION = "/etc/tracecollect/tracecollectd.yaml"
PROGRAM = """#include <traceagent.h>
int main(void) { ta_emit_stop(0); return 0; }
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C)
find_package(traceagent REQUIRED)
add_executable(mine mine.c)
target_link_libraries(mine PRIVATE traceagent::traceagent)
"""


class Unavailable(Exception):
    """Why no root can be made here."""


def packed_root():
    if os.geteuid() != 0:
        raise Unavailable("only root can make a root")
    if shutil.which("mmdebstrap") is None:
        raise Unavailable("mmdebstrap is not installed")
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise Unavailable("the packages of this build are this Debian's")
    packed = BUILD / f"packages-root-{hashlib.sha256(INSIDE.encode()).hexdigest()[:8]}.tar"
    if not packed.exists():
        part = packed.with_suffix(".part")
        done = subprocess.run(["mmdebstrap", "--variant=minbase", "--format=tar", f"--include={INSIDE}",
                               release["VERSION_CODENAME"], str(part)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"mmdebstrap made no root: {done.stderr.strip().splitlines()[-1]}")
        part.rename(packed)
    return packed


@unittest.skipIf(SANITIZE, "packages are made of the release build")
class Packages(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([SOURCE / "tools/packages.sh", BUILD], check=True, capture_output=True)
        cls.packages = sorted((SOURCE / "build/packages").glob("*.deb"))

    def _root(self):
        try:
            packed = packed_root()
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")
        root = pathlib.Path(tempfile.mkdtemp(prefix="tc-packages-"))
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        subprocess.run(["tar", "-xf", packed, "-C", root], check=True)
        for package in self.packages:
            shutil.copy(package, root / "tmp")
        return root

    def _inside(self, root, command):
        return self.run_program("chroot", root, "sh", "-ec", command,
                                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}).out

    def test_there_is_a_package_for_each_part_and_lintian_finds_no_error(self):
        names = [path.name.split("_")[0] for path in self.packages]
        self.assertEqual(names, list(NAMES))
        if shutil.which("lintian") is None:
            if os.environ.get("CI"):
                self.fail("lintian is not installed: tools/deps.sh installs it")
            self.skipTest("skipped, because lintian is not installed")
        self.run_program("lintian", "--fail-on", "error", "--allow-root", *self.packages)

    def test_installed_used_upgraded_removed_and_purged(self):
        root = self._root()
        self._inside(root, "dpkg -i /tmp/*.deb; getent group tracecollect; tracecollectd --check-config --config " + CONFIGURATION)
        self._builds_programs(root)
        configuration = root / CONFIGURATION[1:]
        configuration.write_text(configuration.read_text() + "\n# mine\n")
        state = root / "var/lib/tracecollect"
        state.mkdir()
        (state / "trace").write_text("a trace\n")
        self._inside(root, "dpkg -i /tmp/*.deb")
        self.assertIn("# mine", configuration.read_text(), "an upgrade keeps what its administrator wrote")
        self._inside(root, "dpkg -r " + " ".join(NAMES))
        self.assertIn("# mine", configuration.read_text(), "a removal keeps the configuration")
        self.assertFalse((root / "usr/bin/tracecollectd").exists())
        self.assertNotIn("libtraceagent", self._inside(root, "ldconfig -p"))
        said = self._inside(root, "dpkg -P " + " ".join(NAMES))
        self.assertIn("the traces in /var/lib/tracecollect are kept", said)
        self.assertFalse(configuration.parent.exists())
        self.assertEqual((state / "trace").read_text(), "a trace\n")

    def _builds_programs(self, root):
        mine = root / "root/mine"
        mine.mkdir()
        (mine / "mine.c").write_text(PROGRAM)
        (mine / "CMakeLists.txt").write_text(CMAKE)
        self._inside(root, "cd /root/mine; cc mine.c $(pkg-config --cflags --libs traceagent) -o shared; ./shared")
        self._inside(root, "cd /root/mine; cc mine.c $(pkg-config --cflags --libs traceagent-static) -o static; ./static")
        self._inside(root, "cd /root/mine; cmake -S . -B b >/dev/null; cmake --build b >/dev/null; b/mine")
        self._inside(root, "LD_PRELOAD=libtraceagent-preload.so TRACEAGENT_DISABLE=1 true")
        self.assertIn("libtraceagent.so.0", self._inside(root, "ldconfig -p"))
