# SPDX-License-Identifier: Apache-2.0
"""The dashboards and rules of deploy/: as they are made, well formed, and each query of theirs answered by a real Prometheus that has scraped a real collector."""
import json
import os
import re
import shutil
import unittest
import urllib.parse
import urllib.request

from harness import SANITIZE, SOURCE, Case, Collector, wait_until

DASHBOARDS = sorted((SOURCE / "deploy/grafana").glob("*.json"))
RULES = SOURCE / "deploy/prometheus/tracecollect.rules.yaml"


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


class Scraped(Case):
    def collect(self):
        collector = Collector(self)
        for name in ("g26-gens", "g26-annot"):
            collector.send(self.trace(name), "shop", name)
        wait_until("all is ordered", lambda: collector.json_lines("report", "stw") != [] and len(collector.json_lines("report", "tasks")) == 2)
        return collector


class Dashboards(Scraped):
    def test_they_are_as_they_are_made(self):
        self.run_program(SOURCE / "tools/dashboards.py", "--check")
        self.assertEqual(len(DASHBOARDS), 2)

    def test_they_are_well_formed(self):
        """Grafana's rules for a dashboard (schemaVersion 38): ids, places on a grid of 24 columns, sources, queries, variables."""
        for path in DASHBOARDS:
            dashboard = json.loads(path.read_text())
            self.assertEqual(dashboard["uid"], path.stem)
            self.assertLessEqual({"title", "tags", "time", "refresh", "templating", "panels", "schemaVersion"}, set(dashboard))
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            taken = set()
            for panel in dashboard["panels"]:
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken, panel["title"])
                taken |= cells
            variables = {variable["name"] for variable in dashboard["templating"]["list"]}
            for panel in panels(dashboard):
                self.assertTrue(panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"])
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
                self.assertEqual([target["refId"] for target in panel["targets"]], [chr(65 + i) for i in range(len(panel["targets"]))])
                for target in panel["targets"]:
                    self.assertLessEqual(set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}, variables)

    def test_metrics_that_they_name_are_there(self):
        collector = self.collect()
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics") as answer:
            families = set(re.findall(r"(?m)^# TYPE (\w+)", answer.read().decode()))
        text = RULES.read_text() + "".join(path.read_text() for path in DASHBOARDS)
        for name in set(re.findall(r"\b((?:tracecollect|trace|process)_\w+?)(?:_sum|_count)?(?=[{\[ )])", text)):
            self.assertIn(name, families)
        self.assertEqual(collector.stop(), 0)


@unittest.skipIf(SANITIZE, "the queries are the same")
class Prometheus(Scraped):
    def setUp(self):
        super().setUp()
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            if os.environ.get("CI"):
                self.fail("no prometheus here: tools/deps.sh installs it under CI")
            self.skipTest("no prometheus here")

    def get(self, path, **query):
        with urllib.request.urlopen(f"http://{self.address}{path}?{urllib.parse.urlencode(query)}") as answer:
            return json.load(answer)["data"]

    def start(self, collector):
        """At a port of its own, with two scrapes a second; ends with the case."""
        config = self.folder / "prometheus.yml"
        config.write_text(f"global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\nrule_files: [{RULES}]\nscrape_configs:\n"
                          f"  - {{job_name: tracecollect, honor_labels: true, static_configs: [{{targets: ['{collector.ready['http']}']}}]}}\n")
        self.spawn("prometheus", "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/tsdb", "--web.listen-address=127.0.0.1:0")
        wait_until("prometheus listens", lambda: re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self.log("prometheus")))
        self.address = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self.log("prometheus")).group(1)
        wait_until("it has scraped", lambda: self.is_scraped())

    def is_scraped(self):
        try:
            result = self.get("/api/v1/query", query="count_over_time(tracecollect_streams[1m])")["result"]
        except OSError:
            return False
        return bool(result) and int(result[0]["value"][1]) >= 4

    def test_each_query_is_answered(self):
        self.run_program("promtool", "check", "rules", RULES)
        collector = self.collect()
        self.start(collector)
        asked = 0
        for path in DASHBOARDS:
            for panel in panels(json.loads(path.read_text())):
                for target in panel["targets"]:
                    query = re.sub(r"\$(job|service|instance)", ".*", target["expr"].replace("$__rate_interval", "10s"))
                    # Commits happen only while data arrives.
                    if "commits_total" in query:
                        continue
                    # A scrape that takes too long on a busy machine leaves nothing to answer with until the next.
                    wait_until(f"{panel['title']} is answered: {query}", lambda query=query: self.get("/api/v1/query", query=query)["result"])
                    asked += 1
        self.assertGreater(asked, 40)
        wait_until("the rules are asked", lambda: all(rule["lastEvaluation"] > "0002" for rule in self.rules()))
        self.assertEqual({rule["health"] for rule in self.rules()}, {"ok"})
        self.assertEqual(len(self.rules()), RULES.read_text().count("- alert:"))
        firing = {rule["name"] for rule in self.rules() if rule["state"] == "firing"}
        self.assertEqual(firing, set())
        self.assertEqual(collector.stop(), 0)
        wait_until("a collector that has gone is an alert", lambda: any(rule["name"] == "TracecollectDown" and rule["state"] == "pending" for rule in self.rules()))

    def rules(self):
        return [rule for group in self.get("/api/v1/rules")["groups"] for rule in group["rules"]]
