//! Packing messages into as few calls of `sendBatch` as its limits allow.

use crate::claim::Claimed;
use crate::limits::{QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use crate::topic::Topic;

/// Bytes that the platform adds to each message of a batch.
const MESSAGE_OVERHEAD_BYTES: usize = 100;

/// Messages of one topic that fit into one `sendBatch`, each with what it stands for.
pub(crate) struct Batch<T = Claimed> {
    pub(crate) topic: Topic,
    pub(crate) claimed: Vec<T>,
    pub(crate) texts: Vec<String>,
    bytes: usize,
}

/// Packs dispatches by topic, in the order they came, within the limits of `sendBatch`.
pub(crate) fn pack(claimed: Vec<Claimed>) -> Vec<Batch> {
    pack_texts(claimed.into_iter().filter_map(|claimed| {
        // A message that cannot be written is left to its claim's end; the shape of ours always can.
        let text = claimed.message.encode().ok()?;
        Some((claimed.message.topic.clone(), claimed, text))
    }))
}

/// Packs the texts of messages in the same way, each with its topic and with what it stands for.
pub(crate) fn pack_texts<T>(messages: impl IntoIterator<Item = (Topic, T, String)>) -> Vec<Batch<T>> {
    let mut batches: Vec<Batch<T>> = Vec::new();
    for (topic, claimed, text) in messages {
        let bytes = text.len() + MESSAGE_OVERHEAD_BYTES;
        let open = batches.iter_mut().rev().find(|batch| batch.topic == topic);
        match open {
            Some(batch) if batch.has_room_for(bytes) => batch.push(claimed, text, bytes),
            _ => batches.push(Batch { topic, claimed: vec![claimed], texts: vec![text], bytes }),
        }
    }
    batches
}

/// Whether a queue would never take the text, not even alone.
pub(crate) fn is_too_large(text: &str) -> bool {
    text.len() + MESSAGE_OVERHEAD_BYTES > QUEUE_MESSAGE_BYTES_MAX
}

impl<T> Batch<T> {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.texts.len() < QUEUE_BATCH_MESSAGES_MAX && self.bytes + bytes <= QUEUE_BATCH_BYTES_MAX
    }

    fn push(&mut self, claimed: T, text: String, bytes: usize) {
        self.claimed.push(claimed);
        self.texts.push(text);
        self.bytes += bytes;
    }
}
