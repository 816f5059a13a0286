// Uploads a body of 200 MiB to the adapter and tells how much of it was taken: straight from Worker to Worker, so that nothing
// in between takes part in it. POST /stated says the length in advance.

const CHUNK = new Uint8Array(64 * 1024).fill(32);
const BYTES = 200 * 1024 * 1024;

export default {
  async fetch(request, env) {
    const stated = new URL(request.url).pathname === "/stated";
    const { readable, writable } = stated ? new FixedLengthStream(BYTES) : new IdentityTransformStream();
    const upload = writeAll(writable);
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: readable };
    const answer = await env.ADAPTER.fetch("http://hooks.localhost/webhook/stripe", init);
    const body = await answer.json();
    return Response.json({ status: answer.status, body, taken: upload.taken });
  },
};

function writeAll(writable) {
  const upload = { taken: 0 };
  const writer = writable.getWriter();
  const write = async () => {
    while (upload.taken < BYTES) {
      await writer.write(CHUNK);
      upload.taken += CHUNK.length;
    }
    await writer.close();
  };
  // The writer fails as soon as the other side has stopped reading, which is what the test is about.
  write().catch(() => {});
  return upload;
}
