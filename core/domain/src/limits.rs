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
/// How often a handler may be started for a message without ever coming to an end.
pub const HANDLE_STARTS_MAX: u32 = 3;
/// What a dispatch's history keeps at most, in entries.
pub const HISTORY_ENTRIES_MAX: usize = 50;
/// How much of an error it keeps, in characters.
pub const HISTORY_ERROR_CHARS_MAX: usize = 500;
/// How much of a failure's stack is kept, in bytes.
pub const STACK_BYTES_MAX: usize = 4_000;
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
/// The most often that a queue delivers a message again before it drops it.
pub const QUEUE_RETRIES_MAX: u32 = 100;
/// The longest that a queue can be told to keep a message, in seconds. It drops what is older.
pub const QUEUE_RETENTION_SECONDS_MAX: u32 = 14 * 86_400;
/// How long after a dispatch was dead-lettered its incident must be there; then the sweeper writes it without the letter.
pub const ARCHIVE_DEADLINE_MS: i64 = 15 * 60_000;
/// The first retry of a dead letter that could not be archived; each further one waits twice as long.
pub const ARCHIVE_RETRY_BASE_SECONDS: u32 = 15;
/// The longest wait of such a letter: a hundred retries then outlast an outage of eleven days.
pub const ARCHIVE_RETRY_SECONDS_MAX: u32 = 3 * 3_600;
/// Reports of failures in one statement, so that its parameter stays within 2 MB.
pub const REPORTS_PER_STATEMENT_MAX: usize = 40;

/// Dispatches that the sweeper reads in one round trip.
pub const SWEEP_PAGE_MAX: usize = 100;
/// Payloads that it reads in one round trip, in bytes, so that many topics at once find room in an isolate's 128 MB.
pub const SWEEP_PAGE_BYTES_MAX: usize = 1_000_000;
/// How long a run of the sweeper owns a topic unless it says that it is still there.
pub const SWEEP_LANE_MS: i64 = 60_000;
/// How long a run of the sweeper may take, in seconds: less than the two minutes until the next one.
pub const SWEEP_SECONDS_DEFAULT: i64 = 90;
/// How many calls of databases and queues a run of the sweeper may make.
pub const SWEEP_SUBREQUESTS_DEFAULT: i64 = 900;
/// How many such calls the platform allows to one run of a Worker.
pub const SUBREQUESTS_MAX: i64 = 10_000;
/// How much of an error's text is kept, in bytes.
pub const ERROR_BYTES_MAX: usize = 2_000;

/// Events on one page of a list.
pub const EVENT_PAGE_MAX: usize = 200;
/// Events of a shard that one page looks at.
pub const EVENTS_LOOKED_AT_MAX: usize = 5_000;
/// How far the times of events may be out of the order in which they were recorded.
pub const EVENTS_CLOCK_SKEW_MS: i64 = 5 * 60_000;
/// Incidents on one page of a list.
pub const INCIDENT_PAGE_MAX: usize = 200;
/// Entries of its log that an incident is shown with.
pub const INCIDENT_LOG_MAX: usize = 200;
/// An operator's note, in bytes.
pub const OPERATION_NOTE_BYTES_MAX: usize = 2_000;
/// Messages a second of a replay of many whose operator does not say otherwise.
pub const REPLAY_RATE_PER_SECOND_DEFAULT: u32 = 50;
/// The fastest replay of many, in messages a second.
pub const REPLAY_RATE_PER_SECOND_MAX: u32 = 1_000;
/// Messages that a replay of many sends in one step.
pub const REPLAY_STEP_MAX: usize = 100;
/// Topics that a replay of events may name.
pub const REPLAY_TOPICS_MAX: usize = 20;
/// How far a replay of many may lag behind its rate and still catch up, in milliseconds.
pub const REPLAY_CATCH_UP_MS: i64 = 1_000;
/// How long a runner keeps a replay of many to itself without a sign of life.
pub const REPLAY_RUNNER_LEASE_MS: i64 = 90_000;
/// How often a runner looks whether another one has ended.
pub const REPLAY_RUNNER_POLL_MS: u64 = 1_000;
/// Replays of many that are shown, the newest.
pub const REPLAYS_SHOWN_MAX: usize = 100;
/// Replays of many that run at the same time; further ones wait. At the highest rate, each makes forty calls a second.
pub const REPLAYS_RUNNING_MAX: usize = 3;
/// How long a run of the replays takes that cron starts: until the next one begins, or their pace would have gaps.
pub const REPLAY_SECONDS_DEFAULT: i64 = 58;
/// How long an operator's call works on a replay, in milliseconds.
pub const REPLAY_CALL_MS_MAX: i64 = 5_000;

/// The largest body of a rejected request that is kept, in bytes.
pub const REJECTED_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Rejected requests that are kept a minute, of each provider and by each instance. `REJECTED_PER_MINUTE` changes it.
pub const REJECTED_PER_MINUTE_DEFAULT: i64 = 60;
/// How long counts of rejected requests wait in memory to be written together, in milliseconds.
pub const REJECTED_COUNTS_WAIT_MS: u64 = 10_000;
/// How long rejected requests are kept, in days. `REJECTED_DAYS` changes it.
pub const REJECTED_DAYS_DEFAULT: i64 = 7;
/// How long counts of them are kept, in days.
pub const REJECTION_COUNTS_DAYS: i64 = 30;
/// Kept requests on one page of a list.
pub const REJECTED_PAGE_MAX: usize = 200;
/// Kept requests that are looked at for one page.
pub const REJECTED_LOOKED_AT_MAX: usize = 10_000;
/// Kept requests that one call has verified again.
pub const REVERIFY_CALL_MAX: usize = 20;
/// Kept requests that are removed in one run when their time is over.
pub const REJECTED_EXPIRED_MAX: usize = 50_000;

/// How long after an alert an incident that is still open is told of again. `ALERT_OPEN_HOURS` changes it.
pub const ALERT_OPEN_HOURS_DEFAULT: i64 = 24;
/// How long something may be overdue in the outbox before operators are told. `ALERT_OUTBOX_MINUTES` changes it.
pub const ALERT_OUTBOX_MINUTES_DEFAULT: i64 = 15;
/// Incidents of a shard that one round of alerting tells of.
pub const ALERT_INCIDENTS_MAX: usize = 5_000;
/// Rounds of alerting in one run.
pub const ALERT_ROUNDS_MAX: usize = 10;
/// Overdue dispatches of a topic in a shard that are counted; beyond that an alert says "or more".
pub const ALERT_OVERDUE_MAX: usize = 1_000;
/// Different errors that an alert shows.
pub const ALERT_ERRORS_SHOWN_MAX: usize = 3;
/// How much of an error an alert shows, in characters.
pub const ALERT_ERROR_CHARS_MAX: usize = 160;
/// Incidents that an alert names.
pub const ALERT_INCIDENTS_SHOWN_MAX: usize = 5;
/// Alerts that one run posts to a sink.
pub const ALERT_POSTS_MAX: usize = 50;
/// How long a sink may take to answer.
pub const ALERT_DEADLINE_MS: i64 = 5_000;
/// The first retry of an alert that its sink did not take; each further one waits twice as long.
pub const ALERT_RETRY_BASE_MS: i64 = 60_000;
/// The longest wait of such an alert.
pub const ALERT_RETRY_MS_MAX: i64 = 3_600_000;
/// How long one run of alerting may take, in seconds: less than the minute until the next one.
pub const ALERT_SECONDS: i64 = 40;
/// How old an alert is when nobody tries any more to get rid of it.
pub const ALERT_GIVE_UP_MS: i64 = 3 * 24 * 3_600_000;
/// How long an alert that was sent or given up is kept.
pub const ALERT_KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// How long an event is kept, in days, unless the configuration says otherwise.
pub const RETENTION_DAYS_DEFAULT: u32 = 90;
/// The longest time that a configuration may name, in days.
pub const RETENTION_DAYS_MAX: u32 = 36_500;
/// How long an old event must have been left alone before it goes, if it is kept that long at all: as long as a queue may
/// hold a message of it.
pub const RETENTION_REST_DAYS_MAX: u32 = QUEUE_RETENTION_SECONDS_MAX / 86_400;
/// Tenants that retention looks at in one round trip.
pub const RETENTION_TENANTS_MAX: usize = 50;
/// Events that retention looks at in one round trip.
pub const RETENTION_PAGE_MAX: usize = 500;
/// Payloads in one object of the archive, in bytes, so that writing and reading it fits into a Worker's memory.
pub const ARCHIVE_PART_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// One line of the archive, in bytes.
pub const ARCHIVE_LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Events that one run moves to the archive. `RETENTION_EVENTS` changes it.
pub const RETENTION_EVENTS_DEFAULT: i64 = 50_000;
/// How long one run of retention may take, in seconds. `RETENTION_SECONDS` changes it.
pub const RETENTION_SECONDS_DEFAULT: i64 = 600;
/// Payloads of which one round trip tells whether they are still needed.
pub const RETENTION_PAYLOADS_MAX: usize = 500;
/// Records of alerts or replays that one run deletes at once.
pub const RETENTION_RECORDS_MAX: usize = 1_000;
/// Objects of the archive on one page of a list.
pub const ARCHIVES_SHOWN_MAX: usize = 1_000;
/// Events that are restored in one round trip.
pub const RESTORE_PAGE_MAX: usize = 100;
/// What these may weigh, in bytes, so that a parameter stays within 2 MB.
pub const RESTORE_PAGE_BYTES_MAX: usize = 700_000;

const _: () = {
    assert!(ALERT_INCIDENTS_MAX * 120 < 2_000_000);
    assert!(RETENTION_REST_DAYS_MAX < RETENTION_DAYS_DEFAULT);
    assert!(REPLAY_STEP_MAX <= QUEUE_BATCH_MESSAGES_MAX);
    assert!(REPLAY_TOPICS_MAX <= REPLAY_STEP_MAX);
    assert!(MESSAGE_INLINE_BYTES_MAX < QUEUE_MESSAGE_BYTES_MAX);
    assert!(PAYLOAD_INLINE_BYTES_MAX < MESSAGE_INLINE_BYTES_MAX);
    assert!(QUEUE_MESSAGE_BYTES_MAX <= QUEUE_BATCH_BYTES_MAX);
    // The lease of a sender outlasts its sends and the wait for the mark, or a healthy event would be sent twice.
    assert!(SEND_LEASE_MS > 2 * (SEND_DEADLINE_MS + MARKS_WAIT_MS_DEFAULT as i64));
    // A consumer's lease outlasts the 15 minutes that the platform gives a consumer.
    assert!(HANDLE_LEASE_MS > 15 * 60_000);
    assert!(MARKS_PER_STATEMENT_MAX * (ERROR_BYTES_MAX + 1_000) < 2_000_000);
    // A text of control characters takes six times its size in JSON.
    assert!(REPORTS_PER_STATEMENT_MAX * (6 * (ERROR_BYTES_MAX + STACK_BYTES_MAX) + 8_000) < 2_000_000);
    assert!(6 * PAYLOAD_INLINE_BYTES_MAX + 20_000 < 2_000_000);
    // The retries of a dead letter use up what a queue can offer, and not more than it keeps.
    assert!(QUEUE_RETRIES_MAX * ARCHIVE_RETRY_SECONDS_MAX < QUEUE_RETENTION_SECONDS_MAX);
    assert!(ARCHIVE_RETRY_SECONDS_MAX <= QUEUE_DELAY_SECONDS_MAX);
    // A page of the sweeper fits into one batch unless its payloads are large, and its outcomes into one parameter, where a
    // text of control characters takes six times its size.
    assert!(SWEEP_PAGE_MAX <= QUEUE_BATCH_MESSAGES_MAX);
    assert!(SWEEP_PAGE_MAX * (6 * ERROR_BYTES_MAX + 2_000) < 2_000_000);
    // The sweeper keeps its topic while D1 takes its longest and the queues take theirs.
    assert!(SWEEP_LANE_MS > 30_000 + 2 * SEND_DEADLINE_MS);
    assert!(SWEEP_SUBREQUESTS_DEFAULT <= SUBREQUESTS_MAX);
};
