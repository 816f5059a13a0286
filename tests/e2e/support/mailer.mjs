// Puts a body of any kind into a queue: POST /<binding>?type=<content type>, where `v8` sends what JSON cannot say.

const STRUCTURED = new Map([["order", { id: 12345678901234567890n, at: new Date(0), raw: new Uint8Array([1, 2, 255]) }]]);

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const contentType = url.searchParams.get("type");
    await env[url.pathname.slice(1)].send(await body(request, contentType), { contentType });
    return new Response();
  },
};

async function body(request, contentType) {
  switch (contentType) {
    case "bytes":
      return new Uint8Array(await request.arrayBuffer());
    case "json":
      return request.json();
    case "v8":
      return STRUCTURED;
    default:
      return request.text();
  }
}
