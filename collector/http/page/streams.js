// SPDX-License-Identifier: Apache-2.0
// The table of streams: a row a stream, its service named once a group.
import { ago, bytes, count, counted, megabytes, moment, short } from "/format.js";
import { showSegments } from "/segments.js";
import { byId, element, KeyedList, serviceAddress, setData, setFigure, setText, timelineLink } from "/view.js";

const LOOK_BACK_NS = 60e9; // segments behind a row: of its last minute
const ROWS = 50; // a browser lays a table out as a whole: with each overview
const HIDDEN_TURNS = 5; // a row out of sight is brought up to date every so many overviews, and when it comes into sight
const WORDS = { live: "live", waiting: "waiting", closed: "closed", exec: "ran another program", unclean: "ended abruptly" };

// name of the figure, how it is read, and the words a narrow screen shows before it
const FIGURES = [
  ["bytes_rate", megabytes, "MB/s"],
  ["events_rate", (n) => short(Math.round(n)), "Events/s"],
  ["events", short, "Events"],
  ["bytes", bytes, "Size"],
  ["generations", count, "Generations"],
  ["broken", count, "Broken"],
  ["lost_generations", count, "Lost"],
  ["blocked_busy", count, "Blocked"],
];

function makeRow(stream) {
  let latest = stream;
  const button = element("button", { type: "button", className: "plain link" }, "segments");
  const cell = (className, label) => {
    const node = element("td", { className });
    if (label) node.dataset.label = label;
    return node;
  };
  const state = element("span", { className: "state" });
  const figures = new Map(FIGURES.map(([name, , label]) => [name, cell(`number figure-${name}`, label)]));
  const last = cell("last", "Last data");
  const node = element("tr", {}, element("th", { scope: "row" }, element("a", { className: "link", href: serviceAddress(stream.service) }, stream.service)), element("td", { className: "instance" }, element("a", { className: "link", href: serviceAddress(stream.service, stream.instance) }, stream.instance)), element("td", { className: "state-cell" }, state), ...figures.values(), last, element("td", { className: "go" }, timelineLink(stream.stream), button));

  node.dataset.stream = stream.stream;
  button.setAttribute("aria-label", `segments of ${stream.service}, ${stream.instance}`);
  button.addEventListener("click", () =>
    showSegments(`Latest segments of ${latest.service} / ${latest.instance}`, { service: latest.service, instance: latest.instance, from_ns: latest.newest_wall_ns - LOOK_BACK_NS, until_ns: latest.newest_wall_ns }),
  );
  node.update = (s, now) => {
    latest = s;
    setText(state, WORDS[s.state] ?? s.state);
    setData(state, "state", s.state);
    for (const [name, read] of FIGURES) setFigure(figures.get(name), s[name], read(s[name]));
    figures.get("lost_generations").classList.toggle("bad", s.lost_generations > 0);
    figures.get("lost_generations").title = s.lost_generations > 0 ? s.last_loss : "";
    figures.get("broken").classList.toggle("bad", s.broken > 0);
    figures.get("broken").title = s.broken > 0 ? "generations that break a rule of the trace format; they are archived as they came" : "";
    figures.get("blocked_busy").classList.toggle("warn", s.blocked_busy > 0);
    setText(last, s.last_wall_ns ? ago(s.last_wall_ns, now) : "–");
    if (s.last_wall_ns) last.title = moment(s.last_wall_ns);
  };
  sight.observe(node);
  return node;
}

// Rows know whether they can be seen: of hundreds of streams a screen shows a few.
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      target.hiddenTurns = isIntersecting ? null : 0;
      if (isIntersecting) target.update(...target.latest);
    }
  },
  { rootMargin: "300px" },
);

function updateRow(node, stream, now) {
  node.latest = [stream, now];
  if (node.hiddenTurns != null && ++node.hiddenTurns % HIDDEN_TURNS !== 0) return;
  node.update(stream, now);
}

const byText = new Intl.Collator("en", { numeric: true }).compare;
const byName = (a, b) => (a.state !== "live") - (b.state !== "live") || byText(a.service, b.service) || byText(a.instance, b.instance) || b.first_wall_ns - a.first_wall_ns;

const byKey = (key, descending) => (a, b) => {
  const order = typeof a[key] === "string" ? byText(a[key], b[key]) : a[key] - b[key];
  return (descending ? -order : order) || byName(a, b);
};

export class Streams {
  // sorted() hears of each click on a head of the table.
  constructor(sorted) {
    this.now = 0;
    this.sorted = sorted;
    this.sort = "";
    this.descending = false;
    this.whole = false;
    byId("streams-whole").addEventListener("click", () => {
      this.whole = !this.whole;
      sorted();
    });
    this.heads = [...document.querySelectorAll("#stream-rows th[data-sort]")];
    for (const head of this.heads) {
      const button = element("button", { type: "button", className: "plain sort" }, head.textContent);
      button.addEventListener("click", () => this.choose(head.dataset.sort));
      head.replaceChildren(button);
    }
    this.list = new KeyedList(document.querySelector("#stream-rows tbody"), (s) => s.stream, makeRow, (node, s) => updateRow(node, s, this.now));
  }

  // A first click sorts figures from the largest and names from A, a second the other way, a third as it was.
  choose(key) {
    const fromLargest = !["service", "instance", "state"].includes(key);
    if (this.sort !== key) this.orderBy(key, fromLargest);
    else if (this.descending === fromLargest) this.orderBy(key, !fromLargest);
    else this.orderBy("", false);
    this.sorted();
  }

  orderBy(key, descending) {
    this.sort = this.heads.some((head) => head.dataset.sort === key) ? key : "";
    this.descending = descending;
    for (const head of this.heads)
      if (head.dataset.sort === this.sort) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
  }

  show(streams, overview, filter) {
    this.now = overview.wall_ns;
    const all = [...streams].sort(this.sort ? byKey(this.sort, this.descending) : byName);
    this.list.show(this.whole ? all : all.slice(0, ROWS));
    byId("streams-whole").hidden = all.length <= ROWS;
    setText(byId("streams-whole"), this.whole ? `${ROWS} rows` : `all ${count(all.length)} rows`);
    byId("stream-rows").hidden = streams.length === 0;
    byId("streams-empty").hidden = streams.length > 0;
    setText(byId("streams-empty"), overview.streams.length === 0 ? "No stream yet. An agent connects to the address in the ready file; see the README." : `No service or instance has "${filter}" in its name.`);
    const services = new Set(streams.map((s) => s.service)).size;
    const beyond = overview.streams_total - overview.streams.length;
    setText(byId("streams-note"), `${counted(streams.length, "stream")}, ${counted(services, "service")}${beyond > 0 ? `; ${count(beyond)} older ones are not listed` : ""}`);
  }
}
