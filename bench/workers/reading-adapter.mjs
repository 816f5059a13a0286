// Reads the body and answers: what any Worker costs that takes a request.

export default {
  async fetch(request) {
    const { byteLength } = await request.arrayBuffer();
    return Response.json({ byteLength });
  },
};
