// SPDX-License-Identifier: Apache-2.0
// Pictures of a stretch, as GET /api/v1/spans gives them (docs/HTTP.md): read in binary, kept until a better one is there.
import { askJson } from "/ask.js";
import { exactTime } from "/format.js";
import { inWords } from "/words.js";

const MAGIC = "TCSPANS1";
const HEAD_BYTES = 16;
export const MIXED = 1;
export const BEGAN_BEFORE = 2;
export const GOES_ON = 4;
export const SHARE_ALL = 65535;

// Columns of a lane's cells, over the answer's own bytes.
export class Lane {
  constructor(said, words, reals, at, picture) {
    Object.assign(this, { kind: said.kind, id: said.id, row: said.row, name: picture.names[said.name], cells: said.cells, picture });
    this.words = words;
    this.reals = reals;
    this.at = at; // of the first cell, in words
  }

  // In nanoseconds from the picture's begin.
  from(i) {
    return this.words[this.at + 6 * i + 2] * this.picture.unit;
  }
  until(i) {
    return this.words[this.at + 6 * i + 3] * this.picture.unit;
  }
  label(i) {
    return this.picture.names[this.words[this.at + 6 * i + 4]];
  }
  share(i) {
    return this.words[this.at + 6 * i + 5] & 0xffff;
  }
  look(i) {
    return (this.words[this.at + 6 * i + 5] >>> 16) & 0xff;
  }
  flags(i) {
    return this.words[this.at + 6 * i + 5] >>> 24;
  }
  value(i) {
    return this.reals[this.at / 2 + 3 * i];
  }
  // Of 64 bits, as text.
  subject(i) {
    const at = this.at + 6 * i;
    return this.words[at + 1] === 0 ? String(this.words[at]) : String((BigInt(this.words[at + 1]) << 32n) | BigInt(this.words[at]));
  }

  // The cell that holds this moment, or -1; slack: cells as near as that count, too.
  find(at, slack = 0) {
    let low = 0;
    let high = this.cells;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.until(middle) + slack < at) low = middle + 1;
      else high = middle;
    }
    return low < this.cells && this.from(low) - slack <= at ? low : -1;
  }
}

export function readPicture(bytes) {
  const magic = String.fromCharCode(...new Uint8Array(bytes, 0, MAGIC.length));
  if (magic !== MAGIC) throw new Error("the collector's answer is not a timeline");
  const length = new DataView(bytes).getUint32(MAGIC.length, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, HEAD_BYTES, length)));
  const words = new Uint32Array(bytes, HEAD_BYTES + length);
  const reals = new Float64Array(bytes, HEAD_BYTES + length);
  const picture = {
    ...head,
    from: BigInt(head.from_wall_ns),
    until: BigInt(head.until_wall_ns),
    traceFrom: BigInt(head.from_ns),
    unit: head.unit_ns,
    pixel: head.px_ns,
    looks: head.looks.map((look) => inWords(head.program, look)),
  };
  picture.lanes = head.lanes.map((lane) => new Lane(lane, words, reals, 6 * lane.first, picture));
  return picture;
}

// from, until: null for the newest generation.
export async function fetchPicture(stream, { from, until, px, ...more }, signal) {
  const query = new URLSearchParams({ stream, px, format: "binary", ...more });
  if (from !== null) {
    query.set("from", exactTime(from));
    query.set("to", exactTime(until));
  }
  const answer = await fetch(`/api/v1/spans?${query}`, { signal });
  if (!answer.ok) throw new Error((await answer.json()).error);
  return readPicture(await answer.arrayBuffer());
}

export const fetchMoment = (stream, gen, ns, of, id) => askJson("/api/v1/span", { stream, gen, ns, [of]: id });

export const fetchState = (stream, gen, ns) => askJson("/api/v1/state", { stream, gen, ns });
