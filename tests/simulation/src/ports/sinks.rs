//! Where operators read alerts.

use std::rc::Rc;

use swarm_domain::ports::{Post, SinkError, Sinks};

use crate::faults::Port;
use crate::process::Process;

/// The sinks in the hands of one run.
pub struct SimSinks(pub Rc<Process>);

impl Sinks for SimSinks {
    async fn post(&self, sink: &str, _: Post) -> Result<(), SinkError> {
        let what = format!("post to {sink}");
        let post = || *self.0.world.witness.borrow_mut().posts.entry(sink.to_owned()).or_default() += 1;
        let answer = self.0.call(Port::Sink, &what, post).await;
        answer.map_err(|problem| SinkError(problem.to_owned()))
    }
}
