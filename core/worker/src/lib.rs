//! The core Worker: the RPC methods `publish` and `publishBatch`, and nothing else.
//!
//! `main.mjs` beside this crate shows them to callers as the named entrypoint `EventPlatformRpc`. Every export of this crate
//! is an RPC method, so there are no others. Rules live in `swarm-domain`; this crate reads what JavaScript hands over,
//! answers, and writes the outcomes of sends afterwards.

mod api;
mod input;
mod marks;
mod settings;

// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use swarm_cloudflare::log::Log;
use worker as _;

const LOG: Log = Log::new("swarm-core");
