# SPDX-License-Identifier: Apache-2.0
"""The Go package: its own tests, vet, formatting, and the guide's example."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, DEADLINE, SANITIZE, SOURCE, Case, Collector, local_go, soak_only, wait_until

PACKAGE = SOURCE / "agent/go"
GUIDE = SOURCE / "docs/guide/trace-a-program.md"
MODULE = f"""module program

go 1.22

require tracecollect.invalid/traceagent v0.0.0

replace tracecollect.invalid/traceagent => {PACKAGE}
"""
OTHER_BUILDS = (("linux", "amd64", "0"), ("linux", "arm64", "0"), ("darwin", "arm64", "0"), ("windows", "amd64", "0"))
EXAMPLE = """package main

import (
	"context"
	"log"
	"time"

	"tracecollect.invalid/traceagent"
)

func main() {
%s}
"""


@unittest.skipIf(SANITIZE, "there is no C in it")
class AgentGo(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()
        if self.go is None:
            self.skipTest("no Go >= 1.22 here")

    def test_the_package_is_vetted_and_formatted(self):
        self._plain("linux", "amd64", "0", "vet", "./...")
        self.assertEqual(self._plain("linux", "amd64", "0", "fmt", "./...").out, "")

    def _plain(self, system, machine, cgo, *args):
        """The go command as on another machine; from our module's folder."""
        environment = {**self.go.environment, "GOOS": system, "GOARCH": machine, "CGO_ENABLED": cgo, "GOWORK": "off"}
        return self.run_program(self.go.command, *args, cwd=PACKAGE, env=environment)

    def test_it_compiles_for_another_system(self):
        program = BUILD / "go" / "compiles"
        self.run_program(self.go.command, "build", "-o", program, SOURCE / "tests/e2e/compiles.go",
                         env={**self.go.environment, "CGO_ENABLED": "0", "GOWORK": "off"})
        self.run_program(program, "windows/amd64", PACKAGE, env={**self.go.environment, "GOGC": "400"})  # has the most code of its own

    @soak_only  # the standard library is built for each of them
    def test_it_is_vetted_for_other_systems(self):
        for build in OTHER_BUILDS:
            with self.subTest(build=build):
                self._plain(*build, "vet", "./...")

    def test_its_tests_pass(self):
        done = self._plain("linux", "amd64", "0", "test", f"-timeout={5 * DEADLINE}s", "-count=1", "-v", "./...")
        self.assertIn("--- PASS: TestTheCollectorGetsTheBytesThatWereWritten", done.out)

    @soak_only
    def test_the_agent_in_go_has_no_races(self):
        self._plain("linux", "amd64", "1", "test", "-race", f"-timeout={5 * DEADLINE}s", "-count=1", "./...")

    def test_what_is_exported_is_the_same_everywhere(self):
        ours = self._plain("linux", "amd64", "1", "doc", "-all", ".").out
        for name in ("func Start(config Config) (*Agent, error)", "func (a *Agent) Stop(ctx context.Context) error", "Logger *slog.Logger"):
            self.assertIn(name, ours)
        for build in OTHER_BUILDS:
            with self.subTest(build=build):
                self.assertEqual(self._plain(*build, "doc", "-all", ".").out, ours)

    def test_the_guides_example_runs_on_without_certificates(self):
        # As it stands, and its folder of certificates is not there.
        example = re.search(r"```go\n(.*?)```", GUIDE.read_text(), re.S).group(1)
        certs = re.search(r'Certs: +"(.*?)"', example).group(1)
        (self.folder / "go.mod").write_text(MODULE)
        (self.folder / "main.go").write_text(EXAMPLE % example.replace(certs, str(self.folder / "none")))
        program = self.folder / "program"
        self.run_program(self.go.command, "build", "-o", program, ".", cwd=self.folder,
                         env={**self.go.environment, "CGO_ENABLED": "0", "GOWORK": "off"})
        self.assertIn(f"{self.folder}/none/ca.pem", self.run_program(program).err)


class Reasons(Case):
    """A traced program and a real collector that it does not get through to: LastError and one line on stderr say why."""
    program = None  # the server, built once

    def setUp(self):
        super().setUp()
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        if Reasons.program is None:
            Reasons.program = go.program(self, "examples/go-server")
        self.environment = {**go.environment, "GODEBUG": "traceadvanceperiod=200000000"}  # generations of a fifth of a second
        self.collector = Collector(self)

    def _start(self, server, certs=None):
        out = open(self.folder / "status", "wb")
        self.addCleanup(out.close)
        return self.spawn("server", self.program, "-server", server, "-certs", certs or self.certs, "-service", "shop", "-clients", "1",
                          stdout=out, env=self.environment)

    def _status(self):
        lines = [line for line in (self.folder / "status").read_text().splitlines() if line.endswith("}")]
        return json.loads(lines[-1]) if lines else {"LastError": ""}

    def _expect(self, reason, server, certs=None):
        self._start(server, certs)
        wait_until(f"LastError has {reason!r}", lambda: reason in self._status()["LastError"])
        wait_until(f"stderr has {reason!r}", lambda: re.search(f"(?m)^traceagent: .*{re.escape(reason)}", self.log("server")))

    def test_nobody_listens(self):
        self.collector.kill()
        self._expect("Connection refused", self.collector.ready["agents"])

    def test_the_port_is_another_one(self):
        self._expect("is it the port for agents?", self.collector.ready["http"])

    def test_the_collector_does_not_know_the_authority(self):
        other = self.folder / "other"
        self.tracectl("certs", "init", other)
        shutil.copy(self.certs / "ca.pem", other / "ca.pem")
        self._expect(f"collector refuses certificate {other}/agent.pem: TLS alert", self.collector.to, other)

    def test_the_agent_does_not_know_the_authority(self):
        other = self.folder / "other"
        self.tracectl("certs", "init", other)
        for name in ("agent.pem", "agent.key"):
            shutil.copy(self.certs / name, other / name)
        self._expect(f"collector's certificate: not signed by CA {other}/ca.pem", self.collector.to, other)

    def test_the_certificate_is_of_another_role(self):
        for end in ("pem", "key"):
            shutil.copy(self.certs / f"reader.{end}", self.certs / f"agent.{end}")
        self._expect("REFUSE_IDENTITY", self.collector.to)

    def test_a_collector_that_goes_and_comes_is_two_lines(self):
        server = self._start(self.collector.ready["agents"])
        wait_until("something is acked", lambda: self._status().get("AckedBytes", 0) > 0)
        self.collector.kill()
        wait_until("LastError says so", lambda: self._status()["LastError"] != "")
        self.collector.start()
        wait_until("LastError is empty again", lambda: self._status()["LastError"] == "")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(DEADLINE), 0)
        said = [line for line in self.log("server").splitlines() if line.startswith("traceagent: ")]
        self.assertRegex(said[-1], "^traceagent: .*: connected")
        self.assertLessEqual(len(said), 6)  # the ways in which a connection is lost, each once


WORK = """
	passes := make(chan int)
	go func() {
		for i := 0; i < 1000; i++ {
			passes <- i
		}
		close(passes)
	}()
	for range passes {
	}
	agent.Status()
"""


@unittest.skipIf(SANITIZE, "what is installed is a release build")
class InstalledModule(Case):
    """The guide's lines, as they stand there, in a new module outside the checkout, against what is installed."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="tc-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix, ignore_errors=True)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], stdout=subprocess.DEVNULL, check=True)

    def setUp(self):
        super().setUp()
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        self.collector = Collector(self)
        self.module = self.folder / "hello"
        self.module.mkdir()
        flags = self.run_program(go.command, "env", "GOFLAGS").out.strip()
        self.environment = {**go.environment, "PATH": f"{pathlib.Path(go.command).parent}:{os.environ['PATH']}", "GOPROXY": "off",
                            "GOFLAGS": f"{flags} -buildvcs=false".strip()}
        self.environment.pop("GOWORK", None)
        self._shell("go mod init hello")
        self._write(self.collector.ready["agents"], self.certs)

    def _write(self, server, certs):
        """The guide's code as a program: with the collector and the certificates of this test, and more time at its end."""
        code = re.search(r"```go\n(.*?)```", GUIDE.read_text(), re.S).group(1)
        for ours, theirs in (('"collector:7070"', f'"{server}"'), ('"/etc/myapp/trace"', f'"{certs}"'), ("2*time.Second", "2*time.Minute")):
            self.assertIn(ours, code)
            code = code.replace(ours, theirs)
        (self.module / "main.go").write_text(EXAMPLE % (code + WORK))

    def _lines(self, start):
        """The indented lines of the guide's part on Go that begin so."""
        section = re.search(r"(?ms)^## A Go program$(.*?)^## ", GUIDE.read_text()).group(1)
        lines = [line for line in re.findall(r"^    (.*)$", section, re.M) if line.startswith(start)]
        self.assertTrue(lines, f"the guide has no line {start}")
        return lines

    def _shell(self, line):
        return self.run_program("sh", "-ec", line, cwd=self.module, env=self.environment)

    def _here(self, line):
        """The folder of the module is that of this installation."""
        self.assertTrue("/usr/share/" in line or line.startswith("go mod edit -require"), line)
        return line.replace("/usr/share/", f"{self.prefix}/share/")

    def _use(self):
        for line in self._lines("go mod"):
            self._shell(self._here(line))

    def _expect_traced(self, *launcher):
        done = self.run_program(*launcher, expect=0)
        self.assertEqual(done.err, "")
        instance = self._instance()
        wait_until("the archive has what the program did", lambda: 'Reason="chan send"' in self._archived(instance))

    def _archived(self, instance):
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        return self.tracectl("cat", self.collector.fetch(trace, "checkout", instance)).out

    def _instance(self):
        rows = wait_until("the trace is in the archive", lambda: self.collector.json_lines("list", "--service", "checkout"))
        return rows[0]["instance"]

    def _needed(self, program):
        return re.findall(r"NEEDED.*\[(.*)\]", self.run_program("readelf", "-d", program).out)

    def test_the_guides_lines_trace_a_program(self):
        self._use()
        self._shell("go build")
        self.assertEqual([name for name in self._needed(self.module / "hello") if "traceagent" in name or "ssl" in name], [])
        self._expect_traced(self.module / "hello")

    def test_a_workspace_finds_the_module(self):
        for line in self._lines("go work"):
            self._shell(self._here(line))
        self._shell("go vet && go build")
        self._expect_traced(self.module / "hello")

    def test_the_program_is_traced_from_a_root_folder_with_nothing_else_in_it(self):
        self._use()
        self.environment["CGO_ENABLED"] = "0"
        root = self.folder / "root"
        shutil.copytree(self.certs, root / "certs")
        launcher = ["chroot", root, "/hello"] if os.geteuid() == 0 else [root / "hello"]
        self._write(self.collector.ready["agents"], "/certs" if os.geteuid() == 0 else self.certs)
        (self.module / "handler.go").write_text(
            'package main\n\nimport "tracecollect.invalid/traceagent/tracehttp"\n\nvar _ = tracehttp.Handler\n')
        self._shell("go vet && go build")
        shutil.copy(self.module / "hello", root / "hello")
        self.assertEqual(self._needed(root / "hello"), [])
        self._expect_traced(*launcher)
