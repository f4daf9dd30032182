// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen, in the page's address: a link shows the same, and a reload keeps it.
// #filter=shop&sort=events_rate&descending=1&report=sched&of=STREAM&window=10s

export function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  return { filter: said.get("filter") ?? "", sort: said.get("sort") ?? "", descending: said.get("descending") === "1", report: said.get("report") ?? "", of: said.get("of") ?? "", window: said.get("window") ?? "" };
}

export function writeAddress({ filter, sort, descending, report, of, window }) {
  const said = new URLSearchParams();
  if (filter) said.set("filter", filter);
  if (sort) said.set("sort", sort);
  if (sort && descending) said.set("descending", "1");
  for (const [name, value] of Object.entries({ report, of, window })) if (value) said.set(name, value);
  const hash = said.size > 0 ? `#${said}` : location.pathname;
  history.replaceState(null, "", hash);
}
