//! The batch that the runtime hands to a queue handler.

use js_sys::Uint8Array;
use serde_json::json;
use swarm_domain::inbox::{Disposition, RawBody};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use worker_sys::{Message, MessageBatch};

use crate::js;
use crate::log::Log;

#[wasm_bindgen(module = "/src/inbox.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = rawBody)]
    fn raw_body(body: &JsValue) -> JsValue;
}

/// A batch from a queue.
#[derive(Debug)]
pub struct Inbox {
    /// The queue's name.
    pub queue: String,
    /// Its messages, oldest first.
    pub letters: Vec<Letter>,
}

/// One message of a batch.
#[derive(Debug)]
pub struct Letter {
    /// The body, whatever its content type.
    pub body: RawBody,
    /// How often the queue has delivered it, this time included.
    pub attempts: u32,
    message: Message,
}

impl Inbox {
    /// Opens a batch, unless it is forged: any Worker that binds this one could call its queue handler with an object of its
    /// own making, but not with the runtime's class. The error is for the caller.
    pub fn open(batch: JsValue, log: &Log) -> Result<Self, JsValue> {
        Self::read(batch).ok_or_else(|| {
            log.error("refused a batch that does not come from the runtime", json!({}));
            js::error("this handler takes batches of its queue only")
        })
    }

    fn read(batch: JsValue) -> Option<Self> {
        if js::class_name(&batch)? != "QueueController" {
            return None;
        }
        let batch: MessageBatch = batch.unchecked_into();
        let queue = batch.queue().ok()?.as_string()?;
        let letters = batch.messages().ok()?.iter().map(Letter::open).collect();
        Some(Self { queue, letters })
    }

    /// Tells the queue what is to become of each message, in their order.
    pub fn answer(&self, dispositions: impl IntoIterator<Item = Disposition>) {
        for (letter, disposition) in self.letters.iter().zip(dispositions) {
            letter.answer(disposition);
        }
    }

    /// All messages to be delivered again, when the batch cannot even be looked at. The wait follows from the attempts.
    pub fn retry_all(&self, delay_seconds: impl Fn(u32) -> u32) {
        self.answer(
            self.letters
                .iter()
                .map(|letter| Disposition::Retry { delay_seconds: delay_seconds(letter.attempts) }),
        );
    }
}

impl Letter {
    fn open(message: JsValue) -> Self {
        let attempts = js::property(&message, "attempts").as_f64().unwrap_or(1.0) as u32;
        let message: Message = message.unchecked_into();
        let body = read_body(&message.body().unwrap_or(JsValue::NULL));
        Self { body, attempts, message }
    }

    /// The body, if it is text; it is gone from here then.
    pub fn take_text(&mut self) -> Option<String> {
        match &mut self.body {
            RawBody::Text(text) => Some(std::mem::take(text)),
            RawBody::Bytes(_) => None,
        }
    }

    /// Tells the queue what is to become of it.
    pub fn answer(&self, disposition: Disposition) {
        // Neither call can fail on a message that the runtime itself has handed over.
        let _ = match disposition {
            Disposition::Ack => self.message.ack(),
            Disposition::Retry { delay_seconds } => {
                self.message.retry(js::object(&[("delaySeconds", delay_seconds.into())]))
            }
        };
    }
}

fn read_body(body: &JsValue) -> RawBody {
    if let Some(text) = body.as_string() {
        return RawBody::Text(text);
    }
    let body = raw_body(body);
    match body.dyn_ref::<Uint8Array>() {
        Some(bytes) => RawBody::from_bytes(bytes.to_vec()),
        None => RawBody::Text(body.as_string().unwrap_or_default()),
    }
}
