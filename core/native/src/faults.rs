//! Ports that fail on demand.
//!
//! A call can fail before anything happened, or after it happened with the answer lost; the caller sees the same. Faults
//! are given by the number of the call. Every call gives up its turn just before and just after it, so that tests can let
//! something else run there, or drop the future there as a crash would. What a wrapper never does: lose what was
//! committed, or carry out half a batch.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use swarm_domain::ports::{
    BlobError, BlobKeeping, Blobs, Listing, Outcome, Post, Queues, SendError, SinkError, Sinks, Sql,
    SqlError, Statement,
};
use swarm_domain::topic::Topic;

use crate::run::yield_now;

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens.
    Refused,
    /// It happens, and nobody is told.
    AnswerLost,
}

/// A port with faults and a count of its calls, which for [`Sql`] are round trips.
#[derive(Clone, Debug)]
pub struct Flaky<P> {
    port: P,
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: Cell<usize>,
    at: RefCell<BTreeMap<usize, Fault>>,
    always: Cell<Option<Fault>>,
}

const REASON: &str = "fault injected by a test";

impl<P> Flaky<P> {
    /// A port without faults yet.
    pub fn new(port: P) -> Self {
        Self { port, state: Rc::default() }
    }

    /// The port itself, which never fails and does not count.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.state.calls.get()
    }

    /// Lets a call to come fail: 0 is the next one, 1 the one after it.
    pub fn fail_at(&self, calls_ahead: usize, fault: Fault) {
        self.state.at.borrow_mut().insert(self.calls() + calls_ahead, fault);
    }

    /// Lets every call fail from now on.
    pub fn fail_always(&self, fault: Fault) {
        self.state.always.set(Some(fault));
    }

    /// Takes back all faults that have not happened yet.
    pub fn heal(&self) {
        self.state.always.set(None);
        self.state.at.borrow_mut().clear();
    }

    /// Carries out one call, or half of it.
    async fn call<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
        error: fn(String) -> E,
    ) -> Result<T, E> {
        let number = self.calls();
        self.state.calls.set(number + 1);
        let fault = self.state.at.borrow_mut().remove(&number).or(self.state.always.get());
        yield_now().await;
        if fault == Some(Fault::Refused) {
            return Err(error(REASON.to_owned()));
        }
        let answer = call.await;
        yield_now().await;
        match (fault, answer) {
            (Some(Fault::AnswerLost), Ok(_)) => Err(error(REASON.to_owned())),
            (_, answer) => answer,
        }
    }
}

impl<P: Sql> Sql for Flaky<P> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        self.call(self.port.batch(statements), SqlError::Unavailable).await
    }
}

impl<P: Queues> Queues for Flaky<P> {
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.call(self.port.send(topic, message), SendError::Refused).await
    }

    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError> {
        self.call(self.port.send_batch(topic, messages), SendError::Refused).await
    }

    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.call(self.port.send_dead_letter(topic, message), SendError::Refused).await
    }
}

impl<P: Blobs> Blobs for Flaky<P> {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.call(self.port.put(key, bytes), BlobError).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError> {
        self.call(self.port.get(key), BlobError).await
    }
}

impl<P: BlobKeeping> BlobKeeping for Flaky<P> {
    async fn copy(&self, from: &str, to: &str) -> Result<bool, BlobError> {
        self.call(self.port.copy(from, to), BlobError).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Listing, BlobError> {
        self.call(self.port.list(prefix, after, limit), BlobError).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobError> {
        self.call(self.port.delete(keys), BlobError).await
    }
}

impl<P: Sinks> Sinks for Flaky<P> {
    async fn post(&self, sink: &str, post: Post) -> Result<(), SinkError> {
        self.call(self.port.post(sink, post), SinkError).await
    }
}
