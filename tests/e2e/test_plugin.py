# SPDX-License-Identifier: Apache-2.0
"""libtraceagent.a in a plugin, which is unloaded while the agent still has things in the process, and in a static program."""
import os
import shlex
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case, Collector

HERE = SOURCE / "tests/e2e"
PRELOAD = BUILD / "lib/libtraceagent-preload.so"
COMPILE = ("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")


@unittest.skipIf(SANITIZE, "a sanitizer's runtime would have to be loaded into the host")
class Plugin(Case):
    def setUp(self):
        super().setUp()
        openssl = shlex.split(self.run_program("pkg-config", "--libs", "openssl").out)
        self.plugin = self.compiled("plugin.so", *COMPILE, "-shared", "-fPIC", f"-I{SOURCE}/agent/include", HERE / "plugin.c",
                                    BUILD / "lib/libtraceagent.a", *openssl)
        self.host = self.compiled("host", *COMPILE, HERE / "plugin_host.c")

    def _run(self, server, deadline_ms, **variables):
        done = self.run_program(self.host, self.plugin, server, self.certs, deadline_ms,
                                env={**os.environ, **variables})
        self.assertEqual(done.out, "done\n")

    def test_a_plugin_is_unloaded_while_its_threads_live(self):
        collector = Collector(self)
        self._run(collector.to, 10000)

    def test_a_plugin_is_unloaded_while_the_agent_still_tries_to_connect(self):
        self._run("127.0.0.1:9", 0)

    def test_a_plugin_is_unloaded_beside_the_preload_library(self):
        collector = Collector(self)
        self._run(collector.to, 10000, LD_PRELOAD=str(PRELOAD), TRACEAGENT_SERVER=collector.to,
                  TRACEAGENT_CERTS=str(self.certs), TRACEAGENT_FORK="1")


@unittest.skipIf(SANITIZE, "a sanitizer's runtime is not to be had for a static program")
class StaticProgram(Case):
    def test_a_static_program_is_traced(self):
        program, collector = self.folder / "program", Collector(self)
        openssl = shlex.split(self.run_program("pkg-config", "--libs", "--static", "openssl").out)
        built = self.run_program(*COMPILE, "-static", f"-I{SOURCE}/agent/include", HERE / "static_program.c",
                                 BUILD / "lib/libtraceagent.a", *openssl, "-o", program, expect=None)
        if built.returncode != 0:
            self.skipTest(f"no static libraries of libc and OpenSSL here: {built.err[-200:]}")
        self.assertEqual(self.run_program(program, collector.to, self.certs).out, "done\n")
        self.assertIn("static", collector.ask("list").out)
