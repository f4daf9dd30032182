// SPDX-License-Identifier: Apache-2.0
// The collector's answer to a question, or an error with its words.
async function askText(path, query) {
  const answer = await fetch(query === undefined ? path : `${path}?${new URLSearchParams(query)}`);
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(JSON.parse(text).error), { status: answer.status });
  return text;
}

export const askJson = async (path, query) => JSON.parse(await askText(path, query));

// The last line of kept reports says where to go on: a time that a double would round stays text.
const exact = (line) => line.replace(/^(\{"more":true,.*"after_ns":)(\d+)/, '$1"$2"');

// An answer of one object a line.
export const askLines = async (path, query) => (await askText(path, query)).trim().split("\n").map((line) => JSON.parse(exact(line)));
