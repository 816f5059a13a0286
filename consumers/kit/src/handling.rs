//! Bringing messages and their payloads to the handler.

use swarm_domain::ids::payload_hash;
use swarm_domain::message::{Body, Message};
use swarm_domain::payload::is_blob_of;
use swarm_domain::ports::Blobs;

use crate::consume::Ticket;
use crate::failure::Failure;
use crate::handler::{Delivery, Handled, Handler};

/// A part of a batch is handed over as soon as its payloads reach this size, because an isolate has 128 MB of memory and a
/// hundred payloads of the largest kind would not find room in it.
const LOADED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A message and what its handler said.
pub type HandledTicket = (Ticket, Result<Handled, Failure>);

/// Handles messages in order, in as few parts as their payloads allow.
pub async fn handle<B: Blobs, H: Handler>(
    blobs: &B,
    handler: &H,
    messages: Vec<(Ticket, Message)>,
) -> Vec<HandledTicket> {
    let mut handled = Vec::with_capacity(messages.len());
    let mut part = Part::default();
    for (ticket, message) in messages {
        match load(blobs, message, ticket.incoming.attempts).await {
            Ok(delivery) => part.push(ticket, delivery),
            Err(failure) => handled.push((ticket, Err(failure))),
        }
        if part.bytes > LOADED_BYTES_MAX {
            handled.extend(std::mem::take(&mut part).handle(handler).await);
        }
    }
    handled.extend(part.handle(handler).await);
    handled
}

/// Messages whose payloads are in memory.
#[derive(Default)]
struct Part {
    tickets: Vec<Ticket>,
    deliveries: Vec<Delivery>,
    bytes: usize,
}

impl Part {
    fn push(&mut self, ticket: Ticket, delivery: Delivery) {
        self.bytes += delivery.payload.len();
        self.tickets.push(ticket);
        self.deliveries.push(delivery);
    }

    async fn handle<H: Handler>(self, handler: &H) -> Vec<HandledTicket> {
        if self.deliveries.is_empty() {
            return Vec::new();
        }
        let mut results = handler.handle_batch(&self.deliveries).await.into_iter();
        let mut result =
            || results.next().unwrap_or_else(|| Err(Failure::transient("the handler gave no result")));
        self.tickets.into_iter().map(|ticket| (ticket, result())).collect()
    }
}

async fn load<B: Blobs>(blobs: &B, message: Message, attempts: u32) -> Result<Delivery, Failure> {
    let payload = match message.body {
        Body::Inline(payload) => payload,
        Body::Blob(key) => read_blob(blobs, &key).await?,
    };
    let Message { envelope, topic, replay_of, .. } = message;
    Ok(Delivery { envelope, payload, topic, replay_of, attempts })
}

/// A payload's key is made of its hash, so a damaged or mistaken object is noticed. All of this may heal, if only by an
/// operator's hand, so it is worth the remaining attempts.
async fn read_blob<B: Blobs>(blobs: &B, key: &str) -> Result<String, Failure> {
    let bytes =
        blobs.get(key).await.map_err(|error| Failure::unhandled(format!("payload {key}: {error}")))?;
    let bytes = bytes.ok_or_else(|| Failure::unhandled(format!("payload {key} is not in the blob store")))?;
    let text = String::from_utf8(bytes).ok().filter(|text| is_blob_of(key, &payload_hash(text)));
    text.ok_or_else(|| Failure::unhandled(format!("payload {key} is not what was stored under this key")))
}
