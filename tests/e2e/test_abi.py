# SPDX-License-Identifier: Apache-2.0
"""The binary interface of the agent's libraries against the stored baseline (tests/abi.py)."""
import platform
import re
import shutil
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case

SCRIPT = SOURCE / "tests/abi.py"
BASELINE = SOURCE / "tests/data/abi"


@unittest.skipIf(SANITIZE, "a sanitizer adds what the library that users get does not have")
@unittest.skipUnless(platform.machine() == "x86_64", "the baseline is of x86-64")
@unittest.skipUnless(shutil.which("abidiff"), "no abidiff here: tools/deps.sh installs abigail-tools")
class Abi(Case):
    def _check(self, baseline=BASELINE, expect=0):
        return self.run_program(SCRIPT, "check", BUILD, baseline, expect=expect)

    def _baseline(self, change, names=""):
        """A copy of the baseline as it would be had the libraries been otherwise when it was stored."""
        folder = self.folder / "baseline"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(BASELINE, folder)
        path = folder / "libtraceagent.abi"
        before = path.read_text()
        path.write_text(change(before))
        if names:
            (folder / "libtraceagent-preload.names").write_text(names)
        else:
            self.assertNotEqual(before, path.read_text(), "the change changes nothing")
        return folder

    def test_the_libraries_are_what_programs_were_built_against(self):
        self._check()

    def test_a_struct_that_knows_its_size_may_grow_at_its_end(self):
        def without_faults(text):
            text = re.sub(r" *<data-member [^>]*>\s*<var-decl name='faults' [^>]*/>\s*</data-member>\n(?=\s*</class-decl>)",
                          "", text)
            size = int(re.search(r"name='ta_emit_status' size-in-bits='(\d+)'", text).group(1))
            return text.replace(f"name='ta_emit_status' size-in-bits='{size}'",
                                f"name='ta_emit_status' size-in-bits='{size - 64}'")
        self._check(self._baseline(without_faults))

    def test_what_breaks_programs_fails_the_check(self):
        def swap(one, other):
            return lambda text: re.sub(f"'({one}|{other})'", lambda m: f"'{other if m[1] == one else one}'", text)

        gone = "<elf-symbol name='ta_gone' version='TRACEAGENT_0' is-default-version='yes' type='func-type' " \
               "binding='global-binding' visibility='default-visibility' is-defined='yes'/>\n"
        changes = {
            "two fields change places": (swap("reconnects", "resent_batches"), "reconnects"),
            "a field changes its type": (
                lambda text: re.sub(r"(name='misused' type-id=)'[^']*'",
                                    lambda m: f"{m[1]}'{re.search('<type-decl name=.int. [^>]*id=.([0-9a-f]+)', text)[1]}'", text),
                "misused"),
            "a struct without a size grows": (
                lambda text: text.replace("name='ta_probe_group' size-in-bits='64'", "name='ta_probe_group' size-in-bits='128'"),
                "ta_probe_group"),
            "a function goes": (
                lambda text: text.replace("<elf-function-symbols>\n", "<elf-function-symbols>\n    " + gone), "ta_gone"),
            "a parameter changes": (
                lambda text: re.sub(r"(<function-decl name='ta_heap_alloc'.*?)<parameter [^>]*/>", r"\1", text, flags=re.S),
                "ta_heap_alloc"),
        }
        for name, (change, words) in changes.items():
            with self.subTest(name):
                self.assertIn(words, self._check(self._baseline(change), expect=1).out)

    def test_a_name_that_the_preload_library_no_longer_has_fails_the_check(self):
        names = "".join(sorted([*(BASELINE / "libtraceagent-preload.names").read_text().splitlines(True), "zz_gone\n"]))
        self.assertIn("zz_gone", self._check(self._baseline(lambda text: text, names), expect=1).out)
