// Signatures of private keys, verified by the runtime. What is no key or no signature has signed nothing.

const RSA = { name: "RSASSA-PKCS1-v1_5" };
const SCHEMES = {
  RsaSha1: { key: { ...RSA, hash: "SHA-1" }, signature: RSA },
  RsaSha256: { key: { ...RSA, hash: "SHA-256" }, signature: RSA },
  P256Sha256: { key: { name: "ECDSA", namedCurve: "P-256" }, signature: { name: "ECDSA", hash: "SHA-256" } },
  Ed25519: { key: { name: "Ed25519" }, signature: { name: "Ed25519" } },
};

export async function hasSigned(scheme, key, message, signature) {
  const algorithms = SCHEMES[scheme];
  try {
    const imported = await crypto.subtle.importKey("spki", key, algorithms.key, false, ["verify"]);
    return await crypto.subtle.verify(algorithms.signature, imported, signature, message);
  } catch {
    return false;
  }
}
