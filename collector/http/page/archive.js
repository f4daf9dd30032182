// SPDX-License-Identifier: Apache-2.0
// What the archive has: by service, time, verdict, and what keeps it. /archive?service=&instance=&last=24h&verdict=fault&kept=rule
import { askJson } from "/ask.js";
import { count } from "/format.js";
import { segmentCells } from "/segments.js";
import { byId, element, setData, setText } from "/view.js";

const LIMIT = 1000; // that the collector lists at once
const choices = byId("choices");

const chosen = () => Object.fromEntries([...new FormData(choices)].filter(([, value]) => value !== ""));

const VERDICTS = { ok: (s) => s.analysis === "ok", pending: (s) => s.analysis === "pending", fault: (s) => !["ok", "pending"].includes(s.analysis) };
const KEPT = { rule: (s) => Boolean(s.kept_by), there: (s) => !s.expired, expired: (s) => s.expired };

function row(s) {
  const [traced, stream, generation, events, size, file, go] = segmentCells(s);
  const verdict = element("td", { className: VERDICTS.fault(s) ? "bad" : "", title: s.reason }, s.reason ? `${s.analysis}: ${s.reason}` : s.analysis);
  const node = element("tr", {}, traced, stream, generation, events, size, verdict, element("td", {}, s.kept_by ?? ""), file, go);
  setData(node, "segment", s.id);
  return node;
}

function fill(name, values, wanted) {
  const select = choices.elements[name];
  const all = [...new Set([...values, ...(wanted ? [wanted] : [])])].sort(new Intl.Collator("en", { numeric: true }).compare);
  select.replaceChildren(element("option", { value: "" }, "all"), ...all.map((value) => element("option", { value }, value)));
  select.value = wanted ?? "";
}

async function fillNames(wanted) {
  const { streams } = await askJson("/api/v1/streams");
  fill("service", streams.map((s) => s.service), wanted.service);
  fill("instance", streams.filter((s) => !wanted.service || s.service === wanted.service).map((s) => s.instance), wanted.instance);
}

async function show() {
  const { service, instance, last, verdict, kept } = chosen();
  const query = { newest: 1, limit: LIMIT, ...(service ? { service } : {}), ...(instance ? { instance } : {}), ...(last ? { since: `-${last}` } : {}) };
  const { segments, more } = await askJson("/api/v1/segments", query);
  const found = segments.filter((s) => (VERDICTS[verdict] ?? (() => true))(s) && (KEPT[kept] ?? (() => true))(s));
  byId("rows").replaceChildren(...found.map(row));
  setText(byId("note"), `${count(found.length)} of ${more ? "the newest " : ""}${count(segments.length)}`);
  setText(byId("empty"), found.length > 0 ? "" : "Nothing in the archive matches.");
}

// names: services and instances are listed again, and these are chosen.
async function refresh(names) {
  setText(byId("state"), "reading");
  setData(byId("state"), "state", "waiting");
  try {
    if (names) await fillNames(names);
    await show();
    setText(byId("state"), "read");
    setData(byId("state"), "state", "good");
  } catch (error) {
    setText(byId("empty"), error.message);
    setText(byId("state"), "no answer");
    setData(byId("state"), "state", "bad");
  }
  setData(document.body, "ready", Number(document.body.dataset.ready ?? 0) + 1);
}

const wanted = Object.fromEntries(new URLSearchParams(location.search));
for (const name of ["last", "verdict", "kept"]) choices.elements[name].value = wanted[name] ?? "";
choices.addEventListener("submit", (event) => event.preventDefault());
choices.addEventListener("change", (event) => {
  if (event.target.name === "service") choices.elements.instance.value = "";
  history.replaceState(null, "", `/archive?${new URLSearchParams(chosen())}`);
  refresh(event.target.name === "service" ? chosen() : null);
});
refresh(wanted);
