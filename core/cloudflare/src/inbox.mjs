// The body of a message that is no text, whatever its sender has put into the queue: bytes as they are, anything else as JSON. Where
// JSON alone would drop something, the text says what was there, because such a body is kept for somebody to read.

export function rawBody(body) {
  if (isBytes(body)) return bytesOf(body);
  try {
    return JSON.stringify(body, shown()) ?? String(body);
  } catch (error) {
    // Nested too deeply; cyclic ones are shown.
    return `${Object.prototype.toString.call(body)} cannot be shown: ${error.message}`;
  }
}

const isBytes = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

const bytesOf = (value) =>
  value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);

/** A replacer for `JSON.stringify`. */
function shown() {
  const ancestors = [];
  return function (_, value) {
    const plain = asPlain(value);
    if (typeof plain !== "object" || plain === null) return plain;
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(plain)) return "(cyclic)";
    ancestors.push(plain);
    return plain;
  };
}

function asPlain(value) {
  switch (typeof value) {
    case "bigint":
      return `${value}n`;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "undefined":
      return "(undefined)";
    case "object":
      if (value instanceof Map) return { Map: [...value] };
      if (value instanceof Set) return { Set: [...value] };
      if (value instanceof Error || value instanceof RegExp) return String(value);
      return isBytes(value) ? { bytes: base64(bytesOf(value)) } : value;
    default:
      return value;
  }
}

const base64 = (bytes) => btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
