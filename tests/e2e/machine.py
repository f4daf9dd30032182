# SPDX-License-Identifier: Apache-2.0
"""Makes a Debian of its own for a test: a root by mmdebstrap, booted by systemd-nspawn. Also builds the Debian
packages of this build, for all tests that install them.

The root is kept in the build folder, so only the first run fetches it; each test writes to an overlay of its own. Where
the machine has no root user, no nspawn or no packages to be had, Unavailable says why.
"""
import fcntl
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import tempfile
import time

from harness import BUILD, DEADLINE, LIBC, SANITIZE, SOURCE, die_with_parent, wait_until

# Packages for booting, those that collector and tracectl link, and those for building programs with the agent. All tests share one root.
PACKAGES = ("systemd", "dbus",
            "libcurl4", "libuv1", "libssl3", "libnng1", "libprotobuf-c1", "libsqlite3-0", "libyaml-0-2", "libhttp-parser2.9", "libxxhash0", "libzstd1",
            "zlib1g", "libjansson4", "libncursesw6",
            "libssl-dev", "gcc", "libc6-dev", "pkg-config", "cmake", "make")
# As in the images of Debian that are called slim. What dpkg writes need not outlive a loss of power.
OPTIONS = ("--aptopt=Acquire::Languages \"none\"", "--dpkgopt=force-unsafe-io",
           *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "info", "locale", "man")),
           "--dpkgopt=path-include=/usr/share/doc/*/copyright")


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


def kept(kind, key, make):
    """A folder of the build that make(FOLDER) fills once for each key; one with another key is removed."""
    folder = BUILD / kind / hashlib.sha256(key.encode()).hexdigest()[:12]
    folder.parent.mkdir(exist_ok=True)
    with open(folder.parent / "lock", "wb") as lock:  # another test may want it now
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            for old in (old for old in folder.parent.iterdir() if old.is_dir()):
                shutil.rmtree(old)
            part = folder.with_suffix(".part")
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder


def packages():
    """The Debian packages of this build."""
    sources = [pathlib.Path(folder) / name for folder, folders, names in os.walk(SOURCE) for name in names
               if not _leave_out(folders)]
    built = [*(BUILD / "bin").glob("trace*"), *(BUILD / "lib").glob("libtrace*"), BUILD / "CPackConfig.cmake"]
    seen = ((path, os.lstat(path)) for path in sorted(sources + built))
    key = "\n".join(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in seen)
    return sorted(kept("packages", key, _make_packages).glob("*.deb"))


def _leave_out(folders):
    """Has os.walk() pass by what is no source."""
    folders[:] = [name for name in folders if name not in ("build", "tests", "__pycache__") and not name.startswith(".")]


def _make_packages(folder):
    subprocess.run([SOURCE / "tools/packages.sh", BUILD, folder], check=True, capture_output=True)


def roots():
    """A folder with base.tar, Debian's smallest root that has apt, and full, the same with PACKAGES."""
    return kept("boot", "\n".join(OPTIONS + PACKAGES), _make_roots)


def _make_roots(folder):
    # Without what mmdebstrap takes away at its end. As in Debian's images, policy-rc.d stays: no service starts.
    left_out = ("var/lib/apt/lists/*", "var/cache/apt/*", "etc/resolv.conf", "etc/apt/apt.conf.d/00mmdebstrap", "usr/sbin/start-stop-daemon")
    base = (f"--one-file-system --transform='s,start-stop-daemon.REAL$,start-stop-daemon,' "
            + " ".join(f"--exclude='./{path}'" for path in left_out))
    done = subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--format=directory", *OPTIONS,
         f"--customize-hook=tar -C \"$1\" {base} -cf '{folder}/base.tar' .",
         # Inside, by the root's own apt: what comes with mmdebstrap's --include comes before a hook.
         f"--customize-hook=chroot \"$1\" env -u APT_CONFIG apt-get -q -y --no-install-recommends install {' '.join(PACKAGES)}",
         platform.freedesktop_os_release()["VERSION_CODENAME"], str(folder / "full")], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(folder)
        raise Unavailable(f"mmdebstrap made no root: {done.stderr.strip().splitlines()[-1]}")


@functools.cache
def has_own_mounts():
    """Gives this process a mount namespace: its mounts are visible only to it and its children, and end with it."""
    return LIBC.unshare(0x20000) == 0 and subprocess.run(["mount", "--make-rslave", "/"], capture_output=True).returncode == 0  # CLONE_NEWNS


def open_root(folder):
    """A root to write to, in a folder of the caller's: an overlay of the kept one, or else a copy of it."""
    full, root = roots() / "full", folder / "root"
    for name in ("root", "upper", "work"):
        (folder / name).mkdir()
    options = f"lowerdir={full},upperdir={folder}/upper,workdir={folder}/work,volatile"
    if not has_own_mounts() or subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, root], capture_output=True).returncode != 0:
        subprocess.run(["cp", "-a", "--reflink=auto", f"{full}/.", root], check=True)
    return root


def remove_root(folder):
    if has_own_mounts():
        subprocess.run(["umount", "-l", folder / "root"], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


class ControlGroups:
    """Folders of this process's control groups for one machine: nspawn keeps each machine's own tree in its caller's, where the one that ends
    first takes the other's services away. Where they cannot be made, a machine has its caller's."""

    def __init__(self, name):
        self.folders = [folder for folder in map(self._mounted, pathlib.Path("/proc/self/cgroup").read_text().split()) if folder]
        self.folders = [made for folder in self.folders if (made := self._make(folder / name))]

    @staticmethod
    def _mounted(line):
        """Returns the mounted cgroup of systemd's own tree; None if the line is about another
        one."""
        _, controllers, path = line.split(":", 2)
        names = {"name=systemd": ("systemd",), "": ("unified", ".")}.get(controllers, ())
        places = (pathlib.Path("/sys/fs/cgroup", name, path.lstrip("/")) for name in names)
        return next((place for place in places if (place / "cgroup.procs").exists()), None)

    @staticmethod
    def _make(folder):
        try:
            folder.mkdir()
            return folder
        except OSError:
            return None

    def enter(self):
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def remove(self):
        wait_until("the control groups are empty", lambda: all(map(self._remove, self.folders)))

    @staticmethod
    def _remove(folder):
        """Removes the cgroups below the folder, the machine's services first."""
        try:
            for path, _, _ in os.walk(folder, topdown=False):
                os.rmdir(path)
        except OSError:
            return False
        return True


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
        check("systemd-nspawn", "nsenter", "unshare")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-boot-"))
        self.process = None
        self.groups = ControlGroups(self.folder.name)
        try:
            self.root = open_root(self.folder)
            fill(self.root)
            self._boot([f"--bind={outside}:{inside}" for outside, inside in binds])
        except BaseException:
            self.close()
            raise

    def _boot(self, binds):
        with open(self.folder / "boot.log", "wb") as log:
            self.process = subprocess.Popen(
                # In a namespace of processes that ends with the first of them: were nspawn killed, its machine would run on.
                ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "systemd-nspawn", "-D", self.root, "--register=no", "--keep-unit", "-b", "--private-network", *binds],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self._begin)
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and self.process.poll() is None:
            if self._leader() and self.run("systemctl is-active -q multi-user.target").returncode == 0:
                return
            time.sleep(0.1)
        raise Unavailable("systemd-nspawn does not boot: " +
                          (self.folder / "boot.log").read_text(errors="replace")[-300:].replace("\n", " "))

    def _begin(self):
        die_with_parent()
        self.groups.enter()

    @staticmethod
    def _child(process):
        children = pathlib.Path(f"/proc/{process}/task/{process}/children")
        words = children.read_text().split() if process and children.exists() else []
        return words[0] if words else None

    def _leader(self):
        """The first process inside; its parent is nspawn."""
        return self._child(self._child(self.process.pid))

    def run(self, command):
        """A shell line inside."""
        return subprocess.run(["nsenter", "-t", self._leader(), "-a", "sh", "-c", command], capture_output=True,
                              text=True, check=False, timeout=2 * DEADLINE, stdin=subprocess.DEVNULL)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            try:
                if nspawn := self._child(self.process.pid):
                    os.kill(int(nspawn), signal.SIGTERM)  # an orderly shutdown inside
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.groups.remove()
        remove_root(self.folder)
