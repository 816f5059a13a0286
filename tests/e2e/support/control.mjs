// Lets a test, which is outside, call the watches, which are inside their Workers: { worker, method, args } over HTTP.

export default {
  async fetch(request, env) {
    const { worker, method, args } = await request.json();
    return Response.json((await env[worker][method](...args)) ?? null);
  },
};
