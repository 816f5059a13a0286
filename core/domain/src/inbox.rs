//! What a queue hands over before anybody has read it, and what it is told in return.

/// A message's body, whatever its sender has put into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawBody {
    /// Text; a structured body is given as the text that shows it.
    Text(String),
    /// Bytes that are no text.
    Bytes(Vec<u8>),
}

impl RawBody {
    /// A body of bytes, which may well be text.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }

    /// The bytes of either kind.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// What the queue is told about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Forget it.
    Ack,
    /// Deliver it again.
    Retry {
        /// Not before.
        delay_seconds: u32,
    },
}
