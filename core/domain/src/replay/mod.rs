//! Replays: having events sent once more on an operator's wish, one incident at a time or many at a measured pace.
//!
//! A replay always goes through the outbox. One batch moves the incident to `retrying` and its dispatch to `pending`, already
//! claimed by the replaying run; then comes the ordinary send. A run that dies after the batch leaves an ordinary dispatch
//! behind whose claim ends, and the sweeper sends it.

mod create;
mod job;
mod jobs;
mod moving;
mod one;
mod pace;
mod pages;
mod runner;
mod sending;
mod step;

pub use create::{COUNT_BY_STATUS, COUNT_BY_TENANT, COUNT_EVENTS, INSERT_JOB, JobRequest, LOG_JOB, Of};
pub use job::{Job, JobState};
pub use jobs::{
    CANCEL, Jobs, LIST_JOBS, LOG_CANCEL, READ_CANCELLED, READ_JOB, READ_PROGRESS_OF, RUNNING_JOBS,
};
pub use moving::{
    INSERT_MISSING, LOG_MOVED, LOG_ONE, MOVE_EVENTS, MOVE_INCIDENTS, MOVE_ONE, RETRY_INCIDENTS, RETRY_ONE,
    TAKE_STEP,
};
pub use one::{READ_ONE, Replayed};
pub use pages::{
    NEXT_EVENTS, NEXT_INCIDENTS_BY_STATUS, NEXT_INCIDENTS_BY_TENANT, OPEN_PROGRESS, READ_PROGRESS,
};
pub use runner::{COMPLETE, RELEASE_RUNNER, RENEW_RUNNER, TAKE_RUNNER};
pub use sending::Replayer;
