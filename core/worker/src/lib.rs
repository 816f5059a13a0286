//! The core Worker: the RPC methods `publish` and `publishBatch`, and nothing else.
//!
//! `main.mjs` beside this crate shows them to callers as the named entrypoint `EventPlatformRpc`. Every export of this crate
//! is an RPC method, so there are no others. Rules live in `swarm-domain`; this crate reads what JavaScript hands over,
//! answers, and writes the outcomes of sends afterwards.

mod api;
mod input;
mod marks;
mod settings;

use swarm_cloudflare::log::Log;

const LOG: Log = Log::new("swarm-core");
