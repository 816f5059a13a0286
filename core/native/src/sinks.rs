//! Sinks of alerts in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use swarm_domain::ports::{Post, SinkError, Sinks};

/// What every sink was told, and which ones are down.
#[derive(Clone, Debug, Default)]
pub struct MemorySinks(Rc<State>);

#[derive(Debug, Default)]
struct State {
    posts: RefCell<BTreeMap<String, Vec<Post>>>,
    down: RefCell<BTreeMap<String, String>>,
}

impl MemorySinks {
    /// Sinks of any name, which take everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a sink was told, oldest first.
    pub fn posts(&self, sink: &str) -> Vec<Post> {
        self.0.posts.borrow().get(sink).cloned().unwrap_or_default()
    }

    /// Lets a sink refuse everything from now on, with this reason.
    pub fn set_down(&self, sink: &str, reason: &str) {
        self.0.down.borrow_mut().insert(sink.to_owned(), reason.to_owned());
    }

    /// Lets a sink take everything again.
    pub fn set_up(&self, sink: &str) {
        self.0.down.borrow_mut().remove(sink);
    }
}

impl Sinks for MemorySinks {
    async fn post(&self, sink: &str, post: Post) -> Result<(), SinkError> {
        if let Some(reason) = self.0.down.borrow().get(sink) {
            return Err(SinkError(reason.clone()));
        }
        self.0.posts.borrow_mut().entry(sink.to_owned()).or_default().push(post);
        Ok(())
    }
}
