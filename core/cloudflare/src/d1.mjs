// A whole batch in one crossing. Calls between Rust and JavaScript are what a small statement costs most, so all texts come as
// one, cut apart here: `shape` is JSON, per statement the length of its SQL and then its values, where a number is the length
// of a text, `[n]` the number n, and null is null. The answer is JSON too: per statement its rows, if any, and its changes.

export const batch = async (database, texts, shape) => answer(await database.batch(statements(database, texts, shape)));

export function statements(database, texts, shape) {
  let end = 0;
  const cut = (length) => texts.slice(end, (end += length));
  const value = (of) => (typeof of === "number" ? cut(of) : of && of[0]);
  return JSON.parse(shape).map(([sql, ...values]) => database.prepare(cut(sql)).bind(...values.map(value)));
}

export const answer = (results) =>
  JSON.stringify(results.map(({ results: rows, meta }) => [rows?.length ? rows : null, meta?.changes ?? 0]));
