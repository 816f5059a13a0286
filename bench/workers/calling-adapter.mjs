// Reads the body, hands it to the core, and answers: what any adapter costs before it looks at what it takes.

export default {
  async fetch(request, env) {
    const payloadJson = await request.text();
    return Response.json({ events: [await env.EVENT_PLATFORM.publish({ payloadJson })] });
  },
};
