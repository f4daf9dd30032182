# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: folders, certificates, a collector that can be killed, Go builds.

Every case runs the real programs of one build (TC_BINARY_DIR) on loopback with ports the kernel chose.
Nothing here sleeps for a fixed time: wait_until() polls a condition and gives up at a deadline.
"""
import atexit
import ctypes
import datetime
import fcntl
import functools
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("TC_SOURCE_DIR", pathlib.Path(__file__).parents[2])).resolve()
BUILD = pathlib.Path(os.environ.get("TC_BINARY_DIR", SOURCE / "build/release")).resolve()
DAEMON = BUILD / "bin/tracecollectd"
TRACECTL = BUILD / "bin/tracectl"
SANITIZE = os.environ.get("TC_SANITIZE", "")
SANITIZER_REPORTS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")
FULL = bool(os.environ.get("TC_FULL"))  # `make soak`: whole sweeps, where `make test` takes a sample
PATIENCE = float(os.environ.get("TC_PATIENCE", "1"))  # how much slower than two free cores this machine may be
DEADLINE = 180 * PATIENCE  # seconds; only a failure takes so long


def patient(seconds):
    """A span of time in a setting, for what must not come too soon: so many seconds, or more on a slower machine."""
    return f"{seconds * PATIENCE * 1000:.0f}ms"


def engine(name):
    """A real server that tests talk to, which `make engines` builds: its program, or None."""
    built = pathlib.Path(os.environ.get("TRACECOLLECT_ENGINES", "/nonexistent")) / "bin" / name
    return str(built) if built.exists() else shutil.which(name)


def soak_only(case):
    """Decorator: a case that only `make soak` runs."""
    return case if FULL else None


LIBC = ctypes.CDLL(None)
RUNNER = os.getpid()


def die_with_parent():
    """In a child before exec: no program outlives a test runner that was killed. Signals are as in a terminal: what a
    shell runs in the background ignores SIGINT, and so would all that a test starts there."""
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != RUNNER:  # killed before that
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def alone():
    """Starts a program as above, in a process group of its own, so that its children can be ended
    with it."""
    die_with_parent()
    os.setpgid(0, 0)


def wait_until(what, condition, seconds=DEADLINE):
    """Returns the first true value of condition(); fails after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(min(max(0.02, now - began), 1))  # a condition that runs a program takes half a core at most


def suites(*names):
    """Decorator: a case that only these of release, asan and tsan run. The others would run the same C code with another case."""
    here = "release" if not SANITIZE else "tsan" if "thread" in SANITIZE else "asan"
    return lambda case: case if here in names else None


def rfc3339(wall_ns):
    """A moment as --since takes it, with all nine digits."""
    whole = datetime.datetime.fromtimestamp(wall_ns // 10**9, datetime.timezone.utc)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{wall_ns % 10**9:09d}Z"


@functools.cache
def shared_folder():
    """Returns a folder shared by all cases of this run; deleted when the run ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-shared-"))
    folder.chmod(0o755)  # some cases run its programs as another user
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def corpus():
    """The stored traces: the large corpus beside the repository where there is one, else our own few."""
    large = pathlib.Path(os.environ.get("TC_CORPUS", SOURCE.parent / "shared/traces/corpus"))
    if large.is_dir():
        return sorted(large.glob("*.trace.zst"))
    if os.environ.get("CI"):
        raise AssertionError(f"the corpus is not at {large}, and CI must not go without it")
    return sorted((SOURCE / "tests/data").glob("*.trace.zst"))


class Case(unittest.TestCase):
    """A test with a folder of its own, whose processes end with it."""
    built = {}  # command: the program it made, for all cases of this run

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-e2e-"))
        self.processes = []
        self.addCleanup(self._clean)
        self.certs = self.folder / "certs"
        made = shared_folder() / "certs"  # once; a case may do to its copy what it likes
        if not made.exists():
            self.tracectl("certs", "init", made)
        shutil.copytree(made, self.certs)

    def _clean(self):
        for process in self.processes:
            if process.poll() is None:  # so its number is of nobody else
                end = os.killpg if os.getpgid(process.pid) == process.pid else os.kill
                end(process.pid, signal.SIGKILL)
                process.wait()
        reports = [f"{log.name}: {line}" for log in self.folder.glob("*.log")
                   for line in log.read_text(errors="replace").splitlines()
                   if any(report in line for report in SANITIZER_REPORTS)]
        if os.environ.get("TC_KEEP"):
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(reports, [], "sanitizer reports")

    def spawn(self, name, *command, **options):
        """Starts a program in the background; what it says goes to NAME.log."""
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen([str(c) for c in command], stderr=log, stdin=options.pop("stdin", subprocess.DEVNULL),
                                   stdout=options.pop("stdout", log), preexec_fn=alone, **options)
        log.close()
        self.processes.append(process)
        return process

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def run_program(self, *command, expect=0, **options):
        """Runs a program to its end; answers the finished process, its exit code already checked. given: what it reads."""
        given = {"input": options.pop("given")} if "given" in options else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([str(c) for c in command], **given, capture_output=True,
                              timeout=options.pop("timeout", 5 * DEADLINE), **options)
        done.out = done.stdout.decode(errors="replace")
        done.err = done.stderr.decode(errors="replace")
        for report in SANITIZER_REPORTS:
            self.assertNotIn(report, done.err)
        if expect is not None:
            self.assertEqual(done.returncode, expect,
                             f"{' '.join(map(str, command))}\n{done.out[-2000:]}\n{done.err[-4000:]}")
        return done

    def tracectl(self, *args, **options):
        return self.run_program(TRACECTL, *args, **options)

    def example(self, name, *packages):
        """A C program of examples/, built against the agent of this build."""
        return self.program_of(SOURCE / "examples" / name / f"{name.replace('-', '_')}.c", name, *packages)

    def compiled(self, name, *command):
        """Returns the output of a compiler, called NAME: built by the first case that needs it, for all of this run.
        command: without its -o; the sources do not change meanwhile."""
        command = tuple(map(str, command))
        if command not in self.built:
            folder = shared_folder() / f"built-{len(self.built)}"
            folder.mkdir(exist_ok=True)
            self.run_program(*command, "-o", folder / name)
            self.built[command] = folder / name
        return self.built[command]

    def program_of(self, source, name, *packages, flags=()):
        """A C program as a user builds it."""
        sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        return self.compiled(name, "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitize, *flags,
                             source, *self.flags_of(*packages, "traceagent"))

    def flags_of(self, *packages):
        """Returns the compiler flags of these packages, this build's own first."""
        pkg_config = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "pkgconfig")}
        return shlex.split(self.run_program("pkg-config", "--cflags", "--libs", *packages, env=pkg_config).out)

    def unpack(self, packed):
        """A stored trace as a plain file."""
        plain = self.folder / packed.name.removesuffix(".zst")
        if not plain.exists():
            self.run_program("zstd", "-q", "-d", packed, "-o", plain)
        return plain

    def trace(self, name):
        """Returns one of our own traces, unpacked."""
        return self.unpack(SOURCE / "tests/data" / f"{name}.trace.zst")

    def assert_same_bytes(self, got, want):
        a, b = pathlib.Path(got).read_bytes(), pathlib.Path(want).read_bytes()
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            self.fail(f"{got} ({len(a)} bytes) differs from {want} ({len(b)} bytes) at offset {at}")


def held_port(case):
    """A port of loopback for programs of this case. It is bound here: the kernel gives it to no other program while none of ours listens."""
    held = socket.socket()
    case.addCleanup(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a listener that has set it, too, may take the port
    held.bind(("127.0.0.1", 0))
    return held.getsockname()[1]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Collector:
    """A tracecollectd with its own state, that can be killed and started again at the same address."""

    def __init__(self, case, *settings, name="collector", config=None, launcher=(), wait=True, daemon=DAEMON, **options):
        """config: text of a configuration file, which the case may write anew. launcher: command in front of
        the daemon's. wait: until it is ready. daemon: another program. options: spawn()'s."""
        self.launcher, self.wait, self.daemon = list(launcher), wait, daemon
        self.case, self.name, self.options = case, name, options
        self.config_file = case.folder / f"{name}.yaml" if config is not None else None
        if config is not None:
            self.config_file.write_text(config)
        self.ready_file = case.folder / f"{name}.ready"
        self.state = case.folder / f"{name}.state"
        # analysis.thin_after: reports are compared number by number, and the machine may be slow.
        self.settings = ["analysis.thin_after=1h", f"state={self.state}", f"certs={case.certs}", f"listen.agents=127.0.0.1:{held_port(case)}",
                         f"listen.http=127.0.0.1:{held_port(case)}", *settings]
        self.process = None
        self.start()

    def start(self):
        self.ready_file.unlink(missing_ok=True)
        sets = [word for setting in self.settings for word in ("--set", setting)]
        config = ["--config", self.config_file] if self.config_file else []
        self.process = self.case.spawn(self.name, *self.launcher, self.daemon, "--ready-file", self.ready_file, *config, *sets,
                                       **self.options)
        if self.wait:
            self.wait_ready()

    def wait_ready(self):
        wait_until("the collector is ready", self._is_ready)
        self.ready = dict(line.split("=", 1) for line in self.ready_file.read_text().splitlines())
        # From now on the same port, as an operator would have it.
        self.settings += [f"listen.agents={self.ready['agents']}", f"listen.http={self.ready['http']}"]

    def _is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the collector ended with {self.process.returncode}:\n"
                                 f"{self.case.log(self.name)[-4000:]}")
        return self.ready_file.exists()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        self.start()

    def stop(self, seconds=DEADLINE):
        """SIGTERM; answers the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    @property
    def to(self):
        return f"@{self.ready_file}"

    def _reader(self, *args, **options):
        verb, *rest = args
        return self.case.tracectl(verb, "--server", self.to, "--certs", self.case.certs, *rest, **options)

    def json_lines(self, *args):
        """The objects that a verb prints. A list of a service that has not come yet is empty here: the verb refuses it."""
        done = self._reader(*args, "--json", expect=None)
        is_early = args[0] == "list" and done.returncode == 1 and re.search(r": no (service|instance|stream)|: no segments", done.err)
        self.case.assertTrue(done.returncode == 0 or is_early, f"{args}\n{done.err}")
        return [json.loads(line) for line in done.out.splitlines()]

    def ask(self, *args, **options):
        return self._reader(*args, **options)

    def get(self, path):
        """Returns the answer to a GET over the collector's unix socket, as text."""
        connection = UnixConnection(self.ready["sock"])
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError(f"{path}: {answer.status}: {text}")
        return text

    def send(self, trace, service, instance="one", **options):
        return self.case.tracectl("send", trace, "--to", self.to, "--certs", self.case.certs, "--service",
                                  service, "--instance", instance, "--no-progress", **options)

    def fetch(self, out, service, instance="one", *more):
        self._reader("fetch", "--service", service, "--instance", instance, "-o", out, "--no-progress", *more)
        return out


def https(collector):
    """The URL of a collector that listens for HTTP on every address, which is over TLS."""
    return f"https://127.0.0.1:{collector.ready['http'].rsplit(':', 1)[1]}"


class Manager:
    """A service manager's ear: what a daemon says to NOTIFY_SOCKET, message by message."""

    def __init__(self, case, name="notify"):
        self.path = case.folder / f"{name}.sock"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        case.addCleanup(self.socket.close)
        self.socket.bind(str(self.path))
        self.socket.setblocking(False)
        self._heard = []

    def environment(self, **more):
        return {**os.environ, "NOTIFY_SOCKET": str(self.path), **more}

    @property
    def messages(self):
        """All so far, each as {key: value}."""
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self._heard
            self._heard.append(dict(line.split("=", 1) for line in text.splitlines()))

    def count(self, key):
        return sum(key in message for message in self.messages)


class Go:
    """A Go toolchain and the programs built with it."""

    def __init__(self, command, toolchain="local"):
        self.command, self.toolchain = command, toolchain

    @property
    def environment(self):
        return {**os.environ, "GO": self.command, "GOTOOLCHAIN": self.toolchain, "TZ": "UTC"}

    @functools.cache
    def version(self):
        """Like "go1.24.11", or None where this toolchain cannot be had."""
        done = subprocess.run([self.command, "env", "GOVERSION"], cwd="/", env=self.environment,
                              capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    @functools.cache
    def tool(self, name):
        """The program behind `go tool NAME`."""
        done = subprocess.run([SOURCE / "tools/go-tool.sh", name, self.toolchain], env=self.environment,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"go tool {name}: {done.stderr}")
        return done.stdout.strip()

    def parsed(self, case, trace):
        """Returns the output of Go's own tool for a trace."""
        return case.run_program(self.tool("trace"), "-d=parsed", trace, env=self.environment)

    def program(self, case, package):
        """A Go program of ours, built once for all cases that run it."""
        folder = BUILD / "go" / self.version()
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / pathlib.Path(package).name
        build = ("build", "-o", program, ".")  # Go leaves alone what is up to date
        with open(folder / "lock", "wb") as lock:  # another test may want it now
            fcntl.flock(lock, fcntl.LOCK_EX)
            case.run_program(self.command, *build, cwd=SOURCE / package, env={**self.environment, "CGO_ENABLED": "0", "GOWORK": "off"})
        return program


@functools.cache
def local_go():
    """The Go that deps.sh found or fetched, or None."""
    found = subprocess.run([SOURCE / "tools/find-go.sh"], capture_output=True, text=True).stdout.strip()
    return Go(found) if found else None
