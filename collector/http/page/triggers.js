// SPDX-License-Identifier: Apache-2.0
// The rules of triggers: how often each has fired, and the last time with its picture. The history of all of them, which is asked for
// once it is open.
import { askJson } from "/ask.js";
import { count, moment } from "/format.js";
import { byId, element, KeyedList, setFigure, setText, timelineLink, whyAddress, whyLink } from "/view.js";

const EVERY_MS = 5000;
const AROUND_NS = 1e9; // a rule fires after a generation, which is about a second long
const SHOWN = 50; // of the history,
const SHOWN_OF_RULE = 10; // so that one that fires all the time hides no other

// A figure of tasks is explained by the slowest task that ended in its generation, which may have begun some seconds before; the
// words of a threshold name the task.
const TASK_NS = 5n * 10n ** 9n;

function links({ stream, wall_ns: wall, words = "" }) {
  if (!(wall > 0)) return [];
  const [, task] = /--task (\d+)/.exec(words) ?? [];
  const query = task !== undefined ? { task } : /(^|\s)tasks\./.test(words) ? { slow: "*" } : null;
  const end = BigInt(wall);
  const why = query === null ? [] : [" ", whyLink(whyAddress(stream, end - TASK_NS, end, query))];
  return [timelineLink(stream, wall - AROUND_NS, wall), ...why];
}

function make() {
  const names = ["rule", "fired", "last", "stream", "words", "go"];
  const cells = Object.fromEntries(names.map((name) => [name, element("td", { className: name === "fired" ? "number" : name })]));
  const row = element("tr", {}, ...Object.values(cells));
  row.cells_by_name = cells;
  return row;
}

// What is 0 or empty is not in the answer.
function update(row, { name: title, text, fired: times = 0, wall_ns = 0, service, instance, stream: id, words: seen = "" }) {
  const { rule, fired, last, stream, words, go } = row.cells_by_name;

  setText(rule, title);
  rule.title = text;
  if (Number(fired.dataset.value) === times) return; // the last time is the same, too
  setFigure(fired, times, count(times));
  setText(last, wall_ns > 0 ? moment(wall_ns) : "");
  setText(stream, times > 0 ? `${service} / ${instance}` : "");
  setText(words, seen);
  go.replaceChildren(...links({ stream: id, wall_ns, words: seen }));
}

// A firing does not change.
function makeFiring({ id, rule, service, instance, stream, wall_ns, words, limited = [] }) {
  const left = limited.length > 0 ? `; left out: ${limited.join(", ")}` : "";
  const cells = [moment(wall_ns || id), rule, `${service} / ${instance}`, words + left].map((text) => element("td", {}, text));
  return element("tr", {}, ...cells, element("td", {}, ...links({ stream, wall_ns, words })));
}

export class Triggers {
  constructor() {
    this.history = new KeyedList(byId("firing-rows"), ({ id, rule, stream }) => `${id} ${rule} ${stream}`, makeFiring, () => {});
    byId("firings").addEventListener("toggle", () => this.askHistory());
    this.rows = new KeyedList(byId("trigger-rows"), (rule) => rule.text, make, update);
    this.ask();
    setInterval(() => document.hidden || this.ask(), EVERY_MS);
  }

  // A collector that is away is said at the top of the page; the rows stay as they were.
  async ask() {
    const answer = await askJson("/api/v1/triggers").catch(() => null);
    if (answer === null) return;
    const { rules = [] } = answer;
    byId("triggers").hidden = rules.length === 0;
    setText(byId("triggers-note"), `${count(rules.length)} ${rules.length === 1 ? "rule" : "rules"}; tracectl trigger list`);
    this.rows.show(rules);
    byId("firings").hidden = rules.length === 0;
    await this.askHistory();
  }

  async askHistory() {
    setText(byId("firings-note"), `History: the newest ${SHOWN}, ${SHOWN_OF_RULE} of a rule; tracectl trigger history`);
    if (!byId("firings").open) return;
    const answer = await askJson("/api/v1/firings", { newest: SHOWN, newest_of_rule: SHOWN_OF_RULE }).catch(() => null);
    if (answer !== null) this.history.show(answer.firings.reverse());
  }
}
