// Turns what a caller passes into JSON text, and refuses what JSON cannot say. `JSON.stringify` alone would write a Map as
// {}, drop undefined and functions, and turn NaN into null: silent losses, which a gateway must not have.

const DEPTH_MAX = 130; // a little above the limit that the core enforces and names

/** [envelope, payload] as JSON texts; the payload is undefined if the event has none. Throws { field, problem }. */
export function split(event) {
  if (!isPlainObject(event)) refuse("event", "must be an object");
  const { payload, payloadJson, ...envelope } = event;
  for (const [field, value] of Object.entries(envelope)) {
    if (value === undefined) continue; // an optional field that is not there
    requireJson(value, field, 0);
    if (typeof value === "string" && !value.isWellFormed()) refuse(field, "holds half a surrogate pair");
  }
  return [JSON.stringify(envelope), payloadText(payload, payloadJson)];
}

function payloadText(payload, payloadJson) {
  if (payloadJson === undefined) {
    if (payload === undefined) return undefined;
    requireJson(payload, "payload", 0);
    return JSON.stringify(payload);
  }
  if (payload !== undefined) refuse("payloadJson", "must not be given beside payload");
  if (typeof payloadJson !== "string") refuse("payloadJson", "must be a string that holds JSON");
  if (!payloadJson.isWellFormed()) refuse("payloadJson", "holds half a surrogate pair, which is not UTF-8");
  return payloadJson;
}

function requireJson(value, path, depth) {
  if (depth > DEPTH_MAX) refuse(top(path), "is cyclic or nested deeper than 128 levels");
  switch (typeof value) {
    case "string":
    case "boolean":
      return;
    case "number":
      if (Number.isFinite(value)) return;
      return refuse(top(path), `holds ${value} at ${path}, which JSON cannot say`);
    case "object":
      if (value === null) return;
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) requireJson(value[i], `${path}[${i}]`, depth + 1);
        return;
      }
      if (isPlainObject(value)) {
        for (const key of Object.keys(value)) requireJson(value[key], `${path}.${key}`, depth + 1);
        return;
      }
      return refuse(top(path), `holds a ${value.constructor?.name ?? "foreign object"} at ${path}, which JSON cannot say`);
    default:
      return refuse(top(path), `holds a value of type ${typeof value} at ${path}, which JSON cannot say`);
  }
}

function isPlainObject(value) {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

const top = (path) => path.split(/[.[]/, 1)[0];

function refuse(field, problem) {
  throw { field, problem };
}
