//! The world as the domain sees it. Each method says what a crash leaves behind; those are the points where tests put
//! their faults.
//!
//! Workers are single-threaded, so no future here is `Send`.
#![allow(async_fn_in_trait)]

use serde::de::DeserializeOwned;

use crate::time::Timestamp;
use crate::topic::Topic;

/// The largest integer that SQL may carry: beyond 2^53 − 1 D1's numbers are no longer exact.
pub const SQL_INTEGER_MAX: i64 = (1 << 53) - 1;
/// The longest text and the largest row, in bytes. D1 enforces it; its local stand-in does not.
pub const SQL_TEXT_BYTES_MAX: usize = 2_000_000;
/// Parameters of one statement.
pub const SQL_PARAMETERS_MAX: usize = 100;

/// A value bound to a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A whole number within ± [`SQL_INTEGER_MAX`]; a port refuses others, since D1 would round them.
    Integer(i64),
    /// Text.
    Text(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Timestamp> for Value {
    fn from(moment: Timestamp) -> Self {
        Self::Text(moment.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One SQL statement with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// SQL with `?1`, `?2`, …
    pub sql: &'static str,
    /// The parameters, first to last.
    pub values: Vec<Value>,
}

impl Statement {
    /// A statement from its parts.
    pub fn new(sql: &'static str, values: Vec<Value>) -> Self {
        Self { sql, values }
    }
}

/// What a statement did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The rows it returned, as a JSON array of objects; empty text for none.
    pub rows: String,
    /// Rows inserted, updated or deleted.
    pub changes: u64,
}

impl Outcome {
    /// The rows as values.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<Vec<T>, SqlError> {
        if self.rows.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_str(&self.rows).map_err(|e| SqlError::Failed(format!("unexpected row: {e}")))
    }
}

/// Why a batch did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The connection broke or the database is overloaded. **The batch may have been committed all the same.**
    #[error("the database did not answer: {0}")]
    Unavailable(String),
    /// A constraint refused it. Nothing was written.
    #[error("a constraint refused the statement: {0}")]
    Constraint(String),
    /// It can never succeed: bad SQL, a value out of range, too many parameters. Nothing was written.
    #[error("the statement failed: {0}")]
    Failed(String),
}

/// One ledger shard.
pub trait Sql {
    /// Runs the statements in order in one transaction and in one round trip. A crash before it leaves nothing; a crash
    /// after it leaves everything; an [`SqlError::Unavailable`] leaves one of the two, and the caller cannot tell which, so
    /// every batch must be harmless when it runs again.
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError>;
}

/// Why a queue did not take a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The Worker has no binding for the topic, so it takes nothing.
    #[error("no binding {0} for this topic")]
    NoBinding(String),
    /// The queue behind the binding is gone or closed to us, so it takes nothing.
    #[error("{0}")]
    NoQueue(String),
    /// The queue will never take this message. Of a batch, one message may be at fault, or only their number.
    #[error("{0}")]
    Rejected(String),
    /// The queue did not take it this time, or its answer was lost: **the message may be in the queue all the same.**
    #[error("{0}")]
    Refused(String),
}

impl SendError {
    /// Whether sending the same again is in vain until somebody changes a configuration or the message.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// The topic queues, or with [`Queues::send_dead_letter`] the dead-letter queues, that this Worker may write to.
pub trait Queues {
    /// Sends one message. A crash after it leaves the message in the queue, so it will be sent again and the consumer drops
    /// the second.
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError>;

    /// Sends messages, all or none, within the limits of `sendBatch`.
    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError>;

    /// Sends one message to the topic's dead-letter queue.
    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError>;
}

/// Why the blob store did not answer; a write may have happened all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the blob store failed: {0}")]
pub struct BlobError(pub String);

/// Objects under keys that are functions of their content or of their origin, so that writing one twice is harmless.
pub trait Blobs {
    /// Stores the bytes, unless the key exists already.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError>;

    /// Reads an object; `None` if there is none.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError>;
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its size.
    pub bytes: u64,
}

/// A part of a list of objects, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Listed>,
    /// Whether further ones follow.
    pub more: bool,
}

/// What only those need who keep and clear away objects; whoever just stores and reads them cannot delete any.
pub trait BlobKeeping: Blobs {
    /// Copies an object over whatever is at the other key; `false` if there is nothing to copy. A crash leaves the copy or
    /// none.
    async fn copy(&self, from: &str, to: &str) -> Result<bool, BlobError>;

    /// Lists objects whose keys begin with `prefix` and come after `after`.
    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Listing, BlobError>;

    /// Deletes objects; those that are not there count as deleted. A crash or an error leaves any of them.
    async fn delete(&self, keys: &[String]) -> Result<(), BlobError>;
}

/// A message for a sink of alerts, ready to be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Headers, with lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The body, which is JSON.
    pub body: String,
}

/// Why a sink did not take a message. It may have taken it all the same. The text holds neither address nor secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Where operators read alerts. A sink's address is a secret, so only the port knows it.
pub trait Sinks {
    /// Posts a message to the sink of this name, and waits for its answer no longer than
    /// [`ALERT_DEADLINE_MS`](crate::limits::ALERT_DEADLINE_MS). A crash after it leaves the message posted, so it is posted
    /// again.
    async fn post(&self, sink: &str, post: Post) -> Result<(), SinkError>;
}

/// The time. Only loops that run for long ask for it; everything else is told.
pub trait Clock {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Waits. A crash meanwhile leaves nothing behind; who has waited looks at the clock and at the ledger again.
    async fn sleep_ms(&self, ms: u64);
}
