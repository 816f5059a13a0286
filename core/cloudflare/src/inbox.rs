//! The batch that the runtime hands to a queue handler.

use wasm_bindgen::{JsCast, JsValue};
use worker_sys::{Message, MessageBatch};

use crate::js;

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
    /// The body; a body that is not text is given as its JSON.
    pub text: String,
    /// How often the queue has delivered it, this time included.
    pub attempts: u32,
    message: Message,
}

impl Inbox {
    /// Opens a batch, unless it is forged: any Worker that binds this one could call its queue handler with an object of its
    /// own making, but not with the runtime's class.
    pub fn open(batch: JsValue) -> Option<Self> {
        if js::class_name(&batch)? != "QueueController" {
            return None;
        }
        let batch: MessageBatch = batch.unchecked_into();
        let queue = batch.queue().ok()?.as_string()?;
        let letters = batch.messages().ok()?.iter().map(Letter::open).collect();
        Some(Self { queue, letters })
    }
}

impl Letter {
    fn open(message: JsValue) -> Self {
        let attempts = js::property(&message, "attempts").as_f64().unwrap_or(1.0) as u32;
        let message: Message = message.unchecked_into();
        let body = message.body().unwrap_or(JsValue::NULL);
        Self { text: as_text(&body), attempts, message }
    }

    /// Done with: the queue forgets it.
    pub fn ack(&self) {
        // Neither call can fail on a message that the runtime itself has handed over.
        let _ = self.message.ack();
    }

    /// To be delivered again after a while.
    pub fn retry(&self, delay_seconds: u32) {
        let _ = self.message.retry(js::object(&[("delaySeconds", delay_seconds.into())]));
    }
}

fn as_text(body: &JsValue) -> String {
    let json = || js_sys::JSON::stringify(body).ok()?.unchecked_into::<JsValue>().as_string();
    body.as_string().or_else(json).unwrap_or_default()
}

/// Whether a scheduled event is the runtime's own.
pub fn is_scheduled_event(event: &JsValue) -> bool {
    js::class_name(event).as_deref() == Some("ScheduledController")
}

/// All messages of a batch to be delivered again, when it cannot even be looked at.
pub fn retry_all(inbox: &Inbox, delay_seconds: u32) {
    inbox.letters.iter().for_each(|letter| letter.retry(delay_seconds));
}
