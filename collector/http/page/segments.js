// SPDX-License-Identifier: Apache-2.0
// From a figure to the files behind it: the segments of a stream and a time, each with its download.
import { askJson } from "/ask.js";
import { bytes, count, moment } from "/format.js";
import { byId, copyButton, element, setText, timelineLink } from "/view.js";

const SLACK_NS = 3e9; // an alert, or a report, names its time less exactly than a generation does
const LIMIT = 200;

// Of a row: when it was traced, stream, generations, events, size, its file, and where to go on.
export function segmentCells(s) {
  const file = s.expired
    ? "expired"
    : element("a", { href: `/api/v1/segments/${s.id}`, download: `${s.service}-${s.first_gen}.trace` }, "Download");
  const generations = s.first_gen === s.last_gen ? count(s.first_gen) : `${count(s.first_gen)}–${count(s.last_gen)}`;
  return [
    element("td", { title: `${s.wall_estimated ? "estimated: a trace before Go 1.25 does not say when it was; " : ""}received ${moment(s.first_arrival_ns)}` }, `${s.wall_estimated ? "~" : ""}${moment(s.first_wall_ns)}`),
    element("td", {}, `${s.service} / ${s.instance}`),
    element("td", { className: "number" }, generations),
    element("td", { className: "number" }, s.analysis === "ok" ? count(s.events) : s.analysis),
    element("td", { className: "number" }, bytes(s.bytes)),
    element("td", {}, file),
    element("td", { className: "go" }, ...(s.expired ? [] : [timelineLink(s.stream, s.first_wall_ns, s.last_wall_ns), " ", copyButton("copy fetch command", `tracectl fetch ${s.id} -o ${s.service}-${s.first_gen}.trace`)])),
  ];
}

// which: { service, instance, from_ns, until_ns, arrived }, all but the times optional. arrived: the times are those of the
// collector, when it heard of something, and not those of the traced program.
export async function showSegments(title, which) {
  const dialog = byId("segments");
  const rows = byId("segment-rows");
  const query = new URLSearchParams({ limit: LIMIT });
  if (which.service) query.set("service", which.service);
  if (which.instance) query.set("instance", which.instance);
  query.set(which.arrived ? "arrived_since" : "since", `@${((which.from_ns - SLACK_NS) / 1e9).toFixed(3)}`);
  query.set(which.arrived ? "arrived_until" : "until", `@${((which.until_ns + SLACK_NS) / 1e9).toFixed(3)}`);

  setText(byId("segments-title"), title);
  setText(byId("segments-about"), `${which.arrived ? "received" : "traced"} ${moment(which.from_ns - SLACK_NS)} – ${moment(which.until_ns + SLACK_NS)}`);
  setText(byId("segments-empty"), "looking…");
  rows.replaceChildren();
  if (!dialog.open) dialog.showModal();
  try {
    const { segments, more } = await askJson("/api/v1/segments", query);
    // Newest first: what was clicked on is mostly what has just happened.
    rows.replaceChildren(...segments.sort((a, b) => b.first_wall_ns - a.first_wall_ns).map((s) => element("tr", {}, ...segmentCells(s))));
    setText(byId("segments-empty"), more ? `The first ${LIMIT} are listed; GET /api/v1/segments has all.` : segments.length ? "" : "Nothing is archived from that time yet.");
  } catch (error) {
    setText(byId("segments-empty"), `The collector does not answer: ${error.message}`);
  }
}

export function prepareSegments() {
  const dialog = byId("segments");
  byId("segments-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
