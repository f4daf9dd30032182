// SPDX-License-Identifier: Apache-2.0
// The collector's answer to a question, or an error with its words.
async function askText(path, query) {
  const answer = await fetch(query === undefined ? path : `${path}?${new URLSearchParams(query)}`);
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(JSON.parse(text).error), { status: answer.status });
  return text;
}

export const askJson = async (path, query) => JSON.parse(await askText(path, query));

// An answer of one object a line.
export const askLines = async (path, query) => (await askText(path, query)).trim().split("\n").map((line) => JSON.parse(line));
