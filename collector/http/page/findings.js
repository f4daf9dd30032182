// SPDX-License-Identifier: Apache-2.0
// What is wrong with services, and what was in the last day: one entry for each cause, however many instances show it.
import { askJson } from "/ask.js";
import { ago, count, duration, moment } from "/format.js";
import { byId, copyButton, element, KeyedList, serviceAddress, setData, setText, whyLink } from "/view.js";

const EVERY_MS = 5000;
const PAST_MS = 24 * 3600 * 1000;
const SHOWN = 20; // of each list

const nanoseconds = (time) => Date.parse(time) * 1e6;

// The sentence of a C program's finding is in its own words, and so is the peak.
function peakOf({ peak, peak_unit: unit, words }) {
  const who = /\d threads?\b/.test(words) ? "threads" : "goroutines";
  return unit === "ns" ? `, at most ${duration(peak)}` : unit === "goroutines" ? `, at most ${count(peak)} ${who}` : "";
}

function story(f) {
  const times = f.count === 1 ? "" : `, ${count(f.count)} times`;
  const last = nanoseconds(f.last_at);
  const seen = f.open ? `seen ${ago(last, Date.now() * 1e6)}` : `ended ${moment(last)}`;
  const muted = f.muted_until ? `; muted until ${moment(nanoseconds(f.muted_until))}: ${f.mute_reason}` : "";
  return `since ${moment(nanoseconds(f.began_at))}, ${seen}${times}${peakOf(f)}; ${f.instances.join(", ")}${muted}`;
}

// words and story change while it lasts, the part of the trace when it begins again
function make() {
  const parts = { age: element("strong", { className: "age" }), who: element("a", { className: "who" }), buttons: element("span", { className: "buttons" }), what: element("span", { className: "what" }), story: element("span", { className: "muted" }) };
  const node = element("li", { className: "call finding" }, element("div", { className: "call-head" }, ...Object.values(parts)));
  node.parts = parts;
  return node;
}

function update(node, f) {
  const { age, who, buttons, what, story: told } = node.parts;
  setText(age, f.kind.replaceAll("_", " "));
  setText(who, f.service);
  who.href = serviceAddress(f.service);
  setText(what, f.words);
  setText(told, story(f));
  setData(node, "open", f.open);
  setData(node, "finding", f.id);
  const trace = `${f.fetch} ${f.expired}`;
  if (buttons.dataset.trace === trace) return;
  buttons.dataset.trace = trace;
  const link = f.link ? [element("a", { className: "link", href: f.link }, "timeline"), ...(f.why ? [whyLink(f.why)] : [])] : [];
  buttons.replaceChildren(...(f.expired ? [element("span", { className: "muted" }, "its trace has expired")] : [...link, copyButton("copy fetch command", f.fetch)]));
}

// What the card has: on each page the same.
function fill(card) {
  const list = (id) => element("ol", { id, className: "calls" });
  const head = element("div", { className: "card-head" }, element("h2", { id: "findings-title" }, "Findings"), element("p", { className: "readout", id: "findings-note" }));
  card.append(head, list("findings-open"), element("details", { id: "findings-past", hidden: true }, element("summary", { id: "findings-past-note" }), list("findings-past-list")));
}

export class Findings {
  // query: { service } or none; an element with the id "findings" is its card
  constructor(query = {}) {
    Object.assign(this, { query, all: [], fits: () => true });
    fill(byId("findings"));
    const list = (id) => new KeyedList(byId(id), (f) => f.id, make, update);
    this.open = list("findings-open");
    this.past = list("findings-past-list");
    this.ask();
    setInterval(() => document.hidden || this.ask(), EVERY_MS);
  }

  async ask() {
    const since = new Date(Date.now() - PAST_MS).toISOString();
    const [open, past] = await Promise.all([askJson("/api/v1/findings", { ...this.query, open: 1 }), askJson("/api/v1/findings", { ...this.query, since })]).catch(() => []);
    if (open === undefined) return; // the top of the page says that the collector is away
    this.all = [...open.findings, ...past.findings.filter((f) => !f.open)];
    this.show();
  }

  // fits: takes the text of the filter
  choose(fits) {
    this.fits = fits;
    this.show();
  }

  show() {
    const shown = this.all.filter((f) => this.fits(`${f.service} ${f.instances.join(" ")}`.toLowerCase()));
    const isNow = (f) => f.open && !f.muted_until;
    const now = shown.filter(isNow);
    const past = shown.filter((f) => !isNow(f));
    this.open.show(now.slice(0, SHOWN));
    this.past.show(past.slice(0, SHOWN));
    byId("findings").hidden = shown.length === 0;
    byId("findings-past").hidden = past.length === 0;
    setText(byId("findings-note"), now.length === 0 ? "nothing is wrong now" : now.length > SHOWN ? `${SHOWN} of ${count(now.length)}; tracectl findings` : "tracectl findings");
    setText(byId("findings-past-note"), `Ended in the last day, or muted: ${count(past.length)}`);
  }
}
