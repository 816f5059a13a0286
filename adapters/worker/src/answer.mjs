// A whole answer in one crossing. `header` is one more header, or empty.
export function jsonResponse(status, body, header, value) {
  const headers = { "content-type": "application/json" };
  if (header) headers[header] = value;
  return new Response(body, { status, headers });
}
