import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

/** Writes figures to the file that `--json` names, if it is given. */
export function writeJson(figures) {
  const { json } = parseArgs({ options: { json: { type: "string" } }, strict: false }).values;
  if (json) writeFileSync(json, `${JSON.stringify(figures, null, 2)}\n`);
}
