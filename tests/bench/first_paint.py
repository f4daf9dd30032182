#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""first_paint.py URL ROUNDS: milliseconds from the navigation to the browser's first contentful paint, the
best of so many; each with an empty cache. Exit 1 where there is no browser."""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import browser
from harness import wait_until

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


class Folder:
    """The part of a test case that Browser uses."""

    def __init__(self):
        self.folder, self.processes = pathlib.Path(tempfile.mkdtemp(prefix="tc-paint-")), []


def main():
    if browser.find() is None:
        sys.exit("first_paint: no Chromium; tools/deps.sh browser installs it")
    place = Folder()
    page = browser.Browser(place)
    page.look(1920, 1080)
    page.command("Network.setCacheDisabled", cacheDisabled=True)
    best = min(paint(page, sys.argv[1]) for _ in range(int(sys.argv[2])))
    page.close()
    shutil.rmtree(place.folder, ignore_errors=True)
    print(f"{best:.0f}")


def paint(page, url):
    page.open("about:blank")
    page.open(url)
    return wait_until("the page is painted", lambda: page.ask(PAINT))


main()
