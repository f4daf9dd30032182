# SPDX-License-Identifier: Apache-2.0
"""Files that `make install` installs for systemd: complete, accepted by systemd's own checks, and
locked down."""
import re
import shutil

from harness import BUILD, SANITIZE, Case

UNITS = ("tracecollectd.service", "tracecollectd-agents.socket", "tracecollectd-http.socket", "tracecollect-actions.service")


class Unit(Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.run_program("cmake", "--install", BUILD, "--prefix", self.prefix)
        self.units = self.prefix / "lib/systemd/system"

    def _systemd(self, *arguments, **options):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("skipped, because systemd-analyze is not installed")
        return self.run_program("systemd-analyze", *arguments, **options)

    def test_everything_is_installed_and_names_the_folders_of_this_installation(self):
        for path in ("lib/sysusers.d/tracecollect.conf", "lib/tmpfiles.d/tracecollect.conf",
                     "share/tracecollect/tracecollectd.yaml", *(f"lib/systemd/system/{unit}" for unit in UNITS)):
            with self.subTest(path):
                text = (self.prefix / path).read_text()
                self.assertIsNone(re.search(r"@[A-Z]+@", text))
        self.assertIn(f"ExecStart={self.prefix}/bin/tracecollectd ", (self.units / UNITS[0]).read_text())
        self.assertIn(f"{self.prefix}/share/tracecollect/tracecollectd.yaml",
                      (self.prefix / "lib/tmpfiles.d/tracecollect.conf").read_text())

    def test_the_installed_configuration_is_a_valid_one(self):
        if SANITIZE:
            self.skipTest("skipped, because the installed program is the same")
        self.run_program(self.prefix / "bin/tracecollectd", "--check-config", "--config",
                         self.prefix / "share/tracecollect/tracecollectd.yaml")

    def test_systemd_finds_no_fault(self):
        done = self._systemd("verify", "--man=no", "--recursive-errors=no", *(self.units / unit for unit in UNITS))
        self.assertEqual(done.err, "")

    def test_the_service_is_exposed_as_little_as_promised(self):
        done = self._systemd("security", "--offline=true", "--threshold=15", "--no-pager", self.units / UNITS[0])
        exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.out)[1])
        self.assertLessEqual(exposure, 1.5)
