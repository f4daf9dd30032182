// SPDX-License-Identifier: Apache-2.0
// The page: overviews in, figures out.
import { readAddress, writeAddress } from "/address.js";
import { Calls } from "/calls.js";
import { Chart, COLOURS } from "/chart.js";
import { Findings } from "/findings.js";
import { bytes, clock, count, duration, moment, rate, short } from "/format.js";
import { Live } from "/live.js";
import { Model } from "/model.js";
import { Reports } from "/reports.js";
import { prepareSegments, showSegments } from "/segments.js";
import { Streams } from "/streams.js";
import { Summary } from "/summary.js";
import { Triggers } from "/triggers.js";
import { byId, element, KeyedList, setData, setFigure, setText } from "/view.js";

const model = new Model();
let connection = "waiting";
const streams = new Streams(chosen);
const calls = new Calls();
const summary = new Summary();
const findings = new Findings();
const reports = new Reports(chosen);
const chart = new Chart(
  byId("chart"),
  (from, until) => showSegments("Segments from that second", { from_ns: from * 1e9, until_ns: until * 1e9, arrived: true }),
  (text) => setText(byId("readout"), text),
);

/* --- the table of causes --- */

// The files that hold the latest stop by this cause: of its stream, or of whatever ran since it began.
function showCause(cause) {
  const stream = model.overview.streams.find((s) => s.stream === cause.seen?.stream) ?? model.overview.streams.find((s) => s.stw.some((stop) => stop.id === cause.id));
  const at = cause.seen?.at ?? stream.last_wall_ns;
  showSegments(`Latest stop by ${cause.reason}`, { service: stream.service, instance: stream.instance, from_ns: at - 1e9, until_ns: at, arrived: true });
}

function makeCause() {
  const node = element("tr", {}, element("th", { scope: "row" }, element("span", { className: "swatch" }), element("span", { className: "reason" })));
  for (const name of ["last_ns", "count", "total_ns", "max_ns", "p99_ns"]) node.append(element("td", { className: `number figure-${name}` }));
  const button = element("button", { type: "button", className: "plain link" }, "segments");
  button.addEventListener("click", () => showCause(node.latest));
  node.append(element("td", { className: "go" }, button));
  return node;
}

function updateCause(node, { cause, colour }) {
  node.latest = cause;
  setData(node, "cause", cause.id);
  setText(node.querySelector(".reason"), cause.reason);
  setData(node.querySelector(".swatch"), "colour", colour);
  for (const name of ["last_ns", "total_ns", "max_ns", "p99_ns"]) setFigure(node.querySelector(`.figure-${name}`), cause[name], duration(cause[name]));
  setFigure(node.querySelector(".figure-count"), cause.count, count(cause.count));
}

const causeRows = new KeyedList(document.querySelector("#stops tbody"), (c) => c.cause.id, makeCause, updateCause);

/* --- all of it --- */

function sum(list, name) {
  return list.reduce((total, item) => total + item[name], 0);
}

function showTiles(shown, causes, blockedNow) {
  const live = shown.filter((s) => s.state === "live");
  const lost = sum(shown, "lost_generations");
  const stopped = sum(causes, "last_ns");
  const o = model.overview;

  setFigure(byId("tile-live"), live.length, count(live.length));
  setText(byId("note-live"), `of ${count(shown.length)} known`);
  setFigure(byId("tile-bytes"), sum(shown, "bytes_rate"), rate(sum(shown, "bytes_rate")));
  setText(byId("note-bytes"), `${bytes(o.archive_bytes)} archived, ${bytes(o.disk_free_bytes)} free`);
  setFigure(byId("tile-events"), sum(shown, "events_rate"), `${short(Math.round(sum(shown, "events_rate")))}/s`);
  setText(byId("note-events"), `${short(sum(shown, "events"))} ordered so far`);
  const idle = sum(shown, "blocked_idle");
  setFigure(byId("tile-blocked"), blockedNow, count(blockedNow));
  byId("tile-blocked").classList.toggle("warn", blockedNow > 0);
  setText(byId("note-blocked"), idle > 0 ? `and ${count(idle)} that wait for signals` : "system calls");
  setFigure(byId("tile-stopped"), stopped, duration(stopped));
  setText(byId("note-stopped"), "in the last 10 s, all programs");
  setFigure(byId("tile-lost"), lost, count(lost));
  byId("tile-lost").classList.toggle("bad", lost > 0);
  const loser = shown.find((s) => s.lost_generations > 0 && s.last_loss !== "");
  const why = loser ? `; ${loser.service} ${loser.instance}: ${loser.last_loss}` : "";
  setText(byId("note-lost"), lost > 0 ? `${bytes(sum(shown, "lost_bytes"))} never arrived${why}` : "nothing is missing");
}

function show() {
  const o = model.overview;
  if (o === null || document.hidden) return;
  model.show(byId("filter").value.trim().toLowerCase());
  const shown = o.streams.filter((s) => model.fits(s.name));
  const blocked = o.blocked.filter((c) => model.fits(`${c.service} ${c.instance}`.toLowerCase()));
  const blockedNow = sum(shown, "blocked_busy");
  const causes = model.causes(shown);

  showTiles(shown, causes, blockedNow);
  const filter = byId("filter").value.trim();
  const none = o.streams.length === 0 ? "No stream yet." : shown.length === 0 ? `No service or instance has "${filter}" in its name.` : "";
  streams.show(shown, o, filter);
  reports.show(shown, none);
  calls.show(blocked, sum(shown, "blocked_now"), none || "No system call is blocked.");
  calls.showAlerts((name) => model.fits(name));
  summary.choose((name) => model.fits(name));
  findings.choose((name) => model.fits(name));
  causeRows.show(causes.map((cause, i) => ({ cause, colour: i % COLOURS })));
  byId("stops").hidden = causes.length === 0;
  byId("stops-empty").hidden = causes.length > 0;
  setText(byId("stops-empty"), none || "No stop-the-world pause yet.");
  chart.show(causes, model.series(causes));
  showHealth();
  setText(byId("about"), `tracecollectd ${o.version}, since ${moment(o.started_wall_ns)}, acks are ${o.level}`);
}

// What was said last is of no worth when the collector is silent.
function showHealth() {
  const health = connection === "live" ? model.overview?.health : undefined;
  setText(byId("health"), health === "ok" ? "healthy" : (health ?? "health unknown"));
  setData(byId("health"), "state", health === undefined ? "waiting" : health === "ok" ? "good" : "bad");
}

function showState(state) {
  const words = { live: "live", reconnecting: "reconnecting", silent: "no news" };
  const since = state !== "live" && model.overview !== null ? ` since ${clock(model.overview.wall_ns)}` : "";
  connection = state;
  setText(byId("connection"), words[state] + since);
  setData(byId("connection"), "state", state === "live" ? "good" : "bad");
  setData(document.body, "news", state === "live" ? "good" : model.overview === null ? "none" : "old");
  showHealth();
}

function chosen() {
  writeAddress({ filter: byId("filter").value.trim(), sort: streams.sort, descending: streams.descending, ...reports.chosen });
  show();
}

// Also when a link to this page is opened in it, or the reader goes back.
function takeAddress() {
  const { filter, sort, descending, report, of, window } = readAddress();
  byId("filter").value = filter;
  streams.orderBy(sort, descending);
  reports.choose({ report, of, window });
  show();
}

prepareSegments();
takeAddress();
new Triggers();
byId("filter").addEventListener("input", chosen);
addEventListener("hashchange", takeAddress);
document.addEventListener("visibilitychange", show);
new Live({
  history: (history) => model.remember(history),
  overview(overview) {
    model.take(overview);
    show();
  },
  alert(message) {
    calls.takeAlerts(message);
    calls.showAlerts((name) => model.fits(name)); // there may be many before the next overview
  },
  gap: (gap) => calls.missed(gap.lost), // overviews are each whole; of alerts one may be missing
  state: showState,
});
