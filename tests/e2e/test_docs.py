# SPDX-License-Identifier: Apache-2.0
"""README and docs: links lead somewhere, command lines name verbs and options that exist, and C code compiles."""
import re
import subprocess
import unittest

from harness import SOURCE, Case

PAGES = sorted([SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "SECURITY.md", SOURCE / "MAINTAINERS.md", *(SOURCE / "docs").rglob("*.md")])
GUIDES = [SOURCE / "README.md", *sorted((SOURCE / "docs/guide").glob("*.md"))]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
SOURCES = [path for top in ("agent", "collector", "lib", "proto", "tools") for path in sorted((SOURCE / top).rglob("*.[ch]"))]
COMMENT = re.compile(r"(?s)/\*.*?\*/|//[^\n]*")
FILE = re.compile(r"(?<![\w/.<-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:c|h|def|py|sh))\b")
EXAMPLES = {"a.c", "app.c", "job.h", "more.c", "http_page_files.h"}  # a user's files; made by the build
# The names that C code of the guides takes for granted, and where its statements stand.
AROUND = """
#include <pthread.h>
#include <stdbool.h>
#include <traceagent.h>
#include <unistd.h>
static char buffer[64];
static int fd, n;
static pthread_mutex_t lock;
static const void *bytes;
static void serve(void) {}
"""


def anchors(page):
    """Returns the anchors of a page's headings, as the usual Markdown renderers make them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}


def indented(page):
    """The lines of a page's indented blocks: command lines, and what programs print."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    return [line.strip() for line in re.findall(r"^    (.*)$", text, re.M)]


class Docs(Case):
    def test_links_lead_somewhere(self):
        count = 0
        for page in PAGES:
            for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
                goal = (page.parent / target).resolve() if target else page
                self.assertTrue(goal.exists(), f"{page.name}: there is no {target}")
                if anchor:
                    self.assertIn(anchor, anchors(goal), f"{page.name}: {target} has no such heading")
                count += 1
        self.assertGreater(count, 50)

    def test_command_lines_name_verbs_and_options_that_exist(self):
        helps, count = {}, 0
        for page in PAGES:
            for verb, rest in re.findall(r"\btracectl ([a-z]+)\b([^`|&;)#\n]*)", "\n".join(indented(page))):
                if verb not in helps:
                    done = self.tracectl("help", verb, expect=None)
                    self.assertEqual(done.returncode, 0, f"{page.name}: tracectl {verb}: {done.err}")
                    helps[verb] = set(OPTION.findall(done.out))
                for option in OPTION.findall(rest):
                    self.assertIn(option, helps[verb], f"{page.name}: tracectl {verb}{rest}")
                count += 1
        self.assertGreater(count, 30)

    def test_comments_name_files_that_exist(self):
        paths = [str(path.relative_to(SOURCE)) for top in ("agent", "cmake", "collector", "deploy", "docs", "examples", "lib", "proto", "tests", "tools")
                 for path in (SOURCE / top).rglob("*") if path.is_file()]
        names = {path.rsplit("/", 1)[-1] for path in paths} | EXAMPLES
        count = 0
        for source in SOURCES:
            for comment in COMMENT.findall(source.read_text()):
                for name in FILE.findall(comment):
                    if "/" in name and name.split("/")[0] in ("sys", "linux", "openssl", "nng", "criterion", "elfutils"):
                        continue  # a header of the system
                    exists = any(("/" + path).endswith("/" + name) for path in paths) if "/" in name else name in names
                    self.assertTrue(exists, f"{source.relative_to(SOURCE)} names {name}, which is not there")
                    count += 1
        self.assertGreater(count, 200)

    def test_the_guide_says_when_a_log_serves_and_when_an_experiment(self):
        said = (SOURCE / "docs/guide/go-further.md").read_text().split("## Events of your own")[1].split("\n## ")[0]
        self.assertRegex(said, r"(?s)thousands a second.*\*experiment\*")
        self.assertRegex(said, r"a few\s+events a second, `ta_log\(\)` is the easy way")

    def test_readme_asks_what_the_library_lacks(self):
        said = " ".join((SOURCE / "README.md").read_text().split())
        self.assertRegex(said, r"The library API \(.*`libtraceonline`.*\) is young: tell us what your analysis needs")

    def test_c_code_of_the_guides_compiles(self):
        count = 0
        for page in GUIDES:
            for code in re.findall(r"(?ms)^```c\n(.*?)^```$", page.read_text()):
                if "//trace:event" in code:
                    continue  # test_points builds it with the header that is made of it
                program = AROUND + (code if "int main" in code else f"int main(void) {{\n{code}\nreturn 0;\n}}\n")
                done = subprocess.run(["cc", "-std=gnu11", "-Wall", "-Werror=implicit-function-declaration", "-fsyntax-only",
                                       "-I", SOURCE / "agent/include", "-x", "c", "-"], input=program, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{page.name}:\n{code}\n{done.stderr}")
                count += 1
        self.assertGreater(count, 2)


if __name__ == "__main__":
    unittest.main()
