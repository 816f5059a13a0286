// Timers, and the queue in which Rust's futures wake each other.
//
// wasm-bindgen wakes futures through queueMicrotask, which in workerd is a call out of JavaScript and stood first in the core's
// profile. Chaining to a resolved promise puts the callback into the same queue from within.
const resolved = Promise.resolve();
globalThis.queueMicrotask = (callback) => void resolved.then(callback);

export const startTimer = (callback, ms) => setTimeout(callback, ms);
export const stopTimer = (timer) => clearTimeout(timer);
