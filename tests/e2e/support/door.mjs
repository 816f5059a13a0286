// The first Worker of a process, which alone gets HTTP: passes webhooks on to the adapter, and lets a test call the watches.

import control from "./control.mjs";

export default {
  fetch: (request, env) =>
    new URL(request.url).pathname === "/test-control" ? control.fetch(request, env) : env.ADAPTER.fetch(request),
};
