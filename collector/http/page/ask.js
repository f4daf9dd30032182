// SPDX-License-Identifier: Apache-2.0
// The collector's answer to a question, or an error with its words.
export async function askJson(path, query) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}
