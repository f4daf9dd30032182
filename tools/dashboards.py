#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dashboards.py [--check]: writes deploy/grafana/*.json and deploy/prometheus/*.yaml from the tables below; --check says
whether they are as written.

Grafana's JSON is long and repeats itself, so what differs between panels is kept here. tests/e2e/test_dashboards.py asks each query of a
real Prometheus that has scraped a real collector."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLLECTOR = 'job=~"$job"'
PROGRAM = 'job=~"$job",service=~"$service",instance=~"$instance"'
DOCS = "docs/OPERATIONS.md"

# A row of panels: (title, unit, description, [(query, legend)]); three a row on the screen.
FLEET = (
    ("What comes in", (
        ("Streams", "short", "Programs that are traced: known, and connected now.",
         ((f"tracecollect_streams{{{COLLECTOR}}}", "known"), (f"tracecollect_streams_live{{{COLLECTOR}}}", "connected"))),
        ("Trace bytes", "Bps", "What agents send, and what is in segment files afterwards.",
         ((f"rate(tracecollect_record_received_bytes_total{{{COLLECTOR}}}[$__rate_interval])", "received"),
          (f"rate(tracecollect_segment_bytes_total{{{COLLECTOR}}}[$__rate_interval])", "published"))),
        ("Acks and holds", "ops", "Acks sent; times that an agent was not read because the store was behind, or because of a limit.",
         ((f"rate(tracecollect_acks_sent_total{{{COLLECTOR}}}[$__rate_interval])", "acks"),
          (f"rate(tracecollect_holds_total{{{COLLECTOR}}}[$__rate_interval])", "held: store"),
          (f"rate(tracecollect_limit_holds_total{{{COLLECTOR}}}[$__rate_interval])", "held: limit"))),
    )),
    ("What is stored", (
        ("Archive", "bytes", "Size of the archive, and free space of its disk.",
         ((f"tracecollect_archive_bytes{{{COLLECTOR}}}", "archive"), (f"tracecollect_disk_free_bytes{{{COLLECTOR}}}", "free"))),
        ("Commit", "s", "Time of a commit of the log: on average, and the longest.",
         ((f"rate(tracecollect_commit_seconds_total{{{COLLECTOR}}}[$__rate_interval]) / (rate(tracecollect_commits_total{{{COLLECTOR}}}[$__rate_interval]) > 0)", "mean"),
          (f"tracecollect_commit_max_seconds{{{COLLECTOR}}}", "longest"))),
        ("Waits of the store", "short", "1: a part of the store waits for this. Log: nothing is acked meanwhile.",
         ((f"max by (part, reason) (tracecollect_store_waits{{{COLLECTOR}}})", "{{part}}: {{reason}}"), (f"max(tracecollect_store_failed{{{COLLECTOR}}})", "failed"))),
    )),
    ("What is analysed", (
        ("Events ordered", "ops", "Events a second, and those of generations that were thinned in an overload.",
         ((f"rate(tracecollect_events_ordered_total{{{COLLECTOR}}}[$__rate_interval])", "events"),
          (f"rate(tracecollect_events_thinned_total{{{COLLECTOR}}}[$__rate_interval])", "thinned"))),
        ("Generations", "ops", "Ordered; broken as written; archived without analysis.",
         ((f"rate(tracecollect_generations_ordered_total{{{COLLECTOR}}}[$__rate_interval])", "ordered"),
          (f"rate(tracecollect_generations_broken_total{{{COLLECTOR}}}[$__rate_interval])", "broken"),
          (f"rate(tracecollect_generations_left_out_total{{{COLLECTOR}}}[$__rate_interval])", "left out"))),
        ("Generations that wait", "short", "Stored and not yet ordered: the lag of reports.", ((f"tracecollect_generations_waiting{{{COLLECTOR}}}", "waiting"),)),
    )),
    ("The collector itself", (
        ("CPU", "percentunit", "Of one core.", ((f"rate(process_cpu_seconds_total{{{COLLECTOR}}}[$__rate_interval])", "CPU"),)),
        ("Memory", "bytes", "Memory in RAM, and that of ordering and analyses.",
         ((f"process_resident_memory_bytes{{{COLLECTOR}}}", "resident"), (f"tracecollect_analysis_bytes{{{COLLECTOR}}}", "analyses"))),
        ("Descriptors", "short", "Open files and connections, and their limit.",
         ((f"process_open_fds{{{COLLECTOR}}}", "open"), (f"process_max_fds{{{COLLECTOR}}}", "limit"))),
    )),
    ("Readers and certificates", (
        ("Live feed", "ops", "Messages published, and those dropped because there was no room.",
         ((f"rate(tracecollect_feed_messages_total{{{COLLECTOR}}}[$__rate_interval])", "published"),
          (f"rate(tracecollect_feed_dropped_total{{{COLLECTOR}}}[$__rate_interval])", "dropped"))),
        ("Alerts", "short", "Thresholds passed and findings, in the last hour.", ((f"increase(tracecollect_alerts_total{{{COLLECTOR}}}[1h])", "alerts"),)),
        ("Certificates expire in", "s", "The one that agents are shown, and the first authority.",
         ((f"tracecollect_certificate_expires_seconds{{{COLLECTOR}}} - time()", "server"), (f"tracecollect_authority_expires_seconds{{{COLLECTOR}}} - time()", "authority"))),
    )),
)


def quantiles(family, by=""):
    return ((f'{family}{{{PROGRAM},quantile="0.99"}}', ("{{" + by + "}} " if by else "") + "p99"),
            (f'{family}{{{PROGRAM},quantile="0.5"}}', ("{{" + by + "}} " if by else "") + "p50"))


SERVICE = (
    ("Latency", (
        ("Wait for a P", "s", "How long goroutines that could run waited for a P (report sched).", quantiles("trace_sched_latency_seconds")),
        ("Tasks", "s", "Latency of what the program calls work, by type (report tasks).", quantiles("trace_task_seconds", "type")),
        ("Regions", "s", "Parts of tasks (report regions).", quantiles("trace_region_seconds")),
    )),
    ("What holds up", (
        ("Waits by reason", "percentunit", "Seconds that goroutines waited, a second (report block).",
         ((f"sum by (reason) (rate(trace_block_seconds_total{{{PROGRAM}}}[$__rate_interval]))", "{{reason}}"),)),
        ("Contention", "s", "Waits for locks and channels (report contention).", quantiles("trace_contention_seconds")),
        ("System calls that lost their P", "s", "Blocked calls (report syscall).",
         ((f"sum(rate(trace_blocked_syscall_seconds_count{{{PROGRAM}}}[$__rate_interval]))", "calls a second"),) ),
    )),
    ("The world stops", (
        ("Stops", "percentunit", "Share of time in which the world stood still, by reason (report stw).",
         ((f"sum by (reason) (rate(trace_stw_seconds_sum{{{PROGRAM}}}[$__rate_interval]))", "{{reason}}"),)),
        ("Longest stops", "s", "The 99th percentile, by reason.", ((f'trace_stw_seconds{{{PROGRAM},quantile="0.99"}}', "{{reason}}"),)),
        ("Garbage collector", "percentunit", "Share of time in which it ran, and the least share that the program got in any 10 ms (report gc).",
         ((f"trace_gc_wall_share{{{PROGRAM}}}", "collects"), (f"trace_gc_mutator_10ms_share{{{PROGRAM}}}", "program, worst 10 ms"))),
    )),
    ("Resources", (
        ("Goroutines", "short", "By state (report goroutines).", ((f"sum by (state) (trace_goroutines{{{PROGRAM}}})", "{{state}}"),)),
        ("Heap", "bytes", "Size and goal (report heap).", ((f"trace_heap_bytes{{{PROGRAM}}}", "heap"), (f"trace_heap_goal_bytes{{{PROGRAM}}}", "goal"))),
        ("Ps", "percentunit", "Share of their time in which Ps ran goroutines (report procs).", ((f"trace_procs_busy_share{{{PROGRAM}}}", "busy"),)),
    )),
)


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": {"type": "prometheus", "uid": "${datasource}"}, "query": {"query": query, "refId": name},
            "definition": query, "includeAll": True, "multi": True, "allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "refresh": 2, "sort": 1,
            "hide": 0, "regex": "", "options": []}


def panel(number, x, y, title, unit, about, targets):
    return {"id": number, "type": "timeseries", "title": title, "description": about, "gridPos": {"h": 8, "w": 8, "x": x, "y": y},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"drawStyle": "line", "fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "spanNulls": False}},
                            "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}},
            "targets": [{"refId": chr(ord("A") + i), "datasource": {"type": "prometheus", "uid": "${datasource}"}, "expr": query, "legendFormat": legend, "range": True}
                        for i, (query, legend) in enumerate(targets)]}


def dashboard(uid, title, about, rows, variables):
    panels, number, y = [], 0, 0
    for name, of_row in rows:
        number += 1
        panels.append({"id": number, "type": "row", "title": name, "collapsed": False, "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}, "panels": []})
        y += 1
        for i, one in enumerate(of_row):
            number += 1
            panels.append(panel(number, 8 * i, y, *one))
        y += 8
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}, "hide": 0, "includeAll": False, "multi": False, "options": [],
              "refresh": 1, "regex": ""}
    return {"uid": uid, "title": title, "description": about, "tags": ["tracecollect"], "schemaVersion": 38, "version": 1, "editable": True, "graphTooltip": 1, "timezone": "",
            "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []}, "links": [], "templating": {"list": [source, *variables]}, "panels": panels}


# (name, query, for, severity, summary, description)
RULES = (
    ("collector", (
        ("TracecollectDown", 'up{job="tracecollect"} == 0', "2m", "critical", "No collector answers at {{ $labels.instance }}.",
         "Agents spool meanwhile, and lose the oldest generations when their spools are full."),
        ("TracecollectStoreFailed", "tracecollect_store_failed == 1", "0m", "critical", "The collector can store nothing.", "Its log says why; nothing is acked until it is started again."),
        ("TracecollectStoreWaits", "max by (instance, part, reason) (tracecollect_store_waits) == 1", "5m", "warning", "The store's {{ $labels.part }} waits for {{ $labels.reason }}.",
         "While the log waits, nothing is acked; while the archive waits, what is acked stays in the log."),
        ("TracecollectDiskFillsUp", "predict_linear(tracecollect_disk_free_bytes[6h], 86400) < 0", "30m", "warning", "The archive's disk is full within a day.",
         "Give it room, or let retention delete more: retention.age, retention.bytes."),
        ("TracecollectRetentionAtFloor", "tracecollect_retention_at_floor == 1", "5m", "critical", "The archive's disk is short, and nothing is left to delete.",
         "Something else fills the disk: make room. The newest hour and what triggers keep stay (retention.floor); below disk.free_min nothing more is acked."),
        ("TracecollectAnalysisBehind", "tracecollect_generations_waiting > 2 * tracecollect_streams_live + 100", "10m", "warning", "{{ $value }} generations wait for their analysis.",
         "Reports and alerts come late; nothing is lost. The collector has too little CPU."),
        ("TracecollectThins", "tracecollect_analysed_share < 1", "10m", "warning", "The collector on {{ $labels.instance }} thins generations",
         "It has too little CPU: reports are of a share of the events, which each of them states. Nothing stored is lost."),
        ("TracecollectGenerationsBroken", "increase(tracecollect_generations_broken_total[15m]) > 0", "0m", "warning", "Generations break a rule of the trace format.",
         "They are archived as they came; tracectl list names them with the reason."),
        ("TracecollectFeedDrops", "rate(tracecollect_feed_dropped_total[5m]) > 0", "10m", "warning", "The live feed drops messages.", "Subscribers see gaps; the archive does not. See feed.events_rate."),
        ("TracecollectReloadFailed", "increase(tracecollect_reloads_failed_total[1h]) > 0", "0m", "warning", "A reload failed: the old configuration or certificates are still in use.", "The log says what is wrong."),
    )),
    ("certificates", (
        ("TracecollectCertificateExpires", "tracecollect_certificate_expires_seconds - time() < 14 * 86400", "1h", "warning", "The collector's certificate expires in {{ $value | humanizeDuration }}.",
         "tracectl certs renew makes another; a reload takes it into use."),
        ("TracecollectAuthorityExpires", "tracecollect_authority_expires_seconds - time() < 60 * 86400", "1h", "warning", "A certificate authority expires in {{ $value | humanizeDuration }}.",
         "Every agent and reader needs the new one before."),
        ("TracecollectAgentCertificateExpires", "tracecollect_agent_certificate_expires_seconds > 0 and tracecollect_agent_certificate_expires_seconds - time() < 7 * 86400", "1h", "warning",
         "The certificate of a connected agent expires in {{ $value | humanizeDuration }}.", "The log names agents whose certificates expire."),
        ("TracecollectRevocationListOld", "tracecollect_revocation_next_update_seconds > 0 and tracecollect_revocation_next_update_seconds < time()", "1h", "warning",
         "A revocation list should have been replaced.", "Certificates taken back since are still accepted."),
    )),
    ("programs", (
        ("TracedWorldStops", "sum by (service, instance) (rate(trace_stw_seconds_sum[5m])) > 0.05", "10m", "warning",
         "The world of {{ $labels.service }}/{{ $labels.instance }} stands still {{ $value | humanizePercentage }} of the time.", "tracectl report stw says for which reasons and where."),
        ("TracedSchedulerLatency", 'trace_sched_latency_seconds{quantile="0.99"} > 0.1', "10m", "warning",
         "One in a hundred goroutines of {{ $labels.service }}/{{ $labels.instance }} waits {{ $value | humanizeDuration }} for a P.", "tracectl report sched says which; too few Ps, or too little CPU."),
        ("TracedGoroutinesGrow", "sum by (service, instance) (trace_goroutines) > 1000 and deriv(sum by (service, instance) (trace_goroutines)[1h:1m]) > 0.1", "1h", "warning",
         "{{ $labels.service }}/{{ $labels.instance }} has ever more goroutines.", "tracectl report leak says where they are created."),
        ("TracedCollectorBusy", "trace_gc_mutator_10ms_share < 0.2", "10m", "warning",
         "The garbage collector leaves {{ $labels.service }}/{{ $labels.instance }} {{ $value | humanizePercentage }} of some 10 ms.", "tracectl report gc says which goroutines have to help it."),
    )),
)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def rules():
    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Made by tools/dashboards.py: change the table there.", "groups:"]
    for group, alerts in RULES:
        lines += [f"  - name: tracecollect-{group}", "    rules:"]
        for name, query, duration, severity, summary, about in alerts:
            lines += [f"      - alert: {name}", f"        expr: {quoted(query)}", f"        for: {duration}", "        labels:", f"          severity: {severity}", "        annotations:",
                      f"          summary: {quoted(summary)}", f"          description: {quoted(about)}", f"          runbook: {DOCS}"]
    return "\n".join(lines) + "\n"


def files():
    job = variable("job", "Job", "label_values(tracecollect_build_info, job)")
    service = variable("service", "Service", 'label_values(trace_goroutines{job=~"$job"}, service)')
    instance = variable("instance", "Instance", 'label_values(trace_goroutines{job=~"$job",service=~"$service"}, instance)')
    fleet = dashboard("tracecollect-fleet", "tracecollect: the collector", "Streams, disk, analyses and certificates of tracecollectd.", FLEET, [job])
    programs = dashboard("tracecollect-service", "tracecollect: a traced service", "What the scheduler traces of a service say: latency, waits, stops, heap.", SERVICE, [job, service, instance])
    for one in (fleet, programs):
        yield ROOT / f"deploy/grafana/{one['uid']}.json", json.dumps(one, indent=1) + "\n"
    yield ROOT / "deploy/prometheus/tracecollect.rules.yaml", rules()


def main():
    wrong = []
    for path, text in files():
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                wrong.append(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in wrong:
        print(f"{path.relative_to(ROOT)} is not as tools/dashboards.py writes it: run it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
