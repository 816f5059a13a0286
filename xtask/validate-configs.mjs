// Validates wrangler configs, given as `[{ path, json }]` on standard input, against the schema that wrangler ships.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import Ajv from "ajv";

const schema = JSON.parse(await readFile(new URL("../node_modules/wrangler/config-schema.json", import.meta.url), "utf8"));
// The schema carries annotations of editors, which strict mode refuses.
const validate = new Ajv({ allErrors: true, strict: false, validateFormats: false }).compile(schema);

for (const { path, json } of JSON.parse(await text(process.stdin))) {
  if (!validate(json)) {
    process.exitCode = 1;
    for (const { instancePath, message, params } of validate.errors) {
      console.error(`${path}: ${instancePath || "/"} ${message} ${JSON.stringify(params)}`);
    }
  }
}
