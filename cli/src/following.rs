//! Events as they arrive, not one left out: the gateway gives a cursor with every answer, and with it one goes on after any
//! loss of the network, after sleep, or in another run.

use std::thread;
use std::time::Duration;

use swarm_domain::events::EventFilterInput;
use swarm_domain::limits::EVENT_PAGE_MAX;

use crate::api::{Api, Event, Record};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::notes;

/// How long to wait when nothing has arrived.
const PACE: Duration = Duration::from_secs(1);

/// How long to wait when the gateway cannot be reached, at first and at most.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// A place in the stream of events, which moves on.
pub struct Following {
    filter: EventFilterInput,
    cursor: Option<String>,
}

impl Following {
    /// Begins at a cursor, or where the filter's time says, or now. Ctrl-C tells how to go on from then on.
    pub fn begin(filter: EventFilterInput, cursor: Option<String>) -> Result<Self, Failure> {
        interrupt::take_over()?;
        let following = Self { filter, cursor };
        following.remember();
        Ok(following)
    }

    /// Waits for events. What it gives counts as handled only when it is called again: until then Ctrl-C names the place
    /// before them.
    pub fn next(&mut self, api: &Api) -> Result<Vec<Record<Event>>, Failure> {
        self.remember();
        loop {
            let followed = self.ask(api)?;
            let is_first = self.cursor.is_none();
            let is_empty = followed.events.is_empty();
            self.cursor = Some(followed.next_cursor);
            if !is_empty {
                return Ok(followed.events);
            }
            self.remember();
            // A filter may have passed over everything of a page.
            if !followed.more && !is_first {
                thread::sleep(PACE);
            }
        }
    }

    /// Asks until there is an answer. The same cursor gives the same events again, so asking twice loses and doubles nothing.
    fn ask(&self, api: &Api) -> Result<crate::api::Followed, Failure> {
        let (mut pause, longest) = PATIENCE;
        let mut was_away = false;
        loop {
            let failure = match api.follow(&self.filter, EVENT_PAGE_MAX, self.cursor.as_deref()) {
                Ok(followed) => {
                    if was_away {
                        notes::note("the gateway answers again");
                    }
                    return Ok(followed);
                }
                Err(failure) if failure.kind() == Kind::Unavailable => failure,
                Err(failure) => return Err(failure.and_some(self.way_on())),
            };
            if !was_away {
                notes::note(&format!("{}; trying again until it answers", failure.message()));
            }
            was_away = true;
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(longest);
        }
    }

    fn remember(&self) {
        interrupt::say(&self.way_on().unwrap_or_default(), None);
    }

    fn way_on(&self) -> Option<String> {
        self.cursor.as_ref().map(|cursor| format!("to go on from here, add --cursor {cursor}"))
    }
}
