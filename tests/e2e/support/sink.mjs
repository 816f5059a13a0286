// A place where operators read alerts: an HTTP server that remembers what it was told and can be down or slow.

import { createHmac } from "node:crypto";
import { createServer } from "node:http";

/** The secret that its messages are signed with, as Standard Webhooks writes it. */
export const SIGNING_SECRET = "whsec_aYpXomphCKcx4XhkDipMrCNQpoNsosT3";

/** Starts a sink. `sink.answer` is the status that it gives, or "hang". */
export async function startSink() {
  const sink = { posts: [], answer: 200 };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      sink.posts.push({ method, url, headers, body });
      if (sink.answer !== "hang") response.writeHead(sink.answer, { location: "/elsewhere" }).end("thanks");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  sink.url = `http://127.0.0.1:${server.address().port}/hook/secret-path`;
  sink.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return sink;
}

/** The signature that a receiver computes for a message. */
export function expectedSignature({ headers, body }) {
  const key = Buffer.from(SIGNING_SECRET.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
