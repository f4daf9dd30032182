// SPDX-License-Identifier: Apache-2.0
// Blocked system calls and alerts: who, for how long, and where in the program.
import { clock, duration } from "/format.js";
import { showSegments } from "/segments.js";
import { stackNodes } from "/stack.js";
import { byId, copyButton, element, KeyedList, setData, setFigure, setText, timelineAddress, timelineLink, whyLink } from "/view.js";
import { headInWords, inWords } from "/words.js";

const CALLS_MAX = 20; // those that wait the longest; on a busy host most others are new ones each second
const ALERTS_MAX = 20;

// age, who, what, stack, button
function entry(className, age, item, what, button) {
  const head = [element("strong", { className: "age" }, age), element("span", { className: "who" }, `${item.service} / ${item.instance}`), button, element("span", { className: "muted" }, what)];
  return element("li", { className }, element("div", { className: "call-head" }, ...head), ...stackNodes(item.stack));
}

function segmentsButton(title, which) {
  const button = element("button", { type: "button", className: "plain link" }, "segments");
  button.addEventListener("click", () => showSegments(title, which()));
  return button;
}

function makeCall(call) {
  let latest = call;
  const seen = element("span", { className: "seen muted" });
  const picture = timelineLink(call.stream, call.until_wall_ns - call.age_ns, call.until_wall_ns, call.goroutine);
  const node = entry(
    call.idle ? "call idle" : "call",
    "",
    call,
    `${headInWords(call.program, "goroutine")} ${call.goroutine}, ${headInWords(call.program, "thread")} ${call.thread}${call.idle ? ", waits for signals" : call.lost_proc ? inWords(call.program, ", lost its P") : ""}`,
    segmentsButton(inWords(call.program, `Behind goroutine ${call.goroutine} of ${call.service}`), () => ({
      service: latest.service,
      instance: latest.instance,
      from_ns: latest.until_wall_ns - latest.age_ns,
      until_ns: latest.until_wall_ns,
    })),
  );
  node.querySelector(".call-head").append(seen);
  node.querySelector(".call-head button").after(picture);
  const age = node.querySelector(".age");
  node.update = (now) => {
    latest = now;
    picture.href = timelineAddress(now.stream, now.until_wall_ns - now.age_ns, now.until_wall_ns, now.goroutine);
    setFigure(age, now.age_ns, `${now.lower_bound ? "≥ " : ""}${duration(now.age_ns)}`);
    node.classList.toggle("old", now.old);
    setText(seen, now.old ? `as of ${clock(now.until_wall_ns)}` : "");
  };
  return node;
}

export class Calls {
  constructor() {
    this.list = new KeyedList(byId("blocked"), (c) => `${c.service} ${c.instance} ${c.goroutine} ${c.thread} ${c.stack.map((f) => f.line).join()}`, makeCall, (node, call) => node.update(call));
    this.alerts = [];
    this.number = 0;
    this.alertList = new KeyedList(byId("alerts"), (a) => a.key, (a) => this.makeAlert(a), () => {});
  }

  // Those that only wait for signals come last, as the collector sends them.
  // why: what is said where nothing is blocked.
  show(all, total, why) {
    const calls = all.slice(0, CALLS_MAX);
    this.list.show(calls);
    byId("blocked-empty").hidden = calls.length > 0;
    setText(byId("blocked-empty"), why);
    setText(byId("blocked-note"), calls.length === 0 ? "" : total > calls.length ? `${calls.length} of ${total}` : "longest first");
  }

  missed(n) {
    this.lost = (this.lost ?? 0) + (n ?? 1);
    setText(byId("alerts-note"), `newest first, at least ${this.lost} events missed`);
  }

  takeAlerts(message) {
    for (const alert of message.alerts)
      this.alerts.unshift({ ...alert, stream: message.stream, service: message.service, instance: message.instance, at: message.until_wall_ns || Date.now() * 1e6, key: ++this.number });
    this.alerts.length = Math.min(this.alerts.length, ALERTS_MAX);
  }

  // Those of the services and instances that are shown.
  showAlerts(fits) {
    const shown = this.alerts.filter((a) => fits(`${a.service} ${a.instance}`.toLowerCase()));
    const others = this.alerts.length - shown.length;
    byId("alerts-card").hidden = this.alerts.length === 0;
    setData(byId("columns"), "cards", this.alerts.length === 0 ? 2 : 3);
    byId("alerts-empty").hidden = shown.length > 0;
    setText(byId("alerts-empty"), others === 1 ? "The one alert is from another service." : `All ${others} alerts are from other services.`);
    this.alertList.show(shown);
  }

  makeAlert(a) {
    const begin = a.begin_wall_ns || a.at - a.duration_ns;
    const text = a.text.replace(`${a.service}/${a.instance}: `, "");
    return entry(
      "call alert",
      duration(a.duration_ns),
      a,
      `${clock(begin)} ${text}`,
      element(
        "span",
        { className: "buttons" },
        segmentsButton(`Behind an alert of ${a.service}`, () => ({ service: a.service, instance: a.instance, from_ns: begin, until_ns: begin + a.duration_ns })),
        timelineLink(a.stream, begin, begin + a.duration_ns, a.goroutine),
        ...(a.why ? [whyLink(a.why)] : []),
        ...(a.fetch ? [copyButton("copy fetch command", a.fetch)] : []),
      ),
    );
  }
}
