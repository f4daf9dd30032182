# SPDX-License-Identifier: Apache-2.0
"""A Debian of its own for a test: a root made by mmdebstrap, and the same booted by systemd-nspawn.

The packed root is kept in the build folder, so only the first run fetches it. Where the machine has no
root user, no nspawn or no packages to be had, Unavailable says why.
"""
import fcntl
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import time

from harness import BUILD, DEADLINE, SANITIZE, die_with_parent

# What boots, what the collector and tracectl link, and what builds programs with the agent. One root for all tests.
PACKAGES = ("systemd", "dbus",
            "libcurl4", "libuv1", "libssl3", "libnng1", "libprotobuf-c1", "libsqlite3-0", "libyaml-0-2", "libhttp-parser2.9", "libxxhash0", "libzstd1",
            "zlib1g", "libjansson4", "libncursesw6",
            "libssl-dev", "gcc", "libc6-dev", "pkg-config", "cmake", "make")


class Unavailable(Exception):
    """Why there is no such root here."""


def check(*tools):
    """Can this machine make a root whose programs are those of this build?"""
    if SANITIZE:
        raise Unavailable("a sanitizer needs what the sandbox forbids")
    if os.geteuid() != 0:
        raise Unavailable("only root can make a root")
    for tool in ("mmdebstrap", *tools):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed")
    if platform.freedesktop_os_release().get("ID") != "debian":
        raise Unavailable("the programs of this build run on this Debian only")


def packed_root(packages=PACKAGES):
    """The archive of a minimal root with these packages beside the essential ones."""
    wanted = ",".join(packages)
    packed = BUILD / f"boot/root-{hashlib.sha256(wanted.encode()).hexdigest()[:8]}.tar"
    packed.parent.mkdir(exist_ok=True)
    with open(packed.with_suffix(".lock"), "wb") as lock:  # another test may want it now
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not packed.exists():
            _pack(wanted, packed)
    return packed


def _pack(wanted, packed):
    part = packed.with_suffix(".part")
    include = [f"--include={wanted}"] if wanted else []
    done = subprocess.run(["mmdebstrap", "--variant=minbase", "--format=tar", *include,
                           platform.freedesktop_os_release()["VERSION_CODENAME"], str(part)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"mmdebstrap made no root: {done.stderr.strip().splitlines()[-1]}")
    part.rename(packed)


class Machine:
    """A booted root; the one that is open is shared by all cases of a run."""

    shared = None

    @classmethod
    def get(cls, *arguments, **named):
        if cls.shared is None:
            try:
                cls.shared = cls(*arguments, **named)
            except Unavailable as why:
                cls.shared = why
        if isinstance(cls.shared, Unavailable):
            raise cls.shared
        return cls.shared

    @classmethod
    def close_shared(cls):
        if isinstance(cls.shared, Machine):
            cls.shared.close()
        cls.shared = None

    def __init__(self, fill, binds=()):
        """fill(ROOT) puts files into the root before it boots; binds are (OUTSIDE, INSIDE), read and written."""
        check("systemd-nspawn", "nsenter")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-boot-"))
        self.root = self.folder / "root"
        self.process = None
        try:
            self.root.mkdir()
            subprocess.run(["tar", "-xf", packed_root(), "-C", self.root], check=True)
            fill(self.root)
            self._boot([f"--bind={outside}:{inside}" for outside, inside in binds])
        except BaseException:
            self.close()
            raise

    def _boot(self, binds):
        with open(self.folder / "boot.log", "wb") as log:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "-D", self.root, "--register=no", "--keep-unit", "-b", "--private-network", *binds],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and self.process.poll() is None:
            if self._leader() and self.run("systemctl is-active -q multi-user.target").returncode == 0:
                return
            time.sleep(0.1)
        raise Unavailable("systemd-nspawn does not boot: " +
                          (self.folder / "boot.log").read_text(errors="replace")[-300:].replace("\n", " "))

    def _leader(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        words = children.read_text().split() if children.exists() else []
        return words[0] if words else None

    def run(self, command):
        """A shell line inside."""
        return subprocess.run(["nsenter", "-t", self._leader(), "-a", "sh", "-c", command], capture_output=True,
                              text=True, check=False, timeout=2 * DEADLINE, stdin=subprocess.DEVNULL)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()  # an orderly shutdown inside
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
