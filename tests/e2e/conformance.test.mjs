// Runs the conformance suite inside workerd, one subtest per case, so that a port that drifted is named by what it broke.
// The Worker must have been built (`cargo xtask build`).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTestHarness } from "wrangler";

const server = createTestHarness({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  workers: [{ configPath: "tests/conformance/worker/wrangler.jsonc" }],
});

before(async () => {
  await server.listen();
  await server.getWorker().applyD1Migrations("LEDGER");
});

after(() => server.close());

test("the ports on D1, Queues and R2", async (t) => {
  const response = await server.getWorker().fetch("http://conformance.localhost/");
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const cases = JSON.parse(text);
  assert.ok(cases.length > 60, `only ${cases.length} cases ran`);
  for (const { name, ok, detail } of cases) {
    await t.test(name, () => assert.ok(ok, detail));
  }
});
