// Fetches a small text from another service. A redirect is not followed, because it leads where nobody has looked.
export async function download(url, body, bytesMax, ms) {
  const init = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body };
  const response = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.timeout(ms) });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`HTTP ${response.status}`);
  }
  let [text, bytes] = ["", 0];
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw new Error(`more than ${bytesMax} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
