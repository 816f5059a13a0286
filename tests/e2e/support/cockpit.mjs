// An operator at the cockpit: tokens as a deployment holds them, and requests as a client sends them.

import { createHash } from "node:crypto";

/** Everybody's token; the deployment gets its hash. */
export const TOKENS = {
  ada: { token: "token-of-ada", scopes: ["read", "operate"] },
  bob: { token: "token-of-bob", scopes: ["read"] },
};

/** The secret OPERATOR_TOKENS for these. */
export function operatorTokens() {
  const entries = Object.entries(TOKENS).map(([name, { token, scopes }]) => {
    return { name, sha256: createHash("sha256").update(token).digest("hex"), scopes };
  });
  return JSON.stringify(entries);
}

export class Cockpit {
  /** `null` is no token at all. */
  constructor(worker, token = TOKENS.ada.token) {
    this.worker = worker;
    this.token = token;
  }

  /** The whole answer: status, headers and body, read. */
  async request(method, path, body, headers = {}) {
    const authorization = this.token === null ? {} : { authorization: `Bearer ${this.token}` };
    const init = { method, headers: { ...authorization, ...headers } };
    if (body !== undefined) init.body = typeof body === "string" ? body : JSON.stringify(body);
    const response = await this.worker.fetch(`http://cockpit.localhost${path}`, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  }

  get(path) {
    return this.request("GET", `/api/v1${path}`);
  }

  post(path, body) {
    return this.request("POST", `/api/v1${path}`, body);
  }
}
