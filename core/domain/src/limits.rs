//! Every bound of the gateway, with its unit in its name, and the relations between bounds checked by the compiler.

/// The longest `id` of an event, in characters (visible ASCII, so also bytes).
pub const EVENT_ID_CHARS_MAX: usize = 200;
/// The longest `tenantId`, in characters.
pub const TENANT_ID_CHARS_MAX: usize = 64;
/// The longest `type`, in characters.
pub const EVENT_TYPE_CHARS_MAX: usize = 128;
/// The longest of the optional text fields (`source`, `subject`, …), in bytes.
pub const FIELD_BYTES_MAX: usize = 512;
/// How much of a refused value an error message repeats, in characters.
pub const SHOWN_VALUE_CHARS_MAX: usize = 40;

/// Events in one `publishBatch`.
pub const PUBLISH_BATCH_MAX: usize = 100;
/// Payload of one event, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 25 * 1024 * 1024;
/// A payload up to this size lives in its ledger row; a larger one in R2, by content hash.
pub const PAYLOAD_INLINE_BYTES_MAX: usize = 64 * 1024;
/// Levels of nesting in a payload: what `serde_json` reads without special settings, so that any Rust consumer can.
pub const PAYLOAD_DEPTH_MAX: usize = 128;

/// A queue message above this size carries a reference instead of the payload.
pub const MESSAGE_INLINE_BYTES_MAX: usize = 120_000;
/// What Cloudflare Queues takes in one message, in bytes (its own ~100 bytes of metadata included).
pub const QUEUE_MESSAGE_BYTES_MAX: usize = 128_000;
/// Messages in one `sendBatch`.
pub const QUEUE_BATCH_MESSAGES_MAX: usize = 100;
/// Bytes in one `sendBatch`.
pub const QUEUE_BATCH_BYTES_MAX: usize = 256_000;

/// How long one send to a queue may take before it counts as failed.
pub const SEND_DEADLINE_MS: i64 = 5_000;
/// How long a runner that is about to send keeps a dispatch to itself.
pub const SEND_LEASE_MS: i64 = 120_000;
/// How long a consumer keeps a dispatch to itself while it handles the message (the platform ends it after 15 minutes).
pub const HANDLE_LEASE_MS: i64 = 16 * 60_000;
/// How long outcomes of sends wait in the isolate before they are written together. Most events are delivered by then, and
/// their marks cost nothing. The runtime lets work go on for 30 seconds after an answer.
pub const MARKS_WAIT_MS_DEFAULT: u64 = 15_000;
/// As soon as this many outcomes wait, they are written.
pub const MARKS_WAITING_MAX: usize = 2_000;
/// Outcomes in one statement, so that its parameter stays within 2 MB.
pub const MARKS_PER_STATEMENT_MAX: usize = 200;
/// How long after `enqueued` a dispatch is sent again if no consumer has settled it. Queues expire messages silently.
pub const IN_TRANSIT_DEADLINE_MS_DEFAULT: i64 = 24 * 3_600_000;

/// Failed sends after which a dispatch is given up.
pub const SEND_ATTEMPTS_MAX: u32 = 5;
/// The first retry of a failed send; each further one waits twice as long.
pub const SEND_RETRY_BASE_MS: i64 = 2 * 60_000;
/// The first retry of a message that a consumer could not handle; each further one waits twice as long.
pub const HANDLE_RETRY_BASE_SECONDS: u32 = 5;
/// The longest delay that a queue takes, in seconds.
pub const QUEUE_DELAY_SECONDS_MAX: u32 = 86_400;

/// Dispatches that the sweeper claims from one shard in one round trip.
pub const SWEEP_CLAIM_MAX: usize = 100;
/// Rounds of claim and send in one run of the sweeper.
pub const SWEEP_ROUNDS_MAX: usize = 200;
/// How much of an error's text is kept, in bytes.
pub const ERROR_BYTES_MAX: usize = 2_000;

const _: () = {
    assert!(MESSAGE_INLINE_BYTES_MAX < QUEUE_MESSAGE_BYTES_MAX);
    assert!(PAYLOAD_INLINE_BYTES_MAX < MESSAGE_INLINE_BYTES_MAX);
    assert!(QUEUE_MESSAGE_BYTES_MAX <= QUEUE_BATCH_BYTES_MAX);
    // The lease of a sender outlasts its sends and the wait for the mark, or a healthy event would be sent twice.
    assert!(SEND_LEASE_MS > 2 * (SEND_DEADLINE_MS + MARKS_WAIT_MS_DEFAULT as i64));
    // A consumer's lease outlasts the 15 minutes that the platform gives a consumer.
    assert!(HANDLE_LEASE_MS > 15 * 60_000);
    assert!(MARKS_PER_STATEMENT_MAX * (ERROR_BYTES_MAX + 1_000) < 2_000_000);
    // Everything that the sweeper claims at once must find room in the messages of a few batches.
    assert!(SWEEP_CLAIM_MAX <= QUEUE_BATCH_MESSAGES_MAX);
};
