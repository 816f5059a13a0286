// A whole answer in one crossing. `lines` are its headers, `name:value` a line.
export function response(status, body, lines) {
  const headers = lines.split("\n").map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1)];
  });
  return new Response(body || null, { status, headers });
}
