// Timers, and the queue in which Rust's futures wake each other.
//
// wasm-bindgen wakes futures through queueMicrotask, which in workerd is a call out of JavaScript and stood first in the core's
// profile. Chaining to a resolved promise puts the callback into the same queue from within.
const resolved = Promise.resolve();
globalThis.queueMicrotask = (callback) => void resolved.then(callback);

export const startTimer = (callback, ms) => setTimeout(callback, ms);
export const stopTimer = (timer) => clearTimeout(timer);

// What the promise brings, in an array; undefined if it takes longer. A deadline that was met leaves no timer behind.
export const within = (promise, ms) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const settle = (how) => (value) => {
      clearTimeout(timer);
      how(value);
    };
    promise.then(
      settle((value) => resolve([value])),
      settle(reject),
    );
  });
