// SPDX-License-Identifier: Apache-2.0
// What stands out, in the sentences of `tracectl report`, the most important first.
import { askJson } from "/ask.js";
import { count, moment } from "/format.js";
import { byId, copyButton, element, KeyedList, serviceAddress, setData, setText } from "/view.js";

const EVERY_MS = 5000;
const QUIET_NS = 60e9;
const WORTH = 100; // a smaller weight is nothing to worry about

function make(sentence) {
  const who = element("a", { className: "who" });
  if (sentence.service) who.href = serviceAddress(sentence.service);
  const what = element("span", { className: "what" });
  const buttons = element("span", { className: "buttons" });
  if (sentence.report && sentence.service) buttons.append(element("a", { className: "link", href: `${serviceAddress(sentence.service)}#kind-${sentence.report}` }, "report"));
  if (sentence.more) buttons.append(copyButton("copy command", sentence.more));
  const node = element("li", { className: "call sentence" }, element("div", { className: "call-head" }, who, what, buttons));
  node.parts = { who, what };
  return node;
}

function update(node, sentence) {
  setText(node.parts.who, sentence.service);
  setText(node.parts.what, sentence.text);
  setData(node, "kind", sentence.kind);
  node.classList.toggle("old", sentence.weight <= WORTH);
}

// A service that is silent for longer has its last minute then.
async function whichMinute({ service, instance }) {
  if (service === undefined) return "the last minute";
  const { streams, wall_ns: wallNs } = await askJson("/api/v1/streams");
  const newestNs = Math.max(0, ...streams.filter((s) => s.service === service && (instance === undefined || s.instance === instance)).map((s) => s.newest_wall_ns));
  return newestNs > 0 && newestNs + QUIET_NS < wallNs ? `the last minute before ${moment(newestNs)}, nothing since` : "the last minute";
}

export class Summary {
  // ask: () => { service, instance } or none; an element with the id "summary" is its card
  constructor(ask = () => ({})) {
    Object.assign(this, { ask, sentences: [], fits: () => true });
    this.note = element("p", { className: "readout" });
    const list = element("ol", { className: "calls", id: "sentences" });
    list.classList.toggle("of-one", ask().service !== undefined); // the top of the page has its name
    byId("summary").append(element("div", { className: "card-head" }, element("h2", { id: "summary-title" }, "What stands out"), this.note), list);
    this.list = new KeyedList(list, (s) => `${s.service} ${s.kind} ${s.finding} ${s.place} ${s.more}`, make, update);
    this.again();
    setInterval(() => document.hidden || this.again(), EVERY_MS);
  }

  async again() {
    const [said, minute] = await Promise.all([askJson("/api/v1/summary", this.ask()), whichMinute(this.ask())]).catch(() => [null]);
    if (said === null) return; // the top of the page says that the collector is away
    byId("summary").hidden = said.streams === 0 && said.sentences[0].kind === "nothing"; // no program has sent anything yet
    this.sentences = said.sentences;
    setText(this.note, `${minute}, ${count(said.streams)} stream${said.streams === 1 ? "" : "s"}, ${count(said.events)} events; tracectl report`);
    this.show();
  }

  // fits: takes the text of the filter
  choose(fits) {
    this.fits = fits;
    this.show();
  }

  show() {
    this.list.show(this.sentences.filter((s) => this.fits(s.service.toLowerCase())));
  }
}
