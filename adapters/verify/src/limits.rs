//! Every bound of this crate, with its unit in its name.

/// How far the time in a signature may lie from the gateway's clock, before or after, when nothing else is
/// configured. 300 s is what stripe-node 23.1.0 uses as its default.
pub const DEFAULT_TOLERANCE_SECONDS: u64 = 300;

/// Longest event id, and longest of the other short texts that are taken from a body. The platform's own limit
/// for an event id; Stripe's ids are about 30 characters long.
pub const SHORT_TEXT_LENGTH_MAX: usize = 200;

/// Longest event type with the provider's name in front, the platform's own limit.
pub const EVENT_TYPE_LENGTH_MAX: usize = 128;

/// Deepest nesting of arrays and objects in a body. Deeper text is legal JSON, but readers further down the
/// line that recurse would have to be trusted with it.
pub const JSON_DEPTH_MAX: usize = 128;

/// Shortest secret in a list that was split at blanks and commas. A shorter piece is rather a word of a pass
/// phrase, and as a secret of its own it could be guessed.
pub const SPLIT_SECRET_LENGTH_MIN: usize = 8;

/// Last millisecond of the year 9999, the last one that RFC 3339 can write.
pub const OCCURRED_AT_UNIX_MS_MAX: i64 = 253_402_300_799_999;

// A day or more of tolerance would make the freshness check a formality.
const _: () = assert!(DEFAULT_TOLERANCE_SECONDS > 0 && DEFAULT_TOLERANCE_SECONDS < 86_400);
