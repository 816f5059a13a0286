// Consumes a dead-letter queue and shows over HTTP what has come.

const letters = [];

export default {
  async queue(batch) {
    letters.push(...batch.messages.map(({ body }) => body));
  },
  fetch() {
    return Response.json(letters);
  },
};
