// SPDX-License-Identifier: Apache-2.0
// The pieces of a critical path as lines, in order of time; a click on one shows the rest of it.
import { duration, exactTime } from "/format.js";
import { copyButton, element, timelineAddress } from "/view.js";
import { stateWords, STATES } from "/why_path.js";

const SHOWN = 100;
const DEEPEST = 8; // the indent grows no further

const placeOf = (step) => (step.function ? `${step.function}${step.line ? `:${step.line}` : ""}` : "");
const whoOf = (step) => (step.goroutine > 0 ? `goroutine ${step.goroutine}${step.entry ? ` ${step.entry}` : ""}` : "no goroutine is known");

function details(stream, step, wallOf) {
  const [from, until] = [BigInt(Math.round(wallOf(step.from_ns))), BigInt(Math.round(wallOf(step.until_ns)))];
  const line = step.file ? `${step.file}${step.line ? `:${step.line}` : ""}` : "";
  const pairs = [
    ["who", whoOf(step)],
    ["at", step.function ? `${step.function}${line ? ` ${line}` : ""}` : ""],
    ["stop-the-world", step.stop_the_world_ns > 0 ? `${duration(step.stop_the_world_ns)} of it` : ""],
    ["GC assist", step.gc_assist_ns > 0 ? `${duration(step.gc_assist_ns)} of it` : ""],
    ["waits followed to get here", step.depth > 0 ? String(step.depth) : ""],
  ].filter(([, value]) => value !== "");
  const buttons = [
    element("a", { className: "link", href: timelineAddress(stream, Number(from), Number(until), step.goroutine) }, "on the timeline"),
    copyButton("copy fetch command", `tracectl fetch --stream ${stream} --since ${exactTime(from)} --until ${exactTime(until)} -o step.trace`),
    ...(line ? [copyButton("copy file and line", line)] : []),
  ];
  return [element("dl", {}, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])), element("p", { className: "buttons" }, ...buttons)];
}

function stepNode(stream, step, subject, wallOf) {
  const [look] = STATES.get(step.state) ?? ["unknown"];
  const who = step.goroutine > 0 ? `G${step.goroutine}` : "–";
  const summary = element(
    "summary",
    {},
    element("i", { className: `key ${look}` }),
    element("span", { className: "after" }, `+${duration(step.from_ns - subject.from_ns)}`),
    element("span", { className: "length" }, duration(step.total_ns)),
    element("span", { className: "who", title: whoOf(step) }, who),
    element("span", { className: "what" }, `${stateWords(step)}${step.end && step.state === "Waiting" ? `; ${step.end}` : ""}`),
    element("span", { className: "function" }, placeOf(step)),
  );
  const node = element("details", { className: "step" }, summary);
  summary.style.setProperty("--depth", Math.min(step.depth, DEEPEST));
  node.addEventListener("toggle", () => node.childElementCount === 1 && node.append(...details(stream, step, wallOf)));
  return element("li", {}, node);
}

// wallOf(ns): a time of the trace on the program's wall clock
export function showSteps(place, stream, { tables, figures }, wallOf) {
  const add = (steps) => place.append(...steps.map((step) => stepNode(stream, step, figures, wallOf)));
  place.replaceChildren();
  place.style.setProperty("--deepest", Math.min(DEEPEST, tables.path.reduce((most, p) => Math.max(most, p.depth), 0)));
  add(tables.path.slice(0, SHOWN));
  if (tables.path.length <= SHOWN) return;
  const more = element("button", { type: "button", className: "plain link" }, `${tables.path.length - SHOWN} more steps`);
  const last = element("li", {}, more);
  more.addEventListener("click", () => {
    last.remove();
    add(tables.path.slice(SHOWN));
  });
  place.append(last);
}
