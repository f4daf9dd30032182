# SPDX-License-Identifier: Apache-2.0
"""The messages as used by programs in other languages: installed, in a package whose name does not collide."""
import os
import re
import sys
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case

PACKAGES = SOURCE / "build/python"
GO_PACKAGE = "tracecollect.invalid/proto/tracecollect/v1;tracecollectv1"
IMPORTS = """
import proto
from google.protobuf import descriptor_pb2
from tracecollect.v1 import archive_pb2, feed_pb2
assert proto.SOMEBODY_ELSES
message = feed_pb2.FeedMessage(seq=7, count=2)
assert feed_pb2.FeedMessage.FromString(message.SerializeToString()) == message
described = descriptor_pb2.FileDescriptorSet.FromString(open(DESCRIPTION, "rb").read())
print(feed_pb2.FeedMessage.DESCRIPTOR.full_name, sorted(file.name for file in described.file))
"""


@unittest.skipIf(SANITIZE, "the same files are installed")
class Protos(Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.run_program("cmake", "--install", BUILD, "--prefix", self.prefix)
        self.root = self.prefix / "share/tracecollect/proto"

    def _generate(self, root, *files):
        into = self.folder / "generated"
        into.mkdir()
        self.run_program("protoc", f"-I{root}", f"--python_out={into}", *files)
        return into

    def test_every_file_names_its_package_for_every_language(self):
        files = sorted((self.root / "tracecollect/v1").glob("*.proto"))
        self.assertEqual([file.stem for file in files], ["archive", "feed", "frame", "meta", "report"])
        for file in files:
            with self.subTest(file.name):
                text = file.read_text()
                self.assertIn("\npackage tracecollect.v1;\n", text)
                self.assertIn(f'\noption go_package = "{GO_PACKAGE}";\n', text)
                for name in re.findall(r'^import "(.*)";', text, re.M):
                    self.assertTrue((self.root / name).is_file(), name)

    def test_generated_python_lives_beside_a_package_named_proto(self):
        into = self._generate(self.root, *(self.root / "tracecollect/v1").glob("*.proto"))
        (into / "proto").mkdir()
        (into / "proto/__init__.py").write_text("SOMEBODY_ELSES = True\n")
        program = f"DESCRIPTION = {str(self.root / 'feed.desc')!r}\n" + IMPORTS
        done = self.run_program(sys.executable, "-c", program,
                                env={**os.environ, "PYTHONPATH": f"{into}:{PACKAGES}", "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(done.out.strip(), "tracecollect.v1.FeedMessage "
                         "['tracecollect/v1/feed.proto', 'tracecollect/v1/report.proto']")

    def test_the_names_in_the_sources_compile_too(self):
        into = self._generate(SOURCE, SOURCE / "proto/feed.proto", SOURCE / "proto/report.proto")
        self.assertTrue((into / "proto/feed_pb2.py").is_file())
