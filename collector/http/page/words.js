// SPDX-License-Identifier: Apache-2.0
// Texts in the words of their program: a C program has threads. The table is lib/online/words/words.def, and so are the rules.
import { words } from "/format.js";
import { COLUMNS, WORDS } from "/words_table.js";

const columns = new Map(COLUMNS);
const rows = new Map(WORDS);
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const ends = (text) => (/\w$/.test(text) ? `${escaped(text)}(?!\\w)` : escaped(text));
const ROW = new RegExp(`(?<!\\w)(?:${[...rows.keys()].sort((a, b) => b.length - a.length).map(ends).join("|")})`, "g");

// program: "C", or undefined for a Go program.
export const inWords = (program, text) => (program === "C" ? text.replace(ROW, (row) => rows.get(row)) : text);

// The heading of a column or a figure.
export const headInWords = (program, name) => words(program === "C" ? (columns.get(name) ?? inWords(program, name)) : name);

const fieldsInWords = (program, fields) => fields.map((f) => ({ ...f, head: headInWords(program, f.name), about: inWords(program, f.about ?? "") }));

// A goroutine's number, where there is little room.
export const idInWords = (program, id) => (program === "C" ? `thread ${id}` : `G${id}`);

// A schema whose texts are a program's; its names stay.
export function schemaInWords(program, schema) {
  if (program !== "C") return schema;
  const tables = schema.tables.map((t) => ({ ...t, about: inWords(program, t.about), order: inWords(program, t.order), columns: fieldsInWords(program, t.columns) }));
  return { ...schema, about: inWords(program, schema.about), options: fieldsInWords(program, schema.options ?? []), figures: fieldsInWords(program, schema.figures ?? []), tables };
}

// How a field is headed.
export const headOf = (field) => field.head ?? words(field.name);
