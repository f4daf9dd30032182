// SPDX-License-Identifier: Apache-2.0
// Reports that the collector has kept.
import { askLines } from "/ask.js";
import { exactTime } from "/format.js";

// All that there are, oldest first of each stream. They come in pieces.
export async function askHistory(kind, query) {
  const reports = [];
  let place = {};
  for (;;) {
    const lines = await askLines(`/api/v1/history/${encodeURIComponent(kind)}`, { ...query, ...place });
    const end = lines.pop();
    reports.push(...lines);
    if (!end.more) return reports;
    place = { after: end.after, after_ns: end.after_ns };
  }
}

// The report of the stretch that a moment is in, of a service the sum of its instances; null: there is none.
export async function askMoment(kind, query, wallNs) {
  const at = exactTime(BigInt(Math.round(wallNs)));
  const [report = null, ...others] = await askHistory(kind, { ...query, since: at, until: at, sum: 1 });
  if (others.length > 0 && report.instances === 0 && !query.instance) throw new Error(`${query.service} has too many instances for a sum of that moment: choose one.`);
  return report;
}

// What a figure's line shows: of a distribution its p99, or its maximum where quantiles were not kept.
export function heightOf(value) {
  if (value === null || typeof value !== "object") return value;
  return value.count === 0 ? 0 : (value.p99_ns ?? value.max_ns);
}
