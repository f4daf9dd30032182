// SPDX-License-Identifier: Apache-2.0
// All reports of a service, summed, or of one of its instances: now, at a moment that was kept, and how they went.
// /service/NAME/INSTANCE?last=24h&at=NANOSECONDS
import { askJson } from "/ask.js";
import { Findings } from "/findings.js";
import { moment } from "/format.js";
import { Kind } from "/service_kind.js";
import { Summary } from "/summary.js";
import { byId, element, serviceAddress, setData, setText } from "/view.js";

const SECONDS = { "1h": 3600, "24h": 86400, "7d": 7 * 86400, "30d": 30 * 86400, "90d": 90 * 86400 };
const STEPS = 1000; // of the slider
const WINDOW = "1m"; // of what is live
const TURN_MS = 1000;
const FIRST = ["tasks", "regions", "contention", "sched", "syscall"]; // what users of the service feel

const [, , service = "", instance = ""] = location.pathname.split("/").map(decodeURIComponent);
const asked = new URLSearchParams(location.search);
const chosen = { instance, last: asked.get("last") in SECONDS ? asked.get("last") : "24h", at: /^\d+$/.test(asked.get("at") ?? "") ? Number(asked.get("at")) : null };
const kinds = [];
let colours = new Map(); // stream -> number

function writeAddress() {
  const query = new URLSearchParams({ last: chosen.last, ...(chosen.at === null ? {} : { at: BigInt(Math.round(chosen.at)) }) });
  history.replaceState(null, "", `${serviceAddress(service, chosen.instance)}?${query}`);
}

// What each kind asks by.
function now() {
  return {
    query: { service, ...(chosen.instance ? { instance: chosen.instance } : {}) },
    window: WINDOW,
    last: SECONDS[chosen.last],
    at: chosen.at,
    colourOf: (stream) => colours.get(stream) ?? 7,
  };
}

function show() {
  setText(byId("name"), chosen.instance ? `${service} / ${chosen.instance}` : service);
  document.title = `${service} · tracecollect`;
  byId("last").value = chosen.last;
  byId("instance").value = chosen.instance;
  setText(byId("at"), chosen.at === null ? "now" : moment(chosen.at));
  byId("now").hidden = chosen.at === null;
  const until = Date.now() * 1e6;
  const part = chosen.at === null ? 1 : 1 - (until - chosen.at) / (SECONDS[chosen.last] * 1e9);
  byId("moment").max = STEPS;
  byId("moment").value = Math.round(Math.max(0, part) * STEPS);
}

function choose(change) {
  Object.assign(chosen, change);
  writeAddress();
  show();
  for (const kind of kinds) kind.again();
  summary.again();
}

function pickMoment(value) {
  choose({ at: value >= STEPS ? null : Date.now() * 1e6 - (1 - value / STEPS) * SECONDS[chosen.last] * 1e9 });
}

function fail(why) {
  setText(byId("fault"), why);
  byId("fault").hidden = false;
  setText(byId("state"), "no news");
  setData(byId("state"), "state", "bad");
}

const name = (s) => (s.state === "live" ? s.instance : `${s.instance}, ${s.state}`);

// Each instance has the stream that is live, or its last one.
function showStreams(streams) {
  const sorted = [...streams].sort((a, b) => (a.state !== "live") - (b.state !== "live") || b.last_wall_ns - a.last_wall_ns);
  const instances = new Map();
  for (const s of sorted) if (!instances.has(s.instance)) instances.set(s.instance, s);
  const listed = [...instances.values()].sort((a, b) => a.instance.localeCompare(b.instance, "en", { numeric: true }));
  colours = new Map(streams.map((s) => [s.stream, listed.findIndex((l) => l.instance === s.instance)]));
  const options = [["", `all ${listed.length}`], ...listed.map((s) => [s.instance, name(s)])];
  const said = JSON.stringify(options);
  if (byId("instance").dataset.said === said) return;
  byId("instance").dataset.said = said;
  byId("instance").replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  byId("instance").value = chosen.instance;
  byId("streams").replaceChildren(...listed.map((s, i) => {
    const swatch = element("span", { className: "swatch" });
    setData(swatch, "colour", i % 8);
    return element("a", { href: `/timeline/${s.stream}`, title: "its newest generation on the timeline" }, swatch, name(s));
  }));
}

async function refresh() {
  try {
    const { streams } = await askJson("/api/v1/streams");
    const ours = streams.filter((s) => s.service === service);
    if (ours.length === 0) throw new Error(`No stream of a service ${service} is known.`);
    showStreams(ours);
    if (kinds.length === 0) await makeKinds();
    const live = ours.filter((s) => s.state === "live").length;
    setText(byId("state"), live > 0 ? `${live} live` : "none live");
    setData(byId("state"), "state", live > 0 ? "good" : "waiting");
    byId("fault").hidden = true;
    setData(document.body, "news", "good");
  } catch (error) {
    fail(error.message);
    setData(document.body, "news", "old");
  }
}

async function makeKinds() {
  const { reports } = await askJson("/api/v1/reports");
  const place = ({ name: kind }) => (FIRST.includes(kind) ? FIRST.indexOf(kind) : FIRST.length);
  for (const schema of reports.sort((a, b) => place(a) - place(b))) kinds.push(new Kind(schema, now, (at) => choose({ at }), fail));
  byId("kinds").replaceChildren(...kinds.map((kind) => kind.node));
  byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView(); // the browser looked for it before it was there
}

byId("instance").addEventListener("change", (event) => choose({ instance: event.target.value }));
byId("last").addEventListener("change", (event) => choose({ last: event.target.value }));
byId("moment").addEventListener("change", (event) => pickMoment(Number(event.target.value)));
byId("now").addEventListener("click", () => choose({ at: null }));
const summary = new Summary(() => now().query);
show();
new Findings({ service });
await refresh();
setInterval(() => {
  if (document.hidden) return;
  for (const kind of kinds) kind.refresh();
}, TURN_MS);
setInterval(() => {
  if (!document.hidden) refresh();
}, 10 * TURN_MS);
