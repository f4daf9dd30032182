// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayFormat = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

export const count = (n) => whole.format(n);
export const counted = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
export const short = (n) => (n < 10000 ? whole.format(n) : compact.format(n));

// Three digits and a unit.
function scaled(value, units, step) {
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

export const bytes = (n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
export const share = (part) => `${(part * 100).toPrecision(3)} %`;
export const rate = (bytesPerSecond) => `${megabytes(bytesPerSecond)} MB/s`;
export function megabytes(n) {
  const mb = n / 1e6;
  return mb === 0 ? "0" : mb < 0.01 ? "<0.01" : mb < 10 ? mb.toFixed(2) : mb < 100 ? mb.toFixed(1) : mb.toFixed(0);
}

export function duration(ns) {
  if (ns === null) return "–";
  if (ns === 0) return "0";
  if (ns < 1e9) return scaled(ns, ["ns", "µs", "ms"], 1000);
  const s = ns / 1e9;
  if (s < 60) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export const clock = (wallNs) => clockFormat.format(wallNs / 1e6);
export const moment = (wallNs) => dayFormat.format(wallNs / 1e6);

export function ago(thenNs, nowNs) {
  const s = Math.max(0, (nowNs - thenNs) / 1e9);
  if (s < 2) return "now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  return s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
}

// A field's or a column's name.
export const words = (name) => name.replace(/_(ns|bytes)$/, "").replaceAll("_", " ");

// A time for tracectl and the API, whole: wallNs is a BigInt.
export const exactTime = (wallNs) => `@${wallNs / 10n ** 9n}.${String(wallNs % 10n ** 9n).padStart(9, "0")}`;

// A colour of its own for a text, in degrees.
export function hueOf(text) {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash % 360;
}
